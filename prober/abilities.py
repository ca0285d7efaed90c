"""What cannot be had here, and why not: one sentence for each want, asked before anything is measured."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from pepscope.errors import PepscopeError
from pepscope.live_capture import LiveCapture
from prober.experiment import Want
from prober.protocol import About

#: Options of linux/in.h and linux/in6.h that Python's socket module does not name.
_IP_RECVERR = 11
_IPV6_RECVERR = 25
#: The least that libpcap is asked to keep; nothing is read of this capture.
_PROBING_SNAP_BYTES = 68


def lacking_at_mobile(device: str | None, address: str, wanted: Collection[Want]) -> dict[Want, str]:
    """What of `wanted` the mobile cannot have, with the reason."""
    found = {
        Want.MOBILE_CAPTURE: _why_no_capture(device) if Want.MOBILE_CAPTURE in wanted else "",
        Want.MOBILE_HOLD: _why_no_hold(address) if Want.MOBILE_HOLD in wanted else "",
        Want.ERROR_QUEUE: _why_no_error_queue(address) if Want.ERROR_QUEUE in wanted else "",
    }
    return {want: reason for want, reason in found.items() if reason}


def lacking_at_server(about: About) -> dict[Want, str]:
    """What the server says that it cannot do, with its reasons."""
    found = {Want.SERVER_CAPTURE: about.can.captures, Want.SERVER_HOLD: about.can.holds}
    return {want: f"at the server: {reason}" for want, reason in found.items() if reason}


def unmet(wants: Collection[Want], lacking: Mapping[Want, str]) -> str:
    """Why a task that wants these cannot run; empty where it can."""
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
    from prober.hold import ack_hold
    from prober.hold.packet_rules import HeldTraffic

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
