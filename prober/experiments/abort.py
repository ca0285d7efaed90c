"""How long does each leg last after the mobile aborts a download (Wei et al., section III-D)?

The mobile fetches a large object, resets its connection in the middle, and polls the server for the state of the
server's own connection: when it ended, how much was acknowledged to it, and when the last acknowledgement arrived.

Decisions, both without captures:

- Payload acknowledged to the server beyond the bytes that the mobile's kernel had received, plus its whole receive
  buffer (which is small), was acknowledged by a middlebox.
- Acknowledgements that reach the server long after the mobile's reset come from a middlebox, since the mobile's kernel
  answers segments of a closed connection with resets only. "Long" is LOST_RESET_S: until then the reset itself may have
  been lost, and the next one waits for the server's next retransmission.

Possible errors: radio networks that send acknowledgements themselves, which captures distinguish. If the server's
connection continues *without* acknowledgements, there is no finding: the path may have lost every reset.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from pepscope.results.finding import Finding, Weight, split
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, Number, Outcome
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.client.transfer import Flow
from prober.errors import MeasurementError
from prober.host.reset import reset_on_close
from prober.host.tcp_info import tcp_info
from prober.measurement.cost_estimate import transfer_cost
from prober.measurement.evidence_strength import WEAK
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.measured import Count, FiniteNumber, Measured
from prober.measurement.task import Measurement, Task, repeated
from prober.protocol.application import Application
from prober.protocol.json_documents import Json
from prober.protocol.objects import ObjectKind, ObjectName
from prober.protocol.plain_requests import TcpRequest

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope
    from prober.protocol.control_messages import Served

#: Retransmissions of a server that hears nothing come 1, 3 and 7 s after the first (RFC 6298 with a timer of 1 s):
#: three chances to be answered with another reset.
LOST_RESET_S = 7.0

#: Asked of the mobile's kernel before it connects, so that little can be on its way to a receiver that has gone.
RECEIVE_BUFFER_BYTES = 65_536

#: What an intermediary may add in front of the object without taking anything: header fields.
_HEAD_BYTES = 4096

_LOOK_S = 0.5


class AbortFinding(Finding):
    """What an aborted download leaves behind."""

    LEG_OUTLIVES_ABORT = split(
        "leg-outlives-abort",
        Weight(
            "teardown", -5.0, 0.0, 0.0, -2.0, "The sender's connection outlives the receiver's.",
        ),
    )  # fmt: skip


class AbortOptions(Table, frozen=True):
    """What a plan may set."""

    size_bytes: WholeNumber = 2_000_000
    after_bytes: WholeNumber = 500_000
    watch_s: Amount = 60.0
    repeats: WholeNumber = 1


class AbortMeasured(Measured, frozen=True, kw_only=True):
    """Counts of both kernels; `None` where one does not count, or the server's connection outlived the watch."""

    taken_bytes: Count | None
    receive_buffer_bytes: Count
    watched_s: FiniteNumber = 0.0
    server_ending: str
    server_lived_s: FiniteNumber | None
    server_acked_bytes: Count | None
    server_last_ack_s: FiniteNumber | None


