"""Captures of headers alone: the first answers of a connection may belong to a TLS handshake."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.classes import LEAST_SPLIT
from detector.one_capture.likelihoods.timing_tables import CLASSES, CLOSE, OPENING
from detector.one_capture.likelihoods.unread_words import reading, unread_numbers
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import GroupSide, Verdict
from tests.detector.one_capture.made_exchanges import Asked, Trips, exchanges
from tests.detector.one_capture.made_vantages import Talk, judged, results

HOSTS = ("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1")
LEGS_MS = (35.0, 48.0, 62.0, 90.0)
UNREAD, TURN = ExchangeKind.UNREAD, ExchangeKind.TURN


def talks(kind: ExchangeKind, prompt: int, *, late: bool = True) -> list[Talk]:
    """Five connections with each of four servers, whose first answers are prompt and whose other two are late."""
    return [
        Talk(host, [*[(kind, 0.3)] * prompt, *[(kind, leg_ms + each if late else each) for each in (0.4, 0.6)]], 20.0)
        for host, leg_ms in zip(HOSTS, LEGS_MS, strict=True)
        for _ in range(5)
    ]


@pytest.mark.parametrize("prompt", [1, 2])
def test_a_box_that_may_answer_tls_itself_is_not_refuted_by_words_that_were_not_read(prompt: int) -> None:
    (group,) = results(talks(UNREAD, prompt), at_client=True)
    assert group.verdict is not Verdict.REGULAR


def test_words_that_were_read_and_are_no_handshake_clear() -> None:
    (group,) = results(talks(TURN, 2), at_client=True)
    assert group.verdict is Verdict.REGULAR


def test_many_prompt_answers_of_a_connection_are_no_handshake() -> None:
    made = [Talk("192.0.2.1", [*[(UNREAD, 0.3)] * 6, (UNREAD, 41.0), (UNREAD, 41.2)])] * 8
    assert judged(made, at_client=False).groups.split[0] < 0.05


@pytest.mark.parametrize("prompt", [1, 2])
def test_prompt_answers_behind_what_may_be_handshakes_clear(prompt: int) -> None:
    (group,) = results(talks(UNREAD, prompt, late=False), at_client=True)
    assert group.verdict is Verdict.REGULAR


def test_late_words_accuse_by_less_than_a_third_of_what_keeps_them_open_where_they_are_read() -> None:
    shares = {kind: judged(talks(kind, 0), at_client=True).groups.split[0] for kind in (UNREAD, TURN)}
    assert 1 - shares[UNREAD] > (1 - shares[TURN]) / 3


def test_a_client_that_answers_all_but_handshakes_late_is_not_accused_by_headers() -> None:
    late = [Talk("192.0.2.1", [(UNREAD, 0.3), (UNREAD, 41.0 + each)]) for each in range(12)]
    assert judged(late, at_client=False).groups.split[0] < LEAST_SPLIT[GroupSide.SERVER]


def test_exchanges_are_numbered_by_connection_and_direction() -> None:
    asked = [
        Asked(0, 20.0, 20.0, UNREAD, Direction.UP, 0.0),
        Asked(0, 20.0, 20.0, UNREAD, Direction.DOWN, 100.0),
        Asked(0, 20.0, 20.0, TURN, Direction.UP, 200.0),
        Asked(0, 20.0, 20.0, UNREAD, Direction.UP, 300.0),
        Asked(1, 20.0, 20.0, UNREAD, Direction.UP, 0.0),
    ]
    trips = [Trips(20.0), Trips(20.0)]
    made = exchanges(asked, trips, trips, connections=2)
    rows = np.flatnonzero(made.asked == Direction.UP.value)
    assert unread_numbers(made, Direction.UP.value, rows).tolist() == [1, 0, 3, 1]
    assert unread_numbers(made, Direction.UP.value, rows[::-1]).tolist() == [1, 3, 0, 1]


@given(st.lists(st.tuples(st.integers(0, CLOSE + 1), st.integers(0, 4)), min_size=1, max_size=20), st.integers(0, 2))
def test_a_reading_changes_first_words_that_were_not_read_alone(found: list[tuple[int, int]], handshakes: int) -> None:
    kind, unread = np.array(found).T
    read = reading(kind, unread, handshakes)
    may_be = (kind < CLOSE) & (unread > 0) & (unread <= handshakes)
    assert (read[~may_be] == kind[~may_be]).all()
    assert (read[may_be] % OPENING == CLASSES.index("handshake")).all()
    assert (read // OPENING == kind // OPENING).all()
