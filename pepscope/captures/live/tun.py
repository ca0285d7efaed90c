"""TUN devices: IP packets of a namespace, one a read."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path

from pepscope.errors import LivePathError

_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_CLONE_DEVICE = "/dev/net/tun"


def open_tun(name: str) -> int:
    """Make a TUN device in the namespace of the calling thread; its descriptor, which does not block.

    The device is gone with its last descriptor. Raises LivePathError.
    """
    try:
        descriptor = os.open(_CLONE_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise LivePathError(f"{_CLONE_DEVICE} cannot be opened, which TUN devices need: {error.strerror}") from None
    try:
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    except OSError as error:
        os.close(descriptor)
        raise LivePathError(f"the kernel makes no TUN device {name}: {error.strerror}") from None
    return descriptor


def dropped_packets(name: str) -> int:
    """Packets that a device of the calling thread's namespace dropped since they were not read in time."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/thread-self/net/dev").read_text(encoding="ascii").splitlines():
            device, _, numbers = line.partition(":")
            if device.strip() == name:
                return int(numbers.split()[11])
    return 0
