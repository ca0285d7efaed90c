"""The excess of exchanges against a slow reference, and what must not change it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming, exchange_timing
from detector.one_capture.likelihoods.timing_tables import OPENING
from detector.one_capture.networks import NetworkTable, Places, places
from pepscope.captures.exchanges import ANSWERED_BEFORE, ExchangeKind
from pepscope.captures.packets import Direction
from tests.detector.one_capture.likelihoods import reference_timing as reference
from tests.detector.one_capture.made_exchanges import Asked, Trips, addresses, exchanges

TIMES = st.integers(0, 3000).map(lambda tenths: tenths / 10)
TRIPS = st.builds(
    Trips, least_ms=st.none() | TIMES, middle_ms=st.none() | TIMES, handshake_ms=st.none() | TIMES,
    count=st.integers(1, 9), prompt_10_ms=st.none() | TIMES, prompt_60_ms=TIMES, prompt_count=st.integers(1, 9),
)  # fmt: skip


@st.composite
def captured(draw: st.DrawFn) -> tuple[list[Asked], list[Trips], list[Trips], list[int]]:
    """Exchanges, round trips up and down, and the number of each connection's far host."""
    connections = draw(st.integers(1, 6))
    up, down = (draw(st.lists(TRIPS, min_size=connections, max_size=connections)) for _ in range(2))
    asked = []
    for connection in range(connections):
        for _ in range(draw(st.integers(0, 5))):
            took = draw(TIMES)
            asked.append(
                Asked(
                    connection, took, round(took * draw(st.floats(0, 1)), 1),
                    draw(st.sampled_from(ExchangeKind)), draw(st.sampled_from(Direction)), draw(TIMES),
                    first=draw(st.booleans()), repeated=draw(st.integers(0, 9)) == 0,
                    crossed=draw(st.integers(0, 9)) == 0, strict=draw(st.booleans()),
                )
            )  # fmt: skip
    return asked, up, down, draw(st.lists(st.integers(0, 2), min_size=connections, max_size=connections))


def placed(hosts: list[int], at_client: bool) -> Places:
    far, near = [f"192.0.2.{host + 1}" for host in hosts], ["192.0.2.99"] * len(hosts)
    columns = {
        "client_address": addresses(near if at_client else far),
        "server_address": addresses(far if at_client else near),
        "server_port": np.full(len(hosts), 80),
    }
    return places(columns, at_client=at_client, table=NetworkTable())


def judged(asked, up, down, hosts: list[int], *, at_client: bool) -> tuple[ExchangeTiming, Places]:
    where = placed(hosts, at_client)
    found = exchanges(asked, up, down, connections=len(hosts))
    return exchange_timing(found, where, at_client=at_client), where


def same(found: float, wanted: float | None) -> bool:
    return math.isnan(found) if wanted is None else found == pytest.approx(wanted, abs=1e-9)


@given(captured(), st.booleans())
def test_timing_is_that_of_the_reference(capture, at_client: bool) -> None:
    asked, up, down, hosts = capture
    found, where = judged(asked, up, down, hosts, at_client=at_client)
    trips, way = (up, Direction.UP) if at_client else (down, Direction.DOWN)
    wanted = {each.row: each for each in reference.timed(asked, trips, where.member.tolist(), way)}
    assert sorted(found.row.tolist()) == sorted(wanted)
    assert np.all(np.diff(found.member) >= 0)
    for place, row in enumerate(found.row.tolist()):
        one = wanted[row]
        assert found.member[place] == one.member
        assert found.connection[place] == asked[row].connection
        assert found.excess_s[place] == pytest.approx(one.excess_s, abs=1e-9)
        assert found.weight[place] == pytest.approx(one.weight)
        assert (found.kind[place] >= OPENING) == one.opens
    for member in range(len(where.member_group)):
        of_member = [trips[c] for c in range(len(hosts)) if where.member[c] == member]
        path = reference.path(of_member)
        for name in ("near_s", "data_s", "plain_s", "prompt_s", "handshake_s", "variation_s"):
            assert same(getattr(found, name)[member], getattr(path, name)), name


