"""Connections that say the same, of one transfer each or of strangers, by the clock relation that they have."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import log

import pytest

from detector.pairing.starts import one_clock
from detector.pairing.starts.agreement import first_data_ns
from detector.pairing.starts.clock_bounds import CONTRADICTION_NATS, Clocks, held_bounds, narrowed
from detector.pairing.starts.one_clock import one_transfer_nats
from pepscope.captures.connections import Connection, FlowSummary

_S = 1_000_000_000
#: Captures of a minute, by clocks that may be 10 s apart.
CLOCKS = Clocks(0, 10 * _S, 0, 0, 60 * _S)


def flow(at_s: float, size: int) -> FlowSummary:
    return FlowSummary(*[None] * len(FlowSummary._fields))._replace(  # type: ignore[arg-type]
        stream_bytes=size, first_data_time_ns=round(at_s * _S), last_data_time_ns=round(at_s * _S)
    )


def exchange(at_s: float, answered_s: float, *, server: str = "192.0.2.1") -> Connection:
    """A connection whose request passes at a time, and its answer after a while."""
    up, down = flow(at_s, 100), flow(at_s + answered_s, 500)
    made = Connection(*[None] * len(Connection._fields))  # type: ignore[arg-type]
    begin_ns, end_ns = round(at_s * _S), round((at_s + answered_s) * _S)
    return made._replace(
        server_address=server, server_port=80, first_time_ns=begin_ns, last_time_ns=end_ns, up=up, down=down
    )


def transfers(starts_s: Sequence[float], ahead_s: float = 0.0) -> list[tuple[Connection, Connection]]:
    """The same exchanges at both ends of a path of 100 ms, the second clock being ahead."""
    return [(exchange(at, 0.1), exchange(at + 0.04 + ahead_s, 0.02, server="198.51.100.7")) for at in starts_s]


def together(pairs: Sequence[tuple[Connection, Connection]], clocks: Clocks = CLOCKS) -> list[float]:
    return one_transfer_nats([[pair] for pair in pairs], ([], []), clocks)


def test_a_pair_alone_shows_nothing() -> None:
    assert together(transfers([3])) == [0.0]


def test_transfers_that_one_offset_explains_are_one_each() -> None:
    for ahead_s in (0.0, 4.0):
        assert min(together(transfers([1, 7, 9.5, 22, 30, 41], ahead_s))) > log(100)


def test_strangers_agree_on_no_offset() -> None:
    made = random.Random(1)
    starts = [(made.uniform(0, 60), made.uniform(-5, 5)) for _ in range(8)]
    pairs = [transfers([at], ahead)[0] for at, ahead in starts]
    assert max(together(pairs)) < 2 * CONTRADICTION_NATS


def test_connections_that_begin_together_are_one_event() -> None:
    page = transfers([5, 5.01, 5.02, 5.03])
    assert together(page) == [0.0] * 4


def test_pair_that_contradicts_the_others_is_doubted_alone() -> None:
    *others, odd = together([*transfers([1, 7, 9.5, 22, 30, 41, 50, 55]), *transfers([33], 2.0)])
    assert odd == CONTRADICTION_NATS
    assert min(others) > 0


def test_what_a_proxy_stored_and_changed_contradicts_nothing() -> None:
    asked, (one, two) = exchange(4, 1.3), transfers([4])[0]
    stored = two._replace(up=flow(5.2, one.up.stream_bytes + 5), down=flow(5.22, one.down.stream_bytes - 26))
    assert together([*transfers([1]), (asked, stored)]) == [0.0, 0.0]
    sooner = two._replace(up=flow(2.8, one.up.stream_bytes + 5), down=flow(2.82, one.down.stream_bytes - 26))
    assert together([*transfers([1, 12]), (asked, sooner)])[-1] <= CONTRADICTION_NATS, "before it was asked"


def test_equal_transfers_that_were_paired_crosswise_contradict_nothing() -> None:
    pairs = transfers([1, 7, 9.5, 22, 30, 30.3])
    (first, second), (third, fourth) = pairs[-2:]
    crossed = [[(first, fourth), (first, second)], [(third, second), (third, fourth)]]
    assert min(one_transfer_nats([*([pair] for pair in pairs[:-2]), *crossed], ([], []), CLOCKS)) > log(100)


def test_coverage_counts_connections_without_a_counterpart() -> None:
    pairs = transfers([1, 7, 9.5])
    alone = [exchange(at, 0.1) for at in range(10, 50)]
    elsewhere = [exchange(at + 0.5, 0.02, server="198.51.100.7") for at in range(10, 50)]
    assert max(one_transfer_nats([[pair] for pair in pairs], (alone, elsewhere), CLOCKS)) < min(together(pairs))


def test_connections_that_are_surely_one_relate_the_clocks() -> None:
    clocks = narrowed(CLOCKS, transfers([2, 5, 40], ahead_s=0.5))
    assert abs(clocks.offset_ns - 0.5 * _S) <= clocks.slack_ns <= 0.05 * _S
    assert together(transfers([3], 0.5), clocks) == [0.0]
    assert together(transfers([3], 0.8), clocks) == [CONTRADICTION_NATS]


def asked_of_the_first(starts_s: Sequence[float]) -> list[tuple[Connection, Connection]]:
    """What clients beside the second capture ask servers beside the first."""
    return [
        (exchange(at + 0.04, 0.02, server="192.0.2.9"), exchange(at, 0.1, server="198.51.100.8")) for at in starts_s
    ]


def test_hosts_that_serve_each_other_have_one_clock_relation() -> None:
    both = [*transfers([2, 5, 40]), *asked_of_the_first([3, 21, 50])]
    clocks = narrowed(CLOCKS, both)
    assert abs(clocks.offset_ns) <= clocks.slack_ns <= 0.05 * _S
    pairs = [*transfers([1, 7, 9.5, 22, 30, 41]), *asked_of_the_first([3, 8, 13.5, 28, 47])]
    assert min(together(pairs)) > log(10)


def test_ports_that_are_used_once_are_counted_together() -> None:
    """FTP opens one for each file: of twelve files of strangers two are near each other."""
    made = random.Random(4)
    ahead_s = [0.0, 0.0, *(made.uniform(-5, 5) for _ in range(10))]
    pairs = [
        (one._replace(server_port=50_000 + number), two._replace(server_port=40_000 + number))
        for number, ahead in enumerate(ahead_s)
        for one, two in transfers([1 + 4 * number], ahead)
    ]
    assert max(together(pairs)) < CONTRADICTION_NATS


def test_strangers_that_one_cause_starts_answer_each_in_its_own_time() -> None:
    made = random.Random(5)
    starts = [made.uniform(0, 60) for _ in range(30)]
    thought = [made.expovariate(100) for _ in starts]
    others = [made.expovariate(100) for _ in starts]
    same = [
        (exchange(at, 0.1 + late), exchange(at + 0.04, 0.02 + late, server="198.51.100.7"))
        for at, late in zip(starts, thought, strict=True)
    ]
    strangers = [
        (one, exchange(at + 0.04, 0.02 + late, server="198.51.100.7"))
        for at, (one, _), late in zip(starts, same, others, strict=True)
    ]
    assert min(together(same)) > log(100)
    assert max(together(strangers)) < min(together(same)) - log(100)


@pytest.mark.parametrize("period_s", [None, 2])
def test_two_servers_that_one_client_asks_at_once_answer_in_any_order(period_s: float | None) -> None:
    """Those that the second one answers sooner agree on a clock; the others begin together with them as well."""
    made = random.Random(6)
    starts = [made.uniform(0, 60) if period_s is None else at * period_s + made.expovariate(200) for at in range(30)]
    both = [
        (
            exchange(at + made.expovariate(5000), made.expovariate(200)),
            exchange(at + 0.002 + made.expovariate(5000), made.expovariate(200), server="198.51.100.7"),
        )
        for at in starts
    ]
    assert max(together(both)) < 0


def test_contradictions_of_others_are_no_cause_of_the_transfers() -> None:
    made = random.Random(7)
    elsewhere = [transfers([at], made.choice((-3.0, 4.0)))[0] for at in (5.0, 19.0, 37.0)]
    assert max(together([*transfers([1, 7, 9.5, 22, 30, 41, 50, 55]), *elsewhere])) > log(20)
    near = [transfers([at], 0.15)[0] for at in (5.0, 19.0, 37.0)]
    assert max(together([*transfers([1, 7, 9.5, 22, 30, 41, 50, 55]), *near])) < log(20)


def test_a_clock_that_was_set_relates_nothing() -> None:
    assert narrowed(CLOCKS, [*transfers([2, 5]), *transfers([40, 50], 1.0)]) == CLOCKS
    assert narrowed(CLOCKS, []) == CLOCKS


def test_strangers_of_one_timetable_agree_by_one_coincidence() -> None:
    made = random.Random(2)
    due = range(2, 58, 4)
    starts = [at + made.uniform(0, 0.02) for at in due]
    other = [at + made.uniform(0, 0.02) for at in due]
    strangers = [(one, two) for (one, _), (_, two) in zip(transfers(starts), transfers(other), strict=True)]
    assert together(strangers[:2]) != together(strangers)
    assert max(together(strangers)) < 0
    at_random = sorted(made.uniform(1, 59) for _ in starts)
    assert min(together(transfers(at_random))) > log(100)


def test_transfers_by_a_timetable_are_late_together() -> None:
    made = random.Random(2)
    assert min(together(transfers([at + made.uniform(0, 0.02) for at in range(2, 58, 4)]))) > log(50)
    assert max(together(transfers(range(2, 58, 4)))) < 0


def test_either_capture_may_be_the_first() -> None:
    made = random.Random(3)
    pairs = transfers([made.uniform(0, 60) for _ in range(30)])
    pairs += [transfers([at], made.choice((0.15, -0.15, 3.0)))[0] for at in (8.0, 15.0, 15.2, 31.0, 44.0)]
    by_a_timetable = [
        transfers([at + made.uniform(0, 0.05)], made.expovariate(1000))[0] for at in (*range(2, 58, 4), 21.5, 33.2)
    ]
    for each in (pairs, by_a_timetable):
        swapped = [(two, one) for one, two in each]
        assert together(swapped) == pytest.approx(together(each))


def test_either_capture_may_be_the_first_where_as_many_pairs_speak_for_either_side() -> None:
    """Answers are longer at the client's side: a tie is no reason to take the first capture for it."""
    pairs = transfers([3, 11.5, 24])
    pairs += [(exchange(at + 0.03, 0.02), exchange(at, 0.08, server="198.51.100.7")) for at in (17.0, 33.0, 41.2)]
    synchronised = Clocks(0, 0, 0, 0, 60 * _S)
    for each in (pairs, [(two, one) for one, two in pairs]):
        bounds, _ = held_bounds([[pair] for pair in each], synchronised)
        assert [pair.is_possible for (pair,) in bounds] == [True] * 3 + [False] * 3


