"""Measurements from anywhere: a rule gives evidence that makes sense, or refuses with ArchiveError, nothing else."""

from __future__ import annotations

import contextlib
import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.errors import ArchiveError
from prober.experiments.dead_port import DeadPort
from prober.experiments.delayed_ack import DelayedAck
from prober.experiments.handshake_rtt import HandshakeRtt
from prober.experiments.slow_reader import SlowReader
from prober.experiments.ttl_syn import TtlSyn
from prober.measurement.experiment import Experiment
from tests.prober.experiments.observed import seen

PROBE = {"target": "application", "round": 1, "hops": 4, "answer": "answered", "router": "", "mobile_port": 40_000}
MEASUREMENTS: dict[str, tuple[Experiment[Any, Any], dict[str, Any]]] = {
    "ttl-syn": (
        TtlSyn(),
        {
            "ports": {"application": 80},
            "probes": [
                *({**PROBE, "round": number} for number in range(5)),
                *({**PROBE, "target": "echo", "round": number, "answer": "router"} for number in range(5)),
                *({**PROBE, "target": "echo", "round": number, "hops": 5} for number in range(5)),
            ],
        },
    ),
    "dead-port": (
        DeadPort(),
        {"target": "dead", "port": 9, "attempts": [{"outcome": "answered", "acked_bytes": 70_000, "connect_s": 0.1}]},
    ),
    "handshake-rtt": (
        HandshakeRtt(),
        {"handshake_s": [0.06] * 12, "echo_s": [0.1] * 12, "free_s": [0.1] * 12, "clock_resolution_s": 1e-9},
    ),
    "delayed-ack": (
        DelayedAck(),
        {
            "idle_round_trips_s": [0.1, 0.1],
            "rounds": [
                {
                    "delay_s": 0.5,
                    "round_trip_s": 0.6,
                    "smoothed_s": None,
                    "answered_segments": 0,
                    "held": 40,
                    "largest_error_s": 0.001,
                    "moved_bytes": 100_000,
                    "total_s": 3.0,
                }
            ],
        },
    ),
    "slow-reader": (
        SlowReader(),
        {
            "acked_bytes": 1_000_000,
            "receiver_bytes": 40_000,
            "room_bytes": 131_072,
            "offered_bytes": 2_000_000,
            "stalled": True,
        },
    ),
}

#: What JSON can say, with numbers beyond all measure.
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place within a measurement."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with something else at a place."""
    made = copy.deepcopy(value)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return made


@pytest.mark.parametrize("name", MEASUREMENTS)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_whatever_a_measurement_holds(name: str, data: st.DataObject) -> None:
    experiment, values = MEASUREMENTS[name]
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([place for place in places(values) if place]))
        values = changed(values, path, data.draw(ANYTHING))
    given_values = seen(name, values, direction=None)
    with contextlib.suppress(ArchiveError):
        for evidence in experiment.examine([given_values]):
            assert 0.0 <= evidence.strength <= 1.0
            assert evidence.summary
            json.dumps(dict(evidence.numbers), allow_nan=False)
            assert all(not isinstance(item, float) or math.isfinite(item) for item in evidence.numbers.values())
    with contextlib.suppress(ArchiveError):
        experiment.metrics([given_values])


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_unchanged_captures_have_findings(name: str) -> None:
    experiment, values = MEASUREMENTS[name]
    assert len(experiment.examine([seen(name, values, direction=None)])) == 1
    assert experiment.metrics([seen(name, values, direction=None)])
