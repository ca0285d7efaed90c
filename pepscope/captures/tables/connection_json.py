"""Connections as the JSON contract `inspect-1`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pepscope
from pepscope.captures.provenance import Tool, time_text, tool_document

if TYPE_CHECKING:
    from pepscope.captures.capture import Capture

#: Connections that are written at once: some 140 kB, which fit into a processor's cache and are not given back to the
#: system each time.
_TOGETHER = 64


def json_chunks(capture: Capture, *, exchanges: bool) -> Iterator[bytes]:
    """The document in pieces, so that no capture is too large for it; on demand with exchanges."""
    started_ns, ended_ns = capture.time_span_ns or (None, None)
    head = {
        "schema": 1,
        "tool": tool_document(Tool(pepscope.__version__, {"filter": capture.filter})),
        "path": capture.path,
        "packets": capture.packet_count,
        "started": time_text(started_ns),
        "ended": time_text(ended_ns),
        "sha256": capture.sha256,
    }
    yield json.dumps(head, separators=(",", ":")).removesuffix("}").encode() + b',"connections":['
    count = len(capture.connections)
    for start in range(0, count, _TOGETHER):
        if start:
            yield b","
        yield capture.connections_json(start, min(start + _TOGETHER, count))
    yield b"],"
    if exchanges:
        from pepscope.captures.tables import exchange_frame

        yield from exchange_frame.json_chunks(capture)
        yield b","
    yield b'"warnings":%s}\n' % json.dumps(list(capture.warnings)).encode()
