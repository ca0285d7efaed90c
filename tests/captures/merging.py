"""Captures of several runs as one: moved in time, given other addresses and ports, and put together by time."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.captures import containers
from tests.captures.containers import CaptureFile, Frame

_TCP = 6


def moved(capture: CaptureFile, seconds: float) -> CaptureFile:
    """The capture that much later."""
    shift = round(seconds * 1e9)
    return replace(capture, frames=[replace(frame, time_ns=frame.time_ns + shift) for frame in capture.frames])


def renamed(capture: CaptureFile, addresses: Mapping[str, str], ports: Mapping[int, int]) -> CaptureFile:
    """A capture of raw IPv4 with other addresses and TCP ports, where they are named. Checksums stay as they are."""
    if capture.link_type != containers.LINK_RAW:
        raise ValueError(f"addresses are renamed in raw IP only, not in link type {capture.link_type}")
    packed = {_packed(old): _packed(new) for old, new in addresses.items()}
    return replace(capture, frames=[_renamed(frame, packed, ports) for frame in capture.frames])


def merged(captures: Sequence[CaptureFile]) -> CaptureFile:
    """All frames by time; the captures have one link type."""
    (link_type,) = {capture.link_type for capture in captures}
    frames = [frame for capture in captures for frame in capture.frames]
    return CaptureFile(link_type, sorted(frames, key=lambda frame: frame.time_ns))


def _renamed(frame: Frame, addresses: Mapping[bytes, bytes], ports: Mapping[int, int]) -> Frame:
    data = bytearray(frame.data)
    tcp = (data[0] & 15) * 4
    if data[0] >> 4 != 4 or data[9] != _TCP or len(data) < tcp + 4:
        return frame
    for place in (12, 16):
        data[place : place + 4] = addresses.get(bytes(data[place : place + 4]), data[place : place + 4])
    for place in (tcp, tcp + 2):
        (port,) = struct.unpack_from(">H", data, place)
        struct.pack_into(">H", data, place, ports.get(port, port))
    return replace(frame, data=bytes(data), original_length=frame.wire_length)


def _packed(address: str) -> bytes:
    return ipaddress.IPv4Address(address).packed
