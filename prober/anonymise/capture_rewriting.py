"""A capture with everyone hidden: read, taken apart, rewritten, checksums made right again, written."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.http_heads import LONGEST_BYTES, HeadHider, find_head
from prober.anonymise.keys import SecretKey
from prober.anonymise.packet_layout import Hidden, Layout, UnknownLinkTypeError, layout, word_sum
from prober.anonymise.stream_bytes import WINDOW_BYTES, Hashable, Stream, hash_all, shortened, with_following
from prober.errors import ArchiveError

_ORDERS: Mapping[bytes, str] = {
    b"\xa1\xb2\xc3\xd4": ">",
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
    b"\x4d\x3c\xb2\xa1": "<",
}
_LARGEST_FRAME_BYTES = 1 << 20
_FIN, _SYN = 0x01, 0x02
_GROUP_BIT, _LOCAL_BIT = 0x01, 0x02


@dataclass(slots=True)
class RewritingCounts:
    """What became of the packets of one or more captures."""

    kept: int = 0
    left_out: int = 0
    #: Captured payload bytes that are not kept, because what follows them was not captured.
    cut_bytes: int = 0


@dataclass(slots=True)
class _Packet:
    """A frame on its way."""

    header: bytes  # both halves of its time, as they were
    wire_bytes: int
    frame: bytearray
    layout: Layout
    stream: Stream | None = None  # of TCP
    offset: int = 0
    payload: bytes = b""


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
        header = found.headers[-1]
        addresses = bytes(frame[header.start + 8 : header.start + 40] if header.version == 6 else
                          frame[header.start + 12 : header.start + 20])  # fmt: skip
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
    """Rewrites captures under one key; equal things become equal in all of them."""

    def __init__(self, key: SecretKey, addresses: CryptoPan, heads: HeadHider) -> None:
        self._key = key
        self._addresses = addresses
        self._heads = heads
        self.counts = RewritingCounts()

    def rewrite(self, source: Path, target: Path) -> None:
        """Write `source` hidden to `target`. Raises ArchiveError for what is no pcap of a known link type, OSError."""
        data = source.read_bytes()
        order = _ORDERS.get(data[:4])
        if order is None or len(data) < 24:
            raise ArchiveError(f"{source.name} is no pcap file, and only those can be anonymised")
        link_type = struct.unpack(f"{order}I", data[20:24])[0] & 0xFFFF
        try:
            packets = list(self._packets(data, order, link_type))
        except UnknownLinkTypeError as error:
            raise ArchiveError(f"{source.name}: {error}") from None
        self._hide_payload(packets)
        with target.open("wb") as stream:
            stream.write(data[:24])
            for packet in packets:
                self._finish(packet)
                stream.write(packet.header + struct.pack(f"{order}II", len(packet.frame), packet.wire_bytes))
                stream.write(packet.frame)
        self.counts.kept += len(packets)

    def _packets(self, data: bytes, order: str, link_type: int) -> Iterator[_Packet]:
        connections, at = _Connections(), 24
        record = struct.Struct(f"{order}IIII")
        while at + record.size <= len(data):
            _, _, captured_bytes, wire_bytes = record.unpack_from(data, at)
            begin, end = at + record.size, at + record.size + captured_bytes
            if captured_bytes > _LARGEST_FRAME_BYTES or end > len(data):
                break
            frame = bytearray(data[begin:end])
            found = layout(bytes(frame), max(wire_bytes, captured_bytes), link_type)
            if found is None or found.end < found.payload:
                self.counts.left_out += 1
            else:
                packet = _Packet(data[at : at + 8], wire_bytes, frame, found)
                packet.payload = bytes(frame[found.payload : min(found.end, len(frame))])
                if found.is_tcp:
                    connections.place(packet)
                yield packet
            at = end

    def _hide_payload(self, packets: list[_Packet]) -> None:
        """Replace all payload; frames end where it does, or where its hash can no longer be known."""
        heads: dict[int, tuple[bytes, bytes, bool]] = {}
        divided = [
            self._of_datagram(packet) if packet.stream is None else self._of_stream(packet, packet.stream, heads)
            for packet in packets
        ]
        hashed = iter(hash_all(self._key, [part for parts in divided for part in parts if isinstance(part, Hashable)]))
        for packet, parts in zip(packets, divided, strict=True):
            was = len(packet.payload)
            packet.payload = b"".join(next(hashed) if isinstance(part, Hashable) else part for part in parts)
            self.counts.cut_bytes += was - len(packet.payload)
            del packet.frame[packet.layout.payload :]
            packet.frame += packet.payload

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
        """Hide everything but the payload, then make the checksums right, innermost first."""
        frame = packet.frame
        for place in packet.layout.places:
            stop = min(place.start + place.length, packet.layout.payload, len(frame))
            if place.start < stop:
                frame[place.start : stop] = self._hidden(bytes(frame[place.start : stop]), place.hidden)
        self._transport_checksum(packet)
        for start in packet.layout.tunnels:
            # No checksum: allowed for tunnels in IPv6, too (RFC 6935).
            frame[start + 6 : start + 8] = b"\0\0"
        for header in packet.layout.headers:
            if header.version == 4:
                end = header.start + header.header_bytes
                frame[header.start + 10 : header.start + 12] = b"\0\0"
                checksum = 0xFFFF - word_sum(bytes(frame[header.start : end]))
                frame[header.start + 10 : header.start + 12] = checksum.to_bytes(2, "big")

    def _transport_checksum(self, packet: _Packet) -> None:
        """The checksum of TCP or UDP; zero where not all of the segment is there to sum."""
        found, frame = packet.layout, packet.frame
        at = found.transport + (16 if found.is_tcp else 6)
        frame[at : at + 2] = b"\0\0"[: max(0, len(frame) - at)]
        if found.end > len(frame) or at + 2 > len(frame):
            return
        header, length = found.headers[-1], found.end - found.transport
        addresses = frame[header.start + 8 : header.start + 40] if header.version == 6 else (
            frame[header.start + 12 : header.start + 20])  # fmt: skip
        pseudo = bytes(addresses) + length.to_bytes(4, "big") + bytes((0, 6 if found.is_tcp else 17))
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
