"""What handshakes vary: nearer ones are held against data by it, since data may wait for who answers SYNs, and it is
what paths vary where long transfers queue behind themselves."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from detector.one_capture.columns import VantageColumns
from detector.one_capture.networks import NetworkTable
from detector.one_capture.side_posteriors import weigh_side
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, of_library_and_program, vantage

_BEYOND_MS = 25.0
_NEAR_MS, _WHOLE_MS = 19.0, 19.0 + _BEYOND_MS


def _with_prompt(made: VantageColumns, way: Direction, low_ms: float, middle_ms: float) -> VantageColumns:
    """With eight prompt acknowledgements in each connection, whose 10 and 60 % quantiles are these."""
    trips = made.exchanges.round_trips
    columns = {"prompt_count": 8, "prompt_10_ns": low_ms * 1e6, "prompt_60_ns": middle_ms * 1e6}
    prompt = {name: np.where(trips.asked == way.value, value, getattr(trips, name)) for name, value in columns.items()}
    return replace(made, exchanges=replace(made.exchanges, round_trips=replace(trips, **prompt)))


def _answered(handshake_ms: list[float]) -> float:
    """How probable answered handshakes are where first data of each connection wait for the proxy's own handshake, so
    that prompt acknowledgements of data vary by the path behind the proxy."""
    late = [(ExchangeKind.TLS_HELLO, _BEYOND_MS), (ExchangeKind.TLS_DATA, 0.4)]
    talks = [Talk(excess_ms=late, round_trip_ms=_WHOLE_MS, handshake_ms=each) for each in handshake_ms]
    made = vantage(talks, at_client=True)
    hello = made.exchanges.kind == ExchangeKind.TLS_HELLO
    seen = _with_prompt(
        replace(made, exchanges=replace(made.exchanges, first=hello)), Direction.UP, _WHOLE_MS, _WHOLE_MS + _BEYOND_MS
    )
    judged = weigh_side(seen, GroupSide.CLIENT, NetworkTable())
    assert judged.variation_s[0] == pytest.approx(_BEYOND_MS / 1e3)
    return float(judged.groups.handshakes_answered[0])


def test_steady_handshakes_show_that_something_answers_them() -> None:
    assert _answered([_NEAR_MS] * 12) > 0.5


def test_handshakes_that_vary_as_much_show_less() -> None:
    varying = list(np.linspace(_NEAR_MS, _NEAR_MS + 2 * _BEYOND_MS, 12))
    assert _answered(varying) < _answered([_NEAR_MS] * 12)


def test_long_transfers_over_a_wire_hide_no_leg() -> None:
    """Of a leg of 12 ms, a slow link's shift as well where the path varies, behind a wire that transfers queue on."""

    def split(handshake_ms: list[float]) -> float:
        talks = [
            Talk(excess_ms=of_library_and_program([12.4, 12.1, 13.0, 12.6]), round_trip_ms=30.0, handshake_ms=each)
            for each in handshake_ms
        ]
        seen = _with_prompt(vantage(talks, at_client=False), Direction.DOWN, 30.5, 46.0)
        judged = weigh_side(seen, GroupSide.SERVER, NetworkTable())
        return float(judged.groups.split[0])

    steady, varying = [30.0 + 0.1 * (number % 3) for number in range(12)], list(np.linspace(30.0, 60.0, 12))
    assert split(steady) > 0.95 > 0.5 > split(varying)
