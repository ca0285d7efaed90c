"""Every link layer by name, and what capturing systems, wireless cards and switches put before packets."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from tests.captures import containers, layers
from tests.captures.layers import HARDWARE_ADDRESSES, Wrap, ethernet, ppp_hdlc, wifi


def pflog(packet: bytes) -> bytes:
    """PFLOG of FreeBSD: interface and rules, padded to a multiple of four."""
    family = 28 if packet[0] >> 4 == 6 else 2
    head = struct.pack(">BBBB16s16sIIIiIiB", 61, family, 0, 0, b"SECRET-H", b"rules", 7, 0, 0, 100, 0, 100, 1)
    return head.ljust(64, b"\0") + packet


def enc(packet: bytes) -> bytes:
    """What IPsec of OpenBSD decrypted: the address family in the order of the host."""
    return struct.pack("<I", 24 if packet[0] >> 4 == 6 else 2) + struct.pack(">II", 0x5EC2E7, 0xC00) + packet


def ipnet(packet: bytes) -> bytes:
    """IPNET of Solaris."""
    return struct.pack(">BBHIIIII", 1, 26 if packet[0] >> 4 == 6 else 2, 1, len(packet), 2, 0, 0, 0) + packet


def ppp_direction(packet: bytes) -> bytes:
    """PPP behind a byte that says which way it went."""
    return b"\1" + ppp_hdlc(packet)


def prism(packet: bytes) -> bytes:
    """What a Prism card measured, in the order of the host, before the 802.11 frame."""
    fields = b"".join(struct.pack("<IHHI", number << 12 | 0x44, 0, 4, 0) for number in range(1, 11))
    return struct.pack("<II16s", 0x44, 144, b"SECRET-H") + fields + wifi(packet)


def avs(packet: bytes) -> bytes:
    """A header of AVS before the 802.11 frame."""
    return struct.pack(">IIQQ10I", 0x80211001, 64, 1, 2, 4, 6, 108, 0, 0, 2, 0, 0, 1, 0) + wifi(packet)


def ppi(packet: bytes) -> bytes:
    """Per-packet information with the field of 802.11 cards, before the 802.11 frame."""
    field = struct.pack("<HHQHHHHBBbb", 2, 20, 7, 0, 108, 2437, 0xA0, 0, 0, -60, -90)
    return struct.pack("<BBHI", 0, 0, 8 + len(field), containers.LINK_IEEE802_11) + field + wifi(packet)


def erf(packet: bytes) -> bytes:
    """A record of an Endace card: its time, kind and lengths, and padding before Ethernet."""
    frame = ethernet(packet)
    bytes_of_record = 16 + 2 + len(frame)
    return (
        struct.pack("<Q", 0x6548_1234 << 32) + struct.pack(">BBHHHH", 2, 4, bytes_of_record, 0, len(frame), 0) + frame
    )


def erf_with_further_headers(packet: bytes) -> bytes:
    """The same with two further headers, of a serial link."""
    frame = ppp_hdlc(packet)
    head = struct.pack("<Q", 0x6548_1234 << 32) + struct.pack(">BBHHH", 0x81, 4, 32 + len(frame), 0, len(frame))
    return head + b"\x83" + bytes(7) + b"\3" + bytes(7) + frame


def broadcom_tag(packet: bytes) -> bytes:
    """A tag of a Broadcom switch behind the addresses."""
    return HARDWARE_ADDRESSES + b"\0\0\0\2" + ethernet(packet)[12:]


def broadcom_tag_prepended(packet: bytes) -> bytes:
    """A tag of a Broadcom switch before the addresses."""
    return b"\0\0\0\2" + ethernet(packet)


def marvell_tag(packet: bytes) -> bytes:
    """A tag of a Marvell switch behind the addresses."""
    return HARDWARE_ADDRESSES + b"\xc0\x18\0\0" + ethernet(packet)[12:]


def marvell_tag_with_type(packet: bytes) -> bytes:
    """The same behind an EtherType."""
    return HARDWARE_ADDRESSES + b"\xda\xda\0\0" + marvell_tag(packet)[12:]


#: Every link layer: name to link type and the function that makes its frames.
LINKS: Mapping[str, tuple[int, Wrap]] = {
    "null": (containers.LINK_NULL, layers.null),
    "null_big_endian": (containers.LINK_NULL, layers.null_big_endian),
    "loop": (containers.LINK_LOOP, layers.loop),
    "ethernet": (containers.LINK_ETHERNET, layers.ethernet),
    "ethernet_padded": (containers.LINK_ETHERNET, layers.ethernet_padded),
    "vlan": (containers.LINK_ETHERNET, layers.vlan),
    "qinq": (containers.LINK_ETHERNET, layers.qinq),
    "mpls": (containers.LINK_ETHERNET, layers.mpls),
    "bridge_port_extension": (containers.LINK_ETHERNET, layers.bridge_port_extension),
    "vn_tag": (containers.LINK_ETHERNET, layers.vn_tag),
    "provider_backbone": (containers.LINK_ETHERNET, layers.provider_backbone),
    "pppoe": (containers.LINK_ETHERNET, layers.pppoe),
    "ppp": (containers.LINK_PPP, layers.ppp),
    "ppp_hdlc": (containers.LINK_PPP_HDLC, layers.ppp_hdlc),
    "ppp_with_address": (containers.LINK_PPP, layers.ppp_hdlc),
    "ppp_ether": (containers.LINK_PPP_ETHER, layers.ppp_ether),
    "raw": (containers.LINK_RAW, layers.raw),
    "linux_sll": (containers.LINK_LINUX_SLL, layers.linux_sll),
    "linux_sll2": (containers.LINK_LINUX_SLL2, layers.linux_sll2),
    "wifi": (containers.LINK_IEEE802_11, layers.wifi),
    "wifi_quality_of_service": (containers.LINK_IEEE802_11, layers.wifi_quality_of_service),
    "wifi_four_addresses": (containers.LINK_IEEE802_11, layers.wifi_four_addresses),
    "radiotap": (containers.LINK_RADIOTAP, layers.radiotap),
    "mpls_pseudo_wire": (containers.LINK_ETHERNET, layers.mpls_pseudo_wire),
    "fddi": (containers.LINK_FDDI, layers.fddi),
    "arcnet": (containers.LINK_ARCNET, layers.arcnet),
    "arcnet_linux": (containers.LINK_ARCNET_LINUX, layers.arcnet_linux),
    "ip_over_infiniband": (containers.LINK_IPOIB, layers.ip_over_infiniband),
    "nflog": (containers.LINK_NFLOG, layers.nflog),
    "pktap": (containers.LINK_PKTAP, layers.pktap),
    "pflog": (containers.LINK_PFLOG, pflog),
    "enc": (containers.LINK_ENC, enc),
    "ipnet": (containers.LINK_IPNET, ipnet),
    "ppp_with_direction": (containers.LINK_PPP_WITH_DIR, ppp_direction),
    "prism": (containers.LINK_PRISM, prism),
    "avs": (containers.LINK_AVS, avs),
    "avs_of_prism": (containers.LINK_PRISM, avs),
    "ppi": (containers.LINK_PPI, ppi),
}
#: Link layers that tshark 4.0 does not know, or whose frames it gives another time (ERF: that of the record).
LINKS_WITHOUT_TSHARK: Mapping[str, tuple[int, Wrap]] = {
    "broadcom_tag": (containers.LINK_BROADCOM_TAG, broadcom_tag),
    "broadcom_tag_prepended": (containers.LINK_BROADCOM_TAG_PREPENDED, broadcom_tag_prepended),
    "marvell_tag": (containers.LINK_MARVELL_TAG, marvell_tag),
    "erf": (containers.LINK_ERF, erf),
    "erf_with_further_headers": (containers.LINK_ERF, erf_with_further_headers),
    "marvell_tag_with_type": (containers.LINK_MARVELL_TAG_WITH_TYPE, marvell_tag_with_type),
}
