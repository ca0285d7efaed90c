"""The helper, which the server starts before it gives everything up: `python -m ...process SOCKET SETTINGS`.

It keeps CAP_NET_RAW and CAP_NET_ADMIN and has no connection to any network. Whatever the serving process becomes, the
helper captures measured ports only, into one directory, and holds ACKs of measured ports, or silences them, within its
limits. It ends, and lets everything go, when the server does: the pipe breaks.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from pepscope.errors import CaptureError, PepscopeError
from prober.errors import ImpossibleError, MeasurementError
from prober.server.instruments.means import DirectHold, DirectMeans, MeansSettings, RunningCapture
from prober.server.instruments.privileged.requests import (
    MOST_BYTES,
    Answer,
    BeginCapture,
    BeginHold,
    EndHold,
    FinishCapture,
    HelperSettings,
    Request,
    Silence,
    Try,
    encode,
    read_request,
)
from prober.server.privileges import give_up_privileges

_NAME_BYTES = 8

Thing = TypeVar("Thing")


class Helper:
    """Does what requests ask for, each on a thread of its own, since letting ACKs go takes as long as they are held."""

    def __init__(self, settings: HelperSettings, send: Callable[[bytes], object]) -> None:
        self._settings, self._send = settings, send
        self._means = DirectMeans(
            MeansSettings(
                Path(settings.directory), settings.filter_expression, settings.ports, settings.trial_port,
                settings.captures, settings.holds, settings.hold_delay_s,
            ),
            lambda: secrets.token_hex(_NAME_BYTES),
        )  # fmt: skip
        self._captures: dict[str, RunningCapture] = {}
        self._holds: dict[str, DirectHold] = {}
        self._begun = {"captures": 0, "holds": 0}
        self._lock = threading.Lock()

    def answer(self, request: Request, sockets: list[socket.socket]) -> None:
        """Do it with the sockets that came with it, and send the answer."""
        try:
            done = self._silenced(request, sockets) if isinstance(request, Silence) else self._do(request)
        except (PepscopeError, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                error = MeasurementError(error.strerror or os.strerror(error.errno))
            kind = next((name for name, each in _KINDS.items() if isinstance(error, each)), "measurement")
            done = Answer(number=request.number, error=str(error)[:4000] or "it failed", kind=kind)  # type: ignore[arg-type]
        self._send(encode(done))

    def close(self) -> None:
        """End everything; what waits is dropped."""
        with self._lock:
            captures, holds = list(self._captures.values()), list(self._holds.values())
        for hold in holds:
            hold.close(in_order=False)
        for capture in captures:
            capture.finish()

    def _silenced(self, request: Silence, sockets: list[socket.socket]) -> Answer:
        for sock in sockets:
            port = sock.getsockname()[1]
            # A socket that is not bound is for trying it.
            if port and not any(first <= port <= last for first, last in self._settings.ports):
                raise ImpossibleError(f"only the server's own ports are silenced, got {port}")
            self._means.set_silence(sock, request.is_silent)
        return Answer(number=request.number)

    def _do(self, request: BeginCapture | FinishCapture | BeginHold | EndHold | Try) -> Answer:
        number = request.number
        match request:
            case BeginCapture():
                self._check_device(request.device)
                with _Place(self._begun, "captures", self._settings.captures, self._lock) as place:
                    capture = self._means.capture(request.device, request.snap_bytes)
                    place.keep()
                name = capture.path.stem
                self._captures[name] = capture
                return Answer(number=number, name=name)
            case FinishCapture():
                return Answer(number=number, missed=self._taken(self._captures, request.name, "captures").finish())
            case BeginHold():
                self._check_hold(request)
                with _Place(self._begun, "holds", self._settings.holds, self._lock) as place:
                    hold = self._means.hold(request.ports, request.delay_s)
                    place.keep()
                name = secrets.token_hex(_NAME_BYTES)
                self._holds[name] = hold
                return Answer(number=number, name=name)
            case EndHold():
                return Answer(number=number, held=self._taken(self._holds, request.name, "holds").close())
            case Try():
                if request.device is None:
                    return Answer(number=number, lacking=self._means.lacking_holds()[:4000])
                self._check_device(request.device)
                return Answer(number=number, lacking=self._means.lacking_captures(request.device)[:4000])

    def _taken(self, things: dict[str, Thing], name: str, kind: str) -> Thing:
        with self._lock:
            thing = things.pop(name, None)
            if thing is None:
                raise MeasurementError(f"the helper has no {kind[:-1]} of this name")
            self._begun[kind] -= 1
        return thing

    def _check_device(self, device: str) -> None:
        # Not every name that libpcap takes is a network's: it also captures from USB and D-Bus.
        if device not in (name for _, name in socket.if_nameindex()):
            raise CaptureError(f"there is no network interface {device!r}")

    def _check_hold(self, request: BeginHold) -> None:
        for wanted in request.ports:
            if not any(first <= wanted[0] <= wanted[1] <= last for first, last in self._settings.ports):
                raise ImpossibleError(f"ACKs are held back on the server's own ports only, got {wanted[0]}")
        if request.delay_s > self._settings.hold_delay_s:
            raise ImpossibleError(f"ACKs are held back by at most {self._settings.hold_delay_s:g} s")


class _Place:
    """One of a limited number; it is given back unless it is kept."""

    def __init__(self, begun: dict[str, int], kind: str, most: int, lock: threading.Lock) -> None:
        self._begun, self._kind, self._most, self._lock = begun, kind, most, lock
        self._is_kept = False

    def __enter__(self) -> _Place:
        with self._lock:
            if self._begun[self._kind] >= self._most:
                raise MeasurementError(f"the helper must have at most {self._most} {self._kind} at once")
            self._begun[self._kind] += 1
        return self

    def keep(self) -> None:
        self._is_kept = True

    def __exit__(self, *_: object) -> None:
        if not self._is_kept:
            with self._lock:
                self._begun[self._kind] -= 1


_KINDS = {"capture": CaptureError, "impossible": ImpossibleError, "measurement": MeasurementError}


def main() -> int:
    """Serve until the pipe breaks."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The server ends in order, and with it this process.
        signal.signal(number, signal.SIG_IGN)
    settings = msgspec.json.decode(sys.argv[2].encode(), type=HelperSettings)
    give_up_privileges(Path(settings.state))
    with socket.socket(fileno=int(sys.argv[1])) as pipe:
        os.set_inheritable(pipe.fileno(), False)
        helper = Helper(settings, pipe.send)
        pipe.send(encode(Answer(number=0)))
        try:
            while True:
                data, numbers, _, _ = socket.recv_fds(pipe, MOST_BYTES, 1)
                if not data:
                    break
                sockets = [socket.socket(fileno=number) for number in numbers]
                try:
                    request = read_request(data)
                except msgspec.DecodeError:
                    # Only a server that is no longer itself says what makes no sense.
                    return 1
                threading.Thread(target=_answer, args=(helper, request, sockets), daemon=True).start()
        except ConnectionError:
            pass
        finally:
            helper.close()
    return 0


def _answer(helper: Helper, request: Request, sockets: list[socket.socket]) -> None:
    try:
        helper.answer(request, sockets)
    except OSError:
        # The server is gone, and the helper is about to go.
        return
    finally:
        for sock in sockets:
            sock.close()


if __name__ == "__main__":
    sys.exit(main())
