"""Connections to documentation addresses (RFC 5737, RFC 3849), at which no host can be: who answers in their name?

A middlebox that acknowledges data there terminates connections. The questions name hosts of the check. So an answer
tells what stands there: a captive portal answers each name alike; a proxy that connects to the host that the request
names, whatever the address, answers as that host (RFC 9112, section 3.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, Cost, PortMaterial
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.finding import Cause, CheckFinding, Says, counted
from prober.check.given import Given
from prober.check.probes.data_probe import DataAnswer, ask
from prober.check.questions import http_field, http_status, question
from prober.check.targets import DOCUMENTATION_ADDRESSES, Place

NAME = "documentation-addresses"
_WAIT_S = 1.0
_PATIENCE_S = 5.0
_CONNECTION_BYTES = 2_000
#: By these fields answers of different hosts differ.
_TELLING = ("Server", "Location", "ETag", "Last-Modified", "Content-Length", "Content-Type")


@dataclass(frozen=True, slots=True)
class DocumentationAnswer:
    """What came from there: `answer` is None where nothing answered the handshake."""

    answer: DataAnswer | None

    @property
    def is_acknowledged(self) -> bool:
        """Whether data were acknowledged where no host is."""
        return self.answer is not None and self.answer.is_acknowledged


class DocumentationAddresses(CheckExperiment[DocumentationAnswer]):
    """Asks at addresses without hosts."""

    name = NAME
    title = "addresses without hosts"
    summary = "Connect to documentation addresses, at which no host can be: whoever answers terminates connections."
    measured = DocumentationAnswer

    def subjects(self, places: Sequence[Place], given: Given) -> Iterable[Place]:  # noqa: ARG002
        """Every port that is checked, at the documentation addresses of the families that are checked."""
        targets: dict[tuple[int, int], dict[str, Place]] = {}
        for place in places:
            targets.setdefault((place.family, place.target.port), {}).setdefault(place.target.host, place)
        for (family, _), hosts in targets.items():
            for address, named in zip(DOCUMENTATION_ADDRESSES[family], cycle(hosts.values()), strict=False):
                yield Place(named.target, address)

    def cost(self) -> Cost:
        """One connection."""
        return Cost(1, 0, _CONNECTION_BYTES)

    def measure(self, asked: Asked) -> DocumentationAnswer:
        """Ask once; that nothing answers is the ordinary outcome."""
        place = asked.place
        try:
            answer = ask(place.address, place.target.port, question(place.target), None, _WAIT_S, _PATIENCE_S)
        except OSError:
            return DocumentationAnswer(None)
        return DocumentationAnswer(answer)

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """A portal, a proxy that goes by the request's host, a middlebox that acknowledges, or a SYN proxy."""
        asked = list(self.observed(port))
        numbers = {
            "documentation_addresses_asked": len(asked),
            "documentation_addresses_acknowledged": sum(found.is_acknowledged for _, found in asked),
        }
        acknowledged = numbers["documentation_addresses_acknowledged"]
        heads = {each.host: found.answer.head for each, found in asked if found.answer is not None}
        if proxied := _answered_as_named(port, heads):
            yield CheckFinding(
                "answered-as-the-named-host", Says.SPLIT,
                f"Requests for {' and '.join(proxied)}, sent to documentation addresses, at which no host can be, were "
                "answered as those hosts answer: a proxy terminates the connections and goes by the request's host.",
                tuple(sorted(proxied)), Cause.HTTP_PROXY, numbers=numbers,
            )  # fmt: skip
        elif portal := _portal(heads):
            yield CheckFinding("captive-portal", Says.FIRST, portal, (), Cause.CAPTIVE_PORTAL, numbers=numbers)
        elif acknowledged:
            everywhere = acknowledged == len(asked)
            yield CheckFinding(
                "documentation-address-acknowledged", Says.SPLIT if everywhere else Says.SPLIT_SUPPORT,
                f"Connections to {counted(acknowledged, 'documentation address', 'es')}, at which no host can be, were "
                "established, and their data acknowledged: a middlebox terminates connections to this port.",
                numbers=numbers,
            )  # fmt: skip
        taken = [found.answer for _, found in asked if found.answer is not None and not found.is_acknowledged]
        if not acknowledged and taken:
            are_reset = all(answer.was_reset for answer in taken)
            yield CheckFinding(
                "documentation-address-connected", Says.NAMED,
                "Handshakes with a documentation address, at which no host can be, complete, and "
                + (
                    "the connections are reset: something on the way answers handshakes in hosts' names."
                    if are_reset
                    else "no data are acknowledged: a SYN proxy answers."
                ),
                (), None if are_reset else Cause.SYN_PROXY, numbers=numbers,
            )  # fmt: skip

    def document(self, measured: DocumentationAnswer) -> Mapping[str, Any]:
        """Whether anything was there."""
        return {"connected": measured.answer is not None, "acknowledged": measured.is_acknowledged}


def _portal(heads: Mapping[str, bytes]) -> str:
    """A sentence where an answer is a captive portal's; else empty."""
    for head in heads.values():
        status = http_status(head)
        if status is not None and (status in (200, 511) or 300 <= status < 400):
            place = http_field(head, "Location")
            return (
                f"A documentation address, at which no host can be, answered with HTTP status {status}"
                + (f" and sent the client to {place[:80]}" if place else "")
                + ": a captive portal answers; log in, then check again."
            )
    return ""


def _answered_as_named(port: PortMaterial, heads: Mapping[str, bytes]) -> list[str]:
    """Hosts as which documentation addresses answered; none unless they are two whose answers differ."""
    ordinary: dict[str, set[tuple[object, ...]]] = {}
    for each, found in port.of(QUESTIONS, Questions):
        signatures = (_signature(answer.head) for answer in found.plain)
        ordinary.setdefault(each.host, set()).update(each for each in signatures if each is not None)
    named = {
        host: signature
        for host, head in heads.items()
        if (signature := _signature(head)) is not None and signature in ordinary.get(host, set())
    }
    return list(named) if len(set(named.values())) >= 2 else []


def _signature(head: bytes) -> tuple[object, ...] | None:
    """What an HTTP answer says of its host; None where it is none."""
    status = http_status(head)
    return None if status is None else (status, *(http_field(head, name) for name in _TELLING))
