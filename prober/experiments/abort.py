"""What becomes of each leg when the mobile gives up in the middle of a download (Wei et al., section III-D)?

The mobile fetches a large object, resets its connection in the middle, and asks the server what became of the server's
own connection: when it ended, how much was acknowledged to it, and when the last acknowledgement came.

Decisions, both without captures:

- Payload acknowledged to the server beyond what the mobile's kernel had taken in, plus its whole receive buffer (which
  is kept small), was taken by somebody else.
- Acknowledgements that reach the server long after the mobile's reset come from somebody else, since the mobile's
  kernel answers for a closed connection with resets only. "Long" is LOST_RESET_S: until then the reset itself may have
  been lost, and the next one waits for the server's next retransmission.

What could fool them: radio networks that make acknowledgements of their own, which captures tell apart. A server whose
connection goes on *without* acknowledgements says nothing: the path may have lost every reset.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pepscope.packets import Direction
from pepscope.results import Evidence, Number, Outcome
from prober.costs import transfer_cost
from prober.errors import MeasurementError
from prober.experiment import Application, Experiment, Flow, Json, Measurement, Seen, Task, repeated
from prober.measured import number, optional_number, text
from prober.objects import Kind, ObjectName
from prober.plain_requests import TcpRequest
from prober.strengths import WEAK
from prober.tcp_info import tcp_info

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan
    from prober.protocol import Served

#: Retransmissions of a server that hears nothing come 1, 3 and 7 s after the first (RFC 6298 with a timer of 1 s):
#: three chances to be answered with another reset.
LOST_RESET_S = 7.0

#: Asked of the mobile's kernel before it connects, so that little can be on its way to a receiver that has gone.
RECEIVE_BUFFER_BYTES = 65_536

#: What an intermediary may add in front of the object without taking anything: header fields.
_HEAD_BYTES = 4096

_LOOK_S = 0.5
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Abort(Experiment):
    """Gives up in the middle of a download, and watches the server's side."""

    name = "abort"
    summary = "Abort a large download, and watch how long each leg lives."
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType(
        {"size_bytes": 2_000_000, "after_bytes": 500_000, "watch_s": 60.0, "repeats": 1}
    )

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """One download by HTTP and one by raw TCP, and each repeat."""
        settings = plan.experiments[self.name]
        size_bytes, after_bytes = int(settings["size_bytes"]), int(settings["after_bytes"])
        if Direction.DOWN not in plan.directions:
            return
        for application in (Application.HTTP_DATA, Application.TCP):
            if application not in plan.applications:
                continue
            cost = transfer_cost(application, Direction.DOWN, after_bytes, plan.rates)
            task = Task(
                self.name,
                1,
                application,
                Direction.DOWN,
                {"size_bytes": size_bytes, "after_bytes": after_bytes, "watch_s": float(settings["watch_s"])},
                bytes_up=cost.bytes_up,
                bytes_down=cost.bytes_down + 2 * RECEIVE_BUFFER_BYTES,
                expected_s=cost.expected_s + 2.0,
            )
            yield from repeated(task, settings["repeats"])

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Download a part, reset, and ask the server until its connection has ended or `watch_s` are over."""
        assert task.application is not None
        before = end.control.last_served_number()
        port = end.port(task.application)
        wanted = ObjectName(Kind.BINARY, int(task.parameters["size_bytes"]), task.repeat)
        with end.connect(port, prepare=_small_buffer) as link:
            mobile_port = int(link.getsockname()[1])
            link.sendall(_request(task.application, end, wanted))
            _read(link, int(task.parameters["after_bytes"]))
            buffer_bytes = link.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            taken_bytes = tcp_info(link).get("bytes_received")
        aborted_s = time.monotonic()
        server_at_abort_ns = end.control.clock().unix_ns
        served = _await_end(end, before, str(wanted), aborted_s + float(task.parameters["watch_s"]))
        values: dict[str, Json] = {
            "taken_bytes": taken_bytes,
            "receive_buffer_bytes": buffer_bytes,
            "watched_s": time.monotonic() - aborted_s,
            "server_ending": "" if served is None else served.ending,
            "server_lived_s": None,
            "server_acked_bytes": None,
            "server_last_ack_s": None,
        }
        if served is not None:
            lived_s = (served.ended_unix_ns - server_at_abort_ns) / 1e9
            values["server_lived_s"] = lived_s
            values["server_acked_bytes"] = served.tcp_info.get("bytes_acked")
            if "last_ack_recv" in served.tcp_info:
                values["server_last_ack_s"] = lived_s - served.tcp_info["last_ack_recv"] / 1000
        return Measurement(values, (Flow(mobile_port, port),))

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        """Findings: `acknowledged-beyond-abort`, `leg-outlives-abort` (split), `abort-end-to-end` (intact, weak)."""
        found = [self._examine_one(item.observation.measurement.values) for item in seen]
        told = [evidence for evidence in found if evidence is not None]
        split = [evidence for evidence in told if evidence.outcome is Outcome.SPLIT]
        return tuple(split or told[:1])

    def _examine_one(self, values: Mapping[str, Json]) -> Evidence | None:
        taken, acked = optional_number(values, "taken_bytes"), optional_number(values, "server_acked_bytes")
        last_ack_s, lived_s = optional_number(values, "server_last_ack_s"), optional_number(values, "server_lived_s")
        numbers: dict[str, Number] = {
            "taken_bytes": taken,
            "server_acked_bytes": acked,
            "server_last_ack_s": last_ack_s,
            "server_lived_s": lived_s,
            "server_ending": text(values, "server_ending"),
        }
        room = number(values, "receive_buffer_bytes") + _HEAD_BYTES
        if taken is not None and acked is not None and acked > taken + room:
            return Evidence(
                self.name, Outcome.SPLIT, "acknowledged-beyond-abort", 1.0 - room / (2 * (acked - taken)),
                f"The mobile gave up after {taken:.0f} bytes, but {acked:.0f} were acknowledged to the server, more "
                "than the mobile's receive buffer can explain: the rest sits in a box in between.", numbers,
            )  # fmt: skip
        if last_ack_s is not None and last_ack_s > LOST_RESET_S:
            return Evidence(
                self.name, Outcome.SPLIT, "leg-outlives-abort", 0.9,
                f"{last_ack_s:.1f} s after the mobile had reset its connection somebody still acknowledged "
                "to the server.",
                numbers, ("Radio networks that make acknowledgements of their own would look the same.",),
            )  # fmt: skip
        if acked is None or taken is None or lived_s is None or lived_s > LOST_RESET_S:
            return None
        return Evidence(
            self.name, Outcome.INTACT, "abort-end-to-end", WEAK,
            f"The abort reached the server within {max(lived_s, 0.0):.1f} s, and nothing was acknowledged that the "
            "mobile had not taken.", numbers, ("A split point that passes aborts on looks the same.",),
        )  # fmt: skip

    def facts(self, seen: Sequence[Seen]) -> Mapping[str, Json]:
        """How long the server's leg lived, how it ended, and how often it probed a closed window (from captures)."""
        return {
            "aborts": [
                {
                    **{name: item.observation.measurement.values.get(name) for name in _TOLD},
                    "zero_window_probes": _zero_window_probes(item),
                }
                for item in seen
            ]
        }


_TOLD = ("server_lived_s", "server_ending", "server_last_ack_s", "watched_s", "taken_bytes", "server_acked_bytes")


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
    """What the server says of the transfer once it is over for the server, too."""
    while True:
        for served in end.control.served(after):
            if served.object == name and served.is_over:
                return served
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(min(_LOOK_S, end.remaining_s))


def _zero_window_probes(item: Seen) -> int | None:
    for pair in item.pairs:
        for evidence in pair.evidence:
            probes = evidence.numbers.get("zero_window_probes")
            with contextlib.suppress(TypeError, ValueError):
                if evidence.method == "teardown" and probes is not None:
                    return int(probes)
    return None
