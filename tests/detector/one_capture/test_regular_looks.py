"""Programs that look for work at regular times: what they say lies on one grid, however a conversation began."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.hypotheses import regular_looks
from detector.one_capture.hypotheses.regular_looks import LooksNats, SpeechTimes, looks_nats, said_by
from detector.one_capture.members import Ints
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from tests.detector.one_capture.made_exchanges import Asked
from tests.detector.one_capture.made_vantages import Talk, judged, vantage

CLIENT = "192.0.2.1"
ROUND_TRIP_S = 0.02
PERIOD_S = 0.075


def _said(
    seed: int,
    *,
    looks: bool,
    connections: int = 8,
    turns: int = 4,
    every_s: float | None = None,
    opens_at_once: bool = False,
) -> SpeechTimes:
    """A client that begins when it likes, or every so often, and answers at its next look, or behind a leg that makes
    each answer take as long as looks do. What opens its connections may wait for no look."""
    random = Random(seed)
    times: list[tuple[int, float]] = []
    start_s = 0.0
    for connection in range(connections):
        start_s += random.expovariate(1 / 2.0) + 0.3 if every_s is None else every_s + random.uniform(0.0, 1e-4)
        time_s = np.ceil(start_s / PERIOD_S) * PERIOD_S if looks and not opens_at_once else start_s
        for _ in range(turns):
            times.append((connection, time_s + random.expovariate(1 / 3e-4)))
            asked_s = time_s + ROUND_TRIP_S + random.uniform(0.0, 0.002)
            time_s = np.ceil(asked_s / PERIOD_S) * PERIOD_S if looks else asked_s + PERIOD_S - ROUND_TRIP_S - 0.001
        start_s = max(start_s, time_s)
    order = np.asarray(times)
    return SpeechTimes(np.zeros(len(times), np.int64), order[:, 0].astype(np.int64), order[:, 1])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("opens_at_once", [False, True])
def test_what_lies_on_a_grid_is_told_from_what_a_leg_makes_late(seed: int, opens_at_once: bool) -> None:
    """A program that asks as soon as it is connected, and later looks at regular times, lies on its grid as well."""
    assert looks_nats(_said(seed, looks=True, opens_at_once=opens_at_once), ROUND_TRIP_S) > 4
    assert looks_nats(_said(seed, looks=False), ROUND_TRIP_S) < 1


def test_clients_that_begin_when_they_like_seldom_seem_to_look() -> None:
    """A ratio of likelihoods is 1 on average where no program looks, so that it seldom exceeds any bound (Markov)."""
    nats = np.array([looks_nats(_said(seed, looks=False), ROUND_TRIP_S) for seed in range(300)])
    for bound in (1.0, 2.0, 4.0):
        assert (nats > bound).mean() <= np.exp(-bound) + 0.01


def test_longer_conversations_alone_say_nothing() -> None:
    assert looks_nats(_said(1, looks=True, connections=1, turns=40), ROUND_TRIP_S) == 0.0
    assert looks_nats(_said(1, looks=True, connections=30, turns=1), ROUND_TRIP_S) == 0.0


def test_a_client_that_begins_by_a_timer_tells_its_gap_once() -> None:
    steady = looks_nats(_said(2, looks=False, connections=12, every_s=5.0), ROUND_TRIP_S)
    assert steady < 4


def test_without_a_round_trip_nothing_is_said() -> None:
    assert looks_nats(_said(1, looks=True), float("nan")) == 0.0
    none: Ints = np.zeros(0, np.int64)
    assert looks_nats(SpeechTimes(none, none, np.zeros(0)), ROUND_TRIP_S) == 0.0


@given(st.integers(0, 100), st.booleans(), st.floats(-1e5, 1e5), st.permutations(range(8)))
def test_clocks_and_the_order_of_connections_change_nothing(
    seed: int, looks: bool, shift_s: float, names: list[int]
) -> None:
    said = _said(seed, looks=looks)
    before = looks_nats(said, ROUND_TRIP_S)
    shifted = SpeechTimes(said.client, said.connection, said.time_s + shift_s)
    assert looks_nats(shifted, ROUND_TRIP_S) == pytest.approx(before, abs=1e-3)
    renamed = np.asarray(names)[said.connection]
    order = np.lexsort((said.time_s, renamed))
    assert looks_nats(SpeechTimes(said.client, renamed[order], said.time_s[order]), ROUND_TRIP_S) == pytest.approx(
        before
    )


@given(st.lists(st.floats(-500.0, 500.0), min_size=1, max_size=6))
def test_refuted_looks_take_no_more_than_their_share(nats: list[float]) -> None:
    found = LooksNats.of_gaps(np.asarray(nats))
    for given_looks in (found.steady, found.device):
        assert (given_looks >= np.log(0.5) - 1e-9).all()
        assert (given_looks <= np.maximum(nats, 0.0) + 1e-9).all()


def _talks(said: SpeechTimes) -> list[Talk]:
    """The same client as connections of a server's capture, each answer to a question one round trip before."""
    made = []
    for connection in range(int(said.connection.max()) + 1):
        times_s = said.time_s[said.connection == connection]
        more = [
            Asked(
                0, (later_s - earlier_s) * 1e3, ROUND_TRIP_S * 1e3, ExchangeKind.TURN, Direction.DOWN, earlier_s * 1e3
            )
            for earlier_s, later_s in pairwise(times_s)
        ]
        made.append(Talk(CLIENT, more=more, round_trip_ms=ROUND_TRIP_S * 1e3))
    return made


