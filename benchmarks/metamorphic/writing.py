"""Records to a capture file: link layers and tunnels around each packet, and a pcap container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tests.captures import containers, layers, links

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.metamorphic.records import Array, Records
    from tests.captures.layers import Wrap

_MAGIC = {1: 0xA1B23C4D, 1000: 0xA1B2C3D4}
_SNAP_LENGTH = 262_144

#: Longest IP packet that tunnels are put around: beyond it the outer length field overflows.
LARGEST_TUNNELLED_BYTES = 65_000


def _on_ethernet(tunnel: Wrap) -> Wrap:
    return lambda packet: layers.ethernet(tunnel(packet))


#: Name to link type and what is put around the packet.
LINKS: Mapping[str, tuple[int, Wrap]] = {
    name: links.LINKS[name]
    for name in ("raw", "ethernet", "linux_sll", "linux_sll2", "vlan", "qinq", "mpls", "pppoe", "ppp", "null")
} | {
    "gre": (containers.LINK_ETHERNET, _on_ethernet(layers.gre)),
    "ip in ip": (containers.LINK_ETHERNET, _on_ethernet(layers.ip_in_ip)),
    "ip in ipv6": (containers.LINK_ETHERNET, _on_ethernet(layers.ip_in_ipv6)),
    "vxlan": (containers.LINK_ETHERNET, _on_ethernet(lambda packet: layers.vxlan(packet, network=9))),
    "gtp-u": (containers.LINK_ETHERNET, _on_ethernet(lambda packet: layers.gtp_u(packet, tunnel=77))),
}


def write(path: Path, records: Records, link: str, unit_ns: int = 1) -> None:
    """Write a pcap of the named link with times in nanoseconds or microseconds (`unit_ns` 1000)."""
    link_type, wrap = LINKS[link]
    prefix, prefix_bytes = _prefixes(records, wrap)
    count, longest = len(records), prefix.shape[1]
    rows = np.zeros((count, 16 + longest + records.data.shape[1]), np.uint8)
    head = np.empty((count, 4), "<u4")
    head[:, 0], rest = np.divmod(records.time_ns, 10**9)
    head[:, 1] = rest // unit_ns
    head[:, 2] = records.held + prefix_bytes
    head[:, 3] = records.wire + prefix_bytes
    rows[:, :16] = head.view(np.uint8)
    rows[:, 16 : 16 + longest] = prefix
    rows[:, 16 + longest :] = records.data
    place = np.arange(rows.shape[1])
    after = 16 + longest + records.held[:, None]
    skipped = (place >= 16 + prefix_bytes[:, None]) & (place < 16 + longest)
    with path.open("wb") as file:
        file.write(np.array([_MAGIC[unit_ns], 2 | 4 << 16, 0, 0, _SNAP_LENGTH, link_type], "<u4").tobytes())
        file.write(rows[(place < after) & ~skipped].tobytes())


def _prefixes(records: Records, wrap: Wrap) -> tuple[Array, Array]:
    """What stands before each IP packet, padded to one length, and its bytes.

    It depends on a packet's IP version and, by the length fields of tunnels, on its length alone.
    """
    if len(records) == 0:
        return np.zeros((0, 0), np.uint8), np.zeros(0, np.int64)
    keys, which = np.unique(records.wire * 16 + records.version, return_inverse=True)
    made = []
    for key in keys.tolist():
        packet = bytes([(key & 15) << 4]) + bytes(key // 16 - 1)
        made.append(wrap(packet)[: -len(packet)])
    longest = max(map(len, made))
    table = np.frombuffer(b"".join(prefix.ljust(longest, b"\0") for prefix in made), np.uint8).reshape(
        len(made), longest
    )
    return table[which], np.array([len(prefix) for prefix in made])[which]
