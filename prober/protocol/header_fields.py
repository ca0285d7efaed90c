"""Header fields of HTTP: which of them our ends send, and by which an intermediary declares itself."""

from __future__ import annotations

from collections.abc import Iterable

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
CLIENT_SENDS = frozenset(
    {"host", "user-agent", "accept", "accept-encoding", "connection", "content-type", "content-length"}
)
#: What our server may answer of itself, whichever its version.
_SERVER_SENDS = frozenset({"date", "content-type", "cache-control", "content-length", "connection", "x-think-time"})

_MOST_FIELDS = 64
_LONGEST_NAME = 60


def declared(names: Iterable[str]) -> list[str]:
    """Those of the names (lower case) by which an intermediary declares itself."""
    return sorted(DECLARING.intersection(names))


def added_to_answer(names: Iterable[str]) -> list[str]:
    """Names of answer fields (lower case) that our server does not send and that do not declare an intermediary."""
    return sorted({name[:_LONGEST_NAME] for name in names} - DECLARING - _SERVER_SENDS)[:_MOST_FIELDS]


def request_fields(head: bytes) -> frozenset[str]:
    """Names of the header fields of a request's head, in lower case."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    names = (line.partition(":")[0].strip().lower() for line in lines if ":" in line)
    return frozenset([name[:_LONGEST_NAME] for name in names][:_MOST_FIELDS])
