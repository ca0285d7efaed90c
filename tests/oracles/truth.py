"""The generators' truth in the shape of an oracle, and captures of it on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.captures import containers
from tests.captures.containers import Frame
from tests.oracles.columns import OracleRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.captures.layers import Wrap
    from tests.captures.segments import Segment


def truth_rows(segments: Iterable[Segment], times_ns: Sequence[int] | None = None) -> list[OracleRow]:
    """What must be read out of `segments`; `times_ns` where a container keeps times less exactly."""
    rows = []
    for index, segment in enumerate(segments):
        options = parsed_options(segment.options)
        stamp, scale, size = options.get(8), options.get(3), options.get(2)
        rows.append(
            OracleRow(
                segment.time_ns if times_ns is None else times_ns[index],
                segment.source,
                segment.source_port,
                segment.destination,
                segment.destination_port,
                segment.sequence,
                segment.acknowledgement,
                int(segment.flags) & 0x1FF,
                segment.window,
                len(segment.payload),
                segment.ip_id if segment.version == 4 else 0,
                segment.ttl,
                (int.from_bytes(stamp[:4], "big"), int.from_bytes(stamp[4:], "big")) if stamp else None,
                sack_edges(options.get(5, b"")),
                int.from_bytes(size, "big") if size else None,
                scale[0] if scale else None,
                4 in options,
            )
        )
    return rows


def sack_edges(value: bytes) -> tuple[tuple[int, int], ...]:
    """Left and right edges of a SACK option (RFC 2018), ascending."""
    edges = [int.from_bytes(value[at : at + 4], "big") for at in range(0, len(value), 4)]
    return tuple(sorted(zip(edges[::2], edges[1::2], strict=True)))


def parsed_options(options: bytes) -> dict[int, bytes]:
    """Kind to value, of options that are all well-formed."""
    found: dict[int, bytes] = {}
    position = 0
    while position < len(options):
        kind = options[position]
        if kind == 0:
            break
        if kind == 1:
            position += 1
            continue
        length = options[position + 1]
        found[kind] = options[position + 2 : position + length]
        position += length
    return found


def frames_of(segments: Iterable[Segment], wrap: Wrap) -> list[Frame]:
    """One frame a segment."""
    return [Frame(segment.time_ns, wrap(segment.packet())) for segment in segments]


def written(path: Path, segments: Iterable[Segment]) -> Path:
    """`segments` as a nanosecond pcap without link layer at `path`."""
    path.write_bytes(containers.write_pcap([Frame(s.time_ns, s.packet()) for s in segments], containers.LINK_RAW))
    return path