class Abort(Experiment[AbortOptions, AbortMeasured]):
    """Aborts a download in the middle, and polls the server's side."""

    name = "abort"
    title = "aborted downloads"
    summary = "Abort a large download, and measure how long each leg lasts."
    findings = (
        AbortFinding,
        TransferFinding,
    )
    options = AbortOptions
    measured = AbortMeasured

    def tasks(self, options: AbortOptions, scope: Scope) -> Iterable[Task]:
        """One download by HTTP and one by raw TCP, and each repeat."""
        size_bytes, after_bytes = options.size_bytes, options.after_bytes
        if Direction.DOWN not in scope.directions:
            return
        for application in (Application.HTTP_DATA, Application.TCP):
            if application not in scope.applications:
                continue
            cost = transfer_cost(application, Direction.DOWN, after_bytes, scope.rates)
            task = Task(
                self.name,
                1,
                application,
                Direction.DOWN,
                {"size_bytes": size_bytes, "after_bytes": after_bytes, "watch_s": options.watch_s},
                connections=cost.connections,
                bytes_up=cost.bytes_up,
                bytes_down=cost.bytes_down + 2 * RECEIVE_BUFFER_BYTES,
                expected_s=cost.expected_s + 2.0,
            )
            yield from repeated(task, options.repeats)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Download a part, reset, and ask the server until its connection has ended or `watch_s` are over."""
        assert task.application is not None
        before = end.control.last_served_number()
        port = end.port(task.application)
        wanted = ObjectName(ObjectKind.BINARY, int(task.parameters["size_bytes"]), task.repeat)
        with end.connect(port, prepare=_small_buffer) as link:
            mobile_port = int(link.getsockname()[1])
            link.sendall(_request(task.application, end, wanted))
            _read(link, int(task.parameters["after_bytes"]))
            buffer_bytes = link.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            reset_on_close(link)
            taken_bytes = tcp_info(link).get("bytes_received")
        aborted_s = time.monotonic()
        server_at_abort_ns = end.control.clock().unix_ns
        served = _await_end(end, before, str(wanted), aborted_s + float(task.parameters["watch_s"]))
        lived_s = acked_bytes = last_ack_s = None
        if served is not None:
            lived_s = (served.ended_unix_ns - server_at_abort_ns) / 1e9
            acked_bytes = served.tcp_info.get("bytes_acked")
            if "last_ack_recv" in served.tcp_info:
                last_ack_s = lived_s - served.tcp_info["last_ack_recv"] / 1000
        values = AbortMeasured(
            taken_bytes=taken_bytes,
            receive_buffer_bytes=buffer_bytes,
            watched_s=time.monotonic() - aborted_s,
            server_ending="" if served is None else served.ending,
            server_lived_s=lived_s,
            server_acked_bytes=acked_bytes,
            server_last_ack_s=last_ack_s,
        )
        return Measurement.of(values, (Flow(mobile_port, port),))

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `acknowledged-beyond-abort`, `leg-outlives-abort` (split), `abort-end-to-end` (intact, weak)."""
        found = [self._examine_one(self.kept(item)) for item in observed]
        findings = [evidence for evidence in found if evidence is not None]
        split = [evidence for evidence in findings if evidence.outcome is Outcome.SPLIT]
        return tuple(split or findings[:1])

    def _examine_one(self, values: AbortMeasured) -> Evidence | None:
        taken, acked = values.taken_bytes, values.server_acked_bytes
        last_ack_s, lived_s = values.server_last_ack_s, values.server_lived_s
        numbers: dict[str, Number] = {
            "taken_bytes": None if taken is None else float(taken),
            "server_acked_bytes": None if acked is None else float(acked),
            "server_last_ack_s": last_ack_s,
            "server_lived_s": lived_s,
            "server_ending": values.server_ending,
        }
        room = values.receive_buffer_bytes + _HEAD_BYTES
        if taken is not None and acked is not None and acked > taken + room:
            return TransferFinding.ACKNOWLEDGED_BEYOND_ABORT.evidence(
                self.name, 1.0 - room / (2 * (acked - taken)),
                f"The mobile gave up after {taken:.0f} bytes, but {acked:.0f} were acknowledged to the server, more "
                "than the mobile's receive buffer can explain: the rest sits in a middlebox.", numbers,
            )  # fmt: skip
        if last_ack_s is not None and last_ack_s > LOST_RESET_S:
            return AbortFinding.LEG_OUTLIVES_ABORT.evidence(
                self.name, 0.9,
                f"{last_ack_s:.1f} s after the mobile had reset its connection a middlebox still acknowledged "
                "to the server.",
                numbers, ("Radio networks that make acknowledgements of their own would look the same.",),
            )  # fmt: skip
        if acked is None or taken is None or lived_s is None or lived_s > LOST_RESET_S:
            return None
        return TransferFinding.ABORT_END_TO_END.evidence(
            self.name, WEAK,
            f"The abort reached the server within {max(lived_s, 0.0):.1f} s, and nothing was acknowledged that the "
            "mobile had not taken.", numbers, ("A split point that passes aborts on looks the same.",),
        )  # fmt: skip

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """How long the server's leg lived, how it ended, and how often it probed a closed window (from captures)."""
        aborts = []
        for item in observed:
            values = self.kept(item)
            reported = {name: getattr(values, name) for name in _REPORTED}
            aborts.append({**reported, "zero_window_probes": _zero_window_probes(item)})
        return {"aborts": aborts}


_REPORTED = ("server_lived_s", "server_ending", "server_last_ack_s", "watched_s", "taken_bytes", "server_acked_bytes")


def _small_buffer(link: socket.socket) -> None:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)


def _request(application: Application, end: MobileEnd, wanted: ObjectName) -> bytes:
    if application is Application.TCP:
        return TcpRequest(end.control.session, "download", wanted.size_bytes, wanted.seed, wanted.kind).to_line()
    target = end.object_target(wanted.size_bytes, wanted.seed, wanted.kind)
    host = f"[{end.host}]" if ":" in end.host else end.host
    return f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()


def _read(link: socket.socket, wanted_bytes: int) -> None:
    left_bytes = wanted_bytes
    while left_bytes > 0:
        piece = link.recv(min(left_bytes, 65_536))
        if not piece:
            raise MeasurementError(f"the download ended before it could be aborted, {left_bytes} bytes too early")
        left_bytes -= len(piece)


def _await_end(end: MobileEnd, after: int, name: str, deadline_s: float) -> Served | None:
    """The server's record of the transfer, once it has ended for the server, too."""
    while True:
        for served in end.control.served(after):
            if served.object == name and served.is_over:
                return served
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(min(_LOOK_S, end.remaining_s))


def _zero_window_probes(item: ObservedTask) -> int | None:
    for pair in item.pairs:
        for evidence in pair.evidence:
            probes = evidence.numbers.get("zero_window_probes")
            with contextlib.suppress(TypeError, ValueError):
                if evidence.method == "teardown" and probes is not None:
                    return int(probes)
    return None
