"""The slowest link of a near leg, and what bounds what the shape of delays proves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from detector.one_capture.likelihoods.near.near_links import link_nats, spreads_s
from detector.one_capture.networks import NetworkTable
from detector.one_capture.side_posteriors import SidePosteriors, weigh_side
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, vantage
from tests.detector.one_capture.senders.made_senders import senders

_WIRE_S, _CELL_S, _STEADY_S = 2.5e-5, 9e-4, 2e-4
_SEGMENT = 1460
_KINDS = (ExchangeKind.TLS_FINISHED, ExchangeKind.TLS_DATA)


def _nats(spread_s: float, train_bytes: float, variation_s: float = _STEADY_S) -> float:
    return float(link_nats(*(np.asarray([each]) for each in (spread_s, train_bytes, variation_s)))[0])


def _judged(
    count: int,
    excess_ms: tuple[float, float],
    trains: tuple[int, float] | None,
    kinds: Sequence[ExchangeKind] = (ExchangeKind.COMMAND,),
) -> SidePosteriors:
    """Connections of one client whose answers are as late as these, in turn; each with trains of so many bytes and
    so much spread (s a full segment)."""
    late = [(kind, each_ms) for each_ms in excess_ms for kind in kinds] * (4 // len(kinds))
    made = vantage([Talk(excess_ms=late)] * count, at_client=False)
    if trains is not None:
        size, spread_s = trains
        seen = {"train_bytes": size, "train_spread_ns": round(size / _SEGMENT * spread_s * 1e9)}
        of_trains = senders(count, Direction.UP.value, **seen)
        found = {name: getattr(of_trains, name) for name in seen}
        made = replace(made, senders=replace(made.senders, **found))
    return weigh_side(made, GroupSide.SERVER, NetworkTable())


def test_a_wire_speaks_for_a_split_and_an_access_link_against_it() -> None:
    assert _nats(_WIRE_S, 50_000) > 0.5
    assert _nats(_CELL_S, 50_000) < -1.5


def test_no_train_says_nothing() -> None:
    assert _nats(float("nan"), 0.0) == 0.0


def test_short_trains_say_less_than_long_ones() -> None:
    """Links that bundle acknowledgements make two of them look fast."""
    assert abs(_nats(_CELL_S, 3_000)) < abs(_nats(_CELL_S, 100_000))
    assert _nats(0.0, 3_000) < _nats(0.0, 100_000)


@given(
    st.one_of(st.just(float("nan")), st.floats(0.0, 2e-3)),
    st.floats(0.0, 1e9),
    st.one_of(st.just(float("nan")), st.floats(0.0, 1.0)),
)
def test_what_a_link_says_is_bounded(spread_s: float, train_bytes: float, variation_s: float) -> None:
    assert -3.0 <= _nats(spread_s, train_bytes, variation_s) <= 1.2


_CONNECTIONS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**6), st.integers(0, 10**9)), max_size=12)


@given(_CONNECTIONS, st.randoms())
def test_trains_add_up_by_group_in_any_order(rows: list[tuple[int, int, int]], random: st.DataObject) -> None:
    def found(of: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
        columns = {
            name: np.asarray([row[place] for row in of], np.int64)
            for place, name in ((1, "train_bytes"), (2, "train_spread_ns"))
        }
        group = np.asarray([row[0] for row in of], np.int64)
        return spreads_s(senders(len(of), Direction.UP.value, **columns), Direction.UP.value, group, 4)

    other = list(rows)
    random.shuffle(other)  # type: ignore[attr-defined]
    for one, another in zip(found(rows), found(other), strict=True):
        np.testing.assert_allclose(one, another)
    train_bytes, spread_s = found(rows)
    assert train_bytes.sum() == sum(row[1] for row in rows)
    assert (np.isnan(spread_s) == (train_bytes == 0)).all()


def test_late_answers_over_an_access_link_are_the_clients() -> None:
    wire, cell, unknown = (
        float(_judged(4, (40.2, 41.0), trains, _KINDS).groups.split[0])
        for trains in ((60_000, _WIRE_S), (60_000, _CELL_S), None)
    )
    assert cell < unknown < wire
    assert wire > 0.98


@pytest.mark.parametrize("count", [10, 40])
def test_no_number_of_steady_answers_proves_a_leg(count: int) -> None:
    """One in ten clients that take their time do so as steadily as a leg."""
    judged = _judged(count, (40.2, 41.0), (60_000, _CELL_S))
    assert float(judged.groups.late[0]) > 0.02
    assert float(judged.groups.split[0]) < 0.98
