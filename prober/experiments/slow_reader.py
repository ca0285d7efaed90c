"""How much is acknowledged to a sender whose receiver has stopped reading?

A receiver that stops reading fills its own kernel's buffer and closes its window. End to end no more can be
acknowledged than the receiver's kernel received, which it counts (`tcpi_bytes_received`). A middlebox holds the rest.
Neither root nor a clock is needed.

- Down, each application: the mobile stops reading early, waits until no more data arrive, records its count, and
  resets; the server then reports how much was acknowledged to it (`tcpi_bytes_acked`).
- Up, all but FTP, whose server cannot be asked to pause: the server stops reading; the mobile records how much was
  acknowledged to it before the end of that pause, and the server reports how much its kernel had received at that end.

Possible errors: radio networks that acknowledge instead of the receiver. A slow receiver causes none, since the counts
are those of its own kernel.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from pepscope.captures.direction import Direction
from pepscope.results.finding import Finding, Weight, intact, split
from pepscope.results.verdicts import Evidence, Number, Outcome
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.client.paused_upload import APPLICATIONS as PAUSABLE
from prober.client.paused_upload import STALL_S, paused_upload
from prober.client.transfer import SUFFIXES, Flow
from prober.errors import ImpossibleError
from prober.host.reset import reset_on_close
from prober.host.tcp_info import tcp_info
from prober.measurement.evidence_strength import WEAK
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.measured import Count, Measured
from prober.measurement.task import Measurement, Task
from prober.protocol.json_documents import Json
from prober.protocol.objects import ObjectKind, ObjectName

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: Asked of the receiver's kernel, which doubles it for its own book-keeping (socket(7)).
RECEIVE_BUFFER_BYTES = 32_768
#: What a kernel may take beyond its buffer: the one segment, joined by the device, that it had begun to take.
JOINED_SEGMENT_BYTES = 65_536
_LOOK_S = 0.05
_WATCH_S = 20.0
_PROBE = "probe"


class SlowReaderFinding(Finding):
    """What a receiver that does not read shows."""

    MORE_TAKEN_THAN_RECEIVER_HOLDS = split(
        "more-taken-than-receiver-holds",
        Weight(
            "taken-in-between", -6.0, 0.0, 0.0, 0.0, "A middlebox holds the data.",
        ),
    )  # fmt: skip
    NO_MORE_TAKEN_THAN_RECEIVER_HOLDS = intact(
        "no-more-taken-than-receiver-holds",
        Weight(
            "taken-in-between", 0.0, -1.0, -1.0, -1.0, "A split with small buffers looks the same.",
        ),
    )  # fmt: skip


class _StoppedReadingError(Exception):
    """Ends a transfer from within its own progress report."""


class SlowReaderOptions(Table, frozen=True):
    """What a plan may set."""

    size_bytes: WholeNumber = 2_000_000
    fill_s: Amount = 3.0
    pause_s: Amount = 10.0
    repeats: WholeNumber = 1


class SlowReaderMeasured(Measured, frozen=True, kw_only=True):
    """Bytes, by the kernels' own counts; `None` where one did not say."""

    acked_bytes: Count | None
    receiver_bytes: Count | None
    #: What the receiver may have taken in that it had not counted yet.
    room_bytes: Count
    offered_bytes: Count
    #: Whether nothing more came for a while, with more on offer.
    stalled: bool


class SlowReader(Experiment[SlowReaderOptions, SlowReaderMeasured]):
    """Stops reading in the middle of a transfer."""

    name = "slow-reader"
    title = "slow reader"
    summary = "Stop reading, and check whether more is acknowledged than the receiver can hold."
    findings = (SlowReaderFinding,)
    options = SlowReaderOptions
    measured = SlowReaderMeasured

    def tasks(self, options: SlowReaderOptions, scope: Scope) -> Iterable[Task]:
        """Downloads of every application, and uploads of those in which the server can be asked to pause."""
        size_bytes = options.size_bytes
        taken_bytes = 2 * RECEIVE_BUFFER_BYTES + JOINED_SEGMENT_BYTES
        for repeat in range(1, options.repeats + 1):
            for application in scope.applications:
                for direction in scope.directions:
                    is_down = direction is Direction.DOWN
                    if not is_down and application not in PAUSABLE:
                        continue
                    wait_s = float(options.fill_s if is_down else options.pause_s)
                    yield Task(
                        self.name,
                        repeat,
                        application,
                        direction,
                        {"size_bytes": size_bytes, "wait_s": wait_s},
                        bytes_up=2_000 if is_down else size_bytes,
                        bytes_down=taken_bytes if is_down else 2_000,
                        expected_s=wait_s + 5 * scope.rates.round_trip_time_s + STALL_S,
                    )

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Stop reading at the receiver and count at both ends."""
        return _measure_down(task, end) if task.direction is Direction.DOWN else _measure_up(task, end)

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `more-taken-than-receiver-holds` (split), `no-more-taken-than-receiver-holds` (intact, weak)."""
        findings = [made for item in observed if (made := self._examine_one(self.kept(item))) is not None]
        split = [made for made in findings if made.outcome is Outcome.SPLIT]
        return (max(split, key=lambda made: made.strength),) if split else tuple(findings[:1])

    def _examine_one(self, values: SlowReaderMeasured) -> Evidence | None:
        if values.acked_bytes is None or values.receiver_bytes is None:
            return None
        acked, held = float(values.acked_bytes), float(values.receiver_bytes)
        room, offered = float(values.room_bytes), float(values.offered_bytes)
        numbers: dict[str, Number] = {
            "acked_bytes": acked,
            "receiver_bytes": held,
            "room_bytes": room,
            "offered_bytes": offered,
        }
        excess = acked - held
        if excess > room:
            return SlowReaderFinding.MORE_TAKEN_THAN_RECEIVER_HOLDS.evidence(
                self.name, 1.0 - room / (2.0 * excess),
                f"{acked:.0f} bytes were acknowledged to the sender while the receiver, which had stopped reading, "
                f"had taken in {held:.0f}: a middlebox holds the rest.", numbers,
                ("Radio networks that acknowledge in the receiver's stead would do so, too.",),
            )  # fmt: skip
        if not values.stalled or acked + room >= offered:
            return None
        return SlowReaderFinding.NO_MORE_TAKEN_THAN_RECEIVER_HOLDS.evidence(
            self.name, WEAK,
            f"The receiver stopped reading, and no more than the {held:.0f} bytes that its kernel took in were "
            "acknowledged to the sender.", numbers,
            ("A split point whose buffers are as small as the receiver's looks the same.",),
        )  # fmt: skip

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """What was acknowledged and what the receiver held, in bytes."""
        rows = [msgspec.to_builtins(self.kept(item)) for item in observed]
        return {"stops": rows} if rows else {}


