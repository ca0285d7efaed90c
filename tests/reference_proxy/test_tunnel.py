from __future__ import annotations

import heapq
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_proxy.errors import MalformedError
from reference_proxy.tunnel.datagram import (
    HEADER_BYTES,
    OFFSET_LIMIT,
    DatagramKind,
    TunnelDatagram,
    decode_destination,
    encode_destination,
)
from reference_proxy.tunnel.stream import GIVE_UP_TIMEOUTS, TunnelStream

datagrams = st.builds(
    TunnelDatagram,
    kind=st.sampled_from(DatagramKind),
    stream=st.integers(0, 2**32 - 1),
    token=st.integers(0, 2**64 - 1),
    offset=st.integers(0, OFFSET_LIMIT - 1),
    acknowledged=st.integers(0, OFFSET_LIMIT - 1),
    window=st.integers(0, 2**32 - 1),
    payload=st.binary(max_size=100),
)


@settings(deadline=None)
@given(datagrams)
def test_datagrams_come_back_as_they_went(datagram: TunnelDatagram) -> None:
    assert TunnelDatagram.decode(datagram.encode()) == datagram
    assert len(datagram.encode()) == HEADER_BYTES + len(datagram.payload)


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_garbage_is_refused_or_round_trips(data: bytes) -> None:
    try:
        datagram = TunnelDatagram.decode(data)
    except MalformedError:
        return
    assert datagram.encode() == data


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_a_destination_that_is_read_is_written_and_read_the_same(payload: bytes) -> None:
    try:
        host, port = decode_destination(payload)
    except MalformedError:
        return
    assert decode_destination(encode_destination(host, port)) == (host, port)


def stream() -> TunnelStream:
    return TunnelStream(1, 2, piece_bytes=1200, window_bytes=32_768)


class Path:
    """Two ends and a path that loses, repeats and reorders, in virtual time."""

    def __init__(self, chance: random.Random, loss: float, repeat: float, reorder: float) -> None:
        self.ends = (stream(), stream())
        self.got = (bytearray(), bytearray())
        self.now = 0.0
        self.sent = 0
        self._chance, self._loss, self._repeat, self._reorder = chance, loss, repeat, reorder
        self._under_way: list[tuple[float, int, int, TunnelDatagram]] = []

    def run(self, data: tuple[bytes, bytes], read_bytes: int = 1 << 20) -> None:
        """Carry `data` both ways until all is delivered."""
        left = [data[0], data[1]]
        while not all(end.is_delivered and end.peer_finished and not end.readable for end in self.ends):
            for side, end in enumerate(self.ends):
                taken, left[side] = left[side][: end.room], left[side][end.room :]
                end.write(taken)
                if not left[side]:
                    end.finish()
                self.got[side].extend(end.peek(read_bytes))
                end.read(min(read_bytes, end.readable))
                while (datagram := end.poll_transmit(self.now)) is not None:
                    self._send(1 - side, datagram)
            self._step()

    def _send(self, side: int, datagram: TunnelDatagram) -> None:
        for _ in range(2 if self._chance.random() < self._repeat else 1):
            self.sent += 1
            late = 0.03 if self._chance.random() < self._reorder else 0.0
            if self._chance.random() >= self._loss:
                heapq.heappush(self._under_way, (self.now + 0.02 + late, self.sent, side, datagram))

    def _step(self) -> None:
        times = [when for end in self.ends if (when := end.poll_timeout()) is not None]
        times += [self._under_way[0][0]] if self._under_way else []
        if times:
            self.now = max(self.now, min(times))
        while self._under_way and self._under_way[0][0] <= self.now:
            _, _, side, datagram = heapq.heappop(self._under_way)
            self.ends[side].handle_datagram(self.now, datagram)
        for end in self.ends:
            end.handle_timeout(self.now)
            assert not end.is_broken


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.02, 0.1]),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.0, 0.2]),
    st.integers(0, 60_000),
    st.integers(0, 60_000),
)
def test_every_byte_arrives_in_order_whatever_the_path_does(
    seed: int, loss: float, repeat: float, reorder: float, up: int, down: int
) -> None:
    chance = random.Random(seed)
    data = chance.randbytes(up), chance.randbytes(down)
    path = Path(chance, loss, repeat, reorder)
    path.run(data)
    assert bytes(path.got[1]) == data[0]
    assert bytes(path.got[0]) == data[1]


def test_a_path_without_loss_carries_each_piece_once() -> None:
    path = Path(random.Random(1), 0.0, 0.0, 0.0)
    path.run((bytes(120_000), b""))
    pieces = 120_000 // 1200
    assert path.sent < 2 * pieces


def test_a_reader_that_stops_stops_the_sender() -> None:
    sender, receiver = stream(), stream()
    sender.write(bytes(sender.room))
    now = 0.0
    for _ in range(50):
        now += 0.01
        while (datagram := sender.poll_transmit(now)) is not None:
            receiver.handle_datagram(now, datagram)
        while (datagram := receiver.poll_transmit(now)) is not None:
            sender.handle_datagram(now, datagram)
        sender.write(bytes(sender.room))
    assert receiver.readable == 32_768
    assert sender.room == 0


def test_an_end_that_is_never_answered_gives_up() -> None:
    sender = stream()
    sender.write(b"hello")
    now, rounds = 0.0, 0
    while not sender.is_broken:
        while sender.poll_transmit(now) is not None:
            pass
        when = sender.poll_timeout()
        assert when is not None
        now = when
        sender.handle_timeout(now)
        rounds += 1
    assert rounds == GIVE_UP_TIMEOUTS + 1


@settings(deadline=None)
@given(st.lists(datagrams, max_size=30))
def test_hostile_datagrams_neither_break_nor_fill_an_end(hostile: list[TunnelDatagram]) -> None:
    end = stream()
    end.write(b"x" * 5000)
    for number, datagram in enumerate(hostile):
        end.handle_datagram(float(number), datagram)
        end.handle_timeout(float(number))
        for _ in range(10):
            if end.poll_transmit(float(number)) is None:
                break
        assert end.readable <= 32_768


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES - 1])
def test_short_datagrams_are_refused(length: int) -> None:
    with pytest.raises(MalformedError, match="at least 36 bytes"):
        TunnelDatagram.decode(bytes(length))
