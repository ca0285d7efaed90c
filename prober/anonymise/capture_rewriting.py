"""A capture rewritten so that it names no person or host, with correct checksums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pepscope.captures.files.frames import Fragment, Frame, HeaderKind, read_frames
from pepscope.errors import CaptureError
from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.frame_layout import Hidden, Layout, fragment_layout, layout, word_sum
from prober.anonymise.http_heads import LONGEST_BYTES, HeadHider, find_head
from prober.anonymise.keys import SecretKey
from prober.anonymise.stream_bytes import WINDOW_BYTES, Hashable, Stream, hash_all, shortened, with_following
from prober.errors import ArchiveError

_FIN, _SYN = 0x01, 0x02
_GROUP_BIT, _LOCAL_BIT = 0x01, 0x02


@dataclass(slots=True)
class RewritingCounts:
    """Numbers of packets of one or more captures that were kept and left out."""

    kept: int = 0
    left_out: int = 0
    #: Captured payload bytes that are not kept, because what follows them was not captured.
    cut_bytes: int = 0


@dataclass(slots=True)
class _Packet:
    """A frame, or a datagram put together from fragments, that is being rewritten."""

    frame: bytearray
    captured_bytes: int
    layout: Layout
    stream: Stream | None = None  # of TCP
    offset: int = 0
    payload: bytes = b""
    fragment: Fragment | None = None  # what a frame ends in instead of TCP or UDP


@dataclass(slots=True)
class _Datagram:
    """A datagram put together from fragments, and where in the packet its payload begins; `None` to leave it out."""

    packet: _Packet | None
    payload_start: int


@dataclass(slots=True)
class _Flow:
    """One direction of a connection while packets come: its streams, one a use of the ports."""

    stream: Stream
    base: int  # sequence number of offset 0
    last: int = 0  # latest offset, from which the next is unwrapped
    is_opened: bool = False


@dataclass(slots=True)
class _Connections:
    """All streams of a capture."""

    flows: dict[tuple[bytes, ...], _Flow] = field(default_factory=dict)

    def place(self, packet: _Packet) -> None:
        """Find the packet's place in its stream, and put its payload there."""
        found, frame = packet.layout, packet.frame
        addresses = _addresses(packet)
        tunnels = b"".join(
            bytes(frame[p.start : p.start + p.length]) for p in found.places if p.hidden is Hidden.TUNNEL
        )
        key = (addresses, bytes(frame[found.transport : found.transport + 4]), tunnels)
        sequence = int.from_bytes(frame[found.transport + 4 : found.transport + 8], "big")
        flags = frame[found.transport + 13]
        flow = self.flows.get(key)
        if flags & _SYN and (flow is None or not flow.is_opened or flow.base != (sequence + 1) & 0xFFFFFFFF):
            flow = self.flows[key] = _Flow(Stream(has_beginning=True), (sequence + 1) & 0xFFFFFFFF, is_opened=True)
        elif flow is None:
            flow = self.flows[key] = _Flow(Stream(has_beginning=False), sequence)
        if flags & _SYN:
            return
        step = (sequence - flow.base - flow.last) & 0xFFFFFFFF
        packet.offset = flow.last + (step - (1 << 32) if step >> 31 else step)
        flow.last = max(flow.last, packet.offset)
        packet.stream = flow.stream
        flow.stream.add(packet.offset, packet.payload, max(0, found.end - found.payload))


