"""Link layers and tunnels: each function wraps an IP packet the way a network or a capture tool does."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.captures.segments import PROTOCOL_UDP, ipv4, ipv6

ETHER_IPV4 = 0x0800
ETHER_IPV6 = 0x86DD
ETHER_TEB = 0x6558  # transparent Ethernet bridging (RFC 7637)
ETHER_MPLS = 0x8847
ETHER_PPPOE_SESSION = 0x8864
ETHER_VLAN = 0x8100
ETHER_SERVICE_VLAN = 0x88A8

HARDWARE_ADDRESSES = bytes.fromhex("020000000001020000000002")


def ether_type(packet: bytes) -> int:
    """The EtherType of an IP packet."""
    return ETHER_IPV6 if packet[0] >> 4 == 6 else ETHER_IPV4


def ppp_protocol(packet: bytes) -> bytes:
    """The two-byte PPP protocol of an IP packet (RFC 1332, RFC 5072)."""
    return b"\x00\x57" if packet[0] >> 4 == 6 else b"\x00\x21"


def ethernet(packet: bytes, *, kind: int | None = None) -> bytes:
    """Ethernet II."""
    return HARDWARE_ADDRESSES + struct.pack(">H", ether_type(packet) if kind is None else kind) + packet


def ethernet_padded(packet: bytes) -> bytes:
    """Ethernet II, padded to the 60 bytes that the medium asks for."""
    return ethernet(packet).ljust(60, b"\xa5")


def vlan(packet: bytes) -> bytes:
    """IEEE 802.1Q."""
    return ethernet(struct.pack(">HH", 42, ether_type(packet)) + packet, kind=ETHER_VLAN)


def qinq(packet: bytes) -> bytes:
    """IEEE 802.1ad with an 802.1Q tag inside."""
    return ethernet(
        struct.pack(">HHHH", 100, ETHER_VLAN, 42, ether_type(packet)) + packet,
        kind=ETHER_SERVICE_VLAN,
    )


def bridge_port_extension(packet: bytes) -> bytes:
    """An E-tag (IEEE 802.1BR)."""
    return ethernet(struct.pack(">HHHH", 0x1000, 0xD3, 0, ether_type(packet)) + packet, kind=0x893F)


def vn_tag(packet: bytes) -> bytes:
    """A VN-tag, which network cards for virtual machines write."""
    return ethernet(struct.pack(">IH", 0x33, ether_type(packet)) + packet, kind=0x8926)


def provider_backbone(packet: bytes) -> bytes:
    """A whole frame behind an IEEE 802.1ah tag."""
    return ethernet(struct.pack(">I", 0x1EBB30) + ethernet(packet), kind=0x88E7)


def mpls(packet: bytes) -> bytes:
    """Two MPLS labels, the lower with the bottom-of-stack bit (RFC 3032)."""
    return ethernet(struct.pack(">II", 1000 << 12 | 64, 2000 << 12 | 1 << 8 | 64) + packet, kind=ETHER_MPLS)


def pppoe(packet: bytes) -> bytes:
    """PPPoE session (RFC 2516)."""
    body = ppp_protocol(packet) + packet
    return ethernet(struct.pack(">BBHH", 0x11, 0, 7, len(body)) + body, kind=ETHER_PPPOE_SESSION)


def ppp_ether(packet: bytes) -> bytes:
    """PPPoE without the Ethernet header (link type 51)."""
    return pppoe(packet)[14:]


def ppp(packet: bytes) -> bytes:
    """PPP without address and control (link type 9)."""
    return ppp_protocol(packet) + packet


def ppp_hdlc(packet: bytes) -> bytes:
    """PPP in HDLC-like framing (RFC 1662)."""
    return b"\xff\x03" + ppp_protocol(packet) + packet


def null(packet: bytes) -> bytes:
    """BSD loopback: the address family in the byte order of the capturing machine."""
    return struct.pack("<I", 30 if packet[0] >> 4 == 6 else 2) + packet


def null_big_endian(packet: bytes) -> bytes:
    """BSD loopback, captured by a big-endian machine of another family number."""
    return struct.pack(">I", 24 if packet[0] >> 4 == 6 else 2) + packet


def loop(packet: bytes) -> bytes:
    """OpenBSD loopback: always network byte order."""
    return struct.pack(">I", 24 if packet[0] >> 4 == 6 else 2) + packet


def raw(packet: bytes) -> bytes:
    """No link layer."""
    return packet


def linux_sll(packet: bytes) -> bytes:
    """Linux cooked capture v1."""
    return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), ether_type(packet)) + packet


def linux_sll2(packet: bytes) -> bytes:
    """Linux cooked capture v2."""
    return struct.pack(">HHIHBB8s", ether_type(packet), 0, 3, 1, 0, 6, bytes(8)) + packet


def wifi(packet: bytes) -> bytes:
    """An IEEE 802.11 data frame to the access point, with LLC/SNAP."""
    return _wifi_header(0x08, 0x01) + _snap(packet)


def wifi_quality_of_service(packet: bytes) -> bytes:
    """An IEEE 802.11 QoS data frame from the access point."""
    return _wifi_header(0x88, 0x02) + b"\0\0" + _snap(packet)


def wifi_four_addresses(packet: bytes) -> bytes:
    """An IEEE 802.11 QoS data frame between access points (both To DS and From DS)."""
    return _wifi_header(0x88, 0x03) + bytes.fromhex("020000000004") + b"\0\0" + _snap(packet)


def radiotap(packet: bytes) -> bytes:
    """A radiotap header of rate and antenna signal before the 802.11 frame."""
    fields = struct.pack("<BbH", 12, -60, 0)
    return struct.pack("<BBHI", 0, 0, 8 + len(fields), 1 << 2 | 1 << 5) + fields + wifi(packet)


def _wifi_header(frame_control: int, direction: int) -> bytes:
    return bytes([frame_control, direction, 0, 0]) + HARDWARE_ADDRESSES + bytes.fromhex("020000000003") + b"\x10\0"


def _snap(packet: bytes) -> bytes:
    return b"\xaa\xaa\x03\0\0\0" + struct.pack(">H", ether_type(packet)) + packet


def fddi(packet: bytes) -> bytes:
    """FDDI: an asynchronous LLC frame."""
    return b"\x54" + HARDWARE_ADDRESSES + _snap(packet)


def arcnet(packet: bytes) -> bytes:
    """ARCnet as the BSDs give it (RFC 1201)."""
    return bytes([1, 2, 196 if packet[0] >> 4 == 6 else 212, 0, 0, 9]) + packet


def arcnet_linux(packet: bytes) -> bytes:
    """ARCnet as Linux gives it."""
    return bytes([1, 2, 0, 0, 196 if packet[0] >> 4 == 6 else 212, 0, 0, 9]) + packet


def ip_over_infiniband(packet: bytes) -> bytes:
    """IP over InfiniBand (RFC 4391) behind 40 bytes of addresses."""
    return bytes(8) + b"\x02\0\0\0\0\x01" * 5 + bytes(2) + struct.pack(">HH", ether_type(packet), 0) + packet


def nflog(packet: bytes) -> bytes:
    """NFLOG: a packet header, a prefix, a hardware address, the packet."""
    family = 10 if packet[0] >> 4 == 6 else 2
    attributes = [
        (1, struct.pack(">HBx", ether_type(packet), 1)),
        (10, b"SECRET-H\0"),
        (8, struct.pack(">HH", 6, 0) + HARDWARE_ADDRESSES[:6] + b"\0\0"),
        (9, packet),
    ]
    parts = [struct.pack("<HH", len(value) + 4, kind) + value + bytes(-len(value) % 4) for kind, value in attributes]
    return struct.pack(">BBH", family, 0, 5) + b"".join(parts)


def pktap(packet: bytes) -> bytes:
    """PKTAP of macOS with an Ethernet frame."""
    head = struct.pack("<III24sIIII", 108, 1, 1, b"en0", 0, 2, 14, 0) + struct.pack("<I17s", 77, b"SECRET-H")
    return head.ljust(108, b"\0") + ethernet(packet)


def mpls_pseudo_wire(packet: bytes) -> bytes:
    """Ethernet in MPLS behind a control word (RFC 4448)."""
    return ethernet(struct.pack(">II", 3000 << 12 | 1 << 8 | 64, 7) + ethernet(packet), kind=ETHER_MPLS)


def udp(source_port: int, destination_port: int, payload: bytes) -> bytes:
    """UDP without checksum, which IPv4 allows."""
    return struct.pack(">HHHH", source_port, destination_port, 8 + len(payload), 0) + payload


def _outer(protocol: int, payload: bytes) -> bytes:
    return ipv4("192.0.2.10", "192.0.2.20", protocol, payload, ttl=33, identification=4242)


def gre(packet: bytes, *, key: int | None = None, with_checksum: bool = False, with_sequence: bool = False) -> bytes:
    """GRE over IPv4 (RFC 2784, RFC 2890)."""
    flags = (0x8000 if with_checksum else 0) | (0x2000 if key is not None else 0) | (0x1000 if with_sequence else 0)
    head = struct.pack(">HH", flags, ether_type(packet))
    head += bytes(4) if with_checksum else b""
    head += struct.pack(">I", key) if key is not None else b""
    head += struct.pack(">I", 5) if with_sequence else b""
    return _outer(47, head + packet)


def gre_ethernet(packet: bytes, *, key: int) -> bytes:
    """NVGRE: an Ethernet frame in GRE (RFC 7637)."""
    return _outer(47, struct.pack(">HHI", 0x2000, ETHER_TEB, key) + ethernet(packet))


def erspan(packet: bytes) -> bytes:
    """ERSPAN type II: what a switch mirrors, with its session number 6."""
    head = struct.pack(">HHIHHI", 0x1000, 0x88BE, 9, 0x1006, 6, 20)
    return _outer(47, head + ethernet(packet))


def erspan_i(packet: bytes) -> bytes:
    """ERSPAN type I: a mirrored frame without a header of its own."""
    return _outer(47, struct.pack(">HH", 0, 0x88BE) + ethernet(packet))


def erspan_iii(packet: bytes) -> bytes:
    """ERSPAN type III with a platform header of eight bytes."""
    head = struct.pack(">HHIHHIHH", 0x1000, 0x22EB, 9, 0x2006, 6, 0x01020304, 0, 1)
    return _outer(47, head + struct.pack(">II", 0x14000000, 1_700_000_000) + ethernet(packet))


def gre_ppp(packet: bytes) -> bytes:
    """PPTP's GRE (RFC 2637) with PPP."""
    body = b"\xff\x03" + ppp_protocol(packet) + packet
    return _outer(47, struct.pack(">HHHHI", 0x3001, 0x880B, len(body), 7, 9) + body)


