"""A request as a service that echoes heads received it: letter case, order and spaces of header fields, added fields.

The same request over TLS, if the service answers there, shows what the service's own front end does; what differs only
over plain HTTP was changed on the way. A program that changes the head of a request reads HTTP and writes it anew, thus
ends the connection; inserting fields into a stream (header enrichment) is possible without that and is named alone.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, Cost, PortMaterial
from prober.check.finding import Cause, CheckFinding, Says
from prober.check.given import EchoService, Given
from prober.check.probes.plain_exchange import converse, exchange
from prober.check.targets import Place, Target, addresses_of
from prober.host.reset import reset_on_close
from prober.host.tls import over_tls
from prober.protocol.header_fields import DECLARING

NAME = "echo-service"
_PATIENCE_S = 5.0
_MOST_BYTES = 65_536
_REQUEST_BYTES = 2_000
#: Names in odd case and order, and spaces that a parser would drop (RFC 9110, section 5.5).
_FIELDS = ("x-PePsCoPe-lAsT: 9", "aCCept: a/b", "X-Pepscope-First:   two  words", "x-PePsCoPe-lAsT: 8")
_MARK = "pepscope"
_LONGEST_NAME = 60
_MOST_NAMES = 64
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class Echoed:
    """Header lines as sent, and as they arrived over plain HTTP and over TLS; None where no head came back."""

    sent: tuple[str, ...]
    plain: tuple[str, ...] | None
    over_tls: tuple[str, ...] | None


class EchoExperiment(CheckExperiment[Echoed]):
    """Asks the echo service that the user gave."""

    name = NAME
    title = "echoed requests"
    summary = "Send a request with odd but legal header fields to a service that echoes it, over plain HTTP and TLS."
    measured = Echoed

    def subjects(self, places: Sequence[Place], given: Given) -> Iterable[Place]:  # noqa: ARG002
        """The service, if one was given and its name is known."""
        if given.echo is None:
            return ()
        target = Target(given.echo.host, given.echo.port, tls=False)
        with contextlib.suppress(OSError):
            return [Place(target, address) for address in addresses_of(given.echo.host)]
        return ()

    def cost(self) -> Cost:
        """One request each way."""
        return Cost(2, 0, 2 * _REQUEST_BYTES)

    def measure(self, asked: Asked) -> Echoed | None:
        """Both requests; that the service does not answer over TLS is no failure. Raises OSError."""
        echo = asked.given.echo
        if echo is None:
            return None
        lines = (f"hOsT: {_named(echo.host)}", *_FIELDS, "cONNECTION: close")
        request = "\r\n".join((f"GET {echo.path} HTTP/1.1", *lines, "", "")).encode("ascii", "replace")
        plain = _head_lines(exchange(asked.place.address, echo.port, request, _PATIENCE_S, _MOST_BYTES))
        over_tls = None
        with contextlib.suppress(OSError):
            over_tls = _over_tls(asked.place.address, echo, request)
        return Echoed(lines, plain, over_tls)

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """Lines that changed over plain HTTP and arrived as they were sent over TLS."""
        for each, found in self.observed(port):
            if found.plain is None or found.over_tls is None or not _contains(found.over_tls, found.sent):
                continue
            added = sorted(set(_names(found.plain)) - set(_names(found.over_tls)))
            if not _contains(found.plain, found.sent) or DECLARING.intersection(added):
                what = f"with added {_listed(added)}" if added else "in other letters, order or spaces"
                yield CheckFinding(
                    "request-rewritten", Says.SPLIT,
                    f"A request to {each.host} arrived {what}, and as it was sent over TLS: a proxy reads the requests "
                    "to this port and sends its own.", (each.host,), Cause.HTTP_PROXY,
                )  # fmt: skip
            elif added:
                yield CheckFinding(
                    "request-enriched", Says.NAMED,
                    f"A request to {each.host} arrived with added {_listed(added)}, and without over TLS: something "
                    "inserts header fields.", (each.host,), Cause.HTTP_PROXY,
                )  # fmt: skip

    def document(self, measured: Echoed) -> Mapping[str, Any]:
        """Header lines, in order."""
        return {
            "sent": list(measured.sent),
            "plain": None if measured.plain is None else list(measured.plain),
            "over_tls": None if measured.over_tls is None else list(measured.over_tls),
        }


def _over_tls(address: str, echo: EchoService, request: bytes) -> tuple[str, ...] | None:
    if echo.tls_port is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Its head is compared with what was sent: whether an authority vouches for the service does not matter.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((address, echo.tls_port), _PATIENCE_S) as plain:
        reset_on_close(plain)
        with over_tls(context, plain, server_hostname=echo.host) as link:
            return _head_lines(converse(link, request, _PATIENCE_S, _MOST_BYTES))


def _head_lines(answer: bytes) -> tuple[str, ...] | None:
    """The header lines of the request that the body of an answer holds; None where it holds none of ours."""
    body = answer.partition(b"\r\n\r\n")[2].decode("latin-1")
    lines = [line.rstrip("\r") for line in body.splitlines()]
    start = next((number for number, line in enumerate(lines) if line.startswith("GET ")), None)
    if start is None:
        return None
    head = []
    for line in lines[start + 1 :]:
        if ":" not in line:
            break
        head.append(line)
    return tuple(head) if any(_MARK in line.lower() for line in head) else None


def _contains(arrived: Sequence[str], sent: Sequence[str]) -> bool:
    """Whether all lines arrived as they were sent, in order; others may lie between."""
    rest = iter(arrived)
    return all(line in rest for line in sent)


def _names(lines: Iterable[str]) -> list[str]:
    """Names of header fields, as far as they can be printed."""
    names = (line.partition(":")[0].strip().lower() for line in lines)
    return ["".join(each for each in name if each.isprintable())[:_LONGEST_NAME] for name in names][:_MOST_NAMES]


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"{', '.join(names[:_MOST_LISTED])}{rest}"


def _named(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
