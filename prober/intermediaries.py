"""What an HTTP intermediary leaves at both ends: header fields that it adds, and connections that it uses again.

Both are exact. The measuring client sends one request on each connection and knows the fields that it sends; the server
is ours and knows the fields that it answers with, and counts the requests on each of its connections. So

- a request that reaches the server as the second one on a connection came over a connection that the mobile did not
  make for it: the two are joined by a box that ends both (RFC 9112, section 9.3, persistent connections);
- a field that arrives and was not sent was written by a box on the way.

The first cannot happen to an end-to-end connection. Of the second, fields by which an intermediary declares itself
(RFC 9110, section 7.6.3; RFC 9111, section 5.1; RFC 7239; RFC 9209; RFC 9211) say that an HTTP proxy handled the
message, and speak for the application that carried it only. Other added fields may be header enrichment, which some
gateways insert into a stream without ending it, so that they are a hint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pepscope.results import Evidence, Number, Outcome
from prober.errors import ArchiveError
from prober.measured import entries, number

if TYPE_CHECKING:
    from prober.experiment import Json
    from prober.protocol import Served

#: Fields by which intermediaries declare themselves, in lower case; neither our client nor our server sends any.
DECLARING = frozenset(
    {
        "via",
        "x-via",
        "age",
        "warning",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "proxy-connection",
        "proxy-status",
        "cache-status",
        "cf-cache-status",
        "cdn-loop",
        "x-cache",
        "x-cache-lookup",
        "x-cache-hits",
    }
)

#: What the measuring client may send of itself.
_CLIENT_SENDS = frozenset(
    {"host", "user-agent", "accept", "accept-encoding", "connection", "content-type", "content-length"}
)
#: What our server may answer of itself, whichever its version.
_SERVER_SENDS = frozenset({"date", "content-type", "cache-control", "content-length", "connection", "x-think-time"})

#: Strength where a field was added that declares nothing: below what decides, for it need not be a split.
UNDECLARED = 0.4

_MOST_FIELDS = 64
_LONGEST_NAME = 60


def arrivals(rows: Iterable[Served]) -> list[dict[str, Json]]:
    """How requests reached the server, as a measurement keeps it: one table a request."""
    return [
        {
            "requests_before": row.connection_requests if row.connection_requests >= 0 else None,
            "proxy_fields": declared(names := request_fields(row.request_head)),
            "added_fields": sorted(names - DECLARING - _CLIENT_SENDS),
        }
        for row in rows
    ]


def declared(names: Iterable[str]) -> list[str]:
    """Those of the names (lower case) by which an intermediary declares itself."""
    return sorted(DECLARING.intersection(names))


def added_to_answer(names: Iterable[str]) -> list[str]:
    """Those of an answer's names (lower case) that neither our server sends nor an intermediary declares itself by."""
    return sorted({name[:_LONGEST_NAME] for name in names} - DECLARING - _SERVER_SENDS)[:_MOST_FIELDS]


def request_fields(head: bytes) -> frozenset[str]:
    """Names of the header fields of a request's head, in lower case."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    names = (line.partition(":")[0].strip().lower() for line in lines if ":" in line)
    return frozenset([name[:_LONGEST_NAME] for name in names][:_MOST_FIELDS])


def intermediary_evidence(
    method: str, requests: Sequence[Mapping[str, Json]], answers: Sequence[Mapping[str, Json]]
) -> tuple[Evidence, ...]:
    """Findings `request-on-older-connection` and `proxy-header-added` (split); nothing where nothing was left.

    `requests` are tables of `arrivals`; `answers` have `proxy_fields` and `added_fields`. Raises ArchiveError.
    """
    return (*_reuse(method, requests), *_fields(method, requests, answers))


def optional_entries(values: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    """A list of tables, empty where an earlier version wrote none. Raises ArchiveError."""
    return entries(values, name) if name in values else []


def older_connection_evidence(method: str, summary: str, numbers: Mapping[str, Number]) -> Evidence:
    """The finding that a request came over a connection that is older than the mobile's."""
    return Evidence(
        method, Outcome.SPLIT, "request-on-older-connection", 1.0, summary, numbers,
        ("A reverse proxy in front of the server, its operator's own, does the same: a split, but not the network's.",),
    )  # fmt: skip


def _reuse(method: str, requests: Sequence[Mapping[str, Json]]) -> tuple[Evidence, ...]:
    before = [number(item, "requests_before") for item in requests if item.get("requests_before") is not None]
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
        "connection that had carried requests before: a box in between ends the mobile's connections and uses its own "
        "to the server again."
    )
    return (older_connection_evidence(method, summary, numbers),)


def _fields(
    method: str, requests: Sequence[Mapping[str, Json]], answers: Sequence[Mapping[str, Json]]
) -> tuple[Evidence, ...]:
    """What was added to requests and to answers."""
    both = {"requests": requests, "answers": answers}
    found = {where: _names(tables, "proxy_fields") for where, tables in both.items()}
    others = {where: _names(tables, "added_fields") for where, tables in both.items()}
    is_declared = any(found.values())
    told = found if is_declared else others
    if not any(told.values()):
        return ()
    words = " and ".join(f"{', '.join(names)} to {where}" for where, names in told.items() if names)
    numbers: dict[str, Number] = {
        **{f"declared_in_{where}": ", ".join(names) for where, names in found.items()},
        **{f"other_fields_in_{where}": len(names) for where, names in others.items()},
    }
    caveats = ["A reverse proxy in front of the server, its operator's own, adds fields, too."]
    if not is_declared:
        caveats.append("Gateways that enrich headers insert fields into a stream that they do not end.")
    meaning = "an HTTP proxy declares itself" if is_declared else "a box in between writes into HTTP"
    return (
        Evidence(
            method, Outcome.SPLIT, "proxy-header-added", 1.0 if is_declared else UNDECLARED,
            f"The way adds header fields that neither end sent ({words}): {meaning}.", numbers, tuple(caveats),
        ),
    )  # fmt: skip


def _names(tables: Sequence[Mapping[str, Json]], name: str) -> list[str]:
    """The names under this key of all tables, each once. Raises ArchiveError."""
    found: dict[str, None] = {}
    for table in tables:
        value = table.get(name, ())
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise ArchiveError(f"the measurement's {name} is a list of names")
        found.update(dict.fromkeys(value))
    return sorted(found)
