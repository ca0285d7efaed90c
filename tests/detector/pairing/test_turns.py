"""Answers that take longer at one capture throughout, and those of strangers, which may at either."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.pairing.starts.clock_bounds import Pair
from detector.pairing.starts.turns import one_side_nats, turns_nats
from pepscope.captures.connections import Connection, FlowSummary
from pepscope.results.verdicts import FloatArray

_MS = 1_000_000
_GAP_MS = 50.0


def connection(up_ns: int, down_ns: int | None, handshake_ns: int | None, size: int = 500) -> Connection:
    nothing = FlowSummary(*[None] * len(FlowSummary._fields))  # type: ignore[arg-type]
    up = nothing._replace(stream_bytes=100, first_data_time_ns=up_ns)
    down = nothing._replace(stream_bytes=size, first_data_time_ns=down_ns)
    made = Connection(*[None] * len(Connection._fields))  # type: ignore[arg-type]
    return made._replace(handshake_syn_ack_ns=handshake_ns, up=up, down=down)


def as_it_is(time_ns: FloatArray) -> FloatArray:
    return time_ns


def captured(
    up_ms: FloatArray, down_ms: FloatArray, made: np.random.Generator,
    clock: Callable[[FloatArray], FloatArray] = as_it_is,
) -> list[Connection]:  # fmt: skip
    """Connections of one capture, whose times are late by up to 20 us, and whose handshakes take 30 us and so late."""
    shape = (4, len(up_ms))
    late_ns = made.uniform(0, 20_000, shape)
    true_ns = np.array([up_ms * _MS, down_ms * _MS, up_ms * _MS - _MS, up_ms * _MS - _MS + 30_000])
    times = clock(true_ns + late_ns).astype(np.int64)
    return [connection(up, down, ack - syn) for up, down, syn, ack in times.T.tolist()]


def transfers(
    made: np.random.Generator, count: int, path_ms: float, clock: Callable[[FloatArray], FloatArray] = as_it_is,
    work_ms: float = 0.3,
) -> list[Pair]:  # fmt: skip
    """The same exchanges at both ends of a path that varies as much as it takes, the second clock 7 s ahead."""
    up_ms = np.arange(count) * _GAP_MS + made.uniform(0, 10, count)
    there, back = made.exponential(path_ms, (2, count))
    worked = made.exponential(work_ms, count)
    ones = captured(up_ms, up_ms + there + worked + back, made, clock)
    twos = captured(up_ms + there + 7_004, up_ms + there + worked + 7_004, made, clock)
    return list(zip(ones, twos, strict=True))


def through_proxy(
    made: np.random.Generator, count: int, work_ms: float,
    one: Callable[[FloatArray], FloatArray], two: Callable[[FloatArray], FloatArray],
) -> list[Pair]:  # fmt: skip
    """Exchanges, one at a time, on both sides of a proxy that forwards within some 50 us, by two clocks."""
    up_ms = np.cumsum(_GAP_MS + made.exponential(20 * work_ms, count))
    there, back = 0.02 + made.exponential(0.03, (2, count))
    worked = made.exponential(work_ms, count)
    ones = captured(up_ms, up_ms + there + worked + back, made, one)
    twos = captured(up_ms + there, up_ms + there + worked, made, two)
    return list(zip(ones, twos, strict=True))


def strangers(made: np.random.Generator, count: int) -> list[Pair]:
    """What one client asks of two hosts at once, each of which answers in its own time."""
    up_ms = np.arange(count) * _GAP_MS
    ones, twos = (
        captured(up_ms + late_ms, up_ms + late_ms + made.exponential(0.3, count), made)
        for late_ms in made.uniform(0, 0.1, (2, count))
    )
    return list(zip(ones, twos, strict=True))


def nats_of(make: Callable[[np.random.Generator], Sequence[Pair]]) -> list[float]:
    return [turns_nats(make(np.random.default_rng(seed))) for seed in range(50)]


def test_two_hosts_that_one_client_asks_at_once_are_told() -> None:
    assert np.median(nats_of(lambda made: strangers(made, 25))) < -10
    assert np.median(nats_of(lambda made: strangers(made, 10))) < -2


@pytest.mark.parametrize("path_ms", [0.0, 0.03, 0.3, 30.0])
def test_one_transfer_each_is_longer_at_one_capture(path_ms: float) -> None:
    assert min(nats_of(lambda made: transfers(made, 25, path_ms))) > -1.0


def test_either_capture_may_be_the_first() -> None:
    for pairs in (strangers(np.random.default_rng(1), 25), transfers(np.random.default_rng(1), 25, 0.3)):
        assert turns_nats([(two, one) for one, two in pairs]) == pytest.approx(turns_nats(pairs))


@pytest.mark.parametrize("tick_ms", [0.1, 1.0, 10.0])
def test_coarse_clocks_show_no_strangers(tick_ms: float) -> None:
    def ticking(time_ns: FloatArray) -> FloatArray:
        return time_ns - time_ns % (tick_ms * _MS)

    for work_ms in (0.3, 5.0):
        assert min(nats_of(partial(transfers, count=40, path_ms=0.01, clock=ticking, work_ms=work_ms))) > -1.0


@pytest.mark.parametrize("tick_ms", [0.5, 0.9766, 1.000037, 2.0001])
@pytest.mark.parametrize("ticks_at_client", [True, False])
def test_clocks_that_tick_unevenly_show_no_strangers(tick_ms: float, ticks_at_client: bool) -> None:
    """Times that are cut to microseconds differ by one where none passes, and handshakes fall into one tick."""

    def ticking(time_ns: FloatArray) -> FloatArray:
        return np.floor(np.floor(time_ns / (tick_ms * _MS)) * tick_ms * 1000) * 1000

    clocks = (ticking, as_it_is)[:: 1 if ticks_at_client else -1]
    for work_ms in (0.3, 5.0):
        found = nats_of(lambda made, work_ms=work_ms: through_proxy(made, 30, work_ms, *clocks))  # type: ignore[misc]
        assert min(found) > -1.0


@pytest.mark.parametrize("drift_ppm", [20.0, -100.0])
@pytest.mark.parametrize("work_ms", [500.0, 5_000.0])
def test_clocks_that_drift_while_answers_are_awaited_show_no_strangers(drift_ppm: float, work_ms: float) -> None:
    def drifting(time_ns: FloatArray) -> FloatArray:
        return time_ns * (1 + drift_ppm * 1e-6)

    assert min(nats_of(partial(through_proxy, count=30, work_ms=work_ms, one=as_it_is, two=drifting))) > -1.0
    assert min(nats_of(partial(through_proxy, count=30, work_ms=work_ms, one=drifting, two=as_it_is))) > -1.0


def test_times_without_handshakes_may_err_by_a_millisecond() -> None:
    pairs = strangers(np.random.default_rng(2), 25)
    unknown = [tuple(side._replace(handshake_syn_ack_ns=None) for side in pair) for pair in pairs]
    assert turns_nats(pairs) < -5
    assert turns_nats(unknown) > -1.0  # type: ignore[arg-type]


def test_equal_transfers_that_are_paired_crosswise_count_together() -> None:
    """Three at a time, each answered after its own time, in any order."""
    made = np.random.default_rng(3)
    up_ms = np.repeat(np.arange(20) * _GAP_MS, 3) + np.tile([0.0, 0.01, 0.02], 20)
    work_ms = made.uniform(1, 20, 60)
    ones = captured(up_ms, up_ms + work_ms + 2, made)
    twos = captured(up_ms + 1, up_ms + work_ms + 1, made)
    crossed = [(one, twos[at - at % 3 + (at + 1) % 3]) for at, one in enumerate(ones)]
    assert turns_nats(list(zip(ones, twos, strict=True))) == 0.0
    assert turns_nats(crossed) > -1.0


def test_servers_that_speak_first_are_answered_sooner_at_the_clients_side() -> None:
    made = np.random.default_rng(4)
    down_ms = np.arange(0.0, 25 * _GAP_MS, _GAP_MS)
    thought_ms, path_ms = made.exponential(0.3, (2, 25))
    ones = captured(down_ms + path_ms + thought_ms, down_ms + path_ms, made)
    twos = captured(down_ms + 2 * path_ms + thought_ms, down_ms, made)
    assert turns_nats(list(zip(ones, twos, strict=True))) == 0.0


def test_other_lengths_and_silence_show_nothing() -> None:
    pairs = strangers(np.random.default_rng(5), 25)
    changed = [(one, two._replace(down=two.down._replace(stream_bytes=526))) for one, two in pairs]
    silent = [(one, two._replace(down=two.down._replace(first_data_time_ns=None))) for one, two in pairs]
    for each in ([], changed, silent):
        assert turns_nats(each) == 0.0


@given(st.lists(st.integers(-(10**12), 10**12).filter(bool), max_size=200))
def test_sides_only_speak_against_one_transfer_and_are_equal(longer_ns: list[int]) -> None:
    found = one_side_nats(longer_ns)
    assert -math.inf < found <= 0.0
    assert found == pytest.approx(one_side_nats([-ns for ns in longer_ns]))
    if min(longer_ns, default=1) > 0:
        assert found == 0.0


@given(st.integers(20, 2000), st.randoms(use_true_random=False))
def test_one_in_twenty_that_changes_sides_is_no_stranger(count: int, made: random.Random) -> None:
    against = count // 20
    turns = [-1] * against + [1] * (count - against)
    made.shuffle(turns)
    assert one_side_nats(turns) == 0.0
    assert one_side_nats(turns[:20] + [-each for each in turns[:20]]) < -5
