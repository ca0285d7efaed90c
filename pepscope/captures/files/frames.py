"""Frames of a capture with their headers, taken apart by the decoder that `open_capture` uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, overload

from pepscope import _core

if TYPE_CHECKING:
    import numpy.typing as npt


class HeaderKind(IntEnum):
    """What a header is, or a part of one whose place varies."""

    ETHERNET = 0
    LOOPBACK = 1
    PPP = 2
    CISCO_HDLC = 3
    LINUX_SLL = 4
    LINUX_SLL2 = 5
    RADIOTAP = 6
    IEEE802_11 = 7
    AGGREGATE_SUBFRAME = 8
    """The header of one frame in an IEEE 802.11 aggregate (A-MSDU)."""
    LOGICAL_LINK_CONTROL = 9
    VLAN = 10
    """One tag of a switch, of any kind."""
    MPLS = 11
    PPPOE = 12
    IPV4 = 13
    """With its options."""
    IPV6 = 14
    """Without extension headers."""
    IPV6_EXTENSION = 15
    """One extension header, except the one of a fragment."""
    AUTHENTICATION = 16
    UDP = 17
    TCP = 18
    """With its options."""
    GRE = 19
    GRE_KEY = 20
    """Within a GRE header: the key, or in PPTP the call identifier."""
    GTP_U = 21
    """With its optional fields and extension headers."""
    GTP_U_EXTENSION = 22
    """Within a GTP-U header: one extension header."""
    VXLAN = 23
    UNKNOWN_TUNNEL = 24
    """What stands between UDP and a whole IP packet in a tunnel that is not known."""
    TCP_OPTION = 25
    """Within a TCP header: one option of more than one byte, kind and length included."""
    TCP_OPTIONS_END = 26
    """Within a TCP header: the end of the option list or a broken option, and all option bytes behind it."""
    IPV6_FRAGMENT = 27
    """The IPv6 header that says where in its datagram a fragment begins."""
    GENEVE = 28
    """With its options."""
    GRE_SHIM = 29
    """Between a GRE header and the packet: what ERSPAN or WCCP puts there."""
    L2TP = 30
    """With the cookie and sublayer header of a pseudo-wire."""
    NFLOG = 31
    """What netfilter's logging puts before a packet."""
    PKTAP = 32
    """What macOS puts before a packet of any link-layer type."""
    FDDI = 33
    ARCNET = 34
    INFINIBAND = 35
    """IP over InfiniBand, with the route header before it."""
    L2TP_FIELDS = 36
    """Within an L2TP header: tunnel and session, the cookie and sublayer of a pseudo-wire, padding."""
    CAPTURE_HEADER = 37
    """What a capturing system puts before a packet of a link-layer type that it names or that is always the same."""
    CAPTURE_FIELDS = 38
    """Within a capture header: what says nothing of the packet's own headers."""


@dataclass(frozen=True, slots=True)
class Header:
    """One header of a frame; `offset`, `length` and `end` in bytes from the start of the frame.

    `end` is where, on the wire, ends what the header belongs to, beyond the captured bytes where the snap length cut
    it. The length of TCP is the one that the header states, even where less was captured.
    """

    kind: HeaderKind
    offset: int
    length: int
    end: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of an IP datagram: the number of the datagram in its capture, and where in the payload the part begins."""

    datagram: int
    offset: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame: the captured bytes, its length on the wire, its link-layer type (number of the tcpdump.org registry).

    `headers` are those that were found, outermost first. `is_complete` where they end in TCP, or in a UDP datagram
    outside every known tunnel. `fragment` where they end in a fragment of an IP datagram. The last fragment of a
    datagram to come has the `datagram`.
    """

    data: bytes
    wire_bytes: int
    link_type: int
    is_complete: bool
    headers: tuple[Header, ...]
    fragment: Fragment | None = None
    datagram: Datagram | None = None

    @property
    def headers_end(self) -> int:
        """Where the last header ends."""
        return self.headers[-1].offset + self.headers[-1].length if self.headers else 0


