"""Segments that a middlebox has taken in and must bring to their receiver: congestion window, SACK, retransmission
timer.

Slow start and congestion avoidance (RFC 5681), loss by SACK (RFC 6675: three segments above), timer (RFC 6298). First
copies go on as they came, in the order in which they came. A copy that the middlebox sends again bears the highest
TSval that it has passed on, or the receiver would take it for an old duplicate (PAWS, RFC 7323, 5).
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fresh import packets
from benchmarks.fresh.packets import FIN, Segment

_FIRST_SEGMENTS = 10  # RFC 6928
_SEGMENTS_ABOVE = 3  # RFC 6675
_LEAST_ABOVE_ROUND_TRIP_S = 0.2  # as Linux
_FIRST_TIMEOUT_S = 1.0
_MOST_TIMEOUT_S = 5.0
_USUAL_SEGMENT = 1448


@dataclass(slots=True, eq=False)
class _Held:
    packet: bytes
    sequence: int
    end: int
    sent_at: float | None
    again: bool = False
    received: bool = False


class HeldData:
    """The data of one direction between the middlebox and the receiver until the receiver acknowledges them."""

    def __init__(self, first: int) -> None:
        self.confirmed = first
        self.fin: int | None = None
        self.bytes = 0
        self.largest = _USUAL_SEGMENT
        self._queue: list[_Held] = []
        self._timestamp: int | None = None
        self._edge = packets.advance(first, 65_535)
        self._in_flight = 0
        self._progress_at = 0.0
        self._window = float(_FIRST_SEGMENTS * _USUAL_SEGMENT)
        self._threshold = float("inf")
        self._recover = first
        self._highest = first
        self._round_trip = 0.0
        self._variation = 0.0
        self._timeout = _FIRST_TIMEOUT_S
        self._lost: list[_Held] = []

    def append(self, packet: bytes, segment: Segment, *, sent_at: float | None) -> None:
        """Keep a segment; `sent_at` where the middlebox has already passed it on."""
        held = _Held(packet, segment.sequence, segment.end, None)
        self._queue.append(held)
        self.bytes += _length(held)
        self.largest = max(self.largest, len(segment.payload))
        if segment.flags & FIN:
            self.fin = packets.advance(segment.end, -1)
        if sent_at is not None:
            self._pass_on(held, segment.timestamps, sent_at)

    def acknowledged(self, number: int, selective: list[tuple[int, int]], window: int, now: float) -> None:
        """The receiver's own ACK."""
        edge = packets.advance(number, window)
        if packets.after(edge, self._edge):
            self._edge = edge
        if packets.after(number, self.confirmed):
            self.confirmed, self._progress_at = number, now
            self._release(number, now)
        self._mark(selective, now)

    def to_send(self, now: float) -> list[bytes]:
        """Packets that may go out now, lost ones first."""
        self._expire(now)
        out = []
        while self._lost and self._has_room(self._lost[0]):
            held = self._lost.pop(0)
            held.sent_at, held.again = now, True
            self._in_flight += _length(held)
            out.append(packets.with_timestamp(held.packet, self._timestamp))
        for held in self._queue:
            if held.sent_at is not None:
                continue
            if self._lost or not self._has_room(held) or (self._in_flight and packets.after(held.end, self._edge)):
                break
            segment = packets.read(held.packet)
            self._pass_on(held, None if segment is None else segment.timestamps, now)
            out.append(held.packet)
        return out

    def due(self) -> float | None:
        """When the retransmission timer fires; None where nothing is under way."""
        oldest = self._oldest()
        if oldest is None or oldest.sent_at is None:
            return None
        return max(oldest.sent_at, self._progress_at) + self._timeout

    def _has_room(self, held: _Held) -> bool:
        return not self._in_flight or self._in_flight + _length(held) <= self._window

    def _pass_on(self, held: _Held, timestamps: tuple[int, int] | None, now: float) -> None:
        held.sent_at = now
        self._in_flight += _length(held)
        if packets.after(held.end, self._highest):
            self._highest = held.end
        if timestamps is not None and (self._timestamp is None or packets.after(timestamps[0], self._timestamp)):
            self._timestamp = timestamps[0]

    def _release(self, number: int, now: float) -> None:
        released, kept = 0, []
        for held in self._queue:
            if packets.after(held.end, number):
                kept.append(held)
                continue
            released += _length(held)
            if held in self._lost:
                self._lost.remove(held)
            elif held.sent_at is not None and not held.received:
                self._in_flight -= _length(held)
            if held.sent_at is not None and not held.again and not held.received:
                self._sample(now - held.sent_at)
        self._queue = kept
        self.bytes -= released
        self._window += released if self._window < self._threshold else released * self.largest / self._window

    def _under_way(self) -> list[_Held]:
        waiting = set(map(id, self._lost))
        return [h for h in self._queue if h.sent_at is not None and not h.received and id(h) not in waiting]

    def _oldest(self) -> _Held | None:
        """The segment under way that comes first in the stream."""
        return min(self._under_way(), key=lambda h: packets.distance(h.sequence, self.confirmed), default=None)

    def _sample(self, seconds: float) -> None:
        if not self._round_trip:
            self._round_trip, self._variation = seconds, seconds / 2
        else:
            self._variation += (abs(seconds - self._round_trip) - self._variation) / 4
            self._round_trip += (seconds - self._round_trip) / 8
        self._timeout = self._round_trip + max(_LEAST_ABOVE_ROUND_TRIP_S, 4 * self._variation)

    def _mark(self, selective: list[tuple[int, int]], now: float) -> None:
        if not selective:
            return
        top = self.confirmed
        for _, right in selective:
            top = right if packets.after(right, top) else top
        safe = packets.advance(top, -_SEGMENTS_ABOVE * self.largest)
        for held in self._queue:
            if held.sent_at is None:
                continue
            if not held.received and any(_covers(block, held) for block in selective):
                held.received = True
                if held.sent_at is not None and not held.again:
                    self._sample(now - held.sent_at)
                if held in self._lost:
                    self._lost.remove(held)
                else:
                    self._in_flight -= _length(held)
            stale = not held.again or now - held.sent_at > self._timeout
            if not held.received and stale and not packets.after(held.end, safe) and held not in self._lost:
                self._lost.append(held)
                self._in_flight -= _length(held)
        if self._lost and not packets.after(self._recover, self.confirmed):
            self._slow_down()

    def _slow_down(self) -> None:
        self._threshold = self._window = max(self._window / 2, 2.0 * self.largest)
        self._recover = self._highest

    def _expire(self, now: float) -> None:
        due = self.due()
        if due is None or now < due:
            return
        self._lost += self._under_way()
        self._lost.sort(key=lambda h: packets.distance(h.sequence, self.confirmed))
        self._in_flight = 0
        self._slow_down()
        self._timeout = min(2 * self._timeout, _MOST_TIMEOUT_S)


def _length(held: _Held) -> int:
    return packets.distance(held.end, held.sequence)


def _covers(block: tuple[int, int], held: _Held) -> bool:
    return not packets.after(block[0], held.sequence) and not packets.after(held.end, block[1])
