"""What a host is: its kernel, its TCP settings, its network device."""

from __future__ import annotations

import platform
from pathlib import Path

import pepscope
from prober.host import kernel_clock, network_devices
from prober.protocol.json_documents import Json

#: What of TCP's settings changes how a transfer looks, as files below /proc/sys/net.
_SETTINGS = (
    "ipv4/tcp_congestion_control",
    "ipv4/tcp_available_congestion_control",
    "ipv4/tcp_rmem",
    "ipv4/tcp_wmem",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_sack",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_ecn",
    "ipv4/tcp_fastopen",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_no_metrics_save",
    "ipv4/tcp_mtu_probing",
    "ipv4/ip_default_ttl",
    "core/default_qdisc",
    "core/rmem_max",
    "core/wmem_max",
)


def describe_host(device: str | None) -> dict[str, Json]:
    """The kernel, its TCP settings, and the network device that leads to the other end, where one is given."""
    described: dict[str, Json] = {
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "pepscope": pepscope.__version__,
        "clock_synchronised": kernel_clock.is_synchronised(),
        "settings": {name: value for name in _SETTINGS if (value := _setting(name)) is not None},
    }
    if device is not None:
        described["device"] = {
            "name": device,
            "mtu_bytes": network_devices.mtu_bytes(device),
            "offloads": network_devices.offloads(device),
        }
    return described


def _setting(name: str) -> str | None:
    try:
        return " ".join(Path("/proc/sys/net", name).read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return None