class _Stop:
    """Reads a little of a download, then nothing, until nothing more comes; its own look at the socket."""

    def __init__(self, fill_s: float) -> None:
        self.received_bytes: int | None = None
        self.buffer_bytes = 0
        self.stalled = False
        self.mobile_port = 0
        self._fill_s = fill_s
        self._links: list[socket.socket] = []

    def prepare(self, link: socket.socket) -> None:
        """Small buffers before the window is first advertised; an own descriptor, since TLS may wrap the socket."""
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._links.append(socket.socket(fileno=os.dup(link.fileno())))

    def on_bytes(self, _: int) -> None:
        """The object has begun to come: read no more."""
        link = self._links[-1]
        self.mobile_port = int(link.getsockname()[1])
        self.buffer_bytes = link.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        deadline_s, still_since_s = time.monotonic() + self._fill_s + 10 * STALL_S, time.monotonic()
        begun_s = still_since_s
        while time.monotonic() < deadline_s:
            received = tcp_info(link).get("bytes_received")
            if received is None:
                break
            if received != self.received_bytes:
                self.received_bytes, still_since_s = received, time.monotonic()
            now_s = time.monotonic()
            if now_s - still_since_s >= STALL_S and now_s - begun_s >= self._fill_s:
                self.stalled = True
                break
            time.sleep(_LOOK_S)
        reset_on_close(link)
        raise _StoppedReadingError

    def close(self) -> None:
        """Let the sockets go, and reset what was not read."""
        for link in self._links:
            link.close()


def _measure_down(task: Task, end: MobileEnd) -> Measurement:
    assert task.application is not None
    wanted = ObjectName(
        ObjectKind(SUFFIXES[task.application]), int(task.parameters["size_bytes"]), secrets.randbelow(1 << 32)
    )
    before = end.control.last_served_number()
    stop = _Stop(float(task.parameters["wait_s"]))
    try:
        with contextlib.suppress(_StoppedReadingError):
            end.transfer(
                task.application,
                Direction.DOWN,
                wanted.size_bytes,
                seed=wanted.seed,
                prepare=stop.prepare,
                on_bytes=stop.on_bytes,
            )
    finally:
        stop.close()
    if stop.received_bytes is None:
        raise ImpossibleError("the mobile's kernel does not count received bytes (tcpi_bytes_received, Linux 4.1)")
    acked = _acked_at_server(end, before, str(wanted))
    values = SlowReaderMeasured(
        acked_bytes=acked,
        receiver_bytes=stop.received_bytes,
        # What may still have come between the last look and the reset.
        room_bytes=stop.buffer_bytes + JOINED_SEGMENT_BYTES,
        offered_bytes=wanted.size_bytes,
        stalled=stop.stalled,
    )
    return Measurement.of(values, (Flow(stop.mobile_port, end.port(task.application), _PROBE),))


def _acked_at_server(end: MobileEnd, before: int, name: str) -> int | None:
    """Payload acknowledged to the server, once its connection has ended; `None` where that takes too long."""
    deadline_s = time.monotonic() + min(_WATCH_S, end.remaining_s)
    while True:
        acked = [row.tcp_info["bytes_acked"] for row in end.control.served(before)
                 if row.object == name and "bytes_acked" in row.tcp_info]  # fmt: skip
        if acked:
            # The SYN counts as one byte.
            return max(acked) - 1
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(0.5)


def _measure_up(task: Task, end: MobileEnd) -> Measurement:
    assert task.application is not None
    size_bytes, pause_s = int(task.parameters["size_bytes"]), float(task.parameters["wait_s"])
    made = paused_upload(end, task.application, size_bytes, pause_s, RECEIVE_BUFFER_BYTES)
    values = SlowReaderMeasured(
        acked_bytes=made.acked_bytes,
        receiver_bytes=made.taken_bytes,
        # What the kernel had begun to take when it was asked.
        room_bytes=JOINED_SEGMENT_BYTES,
        offered_bytes=size_bytes,
        stalled=made.stalled,
    )
    return Measurement.of(values, (Flow(made.mobile_port, made.port, _PROBE),))
