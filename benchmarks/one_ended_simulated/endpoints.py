"""One end of a TCP connection: handshake, cumulative and delayed acknowledgements, slow start, retransmission.

RFC 9293, 5681 (without recovery by SACK), 6298, 7323. Linux acknowledges at once until a connection has proved
interactive (`tcp_input.c`: quick acknowledgements, ping-pong mode); others delay from the first segment.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from random import Random
from typing import Protocol

from benchmarks.one_ended_simulated.events import Clock
from benchmarks.one_ended_simulated.habits import AckHabit, Stack
from benchmarks.one_ended_simulated.machines import Machine
from benchmarks.one_ended_simulated.packets import ACK, FIN, PSH, RST, SYN, Offer, Packet


class State(Enum):
    """Of a connection, as far as it matters here."""

    IDLE = auto()
    OPENING = auto()  # SYN sent
    ANSWERED = auto()  # SYN-ACK sent
    OPEN = auto()
    GONE = auto()


class Application(Protocol):
    """What an endpoint tells the program that uses it."""

    def connected(self) -> None:
        """The handshake is over."""

    def received(self, data: bytes) -> None:
        """Bytes arrived, in order."""

    def finished(self) -> None:
        """The peer has finished sending."""


class Endpoint:
    """One end. `leave` puts a packet on the route to the peer; `application` is set by who uses it."""

    def __init__(self, clock: Clock, random: Random, stack: Stack) -> None:
        self.clock, self.random, self.stack = clock, random, stack
        self.leave: Callable[[Packet], None] = lambda _: None
        self.left_at_s = 0.0
        self.application: Application | None = None
        self.backlog: Callable[[], int] | None = None  # received bytes that a relay has not passed on
        self.on_progress: Callable[[], None] | None = None
        self.on_open: Callable[[], None] | None = None
        self.state = State.IDLE
        self.stream = bytearray()
        self.unacknowledged = self.next_sequence = 0
        self.is_closing = self.fin_sent = False
        self.segment_size = stack.segment_size
        self.has_timestamps, self.scale, self.sack = stack.timestamps, stack.scale, True
        self.window = float(stack.initial_segments * stack.segment_size)
        self.threshold = float("inf")
        self.peer_window = 0
        self.duplicates, self.recover = 0, -1
        self.timeout_s, self.smoothed_s, self.variation_s = 1.0, 0.0, 0.0
        self.timed: tuple[int, float] | None = None
        self.deadline_s: float | None = None
        self.timer_at_s = float("inf")
        self.received_to = 0
        self.held: dict[int, Packet] = {}
        self.peer_finished = False
        self.waiting_bytes = 0
        self.ack_at_s: float | None = None
        self.last_data_s = -1e9
        self.turns = 0
        self.echo = 0
        self.advertised = 0
        self.machine = Machine(random.randrange(65_536))
        self.failures = 0

    # What the application does

    def connect(self) -> None:
        """Send a SYN."""
        self.state, self.next_sequence = State.OPENING, 1
        self._send_opening()

    def write(self, data: bytes) -> None:
        """Send data, as soon as may be."""
        if not self.is_closing:
            self.stream += data
            self._pump()

    def close(self) -> None:
        """Finish sending once all is sent."""
        if not self.is_closing:
            self.is_closing = True
            self._pump()

    @property
    def unsent(self) -> int:
        """Bytes written and not yet acknowledged."""
        return len(self.stream) + 1 - max(self.unacknowledged, 1)

    # Receiving

    def receive(self, packet: Packet) -> None:
        """Take a packet from the route."""
        if self.state is State.GONE:
            return
        if packet.flags & RST:
            self.state = State.GONE
        elif packet.flags & SYN:
            self._take_opening(packet)
        elif self.state is not State.IDLE and self.state is not State.OPENING:
            if packet.sequence <= self.received_to:
                self.echo = packet.timestamp
            self._take_acknowledgement(packet)
            self._take_data(packet)

    def _take_opening(self, packet: Packet) -> None:
        offer = packet.offer
        if offer is None:
            return
        if packet.flags & ACK:
            if self.state is State.OPENING:
                self._agree(offer)
                self.received_to, self.unacknowledged, self.echo = 1, 1, packet.timestamp
                self.peer_window, self.deadline_s = packet.window_bytes, None
                if self.timed is not None:
                    self._measure(self.clock.now_s - self.timed[1])
                    self.timed = None
                self.state = State.OPEN
                self._acknowledge()
                self._opened()
            elif self.state is State.OPEN:
                self._acknowledge()
        elif self.state is State.IDLE:
            self._agree(offer)
            self.received_to, self.echo, self.peer_window = 1, packet.timestamp, packet.window_bytes
            self.state, self.next_sequence = State.ANSWERED, 1
            self._send_opening()
        elif self.state is State.ANSWERED:
            self._send_opening()

    def _agree(self, offer: Offer) -> None:
        self.has_timestamps &= offer.timestamps
        self.sack &= offer.sack
        if offer.scale is None:
            self.scale = 0
        self.segment_size = min(self.segment_size, offer.segment_size) - 12 * self.has_timestamps
        self.window = float(self.stack.initial_segments * self.segment_size)

    def _opened(self) -> None:
        if self.on_open is not None:
            self.on_open()
        if self.application is not None:
            self.application.connected()
        self._pump()

    def _take_acknowledgement(self, packet: Packet) -> None:
        acknowledged = packet.acknowledgement
        if self.state is State.ANSWERED and acknowledged >= 1:
            self.state, self.unacknowledged, self.deadline_s = State.OPEN, 1, None
            if self.timed is not None:
                self._measure(self.clock.now_s - self.timed[1])
                self.timed = None
            self.peer_window = packet.window_bytes
            self._opened()
        fresh = acknowledged - self.unacknowledged
        had_window = self.peer_window
        self.peer_window = packet.window_bytes
        if fresh > 0:
            self._advance(acknowledged, fresh)
        elif (
            not packet.payload
            and not packet.flags & FIN
            and self.next_sequence > self.unacknowledged
            and had_window == packet.window_bytes
        ):
            self.duplicates += 1
            if self.duplicates == 3 and self.recover < 0:
                self.threshold = max((self.next_sequence - self.unacknowledged) / 2, 2.0 * self.segment_size)
                self.window = self.threshold
                self.recover = self.next_sequence
                self._repeat()
        self._pump()

    def _advance(self, acknowledged: int, fresh: int) -> None:
        self.unacknowledged, self.duplicates, self.failures = acknowledged, 0, 0
        if self.timed is not None and acknowledged >= self.timed[0]:
            self._measure(self.clock.now_s - self.timed[1])
            self.timed = None
        if self.window < self.threshold:
            self.window += fresh
        else:
            self.window += self.segment_size * fresh / self.window
        flying = self.next_sequence > acknowledged
        self.deadline_s = self.clock.now_s + self.timeout_s if flying else None
        if self.recover >= 0:
            if acknowledged >= self.recover:
                self.recover = -1
            else:
                self._repeat()
        self._arm()
        if self.on_progress is not None:
            self.on_progress()

    def _take_data(self, packet: Packet) -> None:
        if not packet.payload and not packet.flags & FIN:
            if packet.sequence < self.received_to:  # a probe of a shut window (RFC 9293, 3.8.6.1)
                self._acknowledge()
            return
        if packet.sequence > self.received_to:
            self.held.setdefault(packet.sequence, packet)
            self._acknowledge()
            return
        if packet.end <= self.received_to:
            self._acknowledge()
            return
        had_hole = bool(self.held)
        fresh, finished = bytearray(), False
        current: Packet | None = packet
        while current is not None:
            if current.end > self.received_to:
                fresh += current.payload[self.received_to - current.sequence :]
                self.received_to = current.end
                finished |= bool(current.flags & FIN)
            key = next((key for key in self.held if key <= self.received_to), None)
            current = None if key is None else self.held.pop(key)
        self.last_data_s = self.clock.now_s
        self.waiting_bytes += len(packet.payload)
        self._schedule_acknowledgement(at_once=had_hole or finished)
        if self.application is not None:
            if fresh:
                self.application.received(bytes(fresh))
            if finished and not self.peer_finished:
                self.peer_finished = True
                self.application.finished()

    # Acknowledging

    def _schedule_acknowledgement(self, *, at_once: bool) -> None:
        stack = self.stack
        quick = stack.habit is AckHabit.QUICK
        if stack.habit is AckHabit.LINUX:
            quick = self.turns < stack.turns_to_interactive  # a program that reads at once acknowledges, too
        if at_once or quick or self.waiting_bytes >= 2 * self.segment_size:
            self.clock.after(stack.processing_s, self._acknowledge_waiting)
            self.ack_at_s = self.clock.now_s + stack.processing_s
        elif self.ack_at_s is None:
            self.ack_at_s = self.clock.now_s + stack.ack_delay_s
            self.clock.at(self.ack_at_s, self._acknowledge_if_due)

    def _acknowledge_waiting(self) -> None:
        if self.waiting_bytes or self.ack_at_s is not None:
            self._acknowledge()

    def _acknowledge_if_due(self) -> None:
        if self.ack_at_s is not None and self.clock.now_s >= self.ack_at_s - 1e-9:
            self._acknowledge()

    def _acknowledge(self) -> None:
        self._emit(self.next_sequence, b"", ACK)

    def window_now(self) -> int:
        """What this end can take, in bytes, as its window field can say it."""
        free = self.stack.receive_bytes - (self.backlog() if self.backlog is not None else 0)
        free = max(0, min(free, 0xFFFF << self.scale))
        return free >> self.scale << self.scale

    def reopen(self) -> None:
        """Tell the peer of a window that was almost shut and has opened."""
        if self.state is State.OPEN and self.advertised < 2 * self.segment_size <= self.window_now():
            self._acknowledge()

    # Sending

    def _send_opening(self) -> None:
        flags = SYN | (ACK if self.state is State.ANSWERED else 0)
        stack = self.stack
        offer = Offer(
            stack.layout, stack.segment_size, self.scale if self.scale or flags == SYN else None, self.sack,
            self.has_timestamps,
        )  # fmt: skip
        self.timed = (1, self.clock.now_s) if not self.failures else None
        self.deadline_s = self.clock.now_s + self.timeout_s
        self._arm()
        self._emit(0, b"", flags, offer)

    def _pump(self) -> None:
        if self.state is not State.OPEN:
            return
        end = len(self.stream) + 1
        while self.next_sequence < end:
            room = self.unacknowledged + int(min(self.window, self.peer_window)) - self.next_sequence
            size = min(self.segment_size, end - self.next_sequence)
            if room < size and (self.next_sequence > self.unacknowledged or room <= 0):
                break
            self._send_data(self.next_sequence, min(size, room))
        if self.is_closing and not self.fin_sent and self.next_sequence == end:
            self.fin_sent = True
            self._send_data(end, 0)
        if self.deadline_s is None and (self.next_sequence > self.unacknowledged or self.next_sequence < end):
            self.deadline_s = self.clock.now_s + self.timeout_s
            self._arm()

    def _send_data(self, at: int, size: int, *, repeated: bool = False) -> None:
        end = len(self.stream) + 1
        flags = ACK | (PSH if size and at + size == end else 0)
        if self.fin_sent and at + size == end:
            flags |= FIN
        following = at + size + bool(flags & FIN)
        if not repeated and self.timed is None:
            self.timed = (following, self.clock.now_s)
        self.next_sequence = max(self.next_sequence, following)
        if self.clock.now_s - self.last_data_s < self.stack.ack_delay_s and not repeated:
            self.turns += 1
        self._emit(at, bytes(self.stream[at - 1 : at - 1 + size]), flags, repeated=repeated)

    def _repeat(self) -> None:
        self.timed = None
        size = min(self.segment_size, len(self.stream) + 1 - self.unacknowledged)
        self._send_data(self.unacknowledged, size, repeated=True)

    def _emit(self, at: int, payload: bytes, flags: int, offer: Offer | None = None, *, repeated: bool = False) -> None:
        self.waiting_bytes, self.ack_at_s = 0, None
        self.advertised = self.window_now()
        identification = self.machine.identify(self.stack.identification, self.random)
        self._send(
            Packet(
                at, self.received_to, flags, self.advertised if offer is None else min(self.advertised, 65_535),
                payload, self.machine.ticks(self.clock.now_s), self.echo, self._blocks(), offer, self.scale,
                self.has_timestamps, identification, repeated,
            )
        )  # fmt: skip

    def _send(self, packet: Packet) -> None:
        """Packets leave in order, a kernel's time after what caused them."""
        kernel_s = self.stack.processing_s * (0.5 + self.random.random())
        self.left_at_s = max(self.clock.now_s + kernel_s, self.left_at_s + 1e-6)
        self.clock.at(self.left_at_s, partial(self.leave, packet))

    def _blocks(self) -> tuple[tuple[int, int], ...]:
        if not self.held or not self.sack:
            return ()
        blocks: list[tuple[int, int]] = []
        for packet in sorted(self.held.values(), key=lambda held: held.sequence):
            if blocks and packet.sequence <= blocks[-1][1]:
                blocks[-1] = (blocks[-1][0], max(blocks[-1][1], packet.end))
            else:
                blocks.append((packet.sequence, packet.end))
        return tuple(blocks[:3])

    # Timer

    def _measure(self, sample_s: float) -> None:
        if not self.smoothed_s:
            self.smoothed_s, self.variation_s = sample_s, sample_s / 2
        else:
            self.variation_s += (abs(self.smoothed_s - sample_s) - self.variation_s) / 4
            self.smoothed_s += (sample_s - self.smoothed_s) / 8
        self.timeout_s = self.smoothed_s + max(self.stack.least_timeout_s, 4 * self.variation_s)

    def _arm(self) -> None:
        if self.deadline_s is not None and self.deadline_s < self.timer_at_s:
            self.timer_at_s = self.deadline_s
            self.clock.at(self.deadline_s, self._expire)

    def _expire(self) -> None:
        if self.clock.now_s < self.timer_at_s:
            return
        self.timer_at_s = float("inf")
        if self.deadline_s is None or self.state is State.GONE:
            return
        if self.clock.now_s < self.deadline_s - 1e-9:
            self._arm()
            return
        self.failures += self.next_sequence > self.unacknowledged  # probes of a shut window go on
        if self.failures > 8:
            self.state = State.GONE
            return
        self.timeout_s = min(2 * self.timeout_s, 60.0)
        self.deadline_s = self.clock.now_s + self.timeout_s
        if self.state in (State.OPENING, State.ANSWERED):
            self._send_opening()
        elif self.next_sequence > self.unacknowledged:
            self.threshold = max((self.next_sequence - self.unacknowledged) / 2, 2.0 * self.segment_size)
            self.window = float(self.segment_size)
            self.recover, self.duplicates = self.next_sequence, 0
            self._repeat()
        else:  # a shut window
            self._emit(self.unacknowledged - 1, b"", ACK)
        self._arm()
