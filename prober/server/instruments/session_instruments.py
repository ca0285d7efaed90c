"""Functions of the server that the mobile uses during a measurement: captures, delayed ACKs, silenced ports."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from pepscope.errors import CaptureError, PepscopeError
from prober.host.network_devices import device_of
from prober.protocol.control_messages import CaptureSummary, HoldReport, Ports, ServerCapabilities
from prober.server.instruments.captures import Capture, excess, no_room, service_filter
from prober.server.instruments.leases import Leases
from prober.server.instruments.means import Means, MeansSettings, RunningHold
from prober.server.keys.client_key import ClientKey
from prober.server.refusal import RefusedError
from prober.server.sessions import Session
from prober.server.settings import LimitsTable
from prober.server.sockets import listening
from prober.server.sockets.listening import Port


class Instruments:
    """All of them, each leased to a session."""

    def __init__(
        self,
        limits: LimitsTable,
        ports: Ports,
        listeners: dict[int, Port],
        directory: Path,
        interface: str,
        means: Means,
    ) -> None:
        self._limits, self._ports, self._listeners = limits, ports, listeners
        self._directory, self._interface, self._means = directory, interface, means
        for listener in listeners.values():
            listener.set_silence = means.set_silence
        # Finished captures wait until they are fetched, so more are stored than may run.
        self.captures: Leases[Capture] = Leases("capture", limits.captures_kept * limits.sessions, Capture.close)
        self.holds: Leases[RunningHold] = Leases("hold", limits.holds, lambda hold: hold.close())
        self.silences: Leases[Port] = Leases("silence", limits.silences, Port.end_silence)

    def capabilities(self) -> ServerCapabilities:
        """What works here, tried."""
        return ServerCapabilities(self._no_captures(), self._no_holds(), self._no_silences())

    def _no_captures(self) -> str:
        if not self._limits.captures:
            return "this server makes no captures (limits.captures is 0)"
        return self._means.lacking_captures(self._interface or "lo")

    def _no_holds(self) -> str:
        if not self._limits.holds:
            return "this server holds no ACKs back (limits.holds is 0)"
        return self._means.lacking_holds()

    def _no_silences(self) -> str:
        if not self._limits.silences:
            return "this server silences no port (limits.silences is 0)"
        return listening.lacking(self._means.set_silence)

    def start_capture(self, session: Session, local_address: str, snap_bytes: int) -> str:
        """Capture on the interface that has this address. Raises RefusedError."""
        full = no_room(self._directory, self._limits)
        if full:
            raise RefusedError(507, full)
        running = sum(capture.is_running for capture in self.captures.things())
        if running >= self._limits.captures:
            raise RefusedError(409, f"the server must make at most {running} captures at once")
        if self.captures.count(session) >= self._limits.captures_kept:
            raise RefusedError(409, f"a session must have at most {self._limits.captures_kept} captures: delete some")
        if too_large := self._excess_of(session.key):
            raise RefusedError(507, f"{too_large}: delete some")

        def make() -> Capture:
            device = self._interface or device_of(local_address)
            if device is None:
                raise CaptureError(f"no interface has the address {local_address}; name one with --interface")
            return Capture(self._means.capture(device, snap_bytes))

        try:
            return self.captures.begin(session, math.inf, make)
        except RefusedError:
            raise
        except (PepscopeError, OSError) as error:
            raise RefusedError(409, str(error)) from None

    def finish_capture(self, session: Session, name: str) -> CaptureSummary:
        """End a capture. Raises RefusedError."""
        return self.captures.find(session, name).finish()

    def delete_capture(self, session: Session, name: str) -> None:
        """Delete a capture. Raises RefusedError."""
        self.captures.end(session, name).close()

    def begin_hold(self, session: Session, port: int, delay_s: float, lease_s: float) -> str:
        """Hold back this end's ACKs on a service port. Raises RefusedError."""
        self._listener(port)
        ranges = [(port, port)]
        if port in (self._ports.ftp, self._ports.ftp_free):
            ranges.append(self._ports.ftp_data)
        delay_s = min(delay_s, self._limits.hold_delay_s)

        def make() -> RunningHold:
            return self._means.hold(tuple(ranges), delay_s)

        try:
            return self.holds.begin(session, self._lease(lease_s), make)
        except RefusedError:
            raise
        except (PepscopeError, OSError, ValueError) as error:
            raise RefusedError(409, str(error)) from None

    def end_hold(self, session: Session, name: str) -> HoldReport:
        """Let go. Raises RefusedError."""
        hold = self.holds.end(session, name)
        try:
            return hold.close()
        except PepscopeError as error:
            raise RefusedError(500, str(error)) from None

    def begin_silence(self, session: Session, port: int, lease_s: float) -> str:
        """Answer no SYN to a service port. Raises RefusedError."""
        listener = self._listener(port)

        def make() -> Port:
            listener.silence()
            return listener

        try:
            return self.silences.begin(session, self._lease(lease_s), make)
        except OSError as error:
            raise RefusedError(409, f"port {port} cannot be silenced: {error.strerror}") from None

    def end_silence(self, session: Session, name: str) -> None:
        """Answer again. Raises RefusedError."""
        self.silences.end(session, name).end_silence()

    def sweep(self, is_alive: Callable[[Session], bool]) -> None:
        """End what is overdue or too large, or of a session that is no more. Raises RefusedError for a full disk."""
        for leases in (self.holds, self.silences, self.captures):
            leases.end_overdue(is_alive)
        for capture in self.captures.things():
            why = excess(capture, self._limits)
            if why:
                capture.finish(why)
        for key in self.captures.owners():
            if why := self._excess_of(key):
                for capture in self._captures_of(key):
                    if capture.is_running:
                        capture.finish(why)

    def end_of(self, session: Session) -> None:
        """End everything of a session."""
        for leases in (self.holds, self.silences, self.captures):
            leases.end_of(session)

    def close(self) -> None:
        """End everything."""
        for leases in (self.holds, self.silences, self.captures):
            leases.close()

    def _captures_of(self, key: ClientKey) -> list[Capture]:
        return self.captures.things(lambda session: session.key is key)

    def _excess_of(self, key: ClientKey) -> str:
        """Why a key must capture nothing more, one sentence; empty where it may."""
        most = key.quotas.capture_bytes
        if most is None or sum(capture.stored_bytes for capture in self._captures_of(key)) < most:
            return ""
        return f"the captures of the key {key.name} must take less than {most} bytes"

    def _lease(self, lease_s: float) -> float:
        return min(lease_s, self._limits.lease_s)

    def _listener(self, port: int) -> Port:
        """A service's own port, since the control channel must never be silenced, nor ports of other programs."""
        if port not in self._ports.services:
            raise RefusedError(404, f"the port must be one of {', '.join(map(str, self._ports.services))}, got {port}")
        return self._listeners[port]


def means_settings(limits: LimitsTable, ports: Ports, directory: Path) -> MeansSettings:
    """What a server with these ports captures and holds at most."""
    ranges = [(port, port) for port in ports.services]
    if ports.ftp_data[0]:
        ranges.append(ports.ftp_data)
    return MeansSettings(
        directory,
        service_filter(ports),
        tuple(ranges),
        ports.dead,
        # One more of each, to try whether it works.
        captures=limits.captures + 1,
        holds=limits.holds + 1,
        hold_delay_s=limits.hold_delay_s,
    )