@dataclass(frozen=True, slots=True)
class Datagram:
    """A datagram put together from fragments, as one frame.

    Its payload begins at `payload_start`, behind the headers of the first fragment; it ends where the captured bytes
    have their first hole.
    """

    frame: Frame
    payload_start: int


class CaptureFrames(Sequence[Frame]):
    """The frames of a capture in file order, in memory. Made by `read_frames`."""

    def __init__(self, core: _core.CaptureFrames) -> None:
        self._core = core
        self._frames = list(_frames(core))

    def __len__(self) -> int:
        return len(self._frames)

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Frame]: ...
    def __getitem__(self, index: int | slice) -> Frame | Sequence[Frame]:
        return self._frames[index]

    def __iter__(self) -> Iterator[Frame]:
        return iter(self._frames)

    def with_frames(self, frames: Sequence[bytes | None]) -> bytes:
        """The content of the file, not compressed, with other frames in the places of its own.

        `frames` has one entry a frame: bytes at most as many as the frame has, or None to leave the frame out. Times
        and lengths on the wire stay. Of a pcapng file only frames and the descriptions of interfaces are written,
        without options but those that say how to read times.
        """
        if len(frames) != len(self._frames):
            raise ValueError(f"frames must have {len(self._frames)} entries, one for each frame, got {len(frames)}")
        return self._core.with_frames(frames)


def read_frames(path: str) -> CaptureFrames:
    """Read all frames of a capture: pcap, pcapng or snoop, plain or compressed.

    Raises CaptureError for what is no capture. A damaged capture is read up to the damage.
    """
    return CaptureFrames(_core.read_frames(path))


def frames_of_connections(path: str, columns: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The content of a capture, not compressed, with no frames but those of some of its connections.

    `columns` are rows of `Capture.connection_columns`. Of segments in fragments the last fragment alone is kept. Raises
    CaptureError.
    """
    ends = (
        zip(map(bytes, columns[f"{end}_address"]), columns[f"{end}_port"].tolist(), strict=True)
        for end in ("client", "server")
    )
    return _core.frames_of_connections(path, list(zip(*ends, columns["first_time_ns"].tolist(), strict=True)))


def _frames(core: _core.CaptureFrames) -> Iterator[Frame]:
    columns, header_columns, wholes = core.headers()
    headers = _headers(header_columns)
    completed = {whole[0]: whole[1:] for whole in wholes}
    first_fragments: dict[int, Frame] = {}
    begin = 0
    rows = zip(core.frames(), *(column.tolist() for column in columns), strict=True)
    for index, (data, wire_bytes, link_type, is_complete, end, datagram, offset) in enumerate(rows):
        frame = Frame(data, wire_bytes, link_type, is_complete, tuple(headers[begin:end]))
        begin = end
        if datagram >= 0:
            frame = replace(frame, fragment=Fragment(datagram, offset))
            if offset == 0:
                first_fragments.setdefault(datagram, frame)
            if index in completed:
                frame = replace(frame, datagram=_assembled(first_fragments.pop(datagram), *completed[index]))
        yield frame


def _assembled(
    first: Frame, captured: bytes, wire_bytes: int, is_complete: bool, columns: tuple[npt.NDArray[Any], ...]
) -> Datagram:
    """A datagram's payload behind the headers of its first fragment."""
    start = first.headers_end
    inner = [Header(h.kind, h.offset + start, h.length, h.end + start) for h in _headers(columns)]
    data = first.data[:start] + captured
    frame = Frame(data, start + wire_bytes, first.link_type, is_complete, (*first.headers, *inner))
    return Datagram(frame, start)


def _headers(columns: tuple[npt.NDArray[Any], ...]) -> list[Header]:
    kinds = list(HeaderKind)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Header(kinds[kind], offset, length, end) for kind, offset, length, end in rows]
