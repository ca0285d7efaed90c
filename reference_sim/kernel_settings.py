"""A scenario's `[server]` and `[mobile]` as settings of a real kernel."""

from __future__ import annotations

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

    A kernel's buffers also hold what packets take beside their payload, about as much again, so that half of a buffer
    is window: the buffers are twice the scenario's. What a kernel decides itself (delayed ACKs, initial timeouts) stays
    as it is. Raises ScenarioError for what no kernel, or not this one, does.
    """
    recovery = endpoint["recovery"]
    if recovery not in ("sack", "new-reno"):
        raise ScenarioError(
            f"{place}.recovery is {recovery}, but must be sack or new-reno on a live path: kernels do no other"
        )
    if endpoint["ecn"] not in _ECN:
        raise ScenarioError(f"{place}.ecn is {endpoint['ecn']}, but must be off or standard on a live path")
    receive_bytes, send_bytes = 2 * endpoint["receive_buffer_bytes"], 2 * endpoint["send_buffer_bytes"]
    segment_bytes = endpoint["maximum_segment_size_bytes"]
    minimum_ms = max(1, round(endpoint["retransmission_timeout_minimum_s"] * 1e3))
    # By route, since only the first namespace may make any control the default.
    control = kernel_control(place, str(endpoint["control"]))
    common = f"congctl {control} initcwnd {endpoint['initial_window_segments']} rto_min {minimum_ms}ms"
    return KernelSettings(
        parameters={
            "net.ipv4.tcp_sack": _flag(endpoint["sack"] and recovery == "sack"),
            "net.ipv4.tcp_dsack": _flag(endpoint["duplicate_sack"]),
            "net.ipv4.tcp_timestamps": _flag(endpoint["timestamps"]),
            "net.ipv4.tcp_window_scaling": _flag(endpoint["window_scale"] >= 0),
            "net.ipv4.tcp_ecn": _ECN[endpoint["ecn"]],
            "net.ipv4.tcp_rmem": f"4096 {receive_bytes} {receive_bytes}",
            "net.ipv4.tcp_wmem": f"4096 {min(16_384, send_bytes)} {send_bytes}",
            "net.ipv4.tcp_slow_start_after_idle": _flag(endpoint["restart_after_idle"]),
            "net.ipv4.tcp_syn_retries": str(max(1, endpoint["handshake_retries"])),
            "net.ipv4.tcp_retries2": str(endpoint["retransmission_retries"]),
            "net.ipv4.ip_default_ttl": str(endpoint["time_to_live"]),
            "net.ipv6.conf.all.hop_limit": str(endpoint["time_to_live"]),
            # Else a connection would begin with what the one before it learnt.
            "net.ipv4.tcp_no_metrics_save": "1",
        },
        route_options={
            4: f"{common} advmss {segment_bytes}",
            6: f"{common} advmss {max(64, segment_bytes - _IPV6_MORE_HEADER_BYTES)}",
        },
        maximum_segment_size_bytes=segment_bytes,
    )


def kernel_control(place: str, control: str) -> str:
    """The kernel's name of a congestion control. Raises ScenarioError."""
    known = sorted(set(CONTROLS) & set(available_controls()))
    if control not in known:
        raise ScenarioError(
            f"{place}.control is {control}, but must be {' or '.join(known)} on a live path: this kernel has no other"
        )
    return CONTROLS[control]


def available_controls() -> list[str]:
    """Congestion controls of this kernel."""
    return _AVAILABLE.read_text(encoding="ascii").split()


def _flag(on: bool) -> str:
    return "1" if on else "0"