def gre_wireless(packet: bytes) -> bytes:
    """What an Aruba access point sends its controller: an 802.11 frame in GRE."""
    return _outer(47, struct.pack(">HH", 0, 0x8200) + wifi(packet))


def authenticated(packet: bytes) -> bytes:
    """IP in an authentication header (RFC 4302), in tunnel mode."""
    head = struct.pack(">BBHII12s", 41 if packet[0] >> 4 == 6 else 4, 4, 0, 9, 1, b"\x77" * 12)
    return _outer(51, head + packet)


def l2tp_v2(packet: bytes, *, identifier: int, all_fields: bool = False) -> bytes:
    """PPP in L2TP version 2 (RFC 2661); `identifier` is of the tunnel, and in the lower half of the session."""
    body = b"\xff\x03" + ppp_protocol(packet) + packet
    if all_fields:
        length = 2 + 2 + 4 + 4 + 2 + 2 + len(body)
        head = struct.pack(">HHIHHHH", 0x4A02, length, identifier, 5, 6, 2, 0xEEEE)
    else:
        head = struct.pack(">HI", 0x0002, identifier)
    return _outer(PROTOCOL_UDP, udp(1701, 1701, head + body))


def l2tp_v3(packet: bytes, *, session: int, cookie: bytes = b"", over_udp: bool = False) -> bytes:
    """An Ethernet pseudo-wire in L2TP version 3 (RFC 3931, RFC 4719)."""
    body = struct.pack(">I", session) + cookie + ethernet_padded(packet)
    if over_udp:
        return _outer(PROTOCOL_UDP, udp(1701, 1701, struct.pack(">HH", 3, 0) + body))
    return _outer(115, body)


