"""Giving up what a server does not need once it listens (capabilities(7), PR_SET_NO_NEW_PRIVS of prctl(2)).

The process that serves keeps none, from the bounding set too, before the first connection is accepted; its helper keeps
two for captures and ACK holds (`prober.server.instruments.privileged`). Threads inherit this, and so do the commands
that install rules of ACK holds.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from pathlib import Path

from prober.errors import ServerError

_CAP_DAC_OVERRIDE, _CAP_NET_ADMIN, _CAP_NET_RAW = 1, 12, 13
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38
#: `struct __user_cap_header_struct` of linux/capability.h, version 3, for the calling thread.
_HEADER = struct.pack("=Ii", 0x2008_0522, 0)
_STATUS = Path("/proc/thread-self/status")


NETWORK_CAPABILITIES = 1 << _CAP_NET_ADMIN | 1 << _CAP_NET_RAW


def give_up_privileges(state_directory: Path, needed: int = NETWORK_CAPABILITIES) -> None:
    """Keep the needed capabilities alone, where this process has them, and gain nothing by executing.

    To be called while there is one thread. A state directory of another user keeps CAP_DAC_OVERRIDE. Raises
    ServerError.
    """
    kept = needed
    if state_directory.stat().st_uid != os.geteuid():
        kept |= 1 << _CAP_DAC_OVERRIDE
    kernel = ctypes.CDLL(None, use_errno=True)
    _drop_bounds(kernel, kept)
    if kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise ServerError(f"privileges cannot be given up: {os.strerror(ctypes.get_errno())}")
    permitted, inheritable = capabilities("CapPrm") & kept, capabilities("CapInh") & kept
    words = [half for shift in (0, 32) for half in (permitted >> shift, permitted >> shift, inheritable >> shift)]
    data = struct.pack("=6I", *(word & 0xFFFF_FFFF for word in words))
    if kernel.capset(_HEADER, data) != 0:
        raise ServerError(f"capabilities cannot be given up: {os.strerror(ctypes.get_errno())}")


def capabilities(name: str) -> int:
    """A set of capabilities of the calling thread, by its name in proc(5), as bits."""
    found = re.search(rf"^{name}:\s*([0-9a-f]+)$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1], 16) if found else 0


def _drop_bounds(kernel: ctypes.CDLL, kept: int) -> None:
    """Without CAP_SETPCAP the bounding set stays; no program can raise what is not permitted any more."""
    number = 0
    while kernel.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) >= 0:
        if not kept >> number & 1:
            kernel.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
        number += 1
