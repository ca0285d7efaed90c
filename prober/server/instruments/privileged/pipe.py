"""The server's side of the pipe: the helper as what makes captures and holds."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

import msgspec

from pepscope.errors import CaptureError, PepscopeError
from prober.errors import ImpossibleError, MeasurementError, ServerError
from prober.protocol.control_messages import HoldReport
from prober.server.instruments.means import MeansSettings, PortRanges
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
    read_answer,
)
from prober.server.sockets import listening

logger = logging.getLogger("prober")

#: Letting ACKs go takes as long as they were held, rules a few seconds.
_ANSWER_S = 300.0
_START_S = 60.0
_GONE = "the helper process for captures and ACK holds is gone; restart the server"
_END_S = 5.0
_ERRORS: dict[str, type[PepscopeError]] = {
    "capture": CaptureError,
    "impossible": ImpossibleError,
    "measurement": MeasurementError,
}


class HelperMeans:
    """Asks the helper; used by many threads once it was started.

    It is made while the server has its privileges, and one thread. A helper that ends is not replaced, since the server
    has nothing to give to another one: captures and holds are refused from then on, and all else goes on.
    """

    def __init__(self, settings: MeansSettings, state: Path) -> None:
        """Start the process. Raises ServerError."""
        self._directory = settings.directory
        self._waiting: dict[int, Future[Answer]] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._is_gone = self._is_closing = False
        self._thread = threading.Thread(target=self._read, name="pepscope-helper", daemon=True)
        given = HelperSettings(
            directory=str(settings.directory.resolve()),
            state=str(state.resolve()),
            filter_expression=settings.filter_expression,
            ports=settings.ports,
            trial_port=settings.trial_port,
            captures=settings.captures,
            holds=settings.holds,
            hold_delay_s=settings.hold_delay_s,
        )
        self._pipe, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-m", "prober.server.instruments.privileged.process", str(theirs.fileno())]
        with theirs:
            # A session of its own: a terminal's signals are for the server.
            self._process = subprocess.Popen(
                [*words, msgspec.json.encode(given).decode()], pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        self._pipe.settimeout(_START_S)
        try:
            is_there = bool(self._pipe.recv(MOST_BYTES))
        except OSError:
            is_there = False
        if not is_there:
            self._pipe.close()
            self._process.kill()
            self._process.wait()
            raise ServerError("the helper process for captures and ACK holds does not start")
        self._pipe.settimeout(None)

    def capture(self, device: str, snap_bytes: int) -> _HelpersCapture:
        """Begin a capture. Raises CaptureError, MeasurementError."""
        answer = self._ask(lambda number: BeginCapture(number=number, device=device, snap_bytes=snap_bytes))
        return _HelpersCapture(self._ask, self._directory / f"{answer.name}.pcap")

    def hold(self, ports: PortRanges, delay_s: float) -> _HelpersHold:
        """Hold ACKs back. Raises ImpossibleError, MeasurementError."""
        answer = self._ask(lambda number: BeginHold(number=number, ports=ports, delay_s=delay_s))
        return _HelpersHold(self._ask, answer.name)

    def lacking_captures(self, device: str) -> str:
        """Why nothing can be captured there, tried; empty where it can."""
        return self._lacking(device)

    def lacking_holds(self) -> str:
        """Why no ACKs can be held back, tried; empty where they can."""
        return self._lacking(None)

    def set_silence(self, sock: socket.socket, is_silent: bool) -> None:
        """Have a listening socket drop every SYN, or take them again. Raises OSError."""
        try:
            listening.set_silence(sock, is_silent)
        except PermissionError:
            # Some kernels allow only root to attach a filter.
            try:
                self._ask(lambda number: Silence(number=number, is_silent=is_silent), sock)
            except PepscopeError as error:
                raise PermissionError(errno.EPERM, str(error)) from None

    def close(self) -> None:
        """Have the helper end, and with it all that it does."""
        self._is_closing = True
        with contextlib.suppress(OSError):
            self._pipe.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join(_END_S)
        self._pipe.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _lacking(self, device: str | None) -> str:
        try:
            return self._ask(lambda number: Try(number=number, device=device)).lacking
        except PepscopeError as error:
            return str(error)

    def _ask(self, request: Callable[[int], Request], *sockets: socket.socket) -> Answer:
        """The helper's answer; `sockets` go with the request.

        Raises the error that it reports, and MeasurementError where it is gone.
        """
        future: Future[Answer] = Future()
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting[number] = future
            if not self._thread.is_alive() and not self._is_gone:
                self._thread.start()
        try:
            if self._is_gone:
                raise OSError
            socket.send_fds(self._pipe, [encode(request(number))], [sock.fileno() for sock in sockets])
            answer = future.result(_ANSWER_S)
        except (OSError, FutureTimeoutError):
            raise MeasurementError(
                "the helper process for captures and ACK holds is gone; restart the server"
            ) from None
        finally:
            self._waiting.pop(number, None)
        if answer.error:
            raise _ERRORS.get(answer.kind, MeasurementError)(answer.error)
        return answer

    def _read(self) -> None:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            while data := self._pipe.recv(MOST_BYTES):
                answer = read_answer(data)
                future = self._waiting.get(answer.number)
                if future is not None:
                    future.set_result(answer)
        self._is_gone = True
        if not self._is_closing:
            logger.error(_GONE, extra={"fields": {"event": "helper-gone"}})
        for future in list(self._waiting.values()):
            with contextlib.suppress(Exception):
                future.set_exception(OSError())


class _HelpersCapture:
    def __init__(self, ask: Callable[[Callable[[int], Request]], Answer], path: Path) -> None:
        self._ask, self.path = ask, path

    def finish(self) -> int:
        try:
            return self._ask(lambda number: FinishCapture(number=number, name=self.path.stem)).missed
        except MeasurementError as error:
            raise CaptureError(str(error)) from None


class _HelpersHold:
    def __init__(self, ask: Callable[[Callable[[int], Request]], Answer], name: str) -> None:
        self._ask, self._name = ask, name
        self._report: HoldReport | None = None

    def close(self) -> HoldReport:
        if self._report is None:
            # Once, whatever comes of it.
            self._report = HoldReport(0, 0, 0.0)
            answer = self._ask(lambda number: EndHold(number=number, name=self._name))
            self._report = answer.held or self._report
        return self._report
