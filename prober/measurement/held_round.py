"""One transfer while its receiver holds its acknowledgements back by T, and what the sender's kernel saw of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from pepscope.captures.direction import Direction
from prober.client.transfer import SUFFIXES, Transfer
from prober.client.upload_watch import RoundTrip, UploadWatch
from prober.errors import MeasurementError
from prober.measurement.measured import Count, FiniteNumber
from prober.measurement.task import Task
from prober.protocol.application import Application
from prober.protocol.objects import ObjectKind, ObjectName
from prober.protocol.pictures import LEAST_BYTES as LEAST_PICTURE_BYTES

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd

#: Well below T, and not below: the sender's kernel is looked at every millisecond by a busy process.
CLEARLY_SHORT, CLEARLY_LONG = 0.5, 0.95
#: A smoothed round-trip time starts at the handshake's, which a firewall may have answered. A sample leaves seven
#: eighths of the past (RFC 6298): after three, a third of it is new. Of so many segments that came back to the server
#: three at least acknowledge something new, however many were provoked by retransmissions.
SMOOTHED_SHORT = 0.25
LEAST_ANSWERS = 20
#: So many short round trips late in a connection are a body: one may be a retransmission's.
LEAST_SHORT = 3

_ROW_LOOKS = 8
_ROW_PAUSE_S = 0.25


class HeldRound(msgspec.Struct):
    """One transfer under one T, and what the sender's kernel saw."""

    delay_s: FiniteNumber
    #: Up: of the first payload. Down: the least one that the server's kernel saw, handshake included.
    round_trip_s: FiniteNumber | None = None
    #: Up only, where a body of later round trips is below T: the median of these, and after how many bytes they began.
    late_round_trip_s: FiniteNumber | None = None
    short_from_bytes: Count = 0
    #: Down only, with how many segments came back to the server.
    smoothed_s: FiniteNumber | None = None
    answered_segments: Count = 0
    held: Count = 0
    largest_error_s: FiniteNumber = 0.0
    moved_bytes: Count = 0
    total_s: FiniteNumber = 0.0

    @property
    def is_clearly_short(self) -> bool:
        """Down, the smoothed time must be short as well: a firewall may have answered the handshake alone."""
        if self.late_round_trip_s is not None:
            return True
        if self.round_trip_s is None or self.round_trip_s >= CLEARLY_SHORT * self.delay_s:
            return False
        if self.smoothed_s is None:
            return True
        return self.answered_segments >= LEAST_ANSWERS and self.smoothed_s < SMOOTHED_SHORT * self.delay_s

    @property
    def is_clearly_long(self) -> bool:
        """No round trip is below T."""
        is_long = self.round_trip_s is not None and self.round_trip_s >= CLEARLY_LONG * self.delay_s
        return is_long and self.late_round_trip_s is None

    @property
    def shortest_s(self) -> float:
        """The least round trip."""
        return min((one for one in (self.round_trip_s, self.late_round_trip_s) if one is not None), default=0.0)

    @property
    def typical_s(self) -> float:
        """The round trip that stands for all short ones: down the smoothed one, which one outlier does not move."""
        return self.shortest_s if self.smoothed_s is None else max(self.smoothed_s, self.shortest_s)

    def run(self, task: Task, end: MobileEnd, port: int) -> Transfer:
        """Move the object under the hold. Raises MeasurementError where the hold saw nothing."""
        assert task.application is not None
        assert task.direction is not None
        size_bytes = int(task.parameters["size_bytes"])
        if task.application is Application.HTTP_IMAGE:
            size_bytes = max(size_bytes, LEAST_PICTURE_BYTES)
        before = end.control.last_served_number()
        patience_s = 4 * self.delay_s + 5.0
        is_up = task.direction is Direction.UP
        with UploadWatch(patience_s) as watching, self._hold(task.direction, end, port):
            prepare = watching.watch if is_up else None
            moved = end.transfer(task.application, task.direction, size_bytes, prepare=prepare)
        if is_up:
            self.note(watching.round_trips(moved.flows[0].mobile_port))
        if self.held == 0:
            raise MeasurementError("the hold at the receiver got no acknowledgement, so no ACK was delayed")
        if not is_up:
            name = str(ObjectName(ObjectKind(SUFFIXES[task.application]), size_bytes, moved.seed))
            self._ask_server(end, before, name)
        self.moved_bytes, self.total_s = moved.moved_bytes, moved.total_s
        return moved

    def note(self, round_trips: Sequence[RoundTrip]) -> None:
        """Keep the first round trip, and from where on later ones are short where a body of them is."""
        if not round_trips:
            return
        self.round_trip_s = round_trips[0].seconds
        short = [place for place, one in enumerate(round_trips) if one.seconds < CLEARLY_SHORT * self.delay_s]
        if self.round_trip_s >= CLEARLY_SHORT * self.delay_s and len(short) >= LEAST_SHORT:
            self.late_round_trip_s = median(round_trips[place].seconds for place in short)
            self.short_from_bytes = round_trips[short[0] - 1].acked_bytes

    @contextlib.contextmanager
    def _hold(self, direction: Direction, end: MobileEnd, port: int) -> Iterator[None]:
        if direction is Direction.DOWN:
            ports = end.about.ports
            ranges = [(port, port), *([ports.ftp_data] if port in (ports.ftp, ports.ftp_free) else [])]
            with end.hold_acks(tuple(ranges), self.delay_s) as mobile_hold:
                yield
            report = mobile_hold.report()
            self.held, self.largest_error_s = report.held, report.largest_error_s
            return
        with end.control.hold_acks(port, self.delay_s, end.remaining_s + 60.0) as server_hold:
            yield
        if server_hold.report is not None:
            self.held, self.largest_error_s = server_hold.report.held, server_hold.report.largest_error_s

    def _ask_server(self, end: MobileEnd, before: int, name: str) -> None:
        """The server's view of the connection that carried the object: the shortest, if several did."""
        for _ in range(_ROW_LOOKS):
            rows = [row for row in end.control.served(before) if row.object == name and row.tcp_info.get("min_rtt")]
            if rows:
                state = min((row.tcp_info for row in rows), key=lambda info: info["min_rtt"])
                self.round_trip_s = state["min_rtt"] / 1e6
                self.smoothed_s = state.get("rtt", 0) / 1e6
                self.answered_segments = state.get("segs_in", 0)
                return
            time.sleep(_ROW_PAUSE_S)
