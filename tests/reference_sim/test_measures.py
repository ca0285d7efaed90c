"""What a campaign keeps of a run: times and delays that the scenario's own delays predict."""

from __future__ import annotations

import pytest

from reference_sim.measures import measure
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

WIRED_S, RADIO_S = 0.02, 0.05


def scenario(middle: dict[str, str], traffic: dict[str, object]) -> Scenario:
    return Scenario.from_mapping(
        {
            "name": "two lines",
            "duration_s": 60.0,
            "path": [
                {"kind": "wired", "name": "wired", "down": {"delay_s": WIRED_S}},
                {"name": "middle", **middle},
                {"kind": "wired", "name": "radio", "down": {"delay_s": RADIO_S, "rate_bit_s": 10_000_000}},
            ],
            "traffic": [traffic],
        }
    )


@pytest.mark.parametrize("kind", ["rewriter", "split-proxy"])
def test_delays_add_up_over_the_legs_and_the_first_byte_takes_both_round_trips(kind: str) -> None:
    small = {"kind": "download", "application": "http", "bytes": 5_000}
    seen = measure(simulate(scenario({"kind": kind}, small), captures=False))
    # Five packets wait for each other on the line of 10 Mbit/s.
    assert seen["down_delay_s"] == pytest.approx(WIRED_S + RADIO_S, abs=0.005)
    # End to end a handshake and a request; a split point opens its halves at once, which saves the wired round trip.
    round_trips_s = 2 * (WIRED_S + RADIO_S) * 2 - (2 * WIRED_S if kind == "split-proxy" else 0.0)
    assert seen["first_byte_s"] == pytest.approx(round_trips_s, abs=0.005)
    assert seen["first_byte_s"] <= seen["transfer_s"]


def test_an_upload_has_no_first_byte_at_the_mobile() -> None:
    upload = {"kind": "upload", "bytes": 5_000}
    seen = measure(simulate(scenario({"kind": "rewriter"}, upload), captures=False))
    assert seen["first_byte_s"] is None
    assert seen["transfer_s"] > 0
