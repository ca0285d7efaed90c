"""The tables of docs/models/split_gain.md: what is made of runs, and that the page shows what the tables hold."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.split_gain.__main__ import (
    LINE_CAMPAIGNS,
    LINES,
    LIVE,
    MODELS,
    OBJECT_CAMPAIGNS,
    OBJECTS,
    PAGE,
    campaign,
    filled,
    sections,
)
from benchmarks.split_gain.closed_forms import line_gain
from benchmarks.split_gain.csv_files import read_rows, write_rows
from benchmarks.split_gain.gains import LineRow, ObjectRow, gain_of, line_rows, object_rows
from benchmarks.split_gain.live import CELLS, LiveRow
from benchmarks.split_gain.prober_cells import CELLS as PROBER_CELLS
from benchmarks.split_gain.prober_cells import write_prober_cells
from benchmarks.split_gain.tables import outcome
from reference_sim.campaign import run_campaign
from reference_sim.simulation import simulate


def test_a_gain_is_the_quotient_of_throughputs_whichever_way_it_is_measured() -> None:
    times = gain_of([2.0, 2.2, 1.8], [1.0, 1.1, 0.9], are_times=True)
    rates = gain_of([0.5, 1 / 2.2, 1 / 1.8], [1.0, 1 / 1.1, 1 / 0.9], are_times=False)
    for gain in (times, rates):
        assert gain.gain == pytest.approx(1.0)
        assert gain.low == pytest.approx(1.0)
        assert gain.runs == 3


def test_half_and_double_cancel_and_leave_an_interval_about_zero() -> None:
    gain = gain_of([1.0, 1.0], [2.0, 0.5], are_times=True)
    assert gain.gain == pytest.approx(0.0)
    assert (1 + gain.low) * (1 + gain.high) == pytest.approx(1.0)
    # Student's 97.5 % quantile for one degree of freedom is 12.7; the deviation of both logarithms' mean is ln 2.
    assert math.log1p(gain.high) == pytest.approx(12.7062 * math.log(2), rel=1e-4)


def test_one_run_and_unequal_runs_have_no_gain() -> None:
    with pytest.raises(ValueError, match="at least two runs"):
        gain_of([1.0], [2.0], are_times=True)
    with pytest.raises(ValueError, match="shorter"):
        gain_of([1.0, 1.0], [2.0], are_times=True)


def test_rows_pair_runs_by_their_seeds_and_survive_the_file(tmp_path: Path) -> None:
    quick = campaign("split-gain-lines", is_quick=True)
    loss = "path[2].down.loss.probability"
    small = replace(quick, repeats=2, grid={**quick.grid, "server.control": ("cubic",), loss: (0.001,)})
    runs = run_campaign(small, tmp_path / "runs", processes=1).runs
    rows = list(line_rows(runs))
    assert [row.box for row in rows] == ["reno", "cubic", "cubic, 256 KiB", "bbr"]
    by_seed = dict(zip(zip(runs["variant"], runs["seed"], strict=True), runs["goodput_bit_s"], strict=True))
    quotients = [by_seed["split, bbr", seed] / by_seed["end to end", seed] for seed in (1, 2)]
    assert 1.0 + rows[-1].gain == pytest.approx(math.sqrt(math.prod(quotients)))
    write_rows(rows, tmp_path / "rows.csv")
    read = read_rows(tmp_path / "rows.csv", LineRow)
    assert [(row.box, row.runs) for row in read] == [(row.box, row.runs) for row in rows]
    assert read[0].gain == pytest.approx(rows[0].gain, rel=1e-5)


def test_an_object_that_did_not_arrive_is_refused(tmp_path: Path) -> None:
    quick = campaign("split-gain", is_quick=True)
    small = replace(quick, repeats=2, grid={"server.control": ("cubic",), "traffic[0].bytes": (10_000,)})
    runs = run_campaign(small, tmp_path, processes=1).runs
    assert len(list(object_rows(runs))) == 4 * 4
    runs.loc[0, "transfer_s"] = math.nan
    with pytest.raises(ValueError, match="must finish"):
        list(object_rows(runs))


def test_live_cells_are_cells_that_the_simulator_splits() -> None:
    assert len(CELLS) >= 12
    for cell in CELLS[:4]:
        runs = [simulate(cell.scenario(is_split=is_split), captures=False) for is_split in (False, True)]
        classes = [run.truth["flows"][0]["class"] for run in runs]
        assert classes == ["regular", "split-tcp"]


def test_the_page_shows_what_the_tables_hold() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, sections(MODELS)) == page


def test_the_prober_has_the_cells_of_the_tables(tmp_path: Path) -> None:
    rows = read_rows(MODELS / OBJECTS, ObjectRow)
    write_prober_cells(rows, tmp_path / "cells.json")
    assert (tmp_path / "cells.json").read_text() == PROBER_CELLS.read_text()


def test_the_tables_are_whole() -> None:
    objects, lines = read_rows(MODELS / OBJECTS, ObjectRow), read_rows(MODELS / LINES, LineRow)
    for names, cells, repeats in (
        (OBJECT_CAMPAIGNS, len(objects), {row.runs for row in objects}),
        (LINE_CAMPAIGNS, len(lines), {row.runs for row in lines}),
    ):
        wholes = [campaign(name, is_quick=False) for name in names]
        assert {whole.repeats for whole in wholes} == repeats
        assert cells * wholes[0].repeats == sum(
            whole.runs * (len(whole.variants) - 1) // len(whole.variants) for whole in wholes
        )
    assert [row.cell for row in read_rows(MODELS / LIVE, LiveRow)] == [cell.name for cell in CELLS]


def test_the_published_tables_are_of_this_simulator() -> None:
    """One cell of the lines, run again: where the simulator has moved it out of its interval, the tables are old."""
    whole = campaign("split-gain-lines", is_quick=False)
    chosen = {
        "server.control": "bbr", "path[2].down.loss.probability": 0.01, "path[0].down.delay_s": 0.025,
        "path[2].down.queue_packets": 83,
    }  # fmt: skip
    rates: dict[str, list[float]] = {}
    for variant in whole.variants:
        if variant.name not in ("end to end", "split, cubic"):
            continue
        for seed in range(whole.seed, whole.seed + whole.repeats):
            values = {**variant.values, **chosen}
            run = simulate(whole.scenarios["split-gain-line"].with_values(values).with_seed(seed), captures=False)
            rates.setdefault(variant.name, []).append(run.summary()["goodput_bit_s"])
    gain = gain_of(rates["end to end"], rates["split, cubic"], are_times=False)
    row = next(
        row
        for row in read_rows(MODELS / LINES, LineRow)
        if (row.server_control, row.box, row.loss_probability, row.server_delay_s, row.buffer_packets)
        == ("bbr", "cubic", 0.01, 0.025, 83)
    )
    assert row.gain_low <= gain.gain <= row.gain_high, "python -m benchmarks.split_gain --write makes the tables again"
    assert outcome(row) == "loses"


def test_the_closed_form_has_no_gain_to_tell_without_losses() -> None:
    assert line_gain(0.025, 0.0) is None
    near, far = line_gain(0.005, 0.001), line_gain(0.125, 0.001)
    assert near is not None
    assert far is not None
    assert 0 < near < far
