"""What an HTTP intermediary leaves at both ends: header fields that it adds, and connections that it uses again.

Both are exact. The measuring client sends one request on each connection, and the fields that it sends are known; the
server is ours, so the fields of its answers are known, and it counts the requests on each of its connections. So

- a request that reaches the server as the second one on a connection came over a connection that the mobile did not
  make for it: the two are joined by a middlebox that ends both (RFC 9112, section 9.3, persistent connections);
- a field that arrives and was not sent was written by a middlebox on the way.

The first cannot happen to an end-to-end connection. Of the second, fields by which an intermediary declares itself (RFC
9110, section 7.6.3; RFC 9111, section 5.1; RFC 7239; RFC 9209; RFC 9211) say that an HTTP proxy handled the message,
and are evidence for the application of that message only. Other added fields may be header enrichment, which some
gateways insert into a stream without ending it, so that they are a hint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pepscope.results.finding import CERTAIN, Finding, Weight, split
from pepscope.results.verdicts import Evidence, Mechanism, Number
from prober.measurement.measured import FiniteNumber, Measured
from prober.protocol.header_fields import CLIENT_SENDS, DECLARING, added_to_answer, declared, request_fields

if TYPE_CHECKING:
    from prober.protocol.control_messages import Served

#: Strength where a field was added that declares nothing: below what decides, for it need not be a split.
UNDECLARED = 0.4


class IntermediaryFinding(Finding):
    """What HTTP intermediaries leave at both ends. Where added fields declare no proxy the strength is below 0.5."""

    REQUEST_ON_OLDER_CONNECTION = split(
        "request-on-older-connection",
        Weight(
            "requests", CERTAIN, 0.0, 0.0, CERTAIN,
            "The one request of a new connection reaches the server on a connection that was there before.",
        ),
    )  # fmt: skip
    PROXY_HEADER_ADDED = split(
        "proxy-header-added",
        Weight(
            "content", -6.0, 0.0, 0.0, -6.0, "A header field arrives that neither end sent.", Mechanism.REWRITING,
        ),
    )  # fmt: skip


class HeaderFields(Measured, frozen=True, kw_only=True):
    """Names of header fields that neither end sent; empty where an earlier version kept none."""

    #: Those by which an intermediary declares itself.
    proxy_fields: tuple[str, ...] = ()
    added_fields: tuple[str, ...] = ()


class Arrival(HeaderFields, frozen=True, kw_only=True):
    """How one request reached the server."""

    #: How many requests its connection had carried before; `None` where the server does not count.
    requests_before: FiniteNumber | None = None


class _HasFields(Protocol):
    @property
    def proxy_fields(self) -> tuple[str, ...]: ...

    @property
    def added_fields(self) -> tuple[str, ...]: ...


def arrivals(rows: Iterable[Served]) -> tuple[Arrival, ...]:
    """How requests reached the server."""
    return tuple(
        Arrival(
            requests_before=row.connection_requests if row.connection_requests >= 0 else None,
            proxy_fields=tuple(declared(names := request_fields(row.request_head))),
            added_fields=tuple(sorted(names - DECLARING - CLIENT_SENDS)),
        )
        for row in rows
    )


def answer_fields(names: Collection[str]) -> HeaderFields:
    """What an answer with header fields of these names (lower case) has that our server did not send."""
    return HeaderFields(proxy_fields=tuple(declared(names)), added_fields=tuple(added_to_answer(names)))


def intermediary_evidence(
    method: str, requests: Sequence[Arrival], answers: Sequence[_HasFields]
) -> tuple[Evidence, ...]:
    """Findings `request-on-older-connection` and `proxy-header-added` (split); nothing where nothing was left.

    `answers` have `proxy_fields` and `added_fields`.
    """
    return (*_reuse(method, requests), *_fields(method, requests, answers))


def older_connection_evidence(method: str, summary: str, numbers: Mapping[str, Number]) -> Evidence:
    """The finding that a request came over a connection that is older than the mobile's."""
    return IntermediaryFinding.REQUEST_ON_OLDER_CONNECTION.evidence(
        method, 1.0, summary, numbers,
        ("A reverse proxy in front of the server, its operator's own, does the same: a split, but not the network's.",),
    )  # fmt: skip


def _reuse(method: str, requests: Sequence[Arrival]) -> tuple[Evidence, ...]:
    before = [float(item.requests_before) for item in requests if item.requests_before is not None]
    again = [count for count in before if count > 0]
    if not again:
        return ()
    numbers: dict[str, Number] = {
        "requests": len(before),
        "on_older_connections": len(again),
        "requests_before_max": max(again),
    }
    summary = (
        f"The mobile made a connection for each of {len(before)} requests, but {len(again)} reached the server on a "
        "connection that had carried requests before: a middlebox ends the mobile's connections and uses its own "
        "to the server again."
    )
    return (older_connection_evidence(method, summary, numbers),)


def _fields(method: str, requests: Sequence[Arrival], answers: Sequence[_HasFields]) -> tuple[Evidence, ...]:
    """What was added to requests and to answers."""
    both: dict[str, Sequence[_HasFields]] = {"requests": requests, "answers": answers}
    found = {where: _distinct(one.proxy_fields for one in tables) for where, tables in both.items()}
    others = {where: _distinct(one.added_fields for one in tables) for where, tables in both.items()}
    is_declared = any(found.values())
    reported = found if is_declared else others
    if not any(reported.values()):
        return ()
    words = " and ".join(f"{', '.join(names)} to {where}" for where, names in reported.items() if names)
    numbers: dict[str, Number] = {
        **{f"declared_in_{where}": ", ".join(names) for where, names in found.items()},
        **{f"other_fields_in_{where}": len(names) for where, names in others.items()},
    }
    caveats = ["A reverse proxy in front of the server, its operator's own, adds fields, too."]
    if not is_declared:
        caveats.append("Gateways that enrich headers insert fields into a stream that they do not end.")
    meaning = "an HTTP proxy declares itself" if is_declared else "a middlebox writes into HTTP"
    return (
        IntermediaryFinding.PROXY_HEADER_ADDED.evidence(
            method, 1.0 if is_declared else UNDECLARED,
            f"The way adds header fields that neither end sent ({words}): {meaning}.", numbers, tuple(caveats),
        ),
    )  # fmt: skip


def _distinct(names: Iterable[Iterable[str]]) -> list[str]:
    return sorted({name for some in names for name in some})