@given(captured(), st.booleans(), st.randoms())
def test_the_order_of_connections_does_not_matter(capture, at_client: bool, random) -> None:
    asked, up, down, hosts = capture
    order = list(range(len(hosts)))
    random.shuffle(order)
    moved = sorted(
        (replace(each, connection=order.index(each.connection)) for each in asked), key=lambda each: each.connection
    )
    one, _ = judged(asked, up, down, hosts, at_client=at_client)
    other, _ = judged(
        moved, [up[n] for n in order], [down[n] for n in order], [hosts[n] for n in order], at_client=at_client
    )  # fmt: skip

    def rows(timing: ExchangeTiming) -> list[tuple[float, ...]]:
        columns = (timing.member, timing.kind, timing.excess_s, timing.weight)
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    assert rows(one) == rows(other)
    for name in ("near_s", "data_s", "plain_s", "prompt_s", "handshake_s", "variation_s"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_the_other_sides_exchanges_say_nothing() -> None:
    asked = [Asked(0, 90.0, 20.0, asked=Direction.DOWN), Asked(0, 21.0, 20.0)]
    found, _ = judged(asked, [Trips(least_ms=20.0)], [Trips(least_ms=0.1)], [0], at_client=True)
    assert found.row.tolist() == [1]
    assert found.excess_s.tolist() == pytest.approx([0.001])


def test_an_exchange_whose_transport_nothing_else_times_is_not_weighed() -> None:
    """Acknowledgements that ride on answers are as late as these: compared with them, every leg would be hidden."""
    for trips in (Trips(), Trips(least_of_all_ms=60.0)):
        found, _ = judged([Asked(0, 1020.0, 1019.0)], [trips], [], [0], at_client=True)
        assert not len(found.excess_s)


def test_a_handshake_that_was_held_up_gives_way_to_the_hosts_others() -> None:
    """A radio that wakes up makes a handshake longer than answers; the same host's other connections tell the path."""
    woken, awake = Trips(handshake_ms=430.0, least_of_all_ms=60.0), Trips(handshake_ms=20.0)
    found, _ = judged([Asked(0, 60.0, 60.0)], [woken, awake], [], [0, 0], at_client=True)
    assert found.excess_s.tolist() == pytest.approx([0.04])


def test_an_acknowledgement_that_a_timer_delayed_times_nothing_where_handshakes_wait() -> None:
    """A relay that connects first, 9 ms away, 52 ms before its server: it acknowledges the second connection 40 ms
    late, which would hide most of the leg."""
    prompt = Trips(9.1, handshake_ms=61.0, prompt_10_ms=9.1, prompt_60_ms=9.8, prompt_count=4)
    delayed = Trips(49.3, handshake_ms=61.3)
    asked = [Asked(0, 62.0, 9.1), Asked(1, 64.0, 49.3)]
    found, _ = judged(asked, [prompt, delayed], [], [0, 0], at_client=True)
    assert found.excess_s.tolist() == pytest.approx([0.0529])
    # Beside a radio link that varies by as much, it may have been the path; so it was where no timer waits for more; a
    # handshake that does not wait is in time.
    radio = replace(prompt, prompt_60_ms=24.0)
    of_two_segments = replace(delayed, prompt_10_ms=49.3, prompt_60_ms=49.4, prompt_count=1)
    for trips in ([radio, delayed], [prompt, of_two_segments], [replace(prompt, handshake_ms=9.5), delayed]):
        found, _ = judged(asked[1:], trips, [], [0, 0], at_client=True)
        assert found.excess_s.tolist() == pytest.approx([0.0147])


def test_an_answer_sooner_than_any_known_round_trip_comes_at_the_transports_speed() -> None:
    """The connection has no round trip of its own, and those to its host were slower."""
    found, _ = judged([Asked(0, 20.0, 20.0)], [Trips(), Trips(least_ms=50.0)], [], [0, 0], at_client=True)
    assert found.excess_s.tolist() == [0.0]


def test_delayed_acknowledgements_are_no_variation() -> None:
    """A wire whose other end delays every second acknowledgement by 40 ms is a wire all the same."""
    delayed = Trips(least_ms=10.0, middle_ms=50.0, count=9, prompt_10_ms=10.0, prompt_60_ms=10.2, prompt_count=4)
    found, _ = judged([Asked(0, 30.0, 10.0)], [delayed], [], [0], at_client=True)
    assert found.variation_s.tolist() == pytest.approx([0.0002])
    found, _ = judged([Asked(0, 30.0, 10.0)], [replace(delayed, prompt_10_ms=None)], [], [0], at_client=True)
    assert np.isnan(found.variation_s).all()


def test_what_long_transfers_queue_is_no_variation() -> None:
    """Nor is what handshakes wait for: each of both says how much the path varies at most."""
    loaded = Trips(30.2, prompt_10_ms=30.6, prompt_60_ms=46.3, prompt_count=200)
    steady = [replace(loaded, handshake_ms=30.2 + number / 10) for number in range(6)]
    found, _ = judged([Asked(0, 60.0, 30.0)], steady, [], [0] * 6, at_client=True)
    assert found.variation_s.tolist() == pytest.approx([0.0005])
    assert found.round_trips.tolist() == [6]
    nearer = [replace(each, handshake_ms=each.handshake_ms - 11) for each in steady]
    found, _ = judged([Asked(0, 60.0, 30.0)], nearer, [], [0] * 6, at_client=True)
    assert found.variation_s.tolist() == pytest.approx([0.0157])
    waking = [Trips(30.2, handshake_ms=30.2 + 80 * number) for number in range(6)]
    waking[0] = replace(loaded, handshake_ms=30.2, prompt_60_ms=31.0)
    found, _ = judged([Asked(0, 60.0, 30.0)], waking, [], [0] * 6, at_client=True)
    assert found.variation_s.tolist() == pytest.approx([0.0004])
    assert found.round_trips.tolist() == [200]


def test_few_handshakes_that_are_alike_by_chance_make_no_wire_of_radio() -> None:
    """Five handshakes over LTE, of which three came within 0.7 ms."""
    radio = Trips(39.3, prompt_10_ms=41.6, prompt_60_ms=49.4, prompt_count=6)
    met = [replace(radio, handshake_ms=handshake_ms) for handshake_ms in (39.3, 39.8, 40.0, 49.0, 52.0)]
    found, _ = judged([Asked(0, 60.0, 39.3)], met, [], [0] * 5, at_client=True)
    assert found.variation_s.tolist() == pytest.approx([0.0078])
    alone = [replace(each, prompt_10_ms=None, prompt_60_ms=None, prompt_count=0) for each in met]
    found, _ = judged([Asked(0, 60.0, 39.3)], alone, [], [0] * 5, at_client=True)
    assert found.variation_s.tolist() == pytest.approx([0.0007]), "there is nothing else to tell by"


@pytest.mark.parametrize(("strict", "wanted"), [(True, [0]), (False, [])])
def test_a_greeting_that_nobody_has_to_wait_for_says_nothing(strict: bool, wanted: list[int]) -> None:
    """Clients of SSH send theirs without having heard the server's (RFC 4253, section 4.2); those of mail wait."""
    asked = [Asked(0, 30.0, 10.0, ExchangeKind.GREETING, Direction.DOWN, strict=strict)]
    found, _ = judged(asked, [], [Trips(least_ms=10.0)], [0], at_client=False)
    assert found.row.tolist() == wanted


@pytest.mark.parametrize(("untimed", "left"), [(0, 40), (2, 38), (3, 0)], ids=["none", "a few", "more"])
def test_what_two_clocks_timed_times_nothing(untimed: int, left: int) -> None:
    """Of 40 connections."""
    before_ms = ANSWERED_BEFORE / 1e6
    trips = [Trips(30.0, handshake_ms=before_ms if number < untimed else None) for number in range(40)]
    asked = [Asked(number, 90.0, 30.0, ExchangeKind.HTTP_NEXT_REQUEST, Direction.DOWN, 500.0) for number in range(40)]
    found, _ = judged(asked, trips, trips, list(range(40)), at_client=False)
    assert len(found.row) == left


@pytest.mark.parametrize(("first", "opened_ms", "asked_ms", "wanted"), [
    (True, 40.0, 40.0, True), (True, 40.0, 41.9, True), (True, 40.0, 42.1, False), (False, 40.0, 40.0, False),
    (True, None, 40.0, False),
])  # fmt: skip
def test_first_questions_are_asked_at_once_that_leave_as_the_connection_opens(
    first: bool, opened_ms: float | None, asked_ms: float, wanted: bool
) -> None:
    asked = [Asked(0, 30.0, 20.0, question_ms=asked_ms, first=first)]
    found = exchanges(asked, [Trips(20.0)], [Trips(20.0)], connections=1)
    opened_ns = np.asarray([-1 if opened_ms is None else round(opened_ms * 1e6)])
    timing = exchange_timing(found, placed([0], True), at_client=True, opened_ns=opened_ns)
    assert timing.at_once.tolist() == [wanted]
    assert not exchange_timing(found, placed([0], True), at_client=True).at_once.any()