def _first_words(said: SpeechTimes) -> list[Talk]:
    """The same with the client's first words, as questions to the server that it answers at once."""
    talks = _talks(said)
    first_s = [said.time_s[said.connection == connection][0] for connection in range(len(talks))]
    return [
        Talk(
            CLIENT,
            more=[Asked(0, 1.0, 0.5, ExchangeKind.TURN, Direction.UP, time_s * 1e3), *talk.more],
            round_trip_ms=talk.round_trip_ms,
        )
        for talk, time_s in zip(talks, first_s, strict=True)
    ]  # fmt: skip


def test_a_program_that_looks_at_regular_times_is_no_split() -> None:
    looks, leg = (
        float(judged(_first_words(_said(3, looks=looks, connections=12)), at_client=False).groups.split[0])
        for looks in (True, False)
    )
    assert looks < 0.5
    assert leg / (1 - leg) > 4 * looks / (1 - looks)


def test_a_program_that_looks_may_stand_behind_a_leg() -> None:
    """The grid says nothing of a leg, so that its probability is not much less than before anything was seen."""
    found = judged(_first_words(_said(3, looks=True, connections=12)), at_client=False)
    assert found.groups.split[0] > 0.05


def test_said_are_first_words_answers_and_ends_once_each() -> None:
    said = _said(4, looks=True, connections=3)
    made = vantage(_first_words(said), at_client=False)
    columns = {**made.columns, "up_fin_time_ns": np.array([-1, 70_000_000_000, -1])}
    found = said_by(made.exchanges, columns, np.array([0, 0, -1]))
    assert found.connection.tolist() == [0] * 4 + [1] * 5
    assert found.time_s[:4] - found.time_s[0] == pytest.approx(said.time_s[:4] - said.time_s[0], abs=1e-6)
    assert found.of(0).client.tolist() == [0] * 9


def test_of_a_group_those_clients_are_weighed_that_say_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regular_looks, "MOST_CLIENTS", 1)
    weighed = []

    def counted(said: SpeechTimes, _round_trip_s: float) -> float:
        weighed.append(len(said.time_s))
        return 1.0

    monkeypatch.setattr(regular_looks, "looks_nats", counted)
    more, less = _first_words(_said(5, looks=True)), _first_words(_said(6, looks=True, connections=2))
    talks = [*less, *(Talk("192.0.2.9", more=talk.more, round_trip_ms=talk.round_trip_ms) for talk in more)]
    made = vantage(talks, at_client=False)
    clients = regular_looks.Clients(
        made.exchanges, made.columns, np.array([0, 0, *[1] * 8]), np.full(len(talks), ROUND_TRIP_S)
    )
    assert clients.looks(np.array([0, 1]), np.array([0, 0])).tolist() == [0.0, 1.0]
    assert weighed == [32]