def test_counterparts_that_no_offset_allows_contradict() -> None:
    no_doubt = Clocks(0, 0, 0, 0, 60 * _S)
    assert together(transfers([3], 2.0), no_doubt) == [CONTRADICTION_NATS]
    assert narrowed(no_doubt, transfers([3, 8], 2.0)) == no_doubt


def test_connections_without_data_are_held_by_their_starts() -> None:
    def silent(connection: Connection) -> Connection:
        nothing = flow(0, 0)._replace(first_data_time_ns=None)
        return connection._replace(up=nothing, down=nothing)

    pairs = [(silent(one), silent(two)) for one, two in transfers([1, 7, 9.5, 22, 30, 41])]
    assert min(together(pairs)) > 0


def test_each_connection_is_looked_at_a_few_times_however_many_servers_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One address in the first capture, as of a proxy, and a server each in the second."""
    looks = list[Connection]()

    def looked_at(connection: Connection) -> int:
        looks.append(connection)
        return first_data_ns(connection)

    monkeypatch.setattr(one_clock, "first_data_ns", looked_at)
    pairs = [
        (one, two._replace(server_port=number))
        for number, (one, two) in enumerate(transfers([at / 10 for at in range(500)]))
    ]
    together(pairs)
    assert len(looks) < 10 * len(pairs)
