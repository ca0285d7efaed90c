"""Runs: what they write, and that nothing but scenario and seed decides it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pepscope
from pepscope.captures.capture import open_capture
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate


def test_captures_and_truth_are_written(small: Path, tmp_path: Path) -> None:
    run = simulate(small, tmp_path / "out")
    truth = json.loads((tmp_path / "out" / "truth.json").read_text())
    assert truth == run.truth
    assert truth["flows"][0]["class"] == "regular"
    assert truth["flows"][0]["delivered_exactly"] == {"down": True, "up": True}
    for path in run.captures.values():
        (connection,) = open_capture(str(path)).connections
        assert connection.down.stream_bytes == 60_000


def test_same_seed_same_bytes_other_seed_other_bytes(small: Path, tmp_path: Path) -> None:
    def written(name: str, seed: int) -> list[bytes]:
        run = simulate(small, tmp_path / name, seed=seed)
        return [path.read_bytes() for path in run.captures.values()]

    assert written("a", 3) == written("b", 3)
    assert written("c", 4) != written("a2", 3)


def test_series_and_delays(small: Path, tmp_path: Path) -> None:
    scenario = Scenario.from_toml(small).with_values({"record": {"series_interval_s": 0.1, "one_way_delays": True}})
    run = simulate(scenario, tmp_path)
    frame = run.series.to_frame()
    window = frame[(frame.place == "server") & (frame.quantity == "congestion_window_bytes")]
    assert window.value.min() > 0
    np.testing.assert_allclose(np.diff(window.time_s), 0.1)
    delay_s = (run.arrivals["arrived_ns"] - run.arrivals["sent_ns"]) * 1e-9
    assert delay_s.min() >= 0.04
    assert len(pd.read_parquet(tmp_path / "series.parquet")) == len(frame)
    assert len(pd.read_parquet(tmp_path / "arrivals.parquet")) == len(delay_s)


def test_without_a_directory_nothing_is_written(small: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    run = pepscope.simulate(small)
    assert run.captures == {}
    assert sorted(tmp_path.iterdir()) == before
    assert run.summary()["delivered_bytes"] == 60_000


def test_a_run_that_is_given_up_leaves_what_was_there(small: Path, tmp_path: Path) -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    simulate(small, tmp_path)
    earlier = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "server.pcapng" in earlier
    with pytest.raises(KeyboardInterrupt):
        simulate("bulk-100mbit-40ms", tmp_path, progress=stop)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == earlier


def test_a_file_that_cannot_take_its_place_leaves_no_truth(small: Path, tmp_path: Path) -> None:
    simulate(small, tmp_path)
    (tmp_path / "server.pcapng").unlink()
    (tmp_path / "server.pcapng").mkdir()
    with pytest.raises(IsADirectoryError) as refused:
        simulate(small, tmp_path)
    assert refused.value.filename == str(tmp_path / "server.pcapng")
    assert {path.name for path in tmp_path.iterdir()} == {"mobile.pcapng", "server.pcapng", small.name}


def test_summary_counts_what_the_link_did(small: Path) -> None:
    summary = simulate(small).summary()
    assert summary["class"] == "regular"
    radio = summary["hops"][1]["down"]
    assert radio["delivered_bytes"] > 60_000
    assert 0.1 < radio["utilisation"] < 1
    assert summary["goodput_bit_s"] == pytest.approx(8 * 60_000 / summary["simulated_s"])


def test_progress_reaches_the_caller() -> None:
    reported = []
    simulate("bulk-100mbit-40ms", progress=lambda done, total: reported.append((done, total)))
    assert reported == sorted(reported)
    assert all(total == 100_000 for _, total in reported)
    assert len(reported) > 10


def test_a_caller_can_stop_a_run() -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate("bulk-100mbit-40ms", progress=stop)
