"""Variants of a two-ended capture: what networks, clocks and capture tools do to it without changing the truth."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tests.captures import containers
from tests.captures.containers import CaptureFile, Frame

_LINK_HEADER_BYTES = {
    containers.LINK_RAW: 0,
    containers.LINK_ETHERNET: 14,
    containers.LINK_LINUX_SLL: 16,
    containers.LINK_LINUX_SLL2: 20,
}
_TIMESTAMPS = 8
_SACK = 5


@dataclass(frozen=True, slots=True)
class TwoEnds:
    """Captures at the server and at the mobile (`None` where the run has one only), and the time unit to write."""

    server: CaptureFile | None
    mobile: CaptureFile | None
    nanoseconds: bool = True


Edit = Callable[[bytearray, int, int], None]  # packet bytes, where IP starts, where TCP starts


def _edited(capture: CaptureFile | None, edit: Edit) -> CaptureFile | None:
    """Every TCP packet that was captured up to its window field, through `edit`."""
    if capture is None:
        return None
    frames = []
    start = _LINK_HEADER_BYTES[capture.link_type]
    for frame in capture.frames:
        data = bytearray(frame.data)
        tcp = _tcp_start(data, start)
        if tcp is not None:
            edit(data, start, tcp)
        frames.append(replace(frame, data=bytes(data), original_length=frame.wire_length))
    return CaptureFile(capture.link_type, frames)


def _tcp_start(data: bytearray, ip: int) -> int | None:
    if len(data) < ip + 20:
        return None
    if data[ip] >> 4 == 4:
        start, protocol = ip + (data[ip] & 15) * 4, data[ip + 9]
    else:
        start, protocol = ip + 40, data[ip + 6]
    return start if protocol == 6 and len(data) >= start + 20 else None


def _option_places(data: bytearray, tcp: int) -> list[tuple[int, int, int]]:
    """Kind, start and length of each whole option."""
    places = []
    position, end = tcp + 20, min(len(data), tcp + (data[tcp + 12] >> 4) * 4)
    while position < end and data[position] != 0:
        if data[position] == 1:
            position += 1
            continue
        if position + 1 >= end or data[position + 1] < 2 or position + data[position + 1] > end:
            break
        places.append((data[position], position, data[position + 1]))
        position += data[position + 1]
    return places


def _strip_timestamps(data: bytearray, _ip: int, tcp: int) -> None:
    for kind, position, length in _option_places(data, tcp):
        if kind == _TIMESTAMPS:
            data[position : position + length] = b"\x01" * length


def _zero_ip_id(data: bytearray, ip: int, _tcp: int) -> None:
    if data[ip] >> 4 == 4:
        data[ip + 4 : ip + 6] = b"\0\0"


def _shrink_window(data: bytearray, _ip: int, tcp: int) -> None:
    """A window regulator takes a fifth away; a closed window stays closed, an open one open."""
    (window,) = struct.unpack_from(">H", data, tcp + 14)
    struct.pack_into(">H", data, tcp + 14, window - window // 5)


def _shift_sequence(data: bytearray, _ip: int, tcp: int) -> None:
    """A firewall that randomises initial sequence numbers: each address gets its own constant, from its last byte.

    A segment's own numbers move by its sender's constant, what it acknowledges by its receiver's.
    """
    version_6 = data[_ip] >> 4 == 6
    sender = data[_ip + 23] if version_6 else data[_ip + 15]
    receiver = data[_ip + 39] if version_6 else data[_ip + 19]
    _add(data, tcp + 4, _isn_shift(sender))
    if data[tcp + 13] & 16:
        _add(data, tcp + 8, _isn_shift(receiver))
    for kind, position, length in _option_places(data, tcp):
        if kind == _SACK:
            for edge in range(position + 2, position + length, 4):
                _add(data, edge, _isn_shift(receiver))


def _isn_shift(last_byte: int) -> int:
    return last_byte * 2_654_435_761 + 0x1357_9BDF & 0xFFFFFFFF


def _add(data: bytearray, position: int, amount: int) -> None:
    (value,) = struct.unpack_from(">I", data, position)
    struct.pack_into(">I", data, position, value + amount & 0xFFFFFFFF)


def _timed(capture: CaptureFile | None, clock: Callable[[int, int, int], int]) -> CaptureFile | None:
    """The same frames at `clock(time, first time, last time)`."""
    if capture is None or not capture.frames:
        return capture
    first, last = capture.frames[0].time_ns, capture.frames[-1].time_ns
    return CaptureFile(
        capture.link_type, [replace(frame, time_ns=clock(frame.time_ns, first, last)) for frame in capture.frames]
    )


def _kept(capture: CaptureFile | None, keep: Callable[[Frame], bool]) -> CaptureFile | None:
    return capture and CaptureFile(capture.link_type, [frame for frame in capture.frames if keep(frame)])


def _snapped(capture: CaptureFile | None, length: int) -> CaptureFile | None:
    """At most `length` bytes from the IP header on (20 more for IPv6)."""
    if capture is None:
        return None
    start = _LINK_HEADER_BYTES[capture.link_type]
    frames = []
    for frame in capture.frames:
        room = start + length + (20 if frame.data[start] >> 4 == 6 else 0)
        frames.append(replace(frame, data=frame.data[:room], original_length=frame.wire_length))
    return CaptureFile(capture.link_type, frames)


def cut_behind_ip(capture: CaptureFile, length: int) -> CaptureFile:
    """At most `length` bytes from the IP header on, whatever the version."""
    start = _LINK_HEADER_BYTES[capture.link_type]
    frames = [
        replace(frame, data=frame.data[: start + length], original_length=frame.wire_length) for frame in capture.frames
    ]
    return CaptureFile(capture.link_type, frames)


def _both(edit: Edit) -> Callable[[TwoEnds], TwoEnds]:
    return lambda ends: replace(ends, server=_edited(ends.server, edit), mobile=_edited(ends.mobile, edit))


def _at_server(edit: Edit) -> Callable[[TwoEnds], TwoEnds]:
    """A middlebox changed it, so it is changed at one end only."""
    return lambda ends: replace(ends, server=_edited(ends.server, edit))


def _drift(parts_per_million: int) -> Callable[[TwoEnds], TwoEnds]:
    def clock(time_ns: int, first: int, _last: int) -> int:
        return time_ns + (time_ns - first) * parts_per_million // 10**6

    return lambda ends: replace(ends, mobile=_timed(ends.mobile, clock))


def _step(ends: TwoEnds) -> TwoEnds:
    def clock(time_ns: int, first: int, last: int) -> int:
        return time_ns + (600_000_000 if 2 * time_ns > first + last else 0)

    return replace(ends, mobile=_timed(ends.mobile, clock))


def _drop(ends: TwoEnds) -> TwoEnds:
    chance = random.Random(3)
    return replace(
        ends,
        server=_kept(ends.server, lambda _: chance.random() >= 0.03),
        mobile=_kept(ends.mobile, lambda _: chance.random() >= 0.03),
    )


def _snap(length: int) -> Callable[[TwoEnds], TwoEnds]:
    return lambda ends: replace(ends, server=_snapped(ends.server, length), mobile=_snapped(ends.mobile, length))


def _anonymous(ends: TwoEnds) -> TwoEnds:
    """No timestamps, no IP identification and a rewritten window at once."""
    for change in (_both(_strip_timestamps), _both(_zero_ip_id), _at_server(_shrink_window)):
        ends = change(ends)
    return ends


VARIANTS: Mapping[str, Callable[[TwoEnds], TwoEnds]] = {
    "no timestamps": _both(_strip_timestamps),
    "IP ID zeroed": _at_server(_zero_ip_id),
    "window rewritten": _at_server(_shrink_window),
    "sequence numbers shifted": _at_server(_shift_sequence),
    "no timestamps, IP ID, window": _anonymous,
    "drift +200 ppm": _drift(200),
    "drift -200 ppm": _drift(-200),
    "drift +500 ppm": _drift(500),
    "drift -500 ppm": _drift(-500),
    "clock step 0.6 s": _step,
    "3 % lost at both ends": _drop,
    "snap length 54": _snap(54),
    "snap length 68": _snap(68),
    "microseconds": lambda ends: replace(ends, nanoseconds=False),
}
