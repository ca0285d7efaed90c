"""Capabilities that this host or the server lacks, each with its reason, checked before the first measurement."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path

from pepscope.captures.live.one_file import LiveCapture
from pepscope.errors import PepscopeError
from prober.protocol.control_messages import About

#: Options of linux/in.h and linux/in6.h that Python's socket module does not name.
_IP_RECVERR = 11
_IPV6_RECVERR = 25
#: The least that libpcap is asked to keep; nothing is read of this capture.
_PROBING_SNAP_BYTES = 68


class Capability(StrEnum):
    """What a task cannot do without, beside a server that answers."""

    MOBILE_CAPTURE = "mobile-capture"
    SERVER_CAPTURE = "server-capture"
    MOBILE_HOLD = "mobile-hold"
    SERVER_HOLD = "server-hold"
    ERROR_QUEUE = "error-queue"


def lacking_at_mobile(device: str | None, address: str, wanted: Collection[Capability]) -> dict[Capability, str]:
    """What of `wanted` the mobile cannot have, with the reason."""
    found = {
        Capability.MOBILE_CAPTURE: _why_no_capture(device) if Capability.MOBILE_CAPTURE in wanted else "",
        Capability.MOBILE_HOLD: _why_no_hold(address) if Capability.MOBILE_HOLD in wanted else "",
        Capability.ERROR_QUEUE: _why_no_error_queue(address) if Capability.ERROR_QUEUE in wanted else "",
    }
    return {want: reason for want, reason in found.items() if reason}


def lacking_at_server(about: About) -> dict[Capability, str]:
    """Capabilities that the server lacks, with its reasons."""
    found = {Capability.SERVER_CAPTURE: about.can.captures, Capability.SERVER_HOLD: about.can.holds}
    return {want: f"at the server: {reason}" for want, reason in found.items() if reason}


def unmet(wants: Collection[Capability], lacking: Mapping[Capability, str]) -> str:
    """Why a task that requires these cannot run; empty where it can."""
    return "; ".join(f"{want}: {lacking[want]}" for want in sorted(wants) if want in lacking)


def _why_no_capture(device: str | None) -> str:
    if device is None:
        return "no device of this host has the address that leads to the server"
    with tempfile.TemporaryDirectory(prefix="pepscope-") as directory:
        try:
            LiveCapture(device, Path(directory, "probing.pcap"), _PROBING_SNAP_BYTES).finish()
        except (PepscopeError, OSError) as error:
            hint = "; captures need root (CAP_NET_RAW)" if "permitted" in str(error) else ""
            return f"{error}{hint}"
    return ""


def _why_no_hold(address: str) -> str:
    from prober.host.hold import ack_hold
    from prober.host.hold.packet_rules import HeldTraffic

    # The port for discarding: nothing of ours goes there while it is tried.
    return ack_hold.lacking(HeldTraffic(((9, 9),), host=address))


def _why_no_error_queue(address: str) -> str:
    is_six = ":" in address
    family, level = (socket.AF_INET6, socket.IPPROTO_IPV6) if is_six else (socket.AF_INET, socket.IPPROTO_IP)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(level, _IPV6_RECVERR if is_six else _IP_RECVERR, 1)
    except OSError as error:
        return f"the kernel keeps no error messages for sockets: {error.strerror}"
    return "" if hasattr(socket, "MSG_ERRQUEUE") else "this Python cannot read error messages of sockets"
