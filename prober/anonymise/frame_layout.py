"""Which bytes of a frame's headers are hidden, and how; where its payload stands.

Only what is understood is kept: a frame that does not end in TCP or UDP over IP, or in a fragment of such a datagram,
has no layout, and is left out. Link layers keep VLAN identifiers, labels, session numbers and what a radio measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal

from pepscope.captures.files.frames import Frame, Header, HeaderKind


class Hidden(Enum):
    """What a place in a frame holds, and with it how it is hidden."""

    ADDRESS = auto()
    HARDWARE = auto()
    TUNNEL = auto()
    #: Unknown content: options, headers of unknown tunnels.
    OPAQUE = auto()
    #: Bytes that no receiver reads.
    BLANK = auto()


@dataclass(frozen=True, slots=True)
class Place:
    """Some bytes of a frame."""

    start: int
    length: int
    hidden: Hidden


@dataclass(slots=True)
class Layout:
    """A frame taken apart. `end` is of the wire, beyond what was captured where that was cut."""

    places: list[Place] = field(default_factory=list)
    #: IPv4 and IPv6 headers, outermost first.
    internet: list[Header] = field(default_factory=list)
    #: UDP headers that carry packets, by their start.
    tunnels: list[int] = field(default_factory=list)
    is_tcp: bool = False
    #: Start of the innermost TCP or UDP header.
    transport: int = 0
    payload: int = 0
    end: int = 0


#: Fields at fixed places, by kind of header: offset, length (None: to the end of the header), how to hide them.
_FIELDS: Mapping[HeaderKind, tuple[tuple[int, int | None, Hidden], ...]] = {
    HeaderKind.ETHERNET: ((0, 6, Hidden.HARDWARE), (6, 6, Hidden.HARDWARE)),
    HeaderKind.LINUX_SLL: ((6, 8, Hidden.HARDWARE),),
    HeaderKind.LINUX_SLL2: ((12, 8, Hidden.HARDWARE),),
    HeaderKind.IEEE802_11: ((4, 6, Hidden.HARDWARE), (10, 6, Hidden.HARDWARE), (16, 6, Hidden.HARDWARE)),
    HeaderKind.AGGREGATE_SUBFRAME: ((0, 6, Hidden.HARDWARE), (6, 6, Hidden.HARDWARE)),
    HeaderKind.IPV4: ((12, 4, Hidden.ADDRESS), (16, 4, Hidden.ADDRESS), (20, None, Hidden.BLANK)),
    HeaderKind.IPV6: ((8, 16, Hidden.ADDRESS), (24, 16, Hidden.ADDRESS)),
    HeaderKind.IPV6_EXTENSION: ((2, None, Hidden.BLANK),),
    HeaderKind.AUTHENTICATION: ((4, None, Hidden.OPAQUE),),
    HeaderKind.GRE_KEY: ((0, None, Hidden.TUNNEL),),
    HeaderKind.GTP_U: ((4, 4, Hidden.TUNNEL),),
    HeaderKind.VXLAN: ((4, 3, Hidden.TUNNEL),),
    HeaderKind.GENEVE: ((4, 3, Hidden.TUNNEL), (8, None, Hidden.BLANK)),
    HeaderKind.GRE_SHIM: ((2, 2, Hidden.TUNNEL),),
    HeaderKind.L2TP_FIELDS: ((0, None, Hidden.TUNNEL),),
    HeaderKind.PKTAP: ((12, None, Hidden.BLANK),),
    HeaderKind.CAPTURE_FIELDS: ((0, None, Hidden.BLANK),),
    HeaderKind.ARCNET: ((0, 2, Hidden.BLANK),),
    HeaderKind.INFINIBAND: ((0, 40, Hidden.BLANK),),
    HeaderKind.FDDI: ((1, 6, Hidden.HARDWARE), (7, 6, Hidden.HARDWARE)),
    HeaderKind.UNKNOWN_TUNNEL: ((0, None, Hidden.OPAQUE),),
    HeaderKind.TCP_OPTIONS_END: ((1, None, Hidden.BLANK),),
}
#: Segment size, window scale, SACK (RFC 2018), timestamps. Other TCP options may hold keys, cookies, addresses.
_KEPT_OPTIONS = frozenset({2, 3, 4, 5, 8})
_GRE_HAS_CHECKSUM = 0x80
_NFLOG_PACKET_HEADER = 1
#: To DS and From DS: four addresses (IEEE 802.11-2020 section 9.3.2.1).
_BOTH_DISTRIBUTION_BITS = 0x03


def layout(frame: Frame) -> Layout | None:
    """Where the things are that must be hidden; `None` where the frame is to be left out."""
    found = _walked(frame)
    return found if frame.is_complete and found.internet and found.payload <= found.end else None


def fragment_layout(frame: Frame) -> Layout:
    """The same of a frame that ends in a fragment: UDP before it is a tunnel, and its payload has no transport."""
    found = _walked(frame)
    if found.transport:
        found.tunnels.append(found.transport)
    found.payload, found.end = frame.headers_end, found.internet[-1].end
    return found


def _walked(frame: Frame) -> Layout:
    found = Layout()
    for header in frame.headers:
        found.places += [place for place in _places(frame.data, header) if place.length > 0]
        match header.kind:
            case HeaderKind.IPV4 | HeaderKind.IPV6:
                found.internet.append(header)
            case HeaderKind.UDP | HeaderKind.TCP:
                if found.transport:
                    found.tunnels.append(found.transport)
                found.is_tcp = header.kind is HeaderKind.TCP
                found.transport, found.payload, found.end = header.offset, header.offset + header.length, header.end
    return found


def _places(data: bytes, header: Header) -> Iterator[Place]:
    for offset, length, hidden in _FIELDS.get(header.kind, ()):
        yield Place(header.offset + offset, header.length - offset if length is None else length, hidden)
    match header.kind:
        case HeaderKind.IEEE802_11:
            if data[header.offset + 1] & _BOTH_DISTRIBUTION_BITS == _BOTH_DISTRIBUTION_BITS:
                yield Place(header.offset + 24, 6, Hidden.HARDWARE)
        case HeaderKind.NFLOG:
            yield from _attribute_places(data, header)
        case HeaderKind.GRE:
            if data[header.offset] & _GRE_HAS_CHECKSUM:
                yield Place(header.offset + 4, 2, Hidden.BLANK)
        case HeaderKind.GTP_U_EXTENSION:
            # Between its length and the type of the next one.
            yield Place(header.offset + 1, header.length - 2, Hidden.BLANK)
        case HeaderKind.TCP_OPTION:
            if data[header.offset] not in _KEPT_OPTIONS:
                yield Place(header.offset + 2, header.length - 2, Hidden.OPAQUE)


def _attribute_places(data: bytes, header: Header) -> Iterator[Place]:
    """The values of an NFLOG message's attributes up to the packet, but for the one that says what the packet is."""
    at, end = header.offset + 4, header.offset + header.length - 4
    while at < end:
        order: Literal["little", "big"] = "little" if data[at + 3] == 0 else "big"
        length, kind = (int.from_bytes(data[place : place + 2], order) for place in (at, at + 2))
        if kind != _NFLOG_PACKET_HEADER:
            yield Place(at + 4, length - 4, Hidden.BLANK)
        at += (length + 3) // 4 * 4


def word_sum(data: bytes) -> int:
    """Ones' complement sum of 16-bit words (RFC 1071); 0xffff where a checksum within is right."""
    total = int.from_bytes(data + b"\0" if len(data) % 2 else data, "big")
    # 2^16 is 1 modulo 0xffff, so the folded sum is the remainder; it is 0 only where all words are.
    return total % 0xFFFF or (0xFFFF if total else 0)
