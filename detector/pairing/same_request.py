"""Whether two streams begin with one HTTP request, in the form that a proxy may have given it, or with one answer."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from msgspec import Struct

from pepscope.captures.packets import PayloadSample

_REQUEST_LINE = re.compile(rb"([A-Z]{3,10}) (?:https?://([^/ ]+))?(/[^ \r\n]*)( HTTP/1\.[01]\r\n)?")
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]+)\r\n", re.IGNORECASE)

_DATE = re.compile(rb"\r\ndate:[ \t]*([^\r\n]+)\r\n", re.IGNORECASE)

#: What a proxy that dates an answer anew differs by: a second of rounding, and one for the way.
DATED_ANEW_S = 2

#: Shortest path that counts where the snap length cut it.
CUT_PATH_BYTES = 12


class _Request(Struct, frozen=True):
    method: bytes
    path: bytes
    whole: bool  # the capture holds the path to its end
    host: bytes | None  # None where it was not captured


def same_request(one: PayloadSample, two: PayloadSample) -> bool:
    """Whether method and path agree, and the host where both captures hold it (RFC 9112 section 3.2)."""
    first, second = _request(one), _request(two)
    if first is None or second is None or first.method != second.method:
        return False
    if first.host is not None and second.host is not None and first.host != second.host:
        return False
    if first.whole and second.whole:
        return first.path == second.path
    common = min(len(first.path), len(second.path))
    return common >= CUT_PATH_BYTES and first.path[:common] == second.path[:common]


def another_answer(one: PayloadSample, two: PayloadSample) -> bool:
    """Whether both streams begin with HTTP answers that were generated at different times.

    The server dates an answer, and who passes it on leaves the date alone (RFC 9110 section 6.6.1), or, as nginx does,
    puts the time of passing on there.
    """
    first, second = (_generated(_opening(sample)) for sample in (one, two))
    return first is not None and second is not None and abs((first - second).total_seconds()) > DATED_ANEW_S


def _generated(opening: bytes) -> datetime | None:
    """When an HTTP answer was generated; None where it is none, or the capture cut its head off before that."""
    head, end, _ = opening.partition(b"\r\n\r\n")
    found = _DATE.search(head + end) if head.startswith(b"HTTP/1.") else None
    if found is None:
        return None
    from email.utils import parsedate_to_datetime  # it imports socket and random

    try:
        date = parsedate_to_datetime(found[1].decode("ascii"))
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _opening(sample: PayloadSample) -> bytes:
    """The longest piece that was captured of the stream's start."""
    return sample.opening or b""


def _request(sample: PayloadSample) -> _Request | None:
    """The request at the stream's start, as far as it was captured."""
    opening = _opening(sample)
    line = _REQUEST_LINE.match(opening)
    if line is None:
        return None
    host = _HOST.search(opening)
    named = line[2] or (host[1].strip() if host else None)
    # Proxies leave the default port out, or write it (RFC 9110 section 4.2.3).
    return _Request(line[1], line[3], line[4] is not None, named.lower().removesuffix(b":80") if named else None)
