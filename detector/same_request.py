"""Whether two streams begin with the same HTTP request, in the form that a proxy may have given it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from pepscope.packets import PayloadSample

_REQUEST_LINE = re.compile(rb"([A-Z]{3,10}) (?:https?://([^/ ]+))?(/[^ \r\n]*)( HTTP/1\.[01]\r\n)?")
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]+)\r\n", re.IGNORECASE)

#: Shortest path that says something where the snap length cut it.
CUT_PATH_BYTES = 12


@dataclass(frozen=True, slots=True)
class _Request:
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


def _request(sample: PayloadSample) -> _Request | None:
    """The request at the stream's start, as far as it was captured."""
    starts = np.flatnonzero(sample.offsets == 0).tolist()
    opening = max((sample.pieces[index] for index in starts), key=len, default=b"")
    line = _REQUEST_LINE.match(opening)
    if line is None:
        return None
    host = _HOST.search(opening)
    named = line[2] or (host[1].strip() if host else None)
    # Proxies leave the default port out, or write it (RFC 9110 section 4.2.3).
    return _Request(line[1], line[3], line[4] is not None, named.lower().removesuffix(b":80") if named else None)
