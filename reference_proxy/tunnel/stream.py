"""One end of a stream in a UDP tunnel: reliable enough, and no more. Does no I/O and never asks for the time.

It has what a byte stream needs to survive a lossy path and to leave room for others: offsets, cumulative
acknowledgements, retransmission after three duplicates or a timer (RFC 6298), a receive window, and the congestion
window of RFC 5681 with the partial acknowledgements of RFC 6582. It has no selective acknowledgements, no pacing, no
ECN, no path MTU discovery, no migration, and nothing that keeps secrets: it is not QUIC.

Order of calls: after any `write`, `finish`, `read` or `handle_*` at a time `now`, call `poll_transmit(now)` until it
gives None, then ask `poll_timeout` when to call `handle_timeout`.
"""

from __future__ import annotations

from reference_proxy.tunnel.datagram import WINDOW_LIMIT, DatagramKind, TunnelDatagram

#: RFC 6298, (2.1), (2.4) as commonly relaxed (Linux waits 200 ms), (2.5); and its clock granularity.
INITIAL_TIMEOUT_S = 1.0
LEAST_TIMEOUT_S = 0.2
LONGEST_TIMEOUT_S = 60.0
GRANULARITY_S = 0.001

#: RFC 6928: initial window; RFC 5681: duplicates that mean a loss.
INITIAL_WINDOW_PIECES = 10
DUPLICATES = 3

#: RFC 9000's largest delay of an acknowledgement: far below the least timeout of the other end.
ACKNOWLEDGEMENT_DELAY_S = 0.025

#: Timeouts in a row after which the other end counts as gone: with the least timeout, nearly half a minute.
GIVE_UP_TIMEOUTS = 7


