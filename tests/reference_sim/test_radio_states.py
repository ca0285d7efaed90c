"""States of a mobile's radio on a simulated path: promotion, paging and DRX, as tshark sees them in the captures."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pepscope import detect
from pepscope.errors import ScenarioError
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

PROMOTION_S = 0.26
ONE_WAY_S = 0.1


def run(directory: Path, radio: dict[str, Any], traffic: list[dict[str, Any]]) -> Run:
    scenario: dict[str, Any] = {
        "name": "asleep",
        "duration_s": 600.0,
        "path": [
            {"kind": "wired", "name": "line", "down": {"delay_s": ONE_WAY_S}},
            {"kind": "radio-states", "name": "radio", **radio},
        ],
        "traffic": traffic,
        "record": {"taps": [{"name": "server"}, {"name": "mobile"}]},
    }
    return simulate(Scenario.from_mapping(scenario), directory)


def handshakes_s(capture: Path) -> list[float]:
    """From each SYN to its SYN-ACK, by tshark."""
    command = ["tshark", "-r", str(capture), "-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 1", "-T", "fields"]
    text = subprocess.run([*command, "-e", "tcp.time_relative"], capture_output=True, text=True, check=True).stdout
    return [float(line) for line in text.splitlines()]


def downloads(count: int, spacing_s: float) -> list[dict[str, Any]]:
    return [{"kind": "download", "bytes": 20_000, "count": count, "spacing_s": spacing_s}]


def test_the_first_handshake_waits_for_the_promotion_and_later_ones_where_the_mobile_was_released(
    tmp_path: Path,
) -> None:
    # Downloads with no DRX at 0 and 5 s; released 6 s after the last packet, so idle again at 20 s.
    traffic = [{"kind": "download", "bytes": 20_000, "start_s": start_s} for start_s in (0.0, 5.0, 20.0)]
    made = run(tmp_path, {"long_cycle_s": 0.0, "release_s": 6.0}, traffic)
    found = handshakes_s(made.captures["mobile"])
    assert found == pytest.approx([PROMOTION_S + 2 * ONE_WAY_S, 2 * ONE_WAY_S, PROMOTION_S + 2 * ONE_WAY_S], abs=1e-6)
    # The server sees no wait: nothing that it sends finds the radio idle.
    assert handshakes_s(made.captures["server"]) == pytest.approx([0.0] * 3, abs=1e-6)


def test_answers_that_come_late_wait_for_a_cycle_of_drx(tmp_path: Path) -> None:
    # A SYN-ACK comes 0.2 s after its SYN, when the mobile, silent for 0.1 s, listens 1 ms of each 40 ms.
    made = run(tmp_path, {"starts": "connected", "release_s": 1000.0}, downloads(60, 7.0013))
    waits_s = [handshake_s - 2 * ONE_WAY_S for handshake_s in handshakes_s(made.captures["mobile"])]
    assert len(waits_s) == 60
    assert all(-1e-6 < wait_s < 0.039 + 1e-6 for wait_s in waits_s)
    # The mean of (cycle - on)^2 / (2 cycle) = 19.0 ms has a standard error of 11.3 / sqrt(60) = 1.5 ms.
    assert sum(waits_s) / len(waits_s) == pytest.approx(0.019, abs=0.006)


def test_radio_states_are_no_split_and_a_run_can_be_repeated(tmp_path: Path) -> None:
    pages = [
        {"kind": "http", "page_bytes": 60_000, "pages": 5, "think_time_mean_s": 15.0, "count": 3, "spacing_s": 2.0}
    ]
    made, again = (run(tmp_path / name, {}, pages) for name in "ab")
    for end in ("server", "mobile"):
        assert made.captures[end].read_bytes() == again.captures[end].read_bytes()
    pairs = detect(str(made.captures["server"]), str(made.captures["mobile"])).pairs
    assert len(pairs) == 3
    assert not any(pair.verdict.is_split for pair in pairs)
    for end in ("server", "mobile"):
        assert not any(pair.verdict.is_split for pair in detect(str(made.captures[end])).pairs)


@pytest.mark.parametrize(
    ("radio", "place"),
    [
        ({"long_cycle_s": 0.03}, r"path\[1\]: long_cycle_s must be a multiple of short_cycle_s, got 0.03"),
        ({"promotion_s": -1}, r"path\[1\]\.promotion_s must be"),
        ({"starts": "asleep"}, r"path\[1\]\.starts must be one of idle, connected"),
    ],
)
def test_impossible_states_are_refused(radio: dict[str, Any], place: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=place):
        run(tmp_path, radio, downloads(1, 0.0))
