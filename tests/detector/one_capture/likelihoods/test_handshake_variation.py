"""Nearer handshakes are held against data by what handshakes vary, since data may wait for who answers SYNs."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.one_capture.networks import NetworkTable
from detector.one_capture.side_posteriors import weigh_side
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, vantage

_BEYOND_MS = 25.0
_NEAR_MS, _WHOLE_MS = 19.0, 19.0 + _BEYOND_MS


def _answered(handshake_ms: list[float]) -> float:
    """How probable answered handshakes are where first data of each connection wait for the proxy's own handshake, so
    that prompt acknowledgements of data vary by the path behind the proxy."""
    late = [(ExchangeKind.TLS_HELLO, _BEYOND_MS), (ExchangeKind.TLS_DATA, 0.4)]
    talks = [Talk(excess_ms=late, round_trip_ms=_WHOLE_MS, handshake_ms=each) for each in handshake_ms]
    made = vantage(talks, at_client=True)
    hello = made.exchanges.kind == ExchangeKind.TLS_HELLO
    made = replace(made, exchanges=replace(made.exchanges, first=hello))
    trips = made.exchanges.round_trips
    columns = {"prompt_count": 8, "prompt_10_ns": _WHOLE_MS * 1e6, "prompt_60_ns": (_WHOLE_MS + _BEYOND_MS) * 1e6}
    prompt = {name: getattr(trips, name).copy() for name in columns}
    for name, value in columns.items():
        prompt[name][0::2] = value
    seen = replace(made, exchanges=replace(made.exchanges, round_trips=replace(trips, **prompt)))
    judged = weigh_side(seen, GroupSide.CLIENT, NetworkTable())
    assert judged.variation_s[0] == pytest.approx(_BEYOND_MS / 1e3)
    return float(judged.groups.handshakes_answered[0])


def test_steady_handshakes_show_that_something_answers_them() -> None:
    assert _answered([_NEAR_MS] * 12) > 0.5


def test_handshakes_that_vary_as_much_show_less() -> None:
    varying = list(np.linspace(_NEAR_MS, _NEAR_MS + 2 * _BEYOND_MS, 12))
    assert _answered(varying) < _answered([_NEAR_MS] * 12)
