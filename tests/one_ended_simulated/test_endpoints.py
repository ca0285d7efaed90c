from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.one_ended_simulated.applications import Player, Turn
from benchmarks.one_ended_simulated.boxes import join_relay
from benchmarks.one_ended_simulated.channels import Channel, Direction
from benchmarks.one_ended_simulated.endpoints import Endpoint, State
from benchmarks.one_ended_simulated.events import Clock
from benchmarks.one_ended_simulated.habits import AckHabit
from benchmarks.one_ended_simulated.packets import SYN, Packet
from benchmarks.one_ended_simulated.routes import Route
from tests.one_ended_simulated.networks import STACK

Log = list[tuple[float, Packet]]


class Recorder(Player):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.data = bytearray()

    def received(self, data):
        self.data += data
        super().received(data)


def logged(clock, route, log):
    """Sends by a route, and keeps what was sent."""

    def leave(packet):
        log.append((clock.now_s, packet))
        route.send(packet)

    return leave


def joined(clock, random, near, far, direction):
    """The packets that leave each end, with their times."""
    sent: tuple[Log, Log] = ([], [])
    for end, peer, log in ((near, far, sent[0]), (far, near, sent[1])):
        end.leave = logged(clock, Route(clock, (Channel(clock, random, direction),), peer.receive), log)
    return sent


def talk(near_stack, far_stack, direction, up, down, seed=1, until_s=900.0):
    clock, random = Clock(), Random(seed)
    near, far = Endpoint(clock, random, near_stack), Endpoint(clock, random, far_stack)
    sent = joined(clock, random, near, far, direction)
    client = Recorder(clock, near, up, closes=True)
    server = Recorder(clock, far, down, closes=False)
    near.connect()
    clock.run(until_s)
    return client, server, sent


@settings(max_examples=40)
@given(
    st.integers(0, 1000), st.floats(0.0, 0.15), st.integers(0, 60_000), st.integers(0, 60_000),
    st.sampled_from(list(AckHabit)), st.integers(2000, 60_000),
)  # fmt: skip
def test_all_bytes_arrive_whatever_is_lost(seed, loss_share, question_bytes, answer_bytes, habit, receive_bytes):
    stack = replace(STACK, habit=habit, receive_bytes=receive_bytes, scale=2)
    question, answer = bytes(i % 251 for i in range(question_bytes)), bytes(i % 241 for i in range(answer_bytes))
    direction = Direction(0.02, 1e7, 20_000, loss_share=loss_share)
    up = [Turn(0, 0.0, question), Turn(answer_bytes, 0.0, b"")]
    down = [Turn(question_bytes, 0.01, answer)]
    client, server, _ = talk(stack, stack, direction, up, down, seed, until_s=20_000.0)
    if State.GONE not in (client.endpoint.state, server.endpoint.state):  # the retries were lost, too
        assert bytes(server.data) == question
        assert bytes(client.data) == answer


@pytest.mark.parametrize(("habit", "least_s", "most_s"), [(AckHabit.DELAYED, 0.04, 0.041), (AckHabit.QUICK, 0, 0.001)])
def test_an_acknowledgement_waits_where_there_is_nothing_to_carry_it(habit, least_s, most_s):
    _, _, (_, down) = talk(
        STACK,
        replace(STACK, habit=habit),
        Direction(0.01),
        [Turn(0, 0.0, b"x" * 100), Turn(10, 0.0, b"")],
        [Turn(100, 0.3, b"y" * 10)],
    )
    arrived_s = 0.03
    acknowledged_s = next(time_s for time_s, packet in down if packet.acknowledgement == 101)
    assert least_s <= acknowledged_s - arrived_s <= most_s + 0.001


def test_linux_acknowledges_at_once_until_it_has_answered():
    up = [Turn(0, 0.0, b"a" * 100), Turn(50, 0.0, b"b" * 100), Turn(100, 0.0, b"")]
    down = [Turn(100, 0.02, b"c" * 50), Turn(200, 0.2, b"d" * 50)]
    _, _, (sent_up, sent_down) = talk(STACK, STACK, Direction(0.01), up, down)
    first, second = (
        next(time_s for time_s, packet in sent_down if packet.acknowledgement >= edge)
        - next(time_s for time_s, packet in sent_up if packet.end == edge and packet.payload)
        for edge in (101, 201)
    )
    assert 0.01 < first < 0.011
    assert 0.05 <= second < 0.051


def test_an_answer_carries_the_acknowledgement_that_waits():
    stack = replace(STACK, habit=AckHabit.DELAYED)
    _, _, (_, down) = talk(
        stack,
        stack,
        Direction(0.01),
        [Turn(0, 0.0, b"x" * 100), Turn(10, 0.0, b"")],
        [Turn(100, 0.005, b"y" * 10)],
    )
    covering = [packet for _, packet in down if packet.acknowledgement == 101]
    assert covering[0].payload == b"y" * 10


def test_slow_start_shapes_a_large_answer():
    stack = replace(STACK, habit=AckHabit.QUICK, initial_segments=4)
    client, _, (_, down) = talk(
        STACK, stack, Direction(0.05), [Turn(0, 0.0, b"x"), Turn(28_960, 0.0, b"")], [Turn(1, 0.0, b"y" * 28_960)]
    )
    begin_s = next(time_s for time_s, packet in down if packet.payload)
    flights = [round((time_s - begin_s) / 0.1) for time_s, packet in down if packet.payload]
    assert [flights.count(number) for number in range(3)][:2] == [4, 8]
    assert len(client.data) == 28_960


def test_a_relay_that_is_full_shuts_its_window():
    clock, random = Clock(), Random(1)
    stack = replace(STACK, receive_bytes=20_000, scale=0)
    client, near, far, server = (Endpoint(clock, random, stack) for _ in range(4))
    join_relay(clock, near, far, 1e-4, 4000, connects_first=False)
    joined(clock, random, client, near, Direction(0.05, 1e5))
    from_relay, _ = joined(clock, random, far, server, Direction(0.001))
    recorder = Recorder(clock, client, [Turn(0, 0.0, b"x"), Turn(100_000, 0.0, b"")], closes=True)
    Player(clock, server, [Turn(1, 0.0, b"y" * 100_000)], closes=False)
    client.connect()
    clock.run(100.0)
    assert len(recorder.data) == 100_000
    windows = [packet.window_bytes for _, packet in from_relay if not packet.flags & SYN]
    assert min(windows) < 1448 <= max(windows)
