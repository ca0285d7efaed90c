"""Papers run again with few repeats: the directions and orders that must hold, and what is written down of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from benchmarks.validation.table_1 import table as audited_table
from papers.command import reproduce as command
from papers.experiment import Effort
from papers.library import load_paper
from papers.published import published_table
from papers.results import Reproduction, Statement, StatementOutcome
from papers.runner import reproduce
from papers.statements.comparing import gains_percent, written
from pepscope.errors import UsageError
from reference_sim.intervals import Interval, mean_interval
from reports.simulation.reproduction_page import reproduction_page_text, write_figures

R, D, N = StatementOutcome.REPRODUCED, StatementOutcome.DIRECTION, StatementOutcome.NOT
U, BUILT = StatementOutcome.UNDECIDED, StatementOutcome.BY_CONSTRUCTION


@pytest.fixture(scope="module")
def hu(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reproduction, Path]:
    directory = tmp_path_factory.mktemp("hu")
    return reproduce("hu", directory, effort=Effort.REDUCED, processes=1), directory


@pytest.fixture(scope="module")
def wei(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reproduction, Path]:
    directory = tmp_path_factory.mktemp("wei")
    return reproduce("wei", directory, effort=Effort.REDUCED, processes=1), directory


def verdicts(result: Reproduction) -> Mapping[str, StatementOutcome]:
    return {statement.published: statement.outcome for statement in result.assessment.statements}


def of(result: Reproduction, words: str) -> StatementOutcome:
    (found,) = (verdict for published, verdict in verdicts(result).items() if words in published)
    return found


def frame(result: Reproduction, name: str) -> pd.DataFrame:
    return next(table.frame for table in result.assessment.tables if table.name == name)


def test_gains_are_paired() -> None:
    """Runs of the same seed: 10 % each, whatever the seed did."""
    assert gains_percent([11.0, 110.0], [10.0, 100.0]).half_width == pytest.approx(0.0, abs=1e-9)
    assert written(mean_interval([1.0, 3.0]), "s") == "2 ± 13 s"
    assert written(Interval(56.0, 2.3e-15, 5), "%") == "56 %"


def test_a_statement_that_is_not_reproduced_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Statement("section 1", "it is 3", "4", D)


def test_published_tables_are_there() -> None:
    assert list(published_table("wei", "table2_split_gain")["west_gain_percent"]) == [-24, 64, 65, 41, 26, 5, 0]
    assert len(published_table("ren_lin", "table2_throughput_model")) == 12


def test_hu_gains_grow_with_the_rate_and_the_window(hu: tuple[Reproduction, Path]) -> None:
    gains = frame(hu[0], "gain")
    second = gains[(gains["table"] == "second") & (gains["file_kB"] == 50)]
    assert second["gain_3_percent"].is_monotonic_increasing
    assert (second["gain_10_percent"] - second["gain_3_percent"]).is_monotonic_increasing
    assert of(hu[0], "gain of the proxy grows with the rate") in (R, U)
    assert of(hu[0], "initial window of 10 at the proxy gains more") is not N


def test_hu_directions_hold(hu: tuple[Reproduction, Path]) -> None:
    for words in (
        "In slow start TCP performs well",
        "the larger, the higher the throughput",
        "the proxy is ahead throughout",
        "preferable to recovery by TCP",
        "At 64 kbit/s the proxy gives a small gain",
        "Internet loss matters significantly",
        "there is a MaxDAT above which",
        "only slightly affected",
    ):
        assert of(hu[0], words) in (R, U), words
    assert of(hu[0], "4 kB at 64 kbit/s and 24 kB") is BUILT
    for window in (3, 10):
        assert of(hu[0], f"initial window of {window} gains") is not N
    assert of(hu[0], "an initial window of 3 gains") is not R


def test_hu_model_of_a_split_is_near_the_simulator(hu: tuple[Reproduction, Path]) -> None:
    model = frame(hu[0], "model")
    split = model[model["connection"] == "split"]["error_percent"]
    assert split.abs().mean() < 15.0
    assert split.abs().max() < 35.0


def test_wei_gains_rise_and_fall_with_the_file(wei: tuple[Reproduction, Path]) -> None:
    gains = frame(wei[0], "table2")
    for coast in ("west", "east"):
        values = gains[gains["coast"] == coast]["gain_percent"].tolist()
        assert max(values) > 30.0 > values[-2] > values[-1] > 0.0
        assert values.index(max(values)) in (1, 2, 3)
    where = [one.where for one in wei[0].assessment.statements]
    assert sum(one.startswith("Table II, ") for one in where) == 28
    assert sum("table I, " in one for one in where) == 12
    assert of(wei[0], "gain first grows with the file") is R
    assert of(wei[0], "In all other cases Split-TCP outperforms") in (R, U)


def test_wei_analysis_detection_and_aborts_hold(wei: tuple[Reproduction, Path]) -> None:
    for words in (
        "passive methods are ineffective",
        "proportional to r1",
        "over 60 %",
        "Method 3",
        "receive window is essentially constant",
        "Most end-to-end delays",
        "7.8 times as fast",
        "within a few seconds of the abort",
    ):
        assert of(wei[0], words) in (R, U), words
    for words in ("about 2.5 s", "about 0.12 s", "both connections end at once", "ends within 40 s", "its cache"):
        assert of(wei[0], words) is BUILT, words
    assert of(wei[0], "about 12 min") is D
    assert of(wei[0], "For a file of one packet") is N


def test_wei_table_1_shows_what_audits_of_rebuilt_networks_found(wei: tuple[Reproduction, Path]) -> None:
    rows = [one for one in wei[0].assessment.statements if "table I, " in one.where]
    assert [one.outcome for one in rows] == [BUILT] * 12
    assert all(f"rebuilt with real proxies: {one.published.split()[1].rstrip('.')}" in one.found for one in rows)


def test_audits_become_the_rows_of_table_1(tmp_path: Path) -> None:
    for provider, verdict in (("one", "split-tcp"), ("two", "regular"), ("three", "tcp-proxy")):
        (tmp_path / provider).mkdir()
        cells = [
            {"application": name, "direction": way, "verdict": verdict, "probability": {verdict: 0.99}}
            for name in ("ftp", "https", "tcp")
            for way in ("down", "up")
        ]
        audit = {"runs": [{"started_unix_ns": 1_700_000_000_000_000_000, "cells": cells}]}
        (tmp_path / provider / "audit.json").write_text(json.dumps(audit), encoding="utf-8")
    lines = audited_table([tmp_path / name for name in ("one", "two", "three")]).splitlines()
    assert lines[2:6] == [
        "provider,application,verdict,probability",
        "CDMA-I,FTP,split-tcp,0.9900",
        "CDMA-I,TCP,split-tcp,0.9900",
        "CDMA-II,FTP,regular,0.9900",
    ]
    assert len(lines) == 3 + 6
    assert "2023-11-14" in lines[1]


def test_what_is_written_holds_every_table_and_statement(wei: tuple[Reproduction, Path]) -> None:
    result, directory = wei
    document = json.loads((directory / "reproduction.json").read_text(encoding="utf-8"))
    assert len(document["statements"]) == len(result.assessment.statements) == sum(document["counts"].values())
    for statement, written_down in zip(result.assessment.statements, document["statements"], strict=True):
        assert written_down["verdict"] == statement.outcome
        assert statement.tolerance or not statement.comparisons
        assert len(written_down["comparisons"]) == len(statement.comparisons)
    lines = (directory / "statements.md").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("| ") for line in lines) == len(document["statements"]) + 1
    for table in result.assessment.tables:
        assert len(pd.read_csv(directory / "tables" / f"{table.name}.csv")) == len(table.frame)


def test_every_interval_holds_to_the_verdict_beside_it(wei: tuple[Reproduction, Path]) -> None:
    """From the JSON alone: reproduced is inside what is accepted, and a single run decides nothing."""
    document = json.loads((wei[1] / "reproduction.json").read_text(encoding="utf-8"))
    for statement in document["statements"]:
        for one in statement["comparisons"]:
            low, high = one["accepted"]
            low, high = (float("-inf") if low is None else low), (float("inf") if high is None else high)
            half_width = float("inf") if one["half_width"] is None else one["half_width"]
            is_inside = low - 1e-6 <= one["mean"] - half_width and one["mean"] + half_width <= high + 1e-6
            assert is_inside or one["verdict"] != R, one


@pytest.mark.parametrize("paper", ["hu", "wei"])
def test_the_paper_s_page_lists_every_statement(paper: str, request: pytest.FixtureRequest) -> None:
    result, _ = request.getfixturevalue(paper)
    page = (Path(__file__).parents[2] / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[:2] for line in page.splitlines() if line.startswith("| ")]
    assert [
        statement.published
        for statement in result.assessment.statements
        if [f"| {statement.where}", statement.published.strip()] not in rows
    ] == []


def test_finished_runs_are_not_repeated_and_give_the_same_results(wei: tuple[Reproduction, Path]) -> None:
    result, directory = wei
    calls: list[tuple[int, int]] = []
    again = reproduce(
        "wei", directory, effort=Effort.REDUCED, processes=1, progress=lambda done, total: calls.append((done, total))
    )
    assert calls == []
    assert again.assessment.statements == result.assessment.statements


def test_the_page_shows_verdicts_figures_and_choices(wei: tuple[Reproduction, Path], tmp_path: Path) -> None:
    result, _ = wei
    text = reproduction_page_text(result)
    for statement in result.assessment.statements:
        assert statement.where.replace("'", "&#x27;") in text
    assert text.count("<svg") == len(result.assessment.charts)
    assert text.count('class="statement choice"') == len(result.assessment.assumptions)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    write_figures(result, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.svg")} == {chart.name for chart in result.assessment.charts}


def test_the_command_reproduces_a_paper_from_end_to_end(tmp_path: Path) -> None:
    arguments = ["wei", "--quick", "-o", str(tmp_path), "--processes", "1", "--json"]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    (paper,) = json.loads(done.stdout)["papers"]
    assert paper["effort"] == "quick"
    assert paper["ran"] == paper["runs"] > 1000
    assert sum(paper["counts"].values()) == len(paper["statements"])
    assert paper["counted"] == len(paper["statements"]) - paper["counts"][BUILT]
    by_words = {f"{one['where']}: {one['published']}": one for one in paper["statements"]}
    gain = by_words["Table II, west coast, 50 kB: Split-TCP gains +41 % on regular TCP."]
    (comparison,) = gain["comparisons"]
    assert comparison["accepted"] == [pytest.approx(36.9), pytest.approx(45.1)]
    assert comparison["count"] == 20
    assert gain["verdict"] == D
    assert gain["sensitivity"][0]["parameter"] == "Initial windows"
    page = (tmp_path / "wei.html").read_text(encoding="utf-8")
    assert f"{paper['counts'][R]} of {paper['counted']} published statements are reproduced." in page
    assert "41 ± 4.1 (a tenth of the published number)" in page
    assert "server starts with 10" in page


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--trials", "5"], "--trials is for --search: give both"),
        (["--search", "--sensitivity"], "--sensitivity does nothing with --search"),
        (["--search", "--quick"], "--quick does nothing with --search"),
    ],
)
def test_options_that_would_do_nothing_are_refused(given: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^{sentence}$"):
        CliRunner().invoke(command, ["hu", "-o", str(tmp_path), *given], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


def test_papers_are_known_by_name() -> None:
    assert load_paper("hu").name == "hu"
    with pytest.raises(UsageError, match=r"a paper must be one of hu, .*, got nobody"):
        CliRunner().invoke(command, ["nobody", "-o", "x"], catch_exceptions=False)
