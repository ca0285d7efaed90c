"""Queue disciplines on a simulated path: a greedy download through each, and who drops or marks what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pepscope import detect
from pepscope.errors import ScenarioError
from pepscope.results.verdicts import Verdict
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

DURATION_S = 30.0


def run(directory: Path, queue: dict[str, Any], *, flows: int = 1, ecn: str = "off", **line: Any) -> Run:
    down = {"rate_bit_s": 10_000_000, "delay_s": 0.02, "queue": queue, **line}
    scenario: dict[str, Any] = {
        "name": "managed",
        "duration_s": DURATION_S,
        "path": [{"kind": "managed", "name": "line", "down": down}],
        "traffic": [{"kind": "download", "duration_s": DURATION_S, "count": flows}],
        "record": {"taps": [{"name": "server"}, {"name": "mobile"}], "series_interval_s": 0.05},
        "server": {"ecn": ecn},
        "mobile": {"ecn": ecn},
    }
    return simulate(Scenario.from_mapping(scenario), directory)


def delay_s(made: Run) -> float:
    """The mean wait in the queue, from the fifth second on."""
    frame = made.series.to_frame()
    waits = frame[(frame.place == "line") & (frame.quantity == "down_queue_delay_s") & (frame.time_s > 5)]
    return float(np.mean(waits.value))


def rate_bit_s(made: Run) -> float:
    return float(sum(8 * flow["mobile"]["read_bytes"] for flow in made.truth["flows"]) / DURATION_S)


def counts(made: Run) -> dict[str, int]:
    found: dict[str, int] = made.truth["hops"][0]["down"]
    return found


def test_managed_queues_are_short_where_a_plain_one_is_full(tmp_path: Path) -> None:
    plain = run(tmp_path / "plain", {"kind": "drop-tail", "packets": 500})
    assert delay_s(plain) > 0.15
    for queue, most_s in (
        ({"kind": "codel"}, 0.02),
        ({"kind": "fq-codel"}, 0.02),
        ({"kind": "pie"}, 0.03),
        ({"kind": "red", "least_packets": 5, "most_packets": 40}, 0.05),
    ):
        managed = run(tmp_path / queue["kind"], queue)
        assert delay_s(managed) < most_s, queue
        assert rate_bit_s(managed) > 0.8 * rate_bit_s(plain), queue
        assert counts(managed)["overflowed_packets"] > 0
        (pair,) = detect(*(str(managed.captures[end]) for end in ("server", "mobile"))).pairs
        assert pair.verdict is Verdict.REGULAR, queue


def test_packets_of_senders_with_ecn_are_marked(tmp_path: Path) -> None:
    made = run(tmp_path, {"kind": "codel", "marks": True}, ecn="standard")
    assert counts(made)["marked_packets"] > 5
    # What is dropped carries no mark: slow start overshoots before a mark has an effect.
    assert counts(made)["overflowed_packets"] < counts(made)["marked_packets"]
    assert delay_s(made) < 0.02


def test_others_take_their_part_of_the_line(tmp_path: Path) -> None:
    alone = run(tmp_path / "alone", {"kind": "fq-codel"})
    for kind in ("even", "poisson", "flows"):
        cross = {"kind": kind, "rate_bit_s": 4_000_000}
        beside = run(tmp_path / kind, {"kind": "fq-codel"}, cross=cross)
        # Bursts of short flows leave room that one congestion window does not fill.
        assert 0.7 < rate_bit_s(beside) / (rate_bit_s(alone) - 4_000_000) < 1.1, kind
        (pair,) = detect(*(str(beside.captures[end]) for end in ("server", "mobile"))).pairs
        assert pair.verdict is Verdict.REGULAR, kind


def test_a_policer_holds_its_rate_and_delays_nothing(tmp_path: Path) -> None:
    scenario = {
        "name": "policed",
        "duration_s": DURATION_S,
        "path": [
            {"kind": "wired", "name": "line", "down": {"rate_bit_s": 100_000_000, "delay_s": 0.02}},
            {"kind": "policer", "name": "contract", "down": {"rate_bit_s": 5_000_000, "burst_bytes": 60_000}, "up": {}},
        ],
        "traffic": [{"kind": "download", "duration_s": DURATION_S}],
        "record": {"taps": [{"name": "server"}, {"name": "mobile"}], "one_way_delays": True},
    }
    made = simulate(Scenario.from_mapping(scenario), tmp_path)
    (contract,) = (hop["down"] for hop in made.truth["hops"] if hop["name"] == "contract")
    assert contract["overflowed_packets"] > 20
    assert 8 * contract["delivered_bytes"] <= 8 * 60_000 + 5_000_000 * DURATION_S
    assert rate_bit_s(made) > 2_000_000
    (pair,) = detect(*(str(made.captures[end]) for end in ("server", "mobile"))).pairs
    assert pair.verdict is Verdict.REGULAR


def test_the_same_seed_makes_the_same_captures(tmp_path: Path) -> None:
    first, second = (run(tmp_path / name, {"kind": "red"}, flows=2) for name in "ab")
    for end in ("server", "mobile"):
        assert first.captures[end].read_bytes() == second.captures[end].read_bytes()


@pytest.mark.parametrize(
    "queue", [{"kind": "codel", "interval_s": 0}, {"kind": "red", "most_packets": 2}, {"kind": "cake"}, {"packets": 3}]
)
def test_impossible_queues_are_refused(queue: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"path\[0\]\.down\.queue"):
        run(tmp_path, queue)
