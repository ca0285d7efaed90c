"""How captures are made, ACKs held back and ports silenced: in this process, or by a helper that has the privileges."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pepscope.captures.live.one_file import LiveCapture
from pepscope.errors import PepscopeError
from prober.host.hold import ack_hold
from prober.host.hold.ack_hold import AckHold
from prober.host.hold.packet_rules import HeldTraffic
from prober.protocol.control_messages import HoldReport
from prober.server.sockets import listening

#: First and last port of each range.
PortRanges = tuple[tuple[int, int], ...]


class RunningCapture(Protocol):
    """A capture into a file."""

    @property
    def path(self) -> Path:
        """Where it goes."""

    def finish(self) -> int:
        """Stop; how many packets it missed, -1 where that is not known. Raises CaptureError."""


class RunningHold(Protocol):
    """ACKs that are held back."""

    def close(self) -> HoldReport:
        """Let go, in order; a second time does nothing. Raises MeasurementError."""


class Means(Protocol):
    """Makes both; used by many threads."""

    def capture(self, device: str, snap_bytes: int) -> RunningCapture:
        """Begin a capture. Raises CaptureError."""

    def hold(self, ports: PortRanges, delay_s: float) -> RunningHold:
        """Hold this end's ACKs on its ports back. Raises PepscopeError, OSError, ValueError."""

    def lacking_captures(self, device: str) -> str:
        """Why nothing can be captured there, tried; empty where it can."""

    def lacking_holds(self) -> str:
        """Why no ACKs can be held back, tried; empty where they can."""

    def set_silence(self, sock: socket.socket, is_silent: bool) -> None:
        """Have a listening socket drop every SYN, or take them again. Raises OSError."""

    def close(self) -> None:
        """Make no more."""


@dataclass(frozen=True, slots=True)
class MeansSettings:
    """What may be captured and held, and how much."""

    #: Where captures go.
    directory: Path
    #: The only packets that are captured, in the language of pcap-filter.
    filter_expression: str
    #: The only ports whose ACKs are held back, and one that nobody serves, to try it on.
    ports: PortRanges
    trial_port: int
    #: Most at once.
    captures: int
    holds: int
    hold_delay_s: float


MakeMeans = Callable[[MeansSettings, Path], Means]


class _Capture:
    def __init__(self, running: LiveCapture) -> None:
        self._running = running

    @property
    def path(self) -> Path:
        return self._running.path

    def finish(self) -> int:
        return self._running.finish()["missed_packets"]


class DirectHold:
    """A hold in this process."""

    def __init__(self, hold: AckHold) -> None:
        self._hold = hold

    def close(self, *, in_order: bool = True) -> HoldReport:
        """Let go; a second time does nothing. Raises MeasurementError."""
        report = self._hold.close(in_order=in_order)
        return HoldReport(report.held, report.released, report.largest_error_s)


class DirectMeans:
    """In this process, which has the privileges, or has not."""

    def __init__(self, settings: MeansSettings, new_name: Callable[[], str]) -> None:
        """`new_name` names captures."""
        self._settings, self._new_name = settings, new_name

    def capture(self, device: str, snap_bytes: int) -> _Capture:
        """Begin a capture. Raises CaptureError."""
        path = self._settings.directory / f"{self._new_name()}.pcap"
        return _Capture(LiveCapture(device, path, snap_bytes, self._settings.filter_expression))

    def hold(self, ports: PortRanges, delay_s: float) -> DirectHold:
        """Hold ACKs back. Raises PepscopeError, OSError, ValueError."""
        return DirectHold(AckHold(HeldTraffic(ports), delay_s).__enter__())

    def lacking_captures(self, device: str) -> str:
        """Why nothing can be captured there, tried; empty where it can."""
        try:
            trial = self.capture(device, 68)
            trial.finish()
            trial.path.unlink(missing_ok=True)
        except (PepscopeError, OSError) as error:
            return f"{error}; captures need root or the capability CAP_NET_RAW"
        return ""

    def lacking_holds(self) -> str:
        """Why no ACKs can be held back, tried; empty where they can."""
        trial = self._settings.trial_port
        return ack_hold.lacking(HeldTraffic(((trial, trial),)))

    def set_silence(self, sock: socket.socket, is_silent: bool) -> None:
        """Have a listening socket drop every SYN, or take them again. Raises OSError."""
        listening.set_silence(sock, is_silent)

    def close(self) -> None:
        """Nothing is left to close."""
