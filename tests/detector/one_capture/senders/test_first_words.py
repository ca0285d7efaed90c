"""What clients say first: split points hold it when their own handshake is complete, clients do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.members import Floats
from detector.one_capture.senders.first_words import first_words_s, group_words_nats
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from tests.detector.one_capture.made_exchanges import Asked, exchanges

STEADY_S = np.array([0.0002])

#: Exchanges of a client that speaks first, and of a server that greets; when questions end is given in milliseconds.
SPEAKS = (Asked(0, 1.003, 0.5, ExchangeKind.HTTP_REQUEST, Direction.UP, 30.0, first=True),)
GREETS = (
    Asked(0, 25.0, 20.0, ExchangeKind.GREETING, Direction.DOWN, 21.0, first=True),
    Asked(0, 1.0, 0.5, ExchangeKind.COMMAND, Direction.UP, 46.0, first=True),
)


def _words_s(asked: Sequence[Asked], **changed: int) -> float:
    """What first words take in one connection, of a handshake of 20 ms that begins at 5 ms."""
    columns = {"first_time_ns": 5_000_000, "handshake_syn_ack_ns": 100_000, "handshake_ack_ns": 20_000_000, **changed}
    found = first_words_s(exchanges(asked, connections=1), {name: np.array([ns]) for name, ns in columns.items()})
    return float(found[0])


def test_first_words_are_timed_from_the_end_of_the_handshake() -> None:
    assert _words_s(SPEAKS) == pytest.approx(0.0049)


@pytest.mark.parametrize("unseen", ["handshake_syn_ack_ns", "handshake_ack_ns"])
def test_what_is_not_seen_is_not_known(unseen: str) -> None:
    assert np.isnan(_words_s(SPEAKS, **{unseen: -1}))
    assert np.isnan(_words_s(()))


def test_a_server_that_speaks_first_is_answered() -> None:
    assert np.isnan(_words_s(GREETS))


def test_words_that_were_sent_again_or_are_older_than_the_handshake_are_left_out() -> None:
    repeated = Asked(0, 1.0, 0.5, ExchangeKind.HTTP_REQUEST, Direction.UP, 30.0, first=True, repeated=True)
    assert np.isnan(_words_s((repeated,)))
    assert np.isnan(_words_s(SPEAKS, first_time_ns=20_000_000))


def test_coarse_clocks_say_nothing() -> None:
    by_milliseconds = Asked(0, 1.0, 1.0, ExchangeKind.HTTP_REQUEST, Direction.UP, 30.0, first=True)
    assert np.isnan(_words_s((by_milliseconds,), handshake_syn_ack_ns=0))


def _nats(words_s: Sequence[float], variation_s: Floats = STEADY_S) -> float:
    return float(group_words_nats(np.asarray(words_s), np.zeros(len(words_s), np.int64), variation_s)[0])


def test_words_at_once_speak_for_a_split_and_late_ones_against_it() -> None:
    assert _nats([5e-5] * 6) > 0.5
    assert _nats([5e-5]) < _nats([5e-5] * 6)
    assert _nats([0.02] * 6) < -0.2
    assert _nats([np.nan] * 6) == 0.0
    assert _nats([]) == 0.0


@given(
    st.lists(st.floats(0.0, 10.0) | st.just(float("nan")), max_size=20),
    st.floats(0.0, 0.1) | st.just(float("nan")),
    st.randoms(use_true_random=False),
)
def test_what_first_words_say_is_bounded_and_has_no_order(words_s: list[float], variation_s: float, random) -> None:
    nats = _nats(words_s, np.array([variation_s]))
    assert np.log(0.3) <= nats <= 1.2
    random.shuffle(words_s)
    assert _nats(words_s, np.array([variation_s])) == nats
