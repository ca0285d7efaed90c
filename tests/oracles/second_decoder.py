"""dpkt as an oracle: the second decoder, for the link types of the corpus."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import dpkt

from tests.captures import containers
from tests.oracles.columns import OracleRow
from tests.oracles.truth import sack_edges

if TYPE_CHECKING:
    from pathlib import Path

_LINK_HEADER_BYTES = {
    containers.LINK_RAW: 0,
    containers.LINK_ETHERNET: 14,
    containers.LINK_LINUX_SLL: 16,
    containers.LINK_LINUX_SLL2: 20,
}


def dpkt_rows(path: Path) -> list[OracleRow]:
    """Every TCP packet over IPv4 or IPv6 without tunnels, in file order."""
    capture = containers.read_capture(path)
    rows = []
    for frame in capture.frames:
        row = _row(frame.time_ns, frame.data[_LINK_HEADER_BYTES[capture.link_type] :])
        if row is not None:
            rows.append(row)
    return rows


def _row(time_ns: int, packet: bytes) -> OracleRow | None:
    ip: dpkt.ip.IP | dpkt.ip6.IP6
    if packet[0] >> 4 == 6:
        ip = dpkt.ip6.IP6(packet)
        length, identification, ttl, family = ip.plen, 0, ip.hlim, socket.AF_INET6
    else:
        ip = dpkt.ip.IP(packet)
        length, identification, ttl, family = ip.len - 4 * ip.hl, ip.id, ip.ttl, socket.AF_INET
    tcp = ip.data
    if not isinstance(tcp, dpkt.tcp.TCP):
        return None
    options = dict(dpkt.tcp.parse_opts(tcp.opts))
    stamp = options.get(dpkt.tcp.TCP_OPT_TIMESTAMP)
    segment_size = options.get(dpkt.tcp.TCP_OPT_MSS)
    scale = options.get(dpkt.tcp.TCP_OPT_WSCALE)
    return OracleRow(
        time_ns,
        socket.inet_ntop(family, ip.src),
        tcp.sport,
        socket.inet_ntop(family, ip.dst),
        tcp.dport,
        tcp.seq,
        tcp.ack,
        tcp.flags,
        tcp.win,
        length - 4 * tcp.off,
        identification,
        ttl,
        (int.from_bytes(stamp[:4]), int.from_bytes(stamp[4:])) if stamp else None,
        sack_edges(options.get(dpkt.tcp.TCP_OPT_SACK, b"")),
        int.from_bytes(segment_size) if segment_size else None,
        scale[0] if scale else None,
        dpkt.tcp.TCP_OPT_SACKOK in options,
    )
