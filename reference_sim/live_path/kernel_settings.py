"""A scenario's `[server]` and `[mobile]` as settings of a real kernel."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pepscope.errors import ScenarioError

#: Names of congestion controls in scenarios, and the kernel's.
CONTROLS = {"cubic": "cubic", "reno": "reno", "bbr": "bbr"}

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_ECN = {"off": "0", "standard": "1"}
_IPV6_MORE_HEADER_BYTES = 20
_TIMESTAMP_BYTES = 12
_HEADER_BYTES = 52
_PACKET_MARGIN_BYTES = 64 + 320
_PACKET_RECORD_BYTES = 256
_SHARE_AT_FIRST = 0.5
_INITIAL_BYTES = 131_072  # tcp_rmem[1]
_MOST_QUICK = 16  # TCP_MAX_QUICKACKS


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """What makes a namespace's TCP that of an endpoint of a scenario."""

    #: Kernel parameters of the namespace.
    parameters: Mapping[str, str]
    #: Options of its routes, by IP version.
    route_options: Mapping[int, str]
    maximum_segment_size_bytes: int


def kernel_settings(place: str, endpoint: Mapping[str, Any]) -> KernelSettings:
    """Settings for the endpoint that stands at `place` of a scenario, with every default filled in.

    A kernel's buffers also hold what packets take beside their payload, so that only a share of the receive buffer is
    window (`window_share`): buffers are as much larger than the scenario's, for sending twice as large. What a kernel
    decides itself (delayed ACKs, initial timeouts) stays as it is. Raises ScenarioError for what no kernel, or not this
    one, does.
    """
    if endpoint["host"] not in ("ideal", "linux"):
        raise ScenarioError(f"{place}.host must be ideal or linux on a live path, got {endpoint['host']}")
    recovery = endpoint["recovery"]
    if recovery not in ("sack", "rack", "new-reno"):
        raise ScenarioError(f"{place}.recovery must be sack, rack or new-reno on a live path, got {recovery}")
    if endpoint["ecn"] not in _ECN:
        raise ScenarioError(f"{place}.ecn must be off or standard on a live path, got {endpoint['ecn']}")
    segment_bytes = endpoint["maximum_segment_size_bytes"]
    if endpoint["host"] == "linux":
        # What the scenario means by its buffers is what a kernel does.
        receive_bytes, send_bytes = endpoint["receive_buffer_bytes"], endpoint["send_buffer_bytes"]
        initial_bytes = _INITIAL_BYTES
    else:
        receive_bytes, send_bytes = _receive_buffer_bytes(endpoint), 2 * endpoint["send_buffer_bytes"]
        initial_bytes = receive_bytes
    minimum_ms = max(1, round(endpoint["retransmission_timeout_minimum_s"] * 1e3))
    # By route, since only the first namespace may make any control the default.
    control = kernel_control(place, str(endpoint["control"]))
    common = f"congctl {control} initcwnd {endpoint['initial_window_segments']} rto_min {minimum_ms}ms"
    return KernelSettings(
        parameters={
            "net.ipv4.tcp_sack": _flag(endpoint["sack"] and recovery != "new-reno"),
            "net.ipv4.tcp_dsack": _flag(endpoint["duplicate_sack"]),
            "net.ipv4.tcp_timestamps": _flag(endpoint["timestamps"]),
            "net.ipv4.tcp_window_scaling": _flag(endpoint["window_scale"] >= 0),
            "net.ipv4.tcp_ecn": _ECN[endpoint["ecn"]],
            "net.ipv4.tcp_rmem": f"4096 {min(initial_bytes, receive_bytes)} {receive_bytes}",
            "net.ipv4.tcp_wmem": f"4096 {min(16_384, send_bytes)} {send_bytes}",
            "net.ipv4.tcp_slow_start_after_idle": _flag(endpoint["restart_after_idle"]),
            "net.ipv4.tcp_syn_retries": str(max(1, endpoint["handshake_retries"])),
            "net.ipv4.tcp_retries2": str(endpoint["retransmission_retries"]),
            "net.ipv4.ip_default_ttl": str(endpoint["time_to_live"]),
            "net.ipv6.conf.all.hop_limit": str(endpoint["time_to_live"]),
            # Otherwise a connection would begin with cached metrics of the one before it.
            "net.ipv4.tcp_no_metrics_save": "1",
        },
        route_options={
            4: f"{common} advmss {segment_bytes}",
            6: f"{common} advmss {max(64, segment_bytes - _IPV6_MORE_HEADER_BYTES)}",
        },
        maximum_segment_size_bytes=segment_bytes,
    )


def window_share(payload_bytes: int) -> float:
    """The share of a receive buffer that a kernel offers as window once full segments of so much payload arrive.

    Since Linux 6.6 (`tcp_measure_rcv_mss`) the payload's share of the memory that a packet takes: a TUN device puts
    headers, 64 bytes before them and `struct skb_shared_info` behind the payload into one piece, whose length is a
    power of two, and `struct sk_buff` takes 256 more. Before, and until data arrives, half, which is not taken back.
    """
    if _version() < (6, 6):
        return _SHARE_AT_FIRST
    piece_bytes = 1 << (payload_bytes + _HEADER_BYTES + _PACKET_MARGIN_BYTES - 1).bit_length()
    return max(_SHARE_AT_FIRST, (256 * payload_bytes // (piece_bytes + _PACKET_RECORD_BYTES)) / 256)


def quick_acknowledgements(endpoint: Mapping[str, Any]) -> int:
    """Segments that a kernel acknowledges one by one at the start: 16, and as long as the window it offers grows.

    It grows from half of the buffer to `window_share`, by two full segments each (`tcp_grow_window`).
    """
    growth_bytes = float(endpoint["receive_buffer_bytes"]) - _SHARE_AT_FIRST * _receive_buffer_bytes(endpoint)
    segments = growth_bytes / (2 * float(endpoint["maximum_segment_size_bytes"]))
    return max(_MOST_QUICK, round(segments))


def _receive_buffer_bytes(endpoint: Mapping[str, Any]) -> int:
    payload_bytes = endpoint["maximum_segment_size_bytes"] - (_TIMESTAMP_BYTES if endpoint["timestamps"] else 0)
    return int(endpoint["receive_buffer_bytes"] / window_share(payload_bytes))


def _version() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])


def kernel_control(place: str, control: str) -> str:
    """The kernel's name of a congestion control. Raises ScenarioError."""
    known = sorted(set(CONTROLS) & set(available_controls()))
    if control not in known:
        raise ScenarioError(
            f"{place}.control must be {' or '.join(known)} on a live path with this kernel, got {control}"
        )
    return CONTROLS[control]


def available_controls() -> list[str]:
    """Congestion controls of this kernel."""
    return _AVAILABLE.read_text(encoding="ascii").split()


def _flag(on: bool) -> str:
    return "1" if on else "0"
