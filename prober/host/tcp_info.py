"""What Linux reports of a TCP socket without any right: `struct tcp_info` (linux/tcp.h), by the field's own names."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

#: Byte fields first (the seventh holds both window scales), then 32-bit ones in us, ms and segments.
_SMALL = ("state", "ca_state", "retransmits", "probes", "backoff", "options", "wscale", "delivery_rate_app_limited")
_WORDS = (
    "rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent",
    "last_ack_sent", "last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh",
    "snd_cwnd", "advmss", "reordering", "rcv_rtt", "rcv_space", "total_retrans",
)  # fmt: skip
_LONG = ("pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received")
_LATER_WORDS = ("segs_out", "segs_in", "notsent_bytes", "min_rtt", "data_segs_in", "data_segs_out")
_LATER_LONG = ("delivery_rate", "busy_time", "rwnd_limited", "sndbuf_limited")
#: Linux 4.19 and later; left out where the kernel is older.
_LATEST_WORDS = ("delivered", "delivered_ce")
_LATEST_LONG = ("bytes_sent", "bytes_retrans")
_LATEST_FORMAT = struct.Struct(f"={len(_LATEST_WORDS)}I{len(_LATEST_LONG)}Q")
_FORMAT = struct.Struct(f"={len(_SMALL)}B{len(_WORDS)}I{len(_LONG)}Q{len(_LATER_WORDS)}I{len(_LATER_LONG)}Q")
_NAMES = (*_SMALL, *_WORDS, *_LONG, *_LATER_WORDS, *_LATER_LONG)


def tcp_info(link: socket.socket) -> Mapping[str, int]:
    """The kernel's figures on a connection; empty where the kernel is too old or is not Linux. Raises OSError."""
    if not hasattr(socket, "TCP_INFO"):
        return {}
    data = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    if len(data) < _FORMAT.size:
        return {}
    known = dict(zip(_NAMES, _FORMAT.unpack_from(data), strict=True))
    if len(data) >= _FORMAT.size + _LATEST_FORMAT.size:
        latest = _LATEST_FORMAT.unpack_from(data, _FORMAT.size)
        known |= zip((*_LATEST_WORDS, *_LATEST_LONG), latest, strict=True)
    return known
