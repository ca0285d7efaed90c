"""Captures at both ends around one task: begun before it, ended a little after, fetched, or given up without trace."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pepscope.captures.live.one_file import LiveCapture
from pepscope.errors import CaptureError, FilterError
from prober.client.capabilities import Capability
from prober.errors import ControlError, MeasurementError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prober.client.control_client import ControlClient

#: libpcap hands packets over in blocks that the kernel ends after 100 ms; what is captured last needs longer than that.
LEAST_GRACE_S = 0.3
MOST_GRACE_S = 5.0
#: FIN, its acknowledgement and the other end's take a round trip and a half.
_GRACE_ROUND_TRIPS = 2.0


class TaskCaptures:
    """A context: captures are on within it. What is left by an exception is thrown away at both ends."""

    def __init__(
        self,
        control: ControlClient,
        *,
        label: str,
        device: str | None,
        mobile_filter: str,
        snap_bytes: int,
        mobile_path: Path,
        server_path: Path,
        lacking: Mapping[Capability, str],
        round_trip_time_s: float,
    ) -> None:
        self._control = control
        self._label = label
        self._device = device
        self._mobile_filter = mobile_filter
        self._snap_bytes = snap_bytes
        self._paths = {"mobile": mobile_path, "server": server_path}
        self._lacking = lacking
        self._grace_s = min(max(LEAST_GRACE_S, _GRACE_ROUND_TRIPS * round_trip_time_s), MOST_GRACE_S)
        self._mobile: LiveCapture | None = None
        self._server = ""
        self._notes: list[str] = []

    def __enter__(self) -> TaskCaptures:
        """Begin. Raises MeasurementError, ControlError, OSError."""
        try:
            self._start()
        except BaseException as error:
            self._give_up(ask_server=isinstance(error, Exception) and not isinstance(error, UnreachableError))
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # Of a run that ends, the end of its session does the same, without waiting for an answer.
            self._give_up(ask_server=issubclass(kind, Exception) and not issubclass(kind, UnreachableError))

    def _start(self) -> None:
        for want in (Capability.MOBILE_CAPTURE, Capability.SERVER_CAPTURE):
            if want in self._lacking:
                self._notes.append(f"{want}: {self._lacking[want]}")
        if Capability.SERVER_CAPTURE not in self._lacking:
            self._server = self._control.start_capture(self._label, self._snap_bytes)
        if Capability.MOBILE_CAPTURE not in self._lacking and self._device is not None:
            try:
                self._mobile = LiveCapture(self._device, self._paths["mobile"], self._snap_bytes, self._mobile_filter)
            except (CaptureError, FilterError) as error:
                raise MeasurementError(str(error)) from error

    def finish(self) -> str:
        """End both and put their files into place; returns notes about them, empty for none.

        Raises MeasurementError where a capture that was begun is not whole, ControlError, OSError.
        """
        if self._mobile is not None or self._server:
            time.sleep(self._grace_s)
        if self._mobile is not None:
            mobile, self._mobile = self._mobile, None
            try:
                missed = mobile.finish()["missed_packets"]
            except CaptureError as error:
                raise MeasurementError(str(error)) from error
            self._count_missed("mobile", missed)
        if self._server:
            summary = self._control.fetch_capture(self._server, self._paths["server"])
            if summary.ended_early:
                raise MeasurementError(f"the server's capture ended early: {summary.ended_early}")
            self._count_missed("server", summary.missed)
            name, self._server = self._server, ""
            self._control.delete_capture(name)
        return "; ".join(self._notes)

    def _count_missed(self, end: str, missed: int) -> None:
        if missed > 0:
            self._notes.append(f"the {end}'s capture missed {missed} packets")

    def _give_up(self, *, ask_server: bool) -> None:
        """Throw away what was captured. Raises UnreachableError where the server is asked and does not answer."""
        if self._mobile is not None:
            with contextlib.suppress(CaptureError):
                self._mobile.finish()
            self._mobile = None
        name, self._server = self._server, ""
        if name and ask_server:
            try:
                self._control.delete_capture(name)
            except UnreachableError:
                raise
            except ControlError:
                return  # a server that was started anew never had it


def mobile_filter(address: str, control_port: int, *, everything: bool = False) -> str:
    """What the mobile captures, in the language of pcap-filter: the server's traffic but for the control channel.

    Routers' answers to packets that died on the way come from other addresses. `everything` takes what else passes
    the device, too: a tunnel that ends on the mobile shows under its own addresses.
    """
    control = f"(host {address} and tcp port {control_port})"
    if everything:
        return f"not {control}"
    return f"(host {address} and not {control}) or icmp or icmp6"
