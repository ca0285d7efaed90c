"""Exchanges of a capture from tshark's fields, written without our code."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "tcp.stream",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.len",
    "tcp.nxtseq",
    "tcp.ack",
    "tcp.flags.syn",
    "tls.record.content_type",
    "tls.handshake.type",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.acks_frame",
)


@dataclass(frozen=True)
class Frame:
    """One TCP packet."""

    number: int
    time_ns: int
    stream: int
    from_server: bool  # by the lower port
    length: int
    next_sequence: int
    acknowledgement: int
    is_syn: bool
    contents: frozenset[int]
    messages: frozenset[int]
    round_trip_ns: int | None
    acknowledged_frame: int | None


def tshark_frames(path: Path) -> list[Frame]:
    """Every TCP packet, in file order."""
    command = ["tshark", "-n", "-r", str(path), "-Y", "tcp", "-T", "fields", "-E", "aggregator=,"]
    command += ["-d", "tcp.port==4431-4433,tls"]
    for field in _FIELDS:
        command += ["-e", field]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [_frame(dict(zip(_FIELDS, line.split("\t"), strict=True))) for line in output.splitlines()]


def _frame(field: dict[str, str]) -> Frame:
    acknowledged = field["tcp.analysis.acks_frame"]
    return Frame(
        int(field["frame.number"]),
        _nanoseconds(field["frame.time_epoch"]) or 0,
        int(field["tcp.stream"]),
        int(field["tcp.srcport"]) < int(field["tcp.dstport"]),
        int(field["tcp.len"]),
        int(field["tcp.nxtseq"] or 0),
        int(field["tcp.ack"] or 0),
        field["tcp.flags.syn"] in {"1", "True"},
        frozenset(map(int, filter(None, field["tls.record.content_type"].split(",")))),
        frozenset(map(int, filter(None, field["tls.handshake.type"].split(",")))),
        _nanoseconds(field["tcp.analysis.ack_rtt"]),
        int(acknowledged) if acknowledged else None,
    )


def _nanoseconds(seconds: str) -> int | None:
    if not seconds:
        return None
    whole, _, rest = seconds.partition(".")
    return int(whole) * 10**9 + int(rest.ljust(9, "0")[:9])


def handshake_exchanges(frames: Iterable[Frame]) -> list[tuple[int, bool, str | None, int, int]]:
    """Stream, whether the server asked, kind (None: no handshake), time of the question's end and of the answer, of
    whole packets that come in order."""
    found = []
    streams = sorted(frames, key=lambda frame: frame.stream)
    for stream, members in groupby(streams, key=lambda frame: frame.stream):
        data = [frame for frame in members if frame.length]
        # A session that is resumed shows neither certificate nor key exchange, and is left undecided.
        is_1_2 = any(frame.messages & {11, 16} for frame in data)
        runs = [list(run) for _, run in groupby(data, key=lambda frame: frame.from_server)]
        for question, answer in pairwise(runs):
            if answer[0].acknowledgement < question[-1].next_sequence:
                continue
            kind = _kind(question, answer[0], is_1_2)
            found.append((stream, question[0].from_server, kind, question[-1].time_ns, answer[0].time_ns))
    return found


def _kind(question: list[Frame], answer: Frame, is_1_2: bool) -> str | None:
    asked = frozenset[int]().union(*(frame.messages for frame in question))
    contents = frozenset[int]().union(*(frame.contents for frame in question))
    if 1 in asked or 1 in answer.messages:
        return "tls-hello"
    if question[0].from_server and 2 in asked:
        return "tls-finished"
    if is_1_2 and 20 in contents:
        return "tls-second-finished" if question[0].from_server else "tls-finished"
    return None


def _first_flight(frames: list[Frame], stream: int) -> list[int]:
    """The frames of the first 8 KiB that the client of a stream says before its server, where those are several, or one
    of more than 1,400 bytes."""
    found, said = list[int](), 0
    for frame in (frame for frame in frames if frame.stream == stream and frame.length):
        if frame.from_server:
            break
        said += frame.length
        found += [frame.number] if said <= 8192 else []
    return found if len(found) > 1 or said > 1400 else []


def least_plain_round_trips(frames: list[Frame]) -> dict[tuple[int, bool], int]:
    """The least of tshark's round trips that end without payload and begin with it, by stream and sender, but
    for those of what clients say first in several segments."""
    first = {number for stream in {frame.stream for frame in frames} for number in _first_flight(frames, stream)}
    by_number = {frame.number: frame for frame in frames}
    least: dict[tuple[int, bool], int] = {}
    for frame in frames:
        if frame.round_trip_ns is None or frame.length or frame.is_syn or frame.acknowledged_frame is None:
            continue
        if by_number[frame.acknowledged_frame].length and frame.acknowledged_frame not in first:
            key = (frame.stream, not frame.from_server)
            least[key] = min(least.get(key, frame.round_trip_ns), frame.round_trip_ns)
    return least