class CaptureRewriter:
    """Rewrites captures under one key: equal values stay equal in all of them."""

    def __init__(self, key: SecretKey, addresses: CryptoPan, heads: HeadHider) -> None:
        self._key = key
        self._addresses = addresses
        self._heads = heads
        self.counts = RewritingCounts()

    def rewrite(self, source: Path, target: Path) -> None:
        """Write `source`, anonymised and not compressed, to `target`.

        Raises ArchiveError for what is no capture, OSError.
        """
        try:
            capture = read_frames(str(source))
        except CaptureError as error:
            raise ArchiveError(f"{source.name} cannot be anonymised: {error}") from None
        packets, datagrams = self._packets(capture)
        segments = [packet for packet in packets if packet is not None and packet.fragment is None]
        segments += [datagram.packet for datagram in datagrams.values() if datagram.packet is not None]
        self._hide_payload(segments)
        for packet in segments:
            self._finish(packet)
        rewritten = [self._frame(packet, datagrams) for packet in packets]
        target.write_bytes(capture.with_frames(rewritten))
        self.counts.left_out += rewritten.count(None)
        self.counts.kept += len(rewritten) - rewritten.count(None)

    def _packets(self, frames: Iterable[Frame]) -> tuple[list[_Packet | None], dict[int, _Datagram]]:
        """Each frame taken apart, `None` for one to leave out, and the datagrams that fragments make, by number.

        The payload of TCP stands in its stream, in the order in which segments are whole.
        """
        connections = _Connections()
        packets: list[_Packet | None] = []
        datagrams: dict[int, _Datagram] = {}
        for frame in frames:
            if frame.fragment is None:
                packets.append(_packet(frame, layout(frame), connections))
                continue
            packets.append(_packet(frame, fragment_layout(frame), connections, frame.fragment))
            if (made := frame.datagram) is not None:
                whole = _packet(made.frame, layout(made.frame), connections)
                datagrams[frame.fragment.datagram] = _Datagram(whole, made.payload_start)
        return packets, datagrams

    def _frame(self, packet: _Packet | None, datagrams: dict[int, _Datagram]) -> bytes | None:
        """The bytes to write in a frame's place."""
        if packet is None or packet.fragment is None:
            return None if packet is None else bytes(packet.frame)
        datagram = datagrams.get(packet.fragment.datagram)
        if datagram is None:
            # The detector counts a datagram of which fragments are missing, and reads none of its payload.
            hidden = bytes(len(packet.payload))
        elif datagram.packet is None:
            return None
        else:
            start = datagram.payload_start + packet.fragment.offset
            end = start + len(packet.payload)
            hidden = bytes(datagram.packet.frame[start:end])
            # What was captured behind a hole belongs to no segment that could be put together.
            self.counts.cut_bytes += min(len(packet.payload), max(0, end - datagram.packet.captured_bytes))
        self._put_payload(packet, hidden)
        self._hide_headers(packet)
        return bytes(packet.frame)

    def _hide_payload(self, packets: list[_Packet]) -> None:
        """Replace all payload; frames end where its hash can no longer be known. Padding behind it becomes zeros."""
        heads: dict[int, tuple[bytes, bytes, bool]] = {}
        divided = [
            self._of_datagram(packet) if packet.stream is None else self._of_stream(packet, packet.stream, heads)
            for packet in packets
        ]
        hashed = iter(hash_all(self._key, [part for parts in divided for part in parts if isinstance(part, Hashable)]))
        for packet, parts in zip(packets, divided, strict=True):
            hidden = b"".join(next(hashed) if isinstance(part, Hashable) else part for part in parts)
            self.counts.cut_bytes += len(packet.payload) - len(hidden)
            self._put_payload(packet, hidden)

    @staticmethod
    def _put_payload(packet: _Packet, hidden: bytes) -> None:
        """Replace the payload; a frame whose payload became shorter ends there, other frames keep their length."""
        del packet.frame[packet.layout.payload :]
        packet.frame += hidden
        if len(hidden) == len(packet.payload):
            packet.frame += bytes(packet.captured_bytes - len(packet.frame))

    def _of_datagram(self, packet: _Packet) -> list[Hashable | bytes]:
        """A datagram's payload in parts. Nothing is known to follow it; where it was cut it ends early."""
        payload = packet.payload
        is_whole = len(payload) >= packet.layout.end - packet.layout.payload
        missing = 0 if is_whole else WINDOW_BYTES - 1
        start = find_head(payload)
        made = None if start is None else self._heads.hidden(payload[start:])
        if start is None or made is None:
            return [shortened(payload, b"", missing)]
        head, head_is_whole = made
        parts: list[Hashable | bytes] = [Hashable(payload[:start], payload[start : start + WINDOW_BYTES - 1]), head]
        return [*parts, shortened(payload[start + len(head) :], b"", missing)] if head_is_whole else parts

    def _of_stream(
        self, packet: _Packet, stream: Stream, heads: dict[int, tuple[bytes, bytes, bool]]
    ) -> list[Hashable | bytes]:
        """A segment's payload in parts: what belongs to the head that the stream begins with, and the rest."""
        head, hidden, is_whole = self._head(stream, heads)
        offset, payload = packet.offset, packet.payload
        within = head[max(offset, 0) : offset + len(payload)]
        if offset < 0 or not within or payload[: len(within)] != within:
            return [with_following(stream, offset, payload)]
        beginning = hidden[offset : offset + len(payload)]
        if not is_whole:
            return [beginning]
        return [beginning, with_following(stream, offset + len(beginning), payload[len(beginning) :])]

    def _head(self, stream: Stream, heads: dict[int, tuple[bytes, bytes, bool]]) -> tuple[bytes, bytes, bool]:
        """The head that a stream begins with, as far as it was captured: as it was, hidden, and whether it is whole."""
        known = heads.get(id(stream))
        if known is None:
            data = stream.from_offset(0, LONGEST_BYTES) if stream.has_beginning else b""
            made = self._heads.hidden(data)
            known = (b"", b"", True)
            if made is not None:
                hidden, is_whole = made
                known = (data[: len(hidden)] if is_whole else data, hidden, is_whole)
            heads[id(stream)] = known
        return known

    def _finish(self, packet: _Packet) -> None:
        """Hide everything but the payload, and make the checksums right."""
        self._hide_headers(packet)
        self._transport_checksum(packet)

    def _hide_headers(self, packet: _Packet) -> None:
        """Hide what the headers hold, and make the checksums of IP right."""
        frame = packet.frame
        for place in packet.layout.places:
            stop = min(place.start + place.length, packet.layout.payload, len(frame))
            if place.start < stop:
                frame[place.start : stop] = self._hidden(bytes(frame[place.start : stop]), place.hidden)
        for start in packet.layout.tunnels:
            # No checksum: allowed for tunnels in IPv6, too (RFC 6935).
            frame[start + 6 : start + 8] = b"\0\0"
        for header in packet.layout.internet:
            if header.kind is HeaderKind.IPV4:
                end = header.offset + header.length
                frame[header.offset + 10 : header.offset + 12] = b"\0\0"
                checksum = 0xFFFF - word_sum(bytes(frame[header.offset : end]))
                frame[header.offset + 10 : header.offset + 12] = checksum.to_bytes(2, "big")

    def _transport_checksum(self, packet: _Packet) -> None:
        """The checksum of TCP or UDP; zero where not all of the segment is there to sum."""
        found, frame = packet.layout, packet.frame
        at = found.transport + (16 if found.is_tcp else 6)
        frame[at : at + 2] = b"\0\0"[: max(0, len(frame) - at)]
        if found.end > len(frame) or at + 2 > len(frame):
            return
        length = found.end - found.transport
        pseudo = _addresses(packet) + length.to_bytes(4, "big") + bytes((0, 6 if found.is_tcp else 17))
        checksum = 0xFFFF - word_sum(pseudo + bytes(frame[found.transport : found.end]))
        frame[at : at + 2] = (checksum or (0 if found.is_tcp else 0xFFFF)).to_bytes(2, "big")

    def _hidden(self, data: bytes, hidden: Hidden) -> bytes:
        match hidden:
            case Hidden.ADDRESS:
                return self._addresses.packed(data)
            case Hidden.HARDWARE:
                return self.hardware(data)
            case Hidden.TUNNEL:
                return data if not any(data) else self._key.hashed("tunnel", data, len(data))
            case Hidden.OPAQUE:
                return self._key.hashed("opaque", data, len(data))
            case Hidden.BLANK:
                return bytes(len(data))

    def hardware(self, address: bytes) -> bytes:
        """A hardware address: locally administered, a group's if it was one, broadcast and none as they are."""
        if not any(address) or all(byte == 0xFF for byte in address[:6]):
            return address
        made = bytearray(self._key.hashed("hardware", address[:6], 6) + bytes(max(0, len(address) - 6)))
        made[0] = made[0] & ~_GROUP_BIT & 0xFF | _LOCAL_BIT | address[0] & _GROUP_BIT
        return bytes(made[: len(address)])


def _packet(
    frame: Frame, found: Layout | None, connections: _Connections, fragment: Fragment | None = None
) -> _Packet | None:
    """A frame taken apart, with the payload of TCP in its stream."""
    if found is None:
        return None
    payload = frame.data[found.payload : min(found.end, len(frame.data))]
    packet = _Packet(bytearray(frame.data), len(frame.data), found, payload=payload, fragment=fragment)
    if found.is_tcp and fragment is None:
        connections.place(packet)
    return packet


def _addresses(packet: _Packet) -> bytes:
    """Source and destination address of the innermost IP header."""
    header = packet.layout.internet[-1]
    begin, end = (8, 40) if header.kind is HeaderKind.IPV6 else (12, 20)
    return bytes(packet.frame[header.offset + begin : header.offset + end])
