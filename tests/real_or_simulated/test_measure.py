from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.real_or_simulated.__main__ import main, table
from benchmarks.real_or_simulated.features import inspected, of_packets
from benchmarks.real_or_simulated.runs import simulated_runs
from benchmarks.real_or_simulated.score import Table, alone, score
from benchmarks.real_or_simulated.set_ups import scenario, set_ups

if TYPE_CHECKING:
    from pathlib import Path

IDEAL, LINUX = {"host": "ideal"}, {"host": "linux"}


def connections(values: Any, *, set_ups: int = 12) -> Table:
    """Half of the rows simulated, in turn, of set-ups one after the other."""
    values = np.asarray(values)
    rows = np.arange(len(values))
    return Table(("a", "b"), values, rows * set_ups // len(values), rows % 2 == 1)


def test_set_ups_are_those_of_a_seed() -> None:
    assert set_ups(3, 7) == set_ups(5, 7)[:3]
    assert set_ups(3, 7) != set_ups(3, 8)
    for drawn in set_ups(20, 7):
        assert scenario(drawn, LINUX).server["host"] == "linux"


def test_hosts_that_take_no_time_learn_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["-o", str(tmp_path), "--learn", "3"])
    assert "ideal hosts take no time" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_what_tells_them_apart_is_found_and_named() -> None:
    chance = np.random.default_rng(1)
    noise = chance.normal(size=(480, 2))
    telling = noise.copy()
    telling[1::2, 1] += 4
    result = score(connections(telling))
    assert result.area > 0.95
    assert result.interval[0] > 0.9
    assert [name for name, _ in result.features] == ["b"]
    assert alone(connections(telling))[0][0] == "b"
    nothing = score(connections(noise))
    assert nothing.interval[0] < 0.5 < nothing.interval[1]


def test_a_set_up_is_never_seen_before_it_is_judged() -> None:
    # Within a set-up a number tells the two apart, but which way round it does is drawn anew for each.
    chance = np.random.default_rng(2)
    set_up = np.repeat(np.arange(24), 20)
    turned = chance.integers(0, 2, 24)[set_up]
    values = np.column_stack([set_up.astype(float), ((np.arange(480) % 2) ^ turned).astype(float)])
    assert score(connections(values, set_ups=24)).area < 0.75


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Path]]]:
    drawn = set_ups(6, 3)
    directory = tmp_path_factory.mktemp("runs")
    return {ends["host"]: simulated_runs(drawn, directory / ends["host"], ends) for ends in (IDEAL, LINUX)}


def test_both_readings_of_a_capture_have_the_same_connections(runs: dict[str, list[dict[str, Path]]]) -> None:
    for captures in runs["linux"]:
        assert inspected(captures["server"]).keys() == of_packets(captures["mobile"]).keys() == {40_000, 40_001, 40_002}


@pytest.mark.parametrize("kind", ["inspect", "packets"])
def test_an_ideal_host_is_told_from_a_linux_one(runs: dict[str, list[dict[str, Path]]], kind: str) -> None:
    rows = table(runs["linux"], runs["ideal"], kind)
    assert len(rows.values) == 6 * 3 * 2 * 2
    assert not any("port" in name or "address" in name for name in rows.names)
    assert dict(alone(rows, most_features=200))["up window_max_bytes"] == 1.0


def test_only_times_are_rounded(runs: dict[str, list[dict[str, Path]]]) -> None:
    rows = table(runs["linux"], runs["ideal"], "packets", 1_000_000)
    of = dict(zip(rows.names, rows.values.T, strict=True))
    assert np.nanmax(of["handshake_ack_ns"]) > 0
    assert np.nanmax(of["handshake_ack_ns"] % 1_000_000) == 0
    assert np.nanmax(of["down gap quantile 0.9"] % 1_000_000) == 0
    assert len(np.unique(of["down share of gaps in a burst"] % 1)) > 2
    assert np.nanmax(of["up payload_bytes"] % 1_000_000) > 0


def test_packets_of_a_linux_host_have_times_of_their_own(runs: dict[str, list[dict[str, Path]]]) -> None:
    def zero_gaps(captures: dict[str, Path]) -> float:
        numbers = of_packets(captures["server"]).values()
        return float(np.nansum([of["down share of gaps of zero"] for of in numbers]))

    assert sum(zero_gaps(captures) for captures in runs["linux"]) == 0
    assert sum(zero_gaps(captures) for captures in runs["ideal"]) > 0


def test_two_linux_runs_of_one_seed_are_the_same(tmp_path: Path) -> None:
    drawn = set_ups(2, 3)
    first, second = (simulated_runs(drawn, tmp_path / name, LINUX) for name in ("first", "second"))
    assert [run["server"].read_bytes() for run in first] == [run["server"].read_bytes() for run in second]
