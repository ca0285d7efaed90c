"""Whether the way to an address leads into a tunnel that a program or WireGuard on this host keeps up (Linux)."""

from __future__ import annotations

from pathlib import Path

from prober.host.network_devices import device_of, local_address_towards

_DEVICES = Path("/sys/class/net")


def tunnel_towards(address: str) -> str | None:
    """The tunnel's device; None where the way leads over another one, or is not known."""
    try:
        device = device_of(local_address_towards(address))
    except OSError:
        return None
    if device is None:
        return None
    place = _DEVICES / device
    try:
        described = (place / "uevent").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return device if (place / "tun_flags").exists() or "DEVTYPE=wireguard" in described else None