def wccp(packet: bytes) -> bytes:
    """What a router with WCCP version 2 redirects to a proxy."""
    return _outer(47, bytes.fromhex("0000883E05590048") + packet)


def ip_in_ip(packet: bytes) -> bytes:
    """IPv4 or IPv6 in IPv4 (RFC 2003, RFC 4213)."""
    return _outer(41 if packet[0] >> 4 == 6 else 4, packet)


def ip_in_ipv6(packet: bytes) -> bytes:
    """IPv4 or IPv6 in IPv6 (RFC 2473)."""
    return ipv6("2001:db8::a", "2001:db8::b", 41 if packet[0] >> 4 == 6 else 4, packet)


def vxlan(packet: bytes, *, network: int) -> bytes:
    """VXLAN over IPv4 (RFC 7348)."""
    return _outer(PROTOCOL_UDP, udp(50000, 4789, struct.pack(">II", 0x08000000, network << 8) + ethernet(packet)))


def geneve(packet: bytes, *, network: int, options: bytes = b"", with_ethernet: bool = True) -> bytes:
    """Geneve over IPv4 (RFC 8926), with an Ethernet frame or the IP packet alone."""
    kind, inner = (ETHER_TEB, ethernet(packet)) if with_ethernet else (ether_type(packet), packet)
    head = struct.pack(">BBHI", len(options) // 4, 0, kind, network << 8)
    return _outer(PROTOCOL_UDP, udp(50000, 6081, head + options + inner))


def gtp_u(packet: bytes, *, tunnel: int, extensions: bool = False, sequence: bool = False) -> bytes:
    """GTP-U G-PDU (3GPP TS 29.281): optionally with a PDU session container and a second extension header."""
    flags = 0x30 | (0x04 if extensions else 0) | (0x02 if sequence else 0)
    optional = b""
    if extensions:
        optional = struct.pack(">HBB", 77 if sequence else 0, 0, 0x85)
        optional += bytes([1, 0x10, 9, 0xC0])  # PDU session container: downlink, QFI 9; next 0xC0 (PDCP PDU number)
        optional += bytes([1, 0, 5, 0])
    elif sequence:
        optional = struct.pack(">HBB", 77, 0, 0)
    body = optional + packet
    return _outer(PROTOCOL_UDP, udp(2152, 2152, struct.pack(">BBHI", flags, 255, len(body), tunnel) + body))


Wrap = Callable[[bytes], bytes]
