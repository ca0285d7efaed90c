from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.one_ended_simulated.access import ACCESSES, with_other_traffic
from benchmarks.one_ended_simulated.applications import Player, Turn
from benchmarks.one_ended_simulated.channels import Channel, Direction
from benchmarks.one_ended_simulated.devices import Device, DeviceKind, Processor, draw_device
from benchmarks.one_ended_simulated.events import Clock


@given(st.integers(0, 10_000), st.lists(st.tuples(st.floats(0, 2.0), st.floats(0, 3.0)), max_size=40))
def test_no_device_says_anything_before_it_would_idle(seed, asked):
    processor = Processor(Random(seed), draw_device(Random(seed)))
    now_s = 0.0
    for pause_s, wait_s in asked:
        now_s += pause_s
        person_s = wait_s if wait_s > 0.2 else 0.0
        assert processor.done_s(now_s, wait_s) >= now_s + person_s - 1e-9


def test_looks_serve_all_of_one_moment_together():
    processor = Processor(Random(1), Device(DeviceKind.LOOKS, 0.1, 0.01, 0.5, 0.2))
    assert processor.done_s(0.51, 0.001) == processor.done_s(0.55, 0.002)


def test_one_processor_serves_one_answer_after_another():
    processor = Processor(Random(1), Device(DeviceKind.ONE_BY_ONE, 1e9, 0.01, 0.5, 0.0))
    processor.next_change_s = 1e9
    assert [round(processor.done_s(1.0, 0.0), 6) for _ in range(3)] == [1.01, 1.02, 1.03]


def test_load_changes_for_all_answers_alike():
    processor = Processor(Random(1), Device(DeviceKind.LOADED, 1e9, 0.01, 1.0, 0.0))
    first, second = (processor.done_s(now_s, 0.0) - now_s for now_s in (1.0, 1.02))
    assert abs(first - second) < 1e-9


def test_a_player_waits_for_its_processor():
    class Written:
        at_s = None
        application = None

        def write(self, data):
            self.at_s = clock.now_s

        def close(self):
            pass

    clock, endpoint = Clock(), Written()
    processor = Processor(Random(1), Device(DeviceKind.LOOKS, 0.25, 0.01, 0.5, 0.2))
    player = Player(clock, endpoint, [Turn(0, 0.01, b"x")], closes=False, processor=processor)  # type: ignore[arg-type]
    clock.at(0.3, player.connected)
    clock.run(5.0)
    assert endpoint.at_s == 0.5


def test_other_traffic_queues_for_all_connections_of_a_link():
    clock = Clock()
    settings = Direction(0.01, 1e6, 100_000, bursts_per_s=1.0, burst_bytes=(40_000.0, 40_001.0))
    channel = Channel(clock, Random(3), settings)
    late = []
    for number in range(400):
        clock.now_s = number * 0.5
        late.append([channel.carry(100) - clock.now_s for _ in range(2)])
    assert max(first for first, _ in late) > 0.2
    assert all(second - first < 0.002 for first, second in late)


@given(st.integers(0, 10_000))
def test_other_traffic_leaves_a_link_its_round_trip(seed):
    random = Random(seed)
    _, make, _ = random.choice(ACCESSES)
    link = make(random)
    loaded = with_other_traffic(link, random)
    assert abs(loaded.round_trip_s - link.round_trip_s) < 0.2 * link.round_trip_s
