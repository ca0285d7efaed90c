"""Does somebody on the way read HTTP? Requests that are odd but legal, echoed by the server as they arrived.

Decision: the server sends back the very bytes of the request's head that reached it. Other bytes than those that left
mean that somebody wrote the request anew; an answer to a request that never reached the server means that somebody
answered in its stead. A request that is cut off (a reset, no answer) says that something looks into the stream, which
firewalls without a split do, too: it is told, and counts for nothing.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pepscope.packets import Direction
from pepscope.results import Evidence, Number, Outcome
from prober.errors import ArchiveError
from prober.experiment import Application, Experiment, Flow, Json, Measurement, Seen, Task, repeated
from prober.intermediaries import (
    added_to_answer,
    arrivals,
    declared,
    intermediary_evidence,
    optional_entries,
    request_fields,
)
from prober.measured import entries, table, text
from prober.plain_requests import echo_target

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan

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


class OddRequests(Experiment):
    """Sends odd but legal requests to the server's echo."""

    name = "odd-requests"
    summary = "Send odd but legal HTTP requests, and compare them with what reached the server."
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType({"repeats": 1})

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """One task a repeat, over plain HTTP."""
        if Application.HTTP_DATA not in plan.applications:
            return
        count = len(requests("", ""))
        task = Task(
            self.name,
            1,
            Application.HTTP_DATA,
            Direction.DOWN,
            bytes_up=300 * count,
            bytes_down=1000 * count,
            expected_s=3 * count * plan.rates.round_trip_time_s,
        )
        yield from repeated(task, plan.experiments[self.name]["repeats"])

    def measure(self, task: Task, end: MobileEnd) -> Measurement:  # noqa: ARG002
        """Send each request on a connection of its own, and keep what came back."""
        flows, results = [], []
        port = end.port(Application.HTTP_DATA)
        for oddity, head in requests(_host_field(end.host), echo_target(end.control.session)).items():
            before = end.control.last_served_number()
            answer, mobile_port, failure = _exchange(end, port, head)
            reached = [served for served in end.control.served(before) if served.request_head]
            flows.append(Flow(mobile_port, port))
            results.append(
                {
                    "oddity": oddity,
                    "sent": _encoded(head.replace(end.control.session.encode(), b"S")),
                    "arrived": [
                        _encoded(served.request_head.replace(end.control.session.encode(), b"S")) for served in reached
                    ],
                    "status_line": answer.split(b"\r\n", 1)[0].decode("latin-1")[:200],
                    "answered": bool(answer),
                    "answer": _answer_fields(answer),
                    # What the request itself adds is odd on purpose.
                    "arrivals": [{**row, "proxy_fields": [], "added_fields": []} for row in arrivals(reached)],
                    "failure": failure,
                }
            )
        return Measurement({"requests": results}, tuple(flows))

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        """Findings: `rewritten-headers`, `answered-for-the-server` (split), `requests-arrived-as-sent`.

        And what intermediaries leave; fields that were added to the request are part of `rewritten-headers`.
        """
        results = [row for item in seen for row in entries(item.observation.measurement.values, "requests")]
        requests = [row for result in results for row in optional_entries(result, "arrivals")]
        answers = [table(result, "answer") for result in results if "answer" in result]
        return (*self._compared(seen), *intermediary_evidence(self.name, requests, answers))

    def _compared(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        rewritten: list[str] = []
        usurped: list[str] = []
        cut: list[str] = []
        whole = 0
        for item in seen:
            for result in entries(item.observation.measurement.values, "requests"):
                oddity = text(result, "oddity")
                arrived = [_decoded(head) for head in _list(result, "arrived")]
                if not arrived:
                    (usurped if result.get("answered") else cut).append(oddity)
                elif _decoded(result.get("sent")) in arrived:
                    whole += 1
                else:
                    rewritten.append(oddity)
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
                Evidence(
                    self.name, Outcome.SPLIT, "rewritten-headers", 0.98,
                    f"Requests arrive at the server with another head than they left with ({', '.join(rewritten)}): "
                    "somebody who reads HTTP wrote them anew.", numbers, caveats,
                )
            )  # fmt: skip
        if usurped:
            found.append(
                Evidence(
                    self.name, Outcome.SPLIT, "answered-for-the-server", 0.9,
                    f"Requests were answered that never reached the server ({', '.join(usurped)}): somebody who reads "
                    "HTTP answered them.", numbers,
                    (*caveats, "Filters that put an answer into a stream need not split it."),
                )
            )  # fmt: skip
        if not found and (whole or cut):
            found.append(
                Evidence(
                    self.name, Outcome.INAPPLICABLE, "requests-arrived-as-sent", 0.0,
                    f"{whole} odd requests reached the server byte by byte as they left, and {len(cut)} were cut off: "
                    "whoever does not read HTTP leaves them so, split or not.", numbers, caveats,
                )
            )  # fmt: skip
        return tuple(found)


def _exchange(end: MobileEnd, port: int, head: bytes) -> tuple[bytes, int, str]:
    """Answer (as much of it as came), the mobile's port, and what cut it off."""
    answer = bytearray()
    patience_s = _PATIENCE_S + 10 * end.plan.rates.round_trip_time_s
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


def _answer_fields(answer: bytes) -> dict[str, Json]:
    """What the answer's head has that our server did not send; it refuses odd requests without more than it sends."""
    names = request_fields(answer.partition(b"\r\n\r\n")[0])
    return {"proxy_fields": declared(names), "added_fields": added_to_answer(names)}


def _host_field(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decoded(value: Json) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ArchiveError("the measurement's request heads are base64, and this one is not") from None


def _list(values: Mapping[str, Json], name: str) -> list[Json]:
    value = values.get(name)
    if not isinstance(value, list | tuple):
        raise ArchiveError(f"the measurement's {name} is a list")
    return list(value)
