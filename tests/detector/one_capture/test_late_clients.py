"""What tells a hidden leg from clients that are late at the server's side: how shifts vary, and when clients close."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.hypotheses.sums import delays_beyond_legs
from detector.one_capture.likelihoods.timing_tables import (
    HIDDEN_S,
    LATE_LEAST_S,
    LATE_SHARES,
    NATURES,
    SHIFT_EDGES_S,
    timing_tables,
)
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide
from tests.detector.one_capture.made_vantages import Talk, judged

CLIENT = "192.0.2.1"

#: What a person takes before each answer (ms).
PACED_MS = (400.0, 1_900.0, 750.0, 5_200.0, 310.0, 2_600.0)


@pytest.mark.parametrize("side", [GroupSide.CLIENT, GroupSide.SERVER])
def test_shifts_of_any_length_and_nature_are_one_distribution(side: GroupSide) -> None:
    shares = np.exp(timing_tables(side).shift_nats)
    assert shares.shape[1] == 1 + len(HIDDEN_S) * NATURES
    assert shares.sum(axis=1) == pytest.approx(1.0, abs=1e-4)


def test_what_shifts_the_answers_of_clients_is_seldom_as_steady_as_a_leg() -> None:
    tables = timing_tables(GroupSide.SERVER)
    long = SHIFT_EDGES_S[-1] <= HIDDEN_S
    for shifts, natures in zip(np.exp(tables.shift_nats), np.exp(tables.nature_nats), strict=True):
        of_shift = shifts[1:].reshape(len(HIDDEN_S), NATURES)[long].sum(axis=0)
        assert of_shift[0] / of_shift.sum() < 0.5 * natures[0]


def test_steady_answers_are_a_leg_rather_than_a_slow_link_whose_answers_vary() -> None:
    steady, varying = (
        _paced([20.0 + more for more in beyond], ExchangeKind.TLS_FINISHED, close_ms=None)
        for beyond in ((0.2, 0.9, 0.4, 1.3, 0.6, 1.0), (0.0, 11.0, 19.0, 6.0, 14.0, 3.0))
    )
    assert steady.groups.end[0] < varying.groups.end[0] / 2
    assert steady.groups.split[0] > varying.groups.split[0]


def test_closes_as_late_as_answers_are_no_slow_links() -> None:
    """A FIN is as short as what timed the round trips."""

    def odds(closes: float | None) -> float:
        talks = [
            Talk(
                CLIENT,
                [(ExchangeKind.TLS_HELLO, late_ms), (ExchangeKind.TLS_DATA, late_ms + 1.0)],
                port=443,
                middle_ms=20.3,
                close_ms=None if closes is None else closes * late_ms,
            )
            for late_ms in (9.0, 14.0, 11.0, 19.0, 12.0, 25.0)
        ]
        split = float(judged(talks, at_client=False).groups.split[0])
        return split / (1 - split)

    assert odds(1.0) > 6 * odds(None)
    assert odds(0.0) < odds(None) / 6


def test_a_leg_shows_in_closes_where_people_pace_all_answers() -> None:
    unknown, late, at_once, by_habit = (
        float(_paced(PACED_MS, ExchangeKind.HTTP_NEXT_REQUEST, close_ms=close_ms).groups.split[0])
        for close_ms in (None, (60.4, 61.0, 62.5, 60.8, 61.9, 63.0), (0.3, 0.8, 0.2, 1.1, 0.4, 0.6), PACED_MS)
    )
    assert at_once < unknown / 2
    assert late / (1 - late) > 1.5 * unknown / (1 - unknown)
    assert by_habit < LEAST_SPLIT[GroupSide.SERVER]


@pytest.mark.parametrize("idle_s", [1.0, 3.0, 5.0, 15.0])
def test_a_timer_that_closes_what_persons_leave_is_no_leg(idle_s: float) -> None:
    paced_ms = [PACED_MS[place % len(PACED_MS)] for place in range(24)]
    closes_ms = [1e3 * idle_s + place / 5 for place in range(24)]
    found = _paced(paced_ms, ExchangeKind.HTTP_NEXT_REQUEST, close_ms=closes_ms)
    assert float(found.groups.split[0]) < LEAST_SPLIT[GroupSide.SERVER]


def test_no_leg_is_longer_than_the_delays_of_what_waits_behind_it() -> None:
    """Given one delay, all legs up to it explain it, by its share of those that the leg leaves, and no longer one."""
    place = int(np.argmin(np.abs(LATE_LEAST_S - 0.05)))
    late = np.where(np.arange(len(LATE_SHARES)) == place, 0.0, -np.inf)[None]
    found = np.exp(delays_beyond_legs(late)[0])
    for leg_s, share in zip(HIDDEN_S, found, strict=True):
        left = LATE_SHARES[leg_s <= LATE_LEAST_S].sum()
        assert share == pytest.approx(LATE_SHARES[place] / left if leg_s <= LATE_LEAST_S[place] else 0.0)


def _paced(excess_ms: tuple[float, ...] | list[float], kind: ExchangeKind, close_ms: object) -> SidePosteriors:
    """A client that answers once in each connection, so late, and closes it so late if that is given."""
    closes = [None] * len(excess_ms) if close_ms is None else list(close_ms)  # type: ignore[call-overload]
    return judged(
        [Talk(CLIENT, [(kind, late)], close_ms=close) for late, close in zip(excess_ms, closes, strict=True)],
        at_client=False,
    )


def _log_uniform(least_ms: float, most_ms: float, generator: random.Random) -> float:
    return float(least_ms * (most_ms / least_ms) ** generator.random())


def _working(kinds: Sequence[ExchangeKind], least_ms: float, most_ms: float, *, leg_ms: float, closes: bool) -> float:
    """How probable a split is before a client behind such a leg, 40 connections of which answer TLS handshakes at once
    and all else after work that is now little, now much."""
    generator = random.Random(7)
    talks = [
        Talk(
            CLIENT,
            [
                (kind, leg_ms + (generator.uniform(0.3, 3.0) if kind in HANDSHAKES else
                                 _log_uniform(least_ms, most_ms, generator)))
                for kind in kinds
            ],
            close_ms=leg_ms + generator.random() if closes else None,
        )
        for _ in range(40)
    ]  # fmt: skip
    return float(judged(talks, at_client=False).groups.split[0])


HANDSHAKES = (ExchangeKind.TLS_FINISHED,)
OF_TLS = (ExchangeKind.TLS_FINISHED, ExchangeKind.TLS_DATA, ExchangeKind.TLS_DATA)


@pytest.mark.parametrize(("least_ms", "most_ms"), [(1, 2_000), (5, 2_000), (20, 2_000), (10, 60), (20, 200), (10, 400)])
def test_work_that_varies_behind_prompt_handshakes_is_no_split_that_ends_tls(least_ms: float, most_ms: float) -> None:
    assert _working(OF_TLS, least_ms, most_ms, leg_ms=0.0, closes=True) < LEAST_SPLIT[GroupSide.SERVER]


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("kind", [ExchangeKind.COMMAND, ExchangeKind.HTTP_NEXT_REQUEST, ExchangeKind.TURN])
@pytest.mark.parametrize(("least_ms", "most_ms"), [(5, 2_000), (20, 2_000), (10, 60), (20, 200)])
def test_the_shape_of_what_work_takes_proves_no_leg(
    kind: ExchangeKind, least_ms: float, most_ms: float, closes: bool
) -> None:
    assert _working([kind] * 3, least_ms, most_ms, leg_ms=0.0, closes=closes) < LEAST_SPLIT[GroupSide.SERVER]


@pytest.mark.parametrize("leg_ms", [40.0, 150.0])
@pytest.mark.parametrize("closes", [True, False])
def test_a_leg_that_handshakes_cross_shows_where_work_comes_on_top(leg_ms: float, closes: bool) -> None:
    """Keys that take as long to compute would not hold up what follows."""
    assert _working(OF_TLS, 1, 300, leg_ms=leg_ms, closes=closes) > LEAST_SPLIT[GroupSide.SERVER]
