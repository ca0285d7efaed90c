"""Requests that only a program that reads HTTP answers differently: a host that nobody has, a method that nobody knows.

Every server has an answer of its own for a host under `.invalid` (RFC 6761) and for an unknown method (RFC 9110,
section 15.6.2). A transparent proxy has one answer for all: it cannot find the host, or does not know the method. Where
hosts whose ordinary answers name different servers give one and the same answer to such a request, a program on the way
reads HTTP. Content networks serve many hosts from one place, and some firewalls answer in a stream that they pass on,
so that the finding is named and moves no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, Cost, PortMaterial
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.finding import Cause, CheckFinding, Says
from prober.check.given import Given
from prober.check.probes.plain_exchange import exchange
from prober.check.questions import http_field, http_status
from prober.check.targets import Place
from prober.protocol.header_fields import DECLARING, request_fields

NAME = "odd-requests"
_LEAST_HOSTS = 3
_PATIENCE_S = 3.0
_MOST_BYTES = 4096
_REQUEST_BYTES = 600
#: Header fields of an answer that say which program wrote it.
_TELLING = ("Server", "Via", "X-Squid-Error", "Proxy-Status", "Content-Type")


def odd_requests(host: str) -> Mapping[str, bytes]:
    """Requests by what is odd about them."""
    end = "User-Agent: pepscope-check\r\nConnection: close\r\n\r\n"
    return {
        "unknown-host": f"HEAD / HTTP/1.1\r\nHost: pepscope-check.invalid\r\n{end}".encode(),
        "unknown-method": f"PEPSCOPE / HTTP/1.1\r\nHost: {host}\r\n{end}".encode("ascii", "replace"),
        "no-more-forwarding": f"OPTIONS * HTTP/1.1\r\nHost: {host}\r\nMax-Forwards: 0\r\n{end}".encode(
            "ascii", "replace"
        ),
    }


@dataclass(frozen=True, slots=True)
class OddAnswers:
    """The head of each answer by what was odd about the request; empty where nothing came."""

    heads: Mapping[str, bytes]


class OddRequests(CheckExperiment[OddAnswers]):
    """Asks oddly, once each."""

    name = NAME
    title = "odd requests"
    summary = "Ask for a host that does not exist and with an unknown method: a program that reads HTTP answers alike."
    measured = OddAnswers

    def subjects(self, places: Sequence[Place], given: Given) -> Iterable[Place]:  # noqa: ARG002
        """Ports of plain HTTP."""
        return [place for place in places if not place.target.tls]

    def cost(self) -> Cost:
        """One connection each."""
        count = len(odd_requests(""))
        return Cost(count, 0, count * _REQUEST_BYTES)

    def measure(self, asked: Asked) -> OddAnswers | None:
        """None where the port does not speak HTTP. Raises OSError."""
        found = asked.measured_by(QUESTIONS, Questions)
        if found is None or not any(http_status(each.head) for each in found.plain):
            return None
        place = asked.place
        return OddAnswers(
            {
                odd: exchange(place.address, place.target.port, request, _PATIENCE_S, _MOST_BYTES)
                for odd, request in odd_requests(place.target.host).items()
            }
        )

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """One answer of all hosts, although their ordinary answers name different servers."""
        asked = {id(each): found for each, found in port.of(QUESTIONS, Questions)}
        known = [(each, found, asked[id(each)]) for each, found in self.observed(port) if id(each) in asked]
        hosts = tuple(sorted({each.host for each, _, _ in known}))
        servers = {http_field(plain.plain[0].head, "Server") for _, _, plain in known if plain.plain}
        if len(hosts) < _LEAST_HOSTS or len(servers) < 2:
            return
        alike = []
        for odd in odd_requests(""):
            answers = {_signature(found.heads.get(odd, b"")) for _, found, _ in known}
            own = {_signature(plain.plain[0].head) for _, _, plain in known}
            if len(answers) == 1 and None not in answers and not answers & own:
                alike.append(odd.replace("-", " "))
        if alike:
            yield CheckFinding(
                "one-answer-for-all-hosts", Says.NAMED,
                f"{len(hosts)} hosts whose servers differ give one and the same answer to odd requests "
                f"({', '.join(alike)}): a program on the way reads HTTP, or one content network serves them all.",
                hosts, Cause.HTTP_PROXY,
            )  # fmt: skip

    def document(self, measured: OddAnswers) -> Mapping[str, Any]:
        """The status of each answer, and fields by which an intermediary declares itself."""
        return {
            odd: {"status": http_status(head), "declared": sorted(DECLARING & request_fields(head))}
            for odd, head in measured.heads.items()
        }


def _signature(head: bytes) -> tuple[object, ...] | None:
    status = http_status(head)
    return None if status is None else (status, *(http_field(head, name) for name in _TELLING))
