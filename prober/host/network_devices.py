"""Network devices as the kernel names them: which one leads to an address, its MTU and its offloads. No root needed."""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_SIOCETHTOOL = 0x8946  # linux/sockios.h
_IFNAMSIZ = 16
#: `ETHTOOL_G...` of linux/ethtool.h, by the names that ethtool(8) gives to what they report.
_OFFLOADS = {
    "rx-checksumming": 0x14,
    "tx-checksumming": 0x16,
    "scatter-gather": 0x18,
    "tcp-segmentation-offload": 0x1E,
    "generic-segmentation-offload": 0x23,
    "generic-receive-offload": 0x2B,
}


class _Entry(ctypes.Structure):
    """`struct ifaddrs` of getifaddrs(3)."""


_Entry._fields_ = (
    ("next", ctypes.POINTER(_Entry)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
    ("netmask", ctypes.c_void_p),
    ("peer", ctypes.c_void_p),
    ("data", ctypes.c_void_p),
)


def local_address_towards(address: str) -> str:
    """The address that this host sends from to another one. Raises OSError where there is no route."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        # Of a datagram socket this only asks the routing table; 9 is the port for discarding.
        probe.connect((address, 9))
        return str(probe.getsockname()[0])


def device_of(local_address: str) -> str | None:
    """The device that has an address of this host; `None` where none has it."""
    wanted = ipaddress.ip_address(local_address.partition("%")[0])
    for name, address in _addresses():
        if address == wanted:
            return name
    if wanted.is_loopback:
        return "lo"  # all of 127/8 is on it, only one address is listed
    return None


def _addresses() -> Iterator[tuple[str, ipaddress.IPv4Address | ipaddress.IPv6Address]]:
    library = ctypes.CDLL(None, use_errno=True)
    first = ctypes.POINTER(_Entry)()
    if library.getifaddrs(ctypes.byref(first)) != 0:
        raise OSError(ctypes.get_errno(), "the devices' addresses cannot be listed")
    try:
        entry = first
        while entry:
            item = entry.contents
            address = _address(item.address) if item.address else None
            if address is not None:
                yield item.name.decode(errors="replace"), address
            entry = item.next
    finally:
        library.freeifaddrs(first)


def _address(place: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address within a `struct sockaddr` (sockaddr_in: from byte 4, sockaddr_in6: from byte 8)."""
    (family,) = struct.unpack("=H", ctypes.string_at(place, 2))
    if family == socket.AF_INET:
        return ipaddress.IPv4Address(ctypes.string_at(place + 4, 4))
    if family == socket.AF_INET6:
        return ipaddress.IPv6Address(ctypes.string_at(place + 8, 16))
    return None


def mtu_bytes(device: str) -> int | None:
    """The largest packet that a device takes; `None` where the kernel does not say."""
    try:
        return int(Path(f"/sys/class/net/{device}/mtu").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def offloads(device: str) -> dict[str, bool]:
    """Offloads of a device; only those that it reports.

    Captures on a device that joins segments show some that were never on the wire.
    """
    found: dict[str, bool] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name, command in _OFFLOADS.items():
            # struct ethtool_value: the command, and room for the answer.
            value = array.array("I", [command, 0])
            request = struct.pack(f"{_IFNAMSIZ}sP", device.encode()[: _IFNAMSIZ - 1], value.buffer_info()[0])
            with contextlib.suppress(OSError):
                fcntl.ioctl(probe.fileno(), _SIOCETHTOOL, request.ljust(40, b"\0"))
                found[name] = bool(value[1])
    return found