class TunnelStream:
    """Bytes in both directions between two ends of a tunnel."""

    def __init__(self, stream: int, token: int, *, piece_bytes: int, window_bytes: int) -> None:
        self._stream = stream
        self._token = token
        self._piece_bytes = piece_bytes
        self._window_bytes = window_bytes
        # sending
        self._outgoing = bytearray()
        self._first_unacknowledged = 0
        self._next_offset = 0
        self._highest_sent = 0
        self._end_offset: int | None = None
        self._peer_limit = INITIAL_WINDOW_PIECES * piece_bytes
        self._congestion_window = INITIAL_WINDOW_PIECES * piece_bytes
        self._slow_start_threshold = WINDOW_LIMIT
        self._duplicates = 0
        self._recovery_offset: int | None = None
        self._repeats_first = False
        # timing
        self._smoothed_s: float | None = None
        self._variation_s = 0.0
        self._timeout_s = INITIAL_TIMEOUT_S
        self._timer_at: float | None = None
        self._timeouts = 0
        self._timed: tuple[int, float] | None = None
        # receiving
        self._incoming = bytearray()
        self._ahead: dict[int, bytes] = {}
        self._ahead_bytes = 0
        self._next_expected = 0
        self._peer_end: int | None = None
        self._announced_limit = window_bytes
        self._owes_acknowledgement = False
        self._unanswered_pieces = 0
        self._acknowledge_at: float | None = None
        #: The other end sent RESET, or is gone.
        self.is_broken = False

    @property
    def room(self) -> int:
        """Bytes that `write` takes."""
        return max(0, self._window_bytes - len(self._outgoing)) if self._end_offset is None else 0

    @property
    def readable(self) -> int:
        """Bytes that `read` gives."""
        return len(self._incoming)

    @property
    def peer_finished(self) -> bool:
        """All that will ever come has come, though it may not have been read."""
        return self._peer_end is not None and self._next_expected > self._peer_end

    @property
    def is_delivered(self) -> bool:
        """All that was written, and the end, has been acknowledged."""
        return self._end_offset is not None and self._first_unacknowledged > self._end_offset

    def write(self, data: bytes | memoryview) -> None:
        """Take bytes, at most `room`."""
        self._outgoing += data

    def finish(self) -> None:
        """Nothing more will be written."""
        if self._end_offset is None:
            self._end_offset = self._first_unacknowledged + len(self._outgoing)

    def peek(self, limit: int) -> bytes:
        """The first bytes that came."""
        return bytes(self._incoming[:limit])

    def read(self, count: int) -> None:
        """Take bytes away that were peeked at; the window opens."""
        del self._incoming[:count]
        # Half a window at a time: a slow reader must not cause an acknowledgement a byte (RFC 9293, 3.8.6.2).
        if self._limit() - self._announced_limit >= self._window_bytes // 2:
            self._owes_acknowledgement = True

    def handle_datagram(self, now: float, datagram: TunnelDatagram) -> None:
        """Take a datagram of this stream: DATA, FINISH or RESET."""
        if datagram.kind is DatagramKind.RESET:
            self.is_broken = True
            return
        self._handle_acknowledgement(now, datagram)
        if datagram.kind is DatagramKind.FINISH:
            self._owes_acknowledgement = True
            if self._peer_end is None and datagram.offset >= self._next_expected:
                self._peer_end = datagram.offset
        elif datagram.payload:
            in_order = datagram.offset == self._next_expected and not self._ahead
            self._store(datagram.offset, datagram.payload)
            self._answer(now, in_order=in_order and datagram.offset < self._next_expected)
        if self._peer_end is not None and self._next_expected == self._peer_end:
            self._next_expected += 1

    def _answer(self, now: float, *, in_order: bool) -> None:
        """Acknowledge every second piece, or soon; what is out of order at once (RFC 5681, section 4.2)."""
        self._unanswered_pieces += 1
        if not in_order or self._unanswered_pieces >= 2:
            self._owes_acknowledgement = True
        elif self._acknowledge_at is None:
            self._acknowledge_at = now + ACKNOWLEDGEMENT_DELAY_S

    def _store(self, offset: int, payload: bytes) -> None:
        if self._peer_end is not None and offset + len(payload) > self._peer_end:
            return
        if offset + len(payload) > self._limit():
            # Only what fits may be believed: an attentive sender does not send more, but for its probes.
            return
        if offset <= self._next_expected:
            new = payload[self._next_expected - offset :]
            self._incoming += new
            self._next_expected += len(new)
            self._join()
        elif offset not in self._ahead:
            self._ahead[offset] = payload
            self._ahead_bytes += len(payload)
            # Pieces that overlap under many offsets would otherwise take more than the window.
            if self._ahead_bytes > 2 * self._window_bytes:
                self._ahead.clear()
                self._ahead_bytes = 0

    def _join(self) -> None:
        for offset in sorted(self._ahead):
            if offset > self._next_expected:
                break
            payload = self._ahead.pop(offset)
            self._ahead_bytes -= len(payload)
            new = payload[self._next_expected - offset :]
            self._incoming += new
            self._next_expected += len(new)

    def _limit(self) -> int:
        """First offset that there is no room for."""
        return self._next_expected + max(0, self._window_bytes - len(self._incoming))

    def _handle_acknowledgement(self, now: float, datagram: TunnelDatagram) -> None:
        acknowledged = datagram.acknowledged
        limit = acknowledged + datagram.window
        if acknowledged > self._highest_sent:
            return  # of what was never sent: not from the other end
        is_update = limit != self._peer_limit
        self._peer_limit = max(self._peer_limit, limit)
        if acknowledged > self._first_unacknowledged:
            self._advance(now, acknowledged)
        elif self._is_duplicate(datagram) and not is_update:
            self._duplicates += 1
            if self._duplicates == DUPLICATES and self._recovery_offset is None:
                self._enter_recovery()
            elif self._recovery_offset is not None:
                self._congestion_window += self._piece_bytes

    def _is_duplicate(self, datagram: TunnelDatagram) -> bool:
        """RFC 5681, section 2."""
        is_bare = datagram.kind is DatagramKind.DATA and not datagram.payload
        return is_bare and datagram.acknowledged == self._first_unacknowledged and self._in_flight() > 0

    def _advance(self, now: float, acknowledged: int) -> None:
        count = acknowledged - self._first_unacknowledged
        del self._outgoing[:count]
        self._first_unacknowledged = acknowledged
        self._next_offset = max(self._next_offset, acknowledged)
        self._duplicates = self._timeouts = 0
        if self._timed is not None and acknowledged > self._timed[0]:
            self._measure(now - self._timed[1])
            self._timed = None
        if self._recovery_offset is not None and acknowledged < self._recovery_offset:
            # A partial acknowledgement: the next piece is lost too.
            self._repeats_first = True
            self._congestion_window = max(self._piece_bytes, self._congestion_window - count + self._piece_bytes)
        elif self._recovery_offset is not None:
            self._recovery_offset = None
            self._congestion_window = self._slow_start_threshold
        elif self._congestion_window < self._slow_start_threshold:
            self._congestion_window += min(count, self._piece_bytes)
        else:
            self._congestion_window += max(1, self._piece_bytes * self._piece_bytes // self._congestion_window)
        self._timer_at = now + self._timeout_s if self._in_flight() else None

    def _enter_recovery(self) -> None:
        self._slow_start_threshold = max(self._in_flight() // 2, 2 * self._piece_bytes)
        self._recovery_offset = self._highest_sent
        self._congestion_window = self._slow_start_threshold + DUPLICATES * self._piece_bytes
        self._repeats_first = True
        self._timed = None

    def _measure(self, sample_s: float) -> None:
        """RFC 6298, section 2."""
        if self._smoothed_s is None:
            self._smoothed_s, self._variation_s = sample_s, sample_s / 2
        else:
            self._variation_s = 0.75 * self._variation_s + 0.25 * abs(self._smoothed_s - sample_s)
            self._smoothed_s = 0.875 * self._smoothed_s + 0.125 * sample_s
        timeout = self._smoothed_s + max(GRANULARITY_S, 4 * self._variation_s)
        self._timeout_s = min(LONGEST_TIMEOUT_S, max(LEAST_TIMEOUT_S, timeout))

    def _in_flight(self) -> int:
        return self._next_offset - self._first_unacknowledged

    def handle_timeout(self, now: float) -> None:
        """Do what is due."""
        if self._acknowledge_at is not None and now >= self._acknowledge_at:
            self._owes_acknowledgement = True
        if self._timer_at is None or now < self._timer_at:
            return
        self._timeouts += 1
        if self._timeouts > GIVE_UP_TIMEOUTS:
            self.is_broken = True
            return
        self._timeout_s = min(LONGEST_TIMEOUT_S, 2 * self._timeout_s)
        self._timed = None
        if self._in_flight():
            # All of it counts as lost (RFC 5681, section 3.1).
            self._slow_start_threshold = max(self._in_flight() // 2, 2 * self._piece_bytes)
            self._congestion_window = self._piece_bytes
            self._recovery_offset = None
            self._duplicates = 0
            self._next_offset = self._first_unacknowledged
        else:
            # The window is closed, and what opened it may be lost: probe with a byte (RFC 9293, 3.8.6.1).
            self._peer_limit = max(self._peer_limit, self._next_offset + 1)
        self._timer_at = now + self._timeout_s

    def poll_timeout(self) -> float | None:
        """When to call `handle_timeout`."""
        times = [when for when in (self._timer_at, self._acknowledge_at) if when is not None]
        return min(times, default=None)

    def poll_transmit(self, now: float) -> TunnelDatagram | None:
        """The next datagram to send, if any."""
        if self.is_broken:
            return None
        offset = self._offset_to_send()
        if offset is not None:
            return self._piece(now, offset)
        if self._timer_at is None and self._has_unsent():
            self._timer_at = now + self._timeout_s
        if self._owes_acknowledgement:
            return self._datagram(DatagramKind.DATA, self._next_offset, b"")
        return None

    def _has_unsent(self) -> bool:
        end = self._first_unacknowledged + len(self._outgoing)
        return self._next_offset < end or (self._end_offset is not None and self._next_offset == self._end_offset)

    def _offset_to_send(self) -> int | None:
        if self._repeats_first and self._in_flight():
            self._repeats_first = False
            return self._first_unacknowledged
        limit = min(self._peer_limit, self._first_unacknowledged + self._congestion_window)
        # The end is no byte that a window must have room for.
        at_end = self._end_offset is not None and self._next_offset == self._end_offset
        if self._has_unsent() and (self._next_offset < limit or at_end):
            return self._next_offset
        return None

    def _piece(self, now: float, offset: int) -> TunnelDatagram:
        start = offset - self._first_unacknowledged
        if offset == self._end_offset:
            kind, payload, end = DatagramKind.FINISH, b"", offset + 1
        else:
            room = max(1, min(self._piece_bytes, self._peer_limit - offset))
            kind, payload = DatagramKind.DATA, bytes(self._outgoing[start : start + room])
            end = offset + len(payload)
        if offset == self._next_offset:
            self._next_offset = end
            if offset >= self._highest_sent and self._timed is None:
                self._timed = (offset, now)
        self._highest_sent = max(self._highest_sent, end)
        if self._timer_at is None:
            self._timer_at = now + self._timeout_s
        return self._datagram(kind, offset, payload)

    def _datagram(self, kind: DatagramKind, offset: int, payload: bytes) -> TunnelDatagram:
        self._owes_acknowledgement = False
        self._unanswered_pieces = 0
        self._acknowledge_at = None
        self._announced_limit = self._limit()
        window = min(WINDOW_LIMIT, self._announced_limit - self._next_expected)
        return TunnelDatagram(kind, self._stream, self._token, offset, self._next_expected, window, payload)
