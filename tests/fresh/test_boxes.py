"""What the generator's middleboxes in mid-path do to packets, without a network."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from benchmarks.fresh import packets
from benchmarks.fresh.acknowledgement_regeneration import AcknowledgementRegeneration
from benchmarks.fresh.handover import Side
from benchmarks.fresh.local_acknowledgement import LocalAcknowledgement
from benchmarks.fresh.normaliser import Normaliser
from benchmarks.fresh.packets import ACK, FIN, PSH, SYN, Option, Segment
from tests.captures.containers import read_capture

MOBILE, SERVER = b"\x64\x40\x07\x09", b"\xc6\x12\x01\x09"
SIZE = 1000


def segment(*, up, sequence, acknowledgement=0, flags=ACK, length=0, stamps=None, sack=(), syn=False):
    source, target = (MOBILE, SERVER) if up else (SERVER, MOBILE)
    ports = (5555, 80) if up else (80, 5555)
    options = []
    if syn:
        options += [(2, struct.pack(">H", 1460)), (4, b""), (3, b"\x07")]
    if stamps is not None:
        options.append((8, struct.pack(">II", *stamps)))
    if sack:
        options.append((5, b"".join(struct.pack(">II", *block) for block in sack)))
    header = packets.bare_header(source, target, 64, 7)
    return Segment(
        header,
        *ports,
        sequence % 2**32,
        acknowledgement % 2**32,
        flags,
        500,
        packets.write_options(options),
        b"x" * length,
    )


class Said(list[dict[str, object]]):
    """A log in memory."""

    def write(self, **entry):
        self.append(entry)


class Box:
    """A behaviour and what it has sent."""

    def __init__(self, behaviour, **settings):
        self.sent: list[bytes] = []
        self.said = Said()
        self.behaviour = behaviour.create(self.sent.append, self.said, random.Random(1), settings)

    def give(self, one, now=0.0):
        """Give it a segment; the segments that it sends thereupon."""
        before = len(self.sent)
        self.behaviour.take(one.bytes(), now)
        self.behaviour.settle(now)
        return [packets.read(packet) for packet in self.sent[before:]]

    def wait(self, now):
        before = len(self.sent)
        self.behaviour.settle(now)
        return [packets.read(packet) for packet in self.sent[before:]]

    def shake_hands(self, client=100, server=2**32 - 3000):
        self.give(segment(up=True, sequence=client, flags=SYN, stamps=(10, 0), syn=True))
        self.give(
            segment(up=False, sequence=server, acknowledgement=client + 1, flags=SYN | ACK, stamps=(70, 10), syn=True)
        )
        self.give(segment(up=True, sequence=client + 1, acknowledgement=server + 1, stamps=(11, 70)))
        return client + 1, server + 1


def test_headers_of_a_real_kernel_are_written_as_they_were_read():
    capture = read_capture(Path(__file__).parent / "reg-same-object.mobile.pcap.gz")
    bare = [
        f.data
        for f in capture.frames
        if (one := packets.read(f.data)) and not one.payload and len(f.data) == f.wire_length
    ]
    assert len(bare) > 50
    assert [packets.read(data).bytes() for data in bare] == bare


def local(**settings):
    return Box(LocalAcknowledgement, mobile="100.64.7.9", **settings)


def data(first, number, length=SIZE, stamp=80, flags=ACK):
    return segment(
        up=False, sequence=first + number * SIZE, acknowledgement=101, length=length, stamps=(stamp, 11), flags=flags
    )


def test_data_pass_untouched_and_are_acknowledged_at_once_in_the_receivers_name():
    box = local()
    client, server = box.shake_hands()
    given = data(server, 0)
    acknowledgement, passed = sorted(box.give(given), key=lambda one: len(one.payload))
    assert given.bytes() in box.sent
    assert acknowledgement.source == MOBILE
    assert acknowledgement.is_plain_acknowledgement
    assert acknowledgement.acknowledgement == (server + SIZE) % 2**32
    assert acknowledgement.sequence == client
    assert acknowledgement.timestamps == (11, 80), "the receiver's last TSval, the sender's echoed"
    assert passed.payload == given.payload


def test_the_receivers_acknowledgements_are_dropped_or_passed():
    for policy, expected in (("dropped", 0), ("passed", 1)):
        box = local(receivers_acknowledgements=policy)
        client, server = box.shake_hands()
        box.give(data(server, 0))
        late = segment(up=True, sequence=client, acknowledgement=server + SIZE, stamps=(12, 80))
        assert len(box.give(late)) == expected


def test_the_fin_is_acknowledged_by_the_receiver_alone():
    box = local()
    client, server = box.shake_hands()
    (early,) = [one for one in box.give(data(server, 0, flags=ACK | FIN)) if not one.payload]
    assert early.acknowledgement == (server + SIZE) % 2**32
    real = segment(up=True, sequence=client, acknowledgement=server + SIZE + 1, stamps=(12, 80))
    assert [one.acknowledgement for one in box.give(real)] == [(server + SIZE + 1) % 2**32]


def test_a_box_that_starts_late_keeps_out_of_the_way_before():
    box = local(after_bytes=3 * SIZE)
    _, server = box.shake_hands()
    assert [len(box.give(data(server, number))) for number in range(2)] == [1, 1]
    assert not box.said
    box.give(data(server, 2))
    (acknowledgement,) = [one for one in box.give(data(server, 3)) if not one.payload]
    assert acknowledgement.acknowledgement == (server + 4 * SIZE) % 2**32
    assert box.said[0]["from_byte"] == 0, "the receiver has confirmed nothing yet"


def test_what_is_lost_behind_the_box_comes_again_with_the_latest_timestamp():
    box = local()
    client, server = box.shake_hands()
    for number in range(6):
        box.give(data(server, number, stamp=80 + number), now=0.001 * number)
    missing = [(server + SIZE, server + 6 * SIZE)]
    sack = [tuple(edge % 2**32 for edge in block) for block in missing]
    (again,) = box.give(segment(up=True, sequence=client, acknowledgement=server, stamps=(12, 80), sack=sack), now=0.1)
    assert again.sequence == server % 2**32
    assert again.timestamps[0] == 85, "an older one would be taken for an old duplicate"


def test_the_last_segment_comes_again_when_time_is_up():
    box = local()
    _, server = box.shake_hands()
    box.give(data(server, 0), now=5.0)
    assert box.wait(5.1) == []
    assert [one.sequence for one in box.wait(box.behaviour.due() + 0.001)] == [server % 2**32]


@pytest.mark.parametrize("seed", range(5))
def test_everything_arrives_through_loss_behind_the_box(seed):
    chance = random.Random(seed)
    box = local(buffer_bytes=10**6)
    client, server = box.shake_hands()
    received, now = {}, 0.0
    for number in range(60):
        passed = [one for one in box.give(data(server, number, stamp=80 + number), now) if one.payload]
        now += 0.001
        for _ in range(200):
            for one in passed:
                if chance.random() > 0.15:
                    received[packets.distance(one.sequence, server)] = one
            now += 0.01
            edge = next(at for at in range(0, 10**6, SIZE) if at not in received)
            above = sorted(at for at in received if at > edge)
            sack = [((server + at) % 2**32, (server + at + SIZE) % 2**32) for at in above[-3:]]
            real = segment(up=True, sequence=client, acknowledgement=server + edge, stamps=(12, 80), sack=sack)
            passed = [one for one in box.give(real, now) if one.payload]
            if number < 59 or edge == 60 * SIZE:
                break
            now += 0.2
            passed += [one for one in box.wait(now) if one.payload]
    assert sorted(received) == [number * SIZE for number in range(60)]


@pytest.mark.parametrize("mode", ["thin", "reissue", "reconstruct"])
def test_regenerated_acknowledgements_never_run_ahead_and_the_last_one_comes(mode):
    box = Box(AcknowledgementRegeneration, mode=mode, one_in=4)
    client, server = box.shake_hands()
    highest, now = server, 0.0
    for number in range(30):
        now += 0.003
        highest = server + (number + 1) * 2 * SIZE
        sent = box.give(segment(up=True, sequence=client, acknowledgement=highest, stamps=(12 + number, 80)), now)
        assert all(packets.distance(one.acknowledgement, highest) <= 0 for one in sent)
    while (due := box.behaviour.due()) is not None:
        box.wait(due)
    sent = [packets.read(packet) for packet in box.sent[3:]]
    numbers = [packets.distance(one.acknowledgement, server) for one in sent]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 60 * SIZE
    own = {number for number in numbers if number % (2 * SIZE)}
    assert bool(own) == (mode == "reconstruct"), "numbers that the receiver never sent"
    assert (len(numbers) < 30) == (mode != "reconstruct")


def test_a_normaliser_undoes_on_the_way_back_what_it_did():
    box = Box(Normaliser, timestamps="shift", most_segment=1300, least_hops=64)
    (syn,) = box.give(segment(up=True, sequence=100, flags=SYN, stamps=(10, 0), syn=True))
    assert syn.sequence != 100
    assert struct.unpack(">H", syn.option(Option.MSS)) == (1300,)
    answer = segment(
        up=False,
        sequence=900,
        acknowledgement=syn.sequence + 1,
        flags=SYN | ACK,
        stamps=(70, syn.timestamps[0]),
        syn=True,
    )
    (seen,) = box.give(answer)
    assert seen.acknowledgement == 101
    assert seen.timestamps[1] == 10
    block = (seen.sequence + 1001, seen.sequence + 2001)
    back = segment(
        up=True, sequence=101, acknowledgement=seen.sequence + 1, stamps=(12, seen.timestamps[0]),
        sack=[tuple(edge % 2**32 for edge in block)],
    )  # fmt: skip
    (arrived,) = box.give(back)
    assert (arrived.acknowledgement, arrived.selective, arrived.timestamps[1]) == (901, [(1901, 2901)], 70)
    assert arrived.sequence == (syn.sequence + 1) % 2**32
    assert packets.checksum(bytes(arrived.ip)) == 0


def test_a_normaliser_strips_the_given_options():
    box = Box(Normaliser, timestamps="strip", strip=[int(Option.SCALE)])
    (syn,) = box.give(segment(up=True, sequence=100, flags=SYN, stamps=(10, 0), syn=True))
    assert [kind for kind, _ in packets.read_options(syn.options)] == [Option.MSS, Option.SACK_PERMITTED]


def test_a_normaliser_that_cuts_segments_keeps_headers_and_bytes():
    box = Box(Normaliser, isn=[], timestamps="keep", most_payload=600)
    first, last = box.give(segment(up=False, sequence=7, flags=ACK | PSH, stamps=(5, 6), length=SIZE))
    assert (first.sequence, first.end, last.end) == (7, last.sequence, 7 + SIZE)
    assert (first.timestamps, first.flags) == (last.timestamps, ACK)
    assert last.flags == ACK | PSH
    assert len(box.give(segment(up=False, sequence=7 + SIZE, length=600))) == 1


def test_a_normaliser_shuts_windows_in_the_second_half_of_each_period():
    box = Box(Normaliser, isn=[], most_window=320, window_period_s=1.0)
    windows = [box.give(segment(up=True, sequence=1), now)[0].window for now in (0.2, 0.8, 1.3, 1.9)]
    assert windows == [320, 5, 320, 5]


def test_a_handover_keeps_the_data_in_flight():
    side = Side(SERVER, 80)
    side.see(segment(up=False, sequence=2**32 - 500, flags=SYN | ACK, syn=True))
    first = 2**32 - 499
    side.see(segment(up=False, sequence=first, length=SIZE))
    side.see(segment(up=False, sequence=first + 2 * SIZE, length=SIZE))
    assert side.gap, "a missing segment is in the way of a hand-over"
    side.see(segment(up=False, sequence=first + SIZE, length=SIZE))
    side.see(segment(up=False, sequence=first + 2 * SIZE, length=SIZE))
    side.acknowledge((first + SIZE) % 2**32)
    assert (side.gap, side.sent, len(side.data)) == (False, (first + 3 * SIZE) % 2**32, 2 * SIZE)
