"""Does a middlebox parse HTTP? The server echoes odd but legal requests as they arrived.

Decision: the server returns the bytes of the request's head that reached it. Changed bytes mean that a proxy rewrote
the request; an answer to a request that never reached the server means that a proxy answered it. A request that is cut
off (a reset, no answer) shows deep packet inspection, which firewalls without a split do, too: it is reported, and is
no evidence.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from pepscope.results.finding import Finding, Weight, inapplicable, split
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, Number
from pepscope.strict_reading import Table, WholeNumber
from prober.client.transfer import Flow
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.intermediaries import (
    Arrival,
    HeaderFields,
    IntermediaryFinding,
    answer_fields,
    arrivals,
    intermediary_evidence,
)
from prober.measurement.measured import Measured
from prober.measurement.task import Measurement, Task, repeated
from prober.protocol.application import Application
from prober.protocol.header_fields import request_fields
from prober.protocol.plain_requests import echo_target

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: An answer is not read beyond this.
_LONGEST_ANSWER_BYTES = 1 << 16

#: How long to wait for an answer, at least; slow paths get some round trips more.
_PATIENCE_S = 5.0


def requests(host: str, path: str) -> Mapping[str, bytes]:
    """The heads that are sent, by what is odd about them; all are legal after RFC 9110 and 9112."""
    plain = f"Host: {host}\r\nConnection: close\r\n"
    return {
        "letter-case": f"GET {path} HTTP/1.1\r\nhOsT: {host}\r\ncONNECTION: close\r\nx-PePsCoPe: 1\r\n\r\n".encode(),
        "order-and-repetition": (
            f"GET {path} HTTP/1.1\r\nX-Last: 9\r\nAccept: a/b\r\nX-First: 1\r\nAccept: c/d\r\n{plain}X-Last: 8\r\n\r\n"
        ).encode(),
        "spaces": f"GET {path} HTTP/1.1\r\n{plain}X-Spaces:   two  words\t \r\nX-None:1\r\n\r\n".encode(),
        "unknown-method": f"PEPSCOPE {path} HTTP/1.1\r\n{plain}\r\n".encode(),
        "absolute-uri": f"GET http://{host}{path} HTTP/1.1\r\n{plain}\r\n".encode(),
        "http-1.0": f"GET {path} HTTP/1.0\r\n{plain}\r\n".encode(),
    }


class OddRequestsFinding(Finding):
    """What came of odd requests."""

    ANSWERED_FOR_THE_SERVER = split(
        "answered-for-the-server",
        Weight(
            "answers", -2.5, 0.0, 0.0, -2.5, "Filters answer in streams that they pass on.",
        ),
    )  # fmt: skip
    REQUESTS_ARRIVED_AS_SENT = inapplicable("requests-arrived-as-sent")


class OddRequestsOptions(Table, frozen=True):
    """What a plan may set."""

    repeats: WholeNumber = 1


class OddRequest(Measured, frozen=True, kw_only=True):
    """One request, what of it reached the server, and what came back. Heads name no session."""

    oddity: str
    sent: bytes
    arrived: tuple[bytes, ...]
    status_line: str = ""
    answered: bool = False
    #: `None` where an earlier version kept none.
    answer: HeaderFields | None = None
    arrivals: tuple[Arrival, ...] = ()
    failure: str = ""


class OddRequestsMeasured(Measured, frozen=True, kw_only=True):
    """One entry a request."""

    requests: tuple[OddRequest, ...]


class OddRequests(Experiment[OddRequestsOptions, OddRequestsMeasured]):
    """Sends odd but legal requests to the server's echo."""

    name = "odd-requests"
    title = "odd requests"
    summary = "Send odd but legal HTTP requests, and compare them with what reached the server."
    findings = (
        OddRequestsFinding,
        TransferFinding,
        IntermediaryFinding,
    )
    options = OddRequestsOptions
    measured = OddRequestsMeasured

    def tasks(self, options: OddRequestsOptions, scope: Scope) -> Iterable[Task]:
        """One task a repeat, over plain HTTP."""
        if Application.HTTP_DATA not in scope.applications:
            return
        count = len(requests("", ""))
        task = Task(
            self.name,
            1,
            Application.HTTP_DATA,
            Direction.DOWN,
            connections=count,
            bytes_up=300 * count,
            bytes_down=1000 * count,
            expected_s=3 * count * scope.rates.round_trip_time_s,
        )
        yield from repeated(task, options.repeats)

    def measure(self, task: Task, end: MobileEnd) -> Measurement:  # noqa: ARG002
        """Send each request on a connection of its own, and keep what came back."""
        flows, results = [], []
        session = end.control.session.encode()
        port = end.port(Application.HTTP_DATA)
        for oddity, head in requests(_host_field(end.host), echo_target(end.control.session)).items():
            before = end.control.last_served_number()
            answer, mobile_port, failure = _exchange(end, port, head)
            reached = [served for served in end.control.served(before) if served.request_head]
            flows.append(Flow(mobile_port, port))
            results.append(
                OddRequest(
                    oddity=oddity,
                    sent=head.replace(session, b"S"),
                    arrived=tuple(served.request_head.replace(session, b"S") for served in reached),
                    status_line=answer.split(b"\r\n", 1)[0].decode("latin-1")[:200],
                    answered=bool(answer),
                    # Our server refuses odd requests with no other fields than it sends otherwise.
                    answer=answer_fields(request_fields(answer.partition(b"\r\n\r\n")[0])),
                    # What the request itself adds is odd on purpose.
                    arrivals=tuple(Arrival(requests_before=row.requests_before) for row in arrivals(reached)),
                    failure=failure,
                )
            )
        return Measurement.of(OddRequestsMeasured(requests=tuple(results)), flows)

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `rewritten-headers`, `answered-for-the-server` (split), `requests-arrived-as-sent`.

        And what intermediaries leave; fields that were added to the request are part of `rewritten-headers`.
        """
        results = [result for item in observed for result in self.kept(item).requests]
        requests = [row for result in results for row in result.arrivals]
        answers = [result.answer for result in results if result.answer is not None]
        return (*self._compared(results), *intermediary_evidence(self.name, requests, answers))

    def _compared(self, results: Sequence[OddRequest]) -> tuple[Evidence, ...]:
        rewritten: list[str] = []
        usurped: list[str] = []
        cut: list[str] = []
        whole = 0
        for result in results:
            if not result.arrived:
                (usurped if result.answered else cut).append(result.oddity)
            elif result.sent in result.arrived:
                whole += 1
            else:
                rewritten.append(result.oddity)
        numbers: dict[str, Number] = {
            "arrived_as_sent": whole,
            "rewritten": ", ".join(rewritten),
            "answered_in_between": ", ".join(usurped),
            "cut_off": ", ".join(cut),
        }
        caveats = ("Inspecting firewalls cut odd requests off without splitting.",) if cut else ()
        found = []
        if rewritten:
            found.append(
                TransferFinding.REWRITTEN_HEADERS.evidence(
                    self.name, 0.98,
                    f"Requests arrive at the server with another head than they left with ({', '.join(rewritten)}): "
                    "a middlebox that reads HTTP wrote them anew.", numbers, caveats,
                )
            )  # fmt: skip
        if usurped:
            found.append(
                OddRequestsFinding.ANSWERED_FOR_THE_SERVER.evidence(
                    self.name, 0.9,
                    f"Requests were answered that never reached the server ({', '.join(usurped)}): a middlebox that "
                    "reads HTTP answered them.", numbers,
                    (*caveats, "Filters that put an answer into a stream need not split it."),
                )
            )  # fmt: skip
        if not found and (whole or cut):
            found.append(
                OddRequestsFinding.REQUESTS_ARRIVED_AS_SENT.undecided(
                    self.name,
                    f"{whole} odd requests reached the server byte by byte as they left, and {len(cut)} were cut off: "
                    "a middlebox that does not read HTTP leaves them so, split or not.", numbers, caveats,
                )
            )  # fmt: skip
        return tuple(found)


def _exchange(end: MobileEnd, port: int, head: bytes) -> tuple[bytes, int, str]:
    """Answer (as much of it as came), the mobile's port, and what cut it off."""
    answer = bytearray()
    patience_s = _PATIENCE_S + 10 * end.expected_round_trip_s
    deadline_s = time.monotonic() + patience_s
    with end.connect(port) as link:
        mobile_port = int(link.getsockname()[1])
        try:
            link.sendall(head)
            while len(answer) < _LONGEST_ANSWER_BYTES and (left_s := deadline_s - time.monotonic()) > 0:
                link.settimeout(left_s)
                chunk = link.recv(4096)
                if not chunk:
                    break
                answer += chunk
        except TimeoutError:
            return bytes(answer), mobile_port, f"no end of the answer within {patience_s:g} s"
        except OSError as error:
            return bytes(answer), mobile_port, str(error.strerror or error)
    return bytes(answer), mobile_port, ""


def _host_field(host: str) -> str:
    return f"[{host}]" if ":" in host else host
