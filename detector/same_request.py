"""Whether two streams begin with the same HTTP request, in the form that a proxy may have given it."""

from __future__ import annotations

import re

import numpy as np

from pepscope.packets import PayloadSample

_REQUEST_LINE = re.compile(rb"([A-Z]{3,10}) (?:https?://([^/ ]+))?(/[^ ]*) HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]+)\r\n", re.IGNORECASE)


def same_request(one: PayloadSample, two: PayloadSample) -> bool:
    """Whether method and path agree, and the host where both captures hold it (RFC 9112 section 3.2)."""
    first, second = _request(one), _request(two)
    if first is None or second is None or first[:2] != second[:2]:
        return False
    return first[2] is None or second[2] is None or first[2] == second[2]


def _request(sample: PayloadSample) -> tuple[bytes, bytes, bytes | None] | None:
    """Method, path and host (None where it was not captured) of the request at the stream's start."""
    starts = np.flatnonzero(sample.offsets == 0).tolist()
    opening = max((sample.pieces[index] for index in starts), key=len, default=b"")
    line = _REQUEST_LINE.match(opening)
    if line is None:
        return None
    host = _HOST.search(opening)
    return line[1], line[3], line[2] or (host[1] if host else None)
