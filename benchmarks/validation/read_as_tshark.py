"""Hold what is read of every TCP packet against tshark: `python -m benchmarks.validation.read_as_tshark DIR...`

DIR is as in `benchmarks.validation.public_captures`. Frame by frame are compared: time, end points, flags, payload, IP
identification, TTL, timestamps, SACK blocks, windows, options of SYNs, numbers (up to one constant for each flow),
round trips, what is sent again, connections and handshakes. Differences are counted by kind; those in `CHOICES` are
another definition of tshark's, with its reason. Nothing of the captures is kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.validation.public_captures import captures
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Mark, TcpFlag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pepscope.captures.capture import Capture
    from pepscope.captures.connections import Connection, FlowSummary
    from pepscope.captures.packets import Int64Array, SackBlocks

_WRAP = 1 << 32
_OLD = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
_FIELDS = (
    "frame.number", "frame.time_epoch", "frame.protocols", "tcp.stream", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst",
    "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.window_size_value", "tcp.len",
    "ip.id", "ip.ttl", "ipv6.hlim", "tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le", "tcp.options.sack_re", "tcp.options.mss_val", "tcp.options.wscale.shift",
    "tcp.options.sack_perm", "tcp.analysis.ack_rtt", "tcp.analysis.initial_rtt",
    *(f"tcp.analysis.{name}" for name in _OLD),
)  # fmt: skip
_SETTINGS = (
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.try_heuristic_first:FALSE",
    "tcp.relative_sequence_numbers:FALSE",
)

#: Differences that are another definition, and which.
CHOICES = {
    "round trip of SYN, FIN or a reset": "docs/guide/captures.md: they carry no data",
    "round trip of what was sent again": "Karn's rule, which tshark does not follow",
    "round trip of no whole segment": "tshark takes samples only where a segment ends at the acknowledged byte",
    "round trip of zero": "tshark shows none",
    "captured twice": "tshark knows no copies; of packets with data it says that they were sent again",
    "handshake without SYN-ACK": "tshark times the client's first packet behind its SYN, whatever came between",
    "handshake that was sent again": "tshark times the first SYN",
    "handshake of zero": "tshark takes the next packet whose time differs",
}


class Packet(NamedTuple):
    """What tshark says of one TCP packet; of headers in one another, the innermost."""

    stream: str
    ends: tuple[tuple[str, int], tuple[str, int]]
    sequence: int
    acknowledgement: int
    seen: dict[str, object]
    options: tuple[object, ...]
    round_trip_ns: int | None
    handshake_ns: int | None
    is_old: bool


class Columns(NamedTuple):
    """What is read of the packets of one connection, a list each."""

    way: list[int]
    time_ns: list[int]
    flags: list[int]
    payload: list[int]
    ip_id: list[int]
    ttl: list[int]
    tsval: list[int]
    tsecr: list[int]
    window: list[int]
    marks: list[int]
    sent: list[int]
    acked: list[int]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference of one capture."""

    kind: str
    detail: str


