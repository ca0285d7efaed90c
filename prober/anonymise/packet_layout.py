"""Where in a captured frame the things are that must be hidden, through link layers and tunnels.

Only what is understood is kept: a frame that does not end in TCP or UDP over IP, or that holds a fragment, has no
layout, and is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from pepscope.errors import PepscopeError

_IP_IN_IP, _TCP, _UDP, _IPV6, _GRE = 4, 6, 17, 41, 47
_EXTENSIONS = frozenset({0, 43, 60, 135})
_VLAN_TYPES = frozenset({0x8100, 0x88A8, 0x9100})
_IPV4_TYPE, _IPV6_TYPE, _PPPOE_TYPE, _BRIDGED_TYPE = 0x0800, 0x86DD, 0x8864, 0x6558
_PPP_IPV4, _PPP_IPV6 = 0x0021, 0x0057
_GTP_U_PORT = 2152
_VXLAN_PORTS = frozenset({4789, 8472})
#: Deepest nesting of tunnels.
_MOST_LAYERS = 12
#: Longest header of an unknown tunnel, as the capture reader looks for them.
_LONGEST_UNKNOWN_HEADER = 64


class Hidden(Enum):
    """What a place in a frame holds, and with it how it is hidden."""

    ADDRESS = auto()
    HARDWARE = auto()
    TUNNEL = auto()
    OPAQUE = auto()  # whatever it holds: options, extension headers, headers of unknown tunnels
    BLANK = auto()  # nothing that anybody reads


@dataclass(frozen=True, slots=True)
class Place:
    """Some bytes of a frame."""

    start: int
    length: int
    hidden: Hidden


@dataclass(frozen=True, slots=True)
class InternetHeader:
    """An IP header: where it starts, and where its packet ends on the wire."""

    start: int
    version: int
    header_bytes: int
    end: int


@dataclass(slots=True)
class Layout:
    """A frame taken apart. Ends are of the wire, beyond what was captured where that was cut."""

    places: list[Place] = field(default_factory=list)
    headers: list[InternetHeader] = field(default_factory=list)  # outermost first
    tunnels: list[int] = field(default_factory=list)  # UDP headers that carry packets, by their start
    is_tcp: bool = False
    transport: int = 0  # start of the innermost TCP or UDP header
    payload: int = 0
    end: int = 0


class _NotKeptError(Exception):
    """The frame holds something that is left out."""


class UnknownLinkTypeError(PepscopeError):
    """A capture of a link type that cannot be anonymised."""


def layout(frame: bytes, wire_bytes: int, link_type: int) -> Layout | None:
    """Take a frame apart; `None` where it is to be left out. Raises UnknownLinkTypeError."""
    found = Layout()
    try:
        _link(found, frame, 0, wire_bytes, link_type, 0)
    except (_NotKeptError, IndexError):
        return None
    return found


def _u16(frame: bytes, at: int) -> int:
    if at + 2 > len(frame):
        raise _NotKeptError
    return frame[at] << 8 | frame[at + 1]


def _link(found: Layout, frame: bytes, at: int, end: int, link_type: int, depth: int) -> None:
    if link_type == 1:
        found.places += [Place(at, 6, Hidden.HARDWARE), Place(at + 6, 6, Hidden.HARDWARE)]
        _ether_type(found, frame, at + 14, end, _u16(frame, at + 12), depth)
    elif link_type == 113:
        found.places.append(Place(at + 6, 8, Hidden.HARDWARE))
        _ether_type(found, frame, at + 16, end, _u16(frame, at + 14), depth)
    elif link_type == 276:
        found.places.append(Place(at + 12, 8, Hidden.HARDWARE))
        _ether_type(found, frame, at + 20, end, _u16(frame, at), depth)
    elif link_type in (12, 14, 101, 228, 229):
        _internet(found, frame, at, end, depth)
    elif link_type in (0, 108):
        _internet(found, frame, at + 4, end, depth)
    else:
        raise UnknownLinkTypeError(f"captures of link type {link_type} cannot be anonymised")


def _ether_type(found: Layout, frame: bytes, at: int, end: int, kind: int, depth: int) -> None:
    while kind in _VLAN_TYPES:
        kind, at = _u16(frame, at + 2), at + 4
    if kind == _PPPOE_TYPE:
        protocol, at = _u16(frame, at + 6), at + 8
        kind = {_PPP_IPV4: _IPV4_TYPE, _PPP_IPV6: _IPV6_TYPE}.get(protocol, 0)
    if kind not in (_IPV4_TYPE, _IPV6_TYPE):
        raise _NotKeptError
    _internet(found, frame, at, end, depth)


def _internet(found: Layout, frame: bytes, at: int, end: int, depth: int) -> None:
    if depth > _MOST_LAYERS or at + 20 > len(frame):
        raise _NotKeptError
    if frame[at] >> 4 == 4:
        header_bytes, total = 4 * (frame[at] & 0xF), _u16(frame, at + 2)
        if header_bytes < 20 or _u16(frame, at + 6) & 0x3FFF:
            raise _NotKeptError
        # A super-packet says zero.
        end = min(end, at + total) if total else end
        found.places += [Place(at + 12, 4, Hidden.ADDRESS), Place(at + 16, 4, Hidden.ADDRESS)]
        found.places += [Place(at + 20, header_bytes - 20, Hidden.BLANK)] if header_bytes > 20 else []
        found.headers.append(InternetHeader(at, 4, header_bytes, end))
        protocol, start = frame[at + 9], at + header_bytes
    elif frame[at] >> 4 == 6:
        length = _u16(frame, at + 4)
        end = min(end, at + 40 + length) if length else end
        found.places += [Place(at + 8, 16, Hidden.ADDRESS), Place(at + 24, 16, Hidden.ADDRESS)]
        protocol, start = frame[at + 6], at + 40
        while protocol in _EXTENSIONS:
            extension_bytes = 8 * (frame[start + 1] + 1)
            found.places.append(Place(start + 2, extension_bytes - 2, Hidden.BLANK))
            protocol, start = frame[start], start + extension_bytes
        found.headers.append(InternetHeader(at, 6, start - at, end))
    else:
        raise _NotKeptError
    _transport(found, frame, start, end, protocol, depth)


def _transport(found: Layout, frame: bytes, at: int, end: int, protocol: int, depth: int) -> None:
    if protocol == _TCP:
        _tcp(found, frame, at, end)
    elif protocol == _UDP:
        _udp(found, frame, at, end, depth)
    elif protocol in (_IP_IN_IP, _IPV6):
        _internet(found, frame, at, end, depth + 1)
    elif protocol == _GRE:
        _gre(found, frame, at, end, depth)
    else:
        raise _NotKeptError


def _tcp(found: Layout, frame: bytes, at: int, end: int) -> None:
    if at + 20 > len(frame):
        raise _NotKeptError
    header_bytes = 4 * (frame[at + 12] >> 4)
    if header_bytes < 20:
        raise _NotKeptError
    found.is_tcp, found.transport, found.payload, found.end = True, at, at + header_bytes, end
    position, options_end = at + 20, min(at + header_bytes, len(frame))
    while position < options_end and frame[position] != 0:
        if frame[position] == 1:
            position += 1
            continue
        length = frame[position + 1] if position + 1 < options_end else 0
        if length < 2:
            break
        # Kept: segment size, window scale, SACK (RFC 2018), timestamps. Others may hold keys, cookies, addresses.
        if frame[position] not in (2, 3, 4, 5, 8):
            found.places.append(Place(position + 2, min(length - 2, options_end - position - 2), Hidden.OPAQUE))
        position += length
    if position < options_end and (frame[position] == 0 or frame[position] > 1):
        found.places.append(Place(position + 1, options_end - position - 1, Hidden.BLANK))


def _udp(found: Layout, frame: bytes, at: int, end: int, depth: int) -> None:
    source, destination, length = _u16(frame, at), _u16(frame, at + 2), _u16(frame, at + 4)
    if at + 8 > len(frame):
        raise _NotKeptError
    end = min(end, at + length) if length >= 8 else end
    if _GTP_U_PORT in (source, destination):
        found.tunnels.append(at)
        _gtp_u(found, frame, at + 8, end, depth)
        return
    if destination in _VXLAN_PORTS and frame[at + 8] & 0x08:
        found.tunnels.append(at)
        found.places += [Place(at + 12, 3, Hidden.TUNNEL)]
        _link(found, frame, at + 16, end, 1, depth + 1)
        return
    inner = _unknown_tunnel(frame, at + 8, end)
    if inner is not None:
        found.tunnels.append(at)
        if inner > at + 8:
            found.places.append(Place(at + 8, inner - at - 8, Hidden.OPAQUE))
        _internet(found, frame, inner, end, depth + 1)
        return
    found.is_tcp, found.transport, found.payload, found.end = False, at, at + 8, end


def _gtp_u(found: Layout, frame: bytes, at: int, end: int, depth: int) -> None:
    """User data of GTP-U (3GPP TS 29.281 section 5); what its extension headers hold is blanked."""
    if at + 8 > len(frame) or frame[at] & 0xF0 != 0x30 or frame[at + 1] != 255:
        raise _NotKeptError
    found.places.append(Place(at + 4, 4, Hidden.TUNNEL))
    inner = at + 8
    if frame[at] & 0x07:
        following = frame[inner + 3] if frame[at] & 0x04 else 0
        inner += 4
        while following:
            extension_bytes = 4 * frame[inner]
            if extension_bytes == 0:
                raise _NotKeptError
            found.places.append(Place(inner + 1, extension_bytes - 2, Hidden.BLANK))
            following, inner = frame[inner + extension_bytes - 1], inner + extension_bytes
    _internet(found, frame, inner, end, depth + 1)


def _gre(found: Layout, frame: bytes, at: int, end: int, depth: int) -> None:
    """GRE (RFC 2784, RFC 2890) and its PPTP variant (RFC 2637)."""
    flags, kind = _u16(frame, at), _u16(frame, at + 2)
    version = flags & 0x7
    if version > 1 or flags & 0x4000:
        raise _NotKeptError
    position = at + (8 if flags & 0x8000 else 4)
    if flags & 0x8000:
        found.places.append(Place(at + 4, 2, Hidden.BLANK))
    if flags & 0x2000:
        # In PPTP the upper half is the payload's length.
        found.places.append(Place(position + 2 * version, 4 - 2 * version, Hidden.TUNNEL))
        position += 4
    position += (4 if flags & 0x1000 else 0) + (4 if version == 1 and flags & 0x0080 else 0)
    if kind == _BRIDGED_TYPE:
        _link(found, frame, position, end, 1, depth + 1)
    else:
        _ether_type(found, frame, position, end, kind, depth + 1)


def _unknown_tunnel(frame: bytes, start: int, end: int) -> int | None:
    """Where a whole IPv4 or IPv6 packet with TCP begins behind a header that is not known."""
    for at in range(start, min(start + _LONGEST_UNKNOWN_HEADER, len(frame) - 40) + 1):
        version = frame[at] >> 4
        if version == 4:
            header_bytes = 4 * (frame[at] & 0xF)
            header = frame[at : at + header_bytes]
            fits = frame[at + 9] == _TCP and _u16(frame, at + 2) == end - at and header_bytes >= 20
            if fits and len(header) == header_bytes and word_sum(header) == 0xFFFF:
                return at
        elif version == 6 and end == len(frame) and frame[at + 6] == _TCP and _u16(frame, at + 4) + 40 == end - at:
            pseudo = frame[at + 8 : at + 40] + (end - at - 40).to_bytes(4, "big") + bytes((0, _TCP))
            if word_sum(pseudo + frame[at + 40 : end]) == 0xFFFF:
                return at
    return None


def word_sum(data: bytes) -> int:
    """Ones' complement sum of 16-bit words (RFC 1071); 0xffff where a checksum within is right."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total