def packets_of_tshark(path: str) -> dict[int, Packet]:
    """The TCP packets of a capture, by frame."""
    command = ["tshark", "-n", "-r", path, "-Y", "tcp && !icmp && !icmpv6", "-T", "fields", "-E", "aggregator=;"]
    command += [word for setting in _SETTINGS for word in ("-o", setting)]
    command += [word for field in _FIELDS for word in ("-e", field)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return dict(_packet(line) for line in lines if len(line) == len(_FIELDS) and line[3])


def _packet(line: list[str]) -> tuple[int, Packet]:
    every = dict(zip(_FIELDS, line, strict=True))
    last = {name: text.split(";")[-1] for name, text in every.items()}
    layers = [layer for layer in last["frame.protocols"].split(":") if layer in ("ip", "ipv6", "tcp")]
    version_6 = layers[: len(layers) - layers[::-1].index("tcp")][-2:-1] == ["ipv6"]
    source, destination = ("ipv6.src", "ipv6.dst") if version_6 else ("ip.src", "ip.dst")

    def number(name: str) -> int | None:
        return int(last[name], 0) if last[name] else None

    stamp = number("tcp.options.timestamp.tsval")
    edges = zip(every["tcp.options.sack_le"].split(";"), every["tcp.options.sack_re"].split(";"), strict=False)
    seen: dict[str, object] = {
        "time": _nanoseconds(last["frame.time_epoch"]),
        "flags": (number("tcp.flags") or 0) & 0x1FF,
        "payload": number("tcp.len"),
        "IP identification": 0 if version_6 else number("ip.id"),
        "TTL": number("ipv6.hlim" if version_6 else "ip.ttl"),
        "timestamps": None if stamp is None else (stamp, number("tcp.options.timestamp.tsecr")),
        "SACK blocks": sorted((int(left), int(right)) for left, right in edges if left and right),
        "window": number("tcp.window_size_value"),
    }
    return int(every["frame.number"]), Packet(
        last["tcp.stream"],
        ((last[source], number("tcp.srcport") or 0), (last[destination], number("tcp.dstport") or 0)),
        number("tcp.seq_raw") or 0,
        number("tcp.ack_raw") or 0,
        seen,
        (number("tcp.options.mss_val"), number("tcp.options.wscale.shift"), bool(last["tcp.options.sack_perm"])),
        _nanoseconds(last["tcp.analysis.ack_rtt"]),
        _nanoseconds(last["tcp.analysis.initial_rtt"]),
        any(last[f"tcp.analysis.{name}"] for name in _OLD),
    )


def _nanoseconds(text: str) -> int | None:
    if not text:
        return None
    seconds, _, fraction = text.partition(".")
    nanoseconds = abs(int(seconds)) * 10**9 + int(fraction.ljust(9, "0")[:9])
    return -nanoseconds if text.startswith("-") else nanoseconds


def differences(path: str) -> list[Difference]:
    """What is read otherwise than by tshark."""
    from pepscope.captures.capture import open_capture
    from pepscope.errors import CaptureError

    theirs = packets_of_tshark(path)
    try:
        capture = open_capture(path, tcp_needed=False)
    except CaptureError as error:
        return [Difference("refused", str(error))] if theirs else []
    found: list[Difference] = []
    seen: set[int] = set()
    streams: dict[str, set[int]] = defaultdict(set)
    for connection in capture.connections:
        frames = capture.frame_numbers(connection.id).tolist()
        seen.update(frames)
        missing = [frame for frame in frames if frame not in theirs]
        found += [Difference("only ours", f"frame {frame}") for frame in missing]
        if not missing:
            rows = [theirs[frame] for frame in frames]
            found += _connection_differences(capture, connection, frames, rows)
            for stream in {row.stream for row in rows}:
                streams[stream].add(connection.id)
            if len({row.stream for row in rows}) > 1:
                found.append(Difference("streams put together", f"connection {connection.id}"))
    found += [Difference("only tshark's", f"frame {frame}") for frame in theirs.keys() - seen]
    found += [Difference("a stream divided", f"stream {name}") for name, ids in streams.items() if len(ids) > 1]
    return found


def _connection_differences(
    capture: Capture, connection: Connection, frames: list[int], rows: list[Packet]
) -> Iterator[Difference]:
    ours = capture.packets(connection.id)
    flows = (connection.up, connection.down)
    ends = (
        (connection.client_address, connection.client_port),
        (connection.server_address, connection.server_port),
    )
    blocks = _sack_blocks(capture.sack_blocks(connection.id), ours.acknowledgement_offset, rows)
    read = (
        ours.direction, ours.time_ns, ours.flags, ours.payload_bytes, ours.ip_id, ours.ttl, ours.tsval, ours.tsecr,
        ours.window_bytes, ours.marks, ours.sequence_offset, ours.acknowledgement_offset,
    )  # fmt: skip
    columns = Columns(*(column.tolist() for column in read))
    bases: tuple[set[int], set[int]] = (set(), set())
    opened: set[int] = set()
    for index, (way, time_ns, flags, payload, ip_id, ttl, tsval, tsecr, window, marks, sent, acked) in enumerate(
        zip(*columns, strict=True)
    ):
        row, place = rows[index], f"frame {frames[index]}"
        if marks & Mark.HEADER_TRUNCATED == 0:
            shift = 0 if flags & TcpFlag.SYN else flows[way].window_shift or 0
            header = {
                "time": time_ns, "flags": flags, "payload": payload, "IP identification": ip_id, "TTL": ttl,
                "timestamps": (tsval, tsecr) if marks & Mark.HAS_TIMESTAMPS else None,
                "SACK blocks": sorted(blocks[index]) if acked != NO_ACKNOWLEDGEMENT else row.seen["SACK blocks"],
                "window": window >> shift,
            }  # fmt: skip
            yield from _header_differences(header, row, place)
        if (ends[way], ends[1 - way]) != row.ends:
            yield Difference("end points", place)
        if flags & TcpFlag.SYN and way not in opened:
            opened.add(way)
            yield from _option_differences(flows[way], row, place)
        if not flags & TcpFlag.RST:
            bases[way].add((row.sequence - sent) % _WRAP)
            if acked != NO_ACKNOWLEDGEMENT:
                bases[1 - way].add((row.acknowledgement - acked) % _WRAP)
        is_old = marks & (Mark.RETRANSMISSION | Mark.REORDERED | Mark.DUPLICATE) > 0
        if is_old != row.is_old:
            yield Difference("captured twice" if marks & Mark.DUPLICATE else "sent again", place)
    if any(len(base) > 1 for base in bases):
        yield Difference("numbers", f"connection {connection.id}")
    yield from _round_trip_differences(columns, ours.round_trip_time_ns.tolist(), frames, rows)
    yield from _handshake_differences(connection, columns, rows)


def _sack_blocks(
    sack: SackBlocks, acknowledgement_offset: Int64Array, rows: list[Packet]
) -> dict[int, list[tuple[int, int]]]:
    """By packet, the edges of its SACK blocks as sequence numbers on the wire."""
    blocks: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for packet, left, right in zip(sack.packet.tolist(), sack.left.tolist(), sack.right.tolist(), strict=True):
        base = rows[packet].acknowledgement - int(acknowledgement_offset[packet])
        blocks[packet].append(((base + left) % _WRAP, (base + right) % _WRAP))
    return blocks


def _header_differences(header: Mapping[str, object], row: Packet, place: str) -> Iterator[Difference]:
    for name, value in header.items():
        if value != row.seen[name]:
            yield Difference(name, f"{place}: {value}, tshark {row.seen[name]}")


def _option_differences(flow: FlowSummary, row: Packet, place: str) -> Iterator[Difference]:
    """Of the first SYN of a flow."""
    options = (flow.maximum_segment_size, flow.window_scale, flow.sack_permitted)
    if options != row.options and flow.options_captured:
        yield Difference("options of a SYN", f"{place}: {options}, tshark {row.options}")


def _round_trip_differences(
    columns: Columns, round_trips: list[int], frames: list[int], rows: list[Packet]
) -> Iterator[Difference]:
    """Of each acknowledgement that either times."""
    way, flags, payload, marks = columns.way, columns.flags, columns.payload, columns.marks
    sent, acked = columns.sent, columns.acked
    again = Mark.RETRANSMISSION | Mark.REORDERED | Mark.DUPLICATE | Mark.KEEP_ALIVE | Mark.ZERO_WINDOW_PROBE
    stream: tuple[set[int], set[int]] = (set(), set())
    control: tuple[set[int], set[int]] = ({0}, {0})
    is_clean, latest = [True, True], [0, 0]
    for index, ours in enumerate(round_trips):
        own, other, theirs = way[index], 1 - way[index], rows[index].round_trip_ns
        end = sent[index] + payload[index]
        if payload[index]:
            stream[own].add(end)
        if flags[index] & TcpFlag.FIN:
            control[own].add(end + 1)
        is_clean[own] &= not marks[index] & again
        if ours >= 0 or theirs is not None:
            if acked[index] in control[other] or flags[index] & TcpFlag.RST:
                kind = "round trip of SYN, FIN or a reset"
            elif ours == 0 and theirs is None:
                kind = "round trip of zero"
            elif ours >= 0 and acked[index] not in stream[other]:
                kind = "round trip of no whole segment"
            elif ours < 0 and (not is_clean[other] or acked[index] <= latest[other]):
                kind = "round trip of what was sent again"
            else:
                kind = "round trip"
            if (theirs if theirs is not None else -1) != ours:
                yield Difference(kind, f"frame {frames[index]}: {ours}, tshark {theirs}")
        if acked[index] > latest[other] and not flags[index] & TcpFlag.RST:
            latest[other], is_clean[other] = acked[index], True


def _handshake_differences(connection: Connection, columns: Columns, rows: list[Packet]) -> Iterator[Difference]:
    parts = (connection.handshake_syn_ack_ns, connection.handshake_ack_ns)
    ours = None if None in parts else sum(part or 0 for part in parts)
    theirs = next((row.handshake_ns for row in rows if row.handshake_ns is not None), None)
    if ours == theirs:
        return
    both = TcpFlag.SYN | TcpFlag.ACK
    syns = Counter((way, flags & both) for way, flags in zip(columns.way, columns.flags, strict=True) if flags & 2)
    if not any(flags == both for _, flags in syns):
        kind = "handshake without SYN-ACK"
    elif max(syns.values()) > 1:
        kind = "handshake that was sent again"
    else:
        kind = "handshake of zero" if ours == 0 else "handshake"
    yield Difference(kind, f"connection {connection.id}: {parts}, tshark {theirs}")


def main() -> int:
    """Compare, print differences by kind, and fail on one that is no choice of tshark's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", type=Path, nargs="+", help="git directories or plain ones")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pepscope-tshark-") as scratch, ProcessPoolExecutor(chosen.jobs) as pool:
        found: list[tuple[str, Path]] = []
        for number, directory in enumerate(chosen.directories):
            (place := Path(scratch) / str(number)).mkdir()
            found += captures(directory, place)
        results = list(pool.map(differences, [str(path) for _, path in found], chunksize=8))
    by_kind: dict[str, list[str]] = defaultdict(list)
    for (name, _), rows in zip(found, results, strict=True):
        for row in rows:
            by_kind[row.kind].append(f"{name}: {row.detail}")
    equal = sum(all(row.kind in CHOICES for row in rows) for rows in results)
    print(f"{len(found)} captures, {equal} of them read as tshark does but for its choices\n")
    for kind, details in sorted(by_kind.items(), key=lambda item: -len(item[1])):
        print(f"{len(details):7} {kind}: {CHOICES.get(kind, '; '.join(details[:4]))}")
    return int(equal < len(found))


if __name__ == "__main__":
    sys.exit(main())
