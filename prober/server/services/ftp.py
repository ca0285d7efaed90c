"""FTP by pyftpdlib, in a thread with a loop of its own; only commands that move objects are understood.

Data connections come to the declared ports, and from anywhere: a provider may send them another way than the control
connection, and what they carry is of no worth to others. Towards a client data connections go to the very address that
asks, and never below port 1024 (RFC 2577): no client can have this server connect to another host.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar

from pyftpdlib.handlers import DTPHandler, FTPHandler
from pyftpdlib.ioloop import IOLoop
from pyftpdlib.servers import FTPServer

from prober.protocol.application import Application
from prober.protocol.objects import PIECE_BYTES
from prober.server.refusal import RefusedError
from prober.server.served_log import Entry
from prober.server.services.ftp_files import ObjectFile, ObjectFiles, SessionAuthorizer
from prober.server.sockets.connections import show, shut_down
from prober.server.sockets.kernel_state import await_acknowledged, last_tcp_info, save_syns, saved_syn

if TYPE_CHECKING:
    from prober.server.context import ServiceContext
    from prober.server.keys.client_key import ClientKey
    from prober.server.sockets.admission import Admitted
    from prober.server.sockets.listening import Port

logger = logging.getLogger("prober")

_WAKE_S = 0.2
_MOST_REFUSALS = 20
_COMMANDS = (
    "ABOR", "ALLO", "CWD", "EPRT", "EPSV", "FEAT", "MODE", "NOOP", "PASS", "PASV", "PORT", "PWD", "QUIT", "REST",
    "RETR", "SIZE", "STAT", "STOR", "STRU", "SYST", "TYPE", "USER",
)  # fmt: skip


class _NoPortError(Exception):
    """All declared ports of data connections are taken."""


class _PassiveData(FTPHandler.passive_dtp):  # type: ignore[misc]
    def listen(self, backlog: int) -> None:
        # Where every declared port is taken, pyftpdlib uses one of the kernel's, which no firewall admits.
        if self.socket.getsockname()[1] not in self.cmd_channel.passive_ports:
            self.close()
            raise _NoPortError
        save_syns(self.socket)
        super().listen(backlog)


class _Data(DTPHandler):  # type: ignore[misc]
    """A data connection that writes down what it moved, once the peer has it."""

    ac_in_buffer_size = ac_out_buffer_size = PIECE_BYTES

    def __init__(self, sock: socket.socket, cmd_channel: Any) -> None:
        self._entry: Entry | None = None
        self._accepted_s = time.monotonic()
        with contextlib.suppress(OSError):
            self._names = (show(*sock.getpeername()[:2]), sock.getsockname()[1], saved_syn(sock))
        super().__init__(sock, cmd_channel)

    def send(self, data: bytes) -> int:
        sent = int(super().send(data))
        if (entry := self._written_down()) is not None and sent > 0:
            entry.sent(data[:sent])
        return sent

    def recv(self, buffer_size: int) -> bytes:
        data = bytes(super().recv(buffer_size))
        if (entry := self._written_down()) is not None and data:
            entry.received(data)
        return data

    def _written_down(self) -> Entry | None:
        if self._entry is None and self.file_obj is not None and hasattr(self, "_names"):
            context: ServiceContext = self.cmd_channel.server.context
            session = context.sessions.find(self.cmd_channel.username)
            if session is not None:
                peer, port, syn = self._names
                is_object = isinstance(self.file_obj, ObjectFile)
                verb, name = "RETR" if is_object else "STOR", self.file_obj.name.removeprefix("/")
                size_bytes = self.file_obj.size_bytes if is_object else -1
                self._entry = Entry(
                    session.log,
                    Application.FTP,
                    peer,
                    port,
                    verb,
                    name,
                    size_bytes=size_bytes,
                    syn=syn,
                    accepted_s=self._accepted_s,
                )
        return self._entry

    def close(self) -> None:
        if not self._closed and (entry := self._written_down()) is not None:
            self._end(entry)
        super().close()

    def _end(self, entry: Entry) -> None:
        try:
            state = last_tcp_info(self.socket)
            if not self.transfer_finished:
                entry.end("aborted-by-peer", state)
                return
            # The loop closes its descriptor now; a second one allows a thread to wait until the peer has everything.
            watched = self.socket.dup()
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            entry.end("aborted-by-peer", {})
            return
        timeout_s = self.cmd_channel.server.context.limits.idle_s
        threading.Thread(target=_watch, args=(watched, entry, timeout_s), daemon=True).start()


def _watch(sock: socket.socket, entry: Entry, timeout_s: float) -> None:
    with sock:
        entry.end(*await_acknowledged(sock, timeout_s))


class _Control(FTPHandler):  # type: ignore[misc]
    """A control connection."""

    banner = "pepscope probe server ready."
    passive_dtp = _PassiveData
    dtp_handler = _Data
    abstracted_fs = ObjectFiles
    permit_foreign_addresses = True
    use_sendfile = False
    # Names of sessions cannot be guessed, however fast.
    auth_failed_timeout = 0.2
    _refusals = 0
    #: The key of the session that logged in.
    owner: ClientKey | None = None
    admitted: Admitted | None = None
    proto_cmds: ClassVar = {name: FTPHandler.proto_cmds[name] for name in _COMMANDS}

    def handle(self) -> None:
        """Check a login."""
        context: ServiceContext = self.server.context
        try:
            self.admitted = context.admission.admit(self.remote_ip, lambda: shut_down(self.socket))
        except RefusedError as error:
            context.complaints.complain("refused", str(error), peer=show(self.remote_ip, self.remote_port))
            self.respond_w_warning(f"421 {error}.")
            self.close_when_done()
            return
        self.ioloop.call_later(context.limits.head_s, self._end_stranger, _errback=self.handle_error)
        super().handle()

    def respond(self, resp: str, logfun: Any = None) -> None:  # noqa: ARG002
        """Answer; a client whose every command is refused is disconnected."""
        super().respond(resp, logfun=self.log)
        self._refusals += resp.startswith("5")
        if self._refusals == _MOST_REFUSALS:
            super().respond("421 Too many mistakes.", logfun=self.log)
            self.close_when_done()

    def found_terminator(self) -> None:
        """A command; after too many mistakes nothing more is read into."""
        if self._refusals < _MOST_REFUSALS:
            super().found_terminator()

    def collect_incoming_data(self, data: bytes) -> None:
        """Part of a command."""
        if self._refusals < _MOST_REFUSALS:
            super().collect_incoming_data(data)

    def _end_stranger(self) -> None:
        if not self._closed and not self.authenticated:
            self.respond("421 You took too long to log in.")
            self.close_when_done()

    def close(self) -> None:
        """End, and make room."""
        if self.admitted is not None:
            self.server.context.admission.release(self.admitted)
            self.admitted = None
        super().close()

    def ftp_PORT(self, line: str) -> None:  # noqa: N802
        """Connect to the client, and to no other host."""
        self._to_this_address_only(super().ftp_PORT, line)

    def ftp_EPRT(self, line: str) -> None:  # noqa: N802
        """Connect to the client, and to no other host."""
        self._to_this_address_only(super().ftp_EPRT, line)

    def ftp_PASV(self, line: str) -> None:  # noqa: N802
        """Wait for the client at a declared port."""
        self._at_a_declared_port(super().ftp_PASV, line)

    def ftp_EPSV(self, line: str) -> None:  # noqa: N802
        """Wait for the client at a declared port."""
        self._at_a_declared_port(super().ftp_EPSV, line)

    def ftp_STAT(self, path: str) -> None:  # noqa: N802
        """Say nothing about files: pyftpdlib insists on knowing the command."""
        self.respond("502 There are no listings." if path else "211 Serving objects.")

    def _to_this_address_only(self, command: Any, line: str) -> None:
        self.permit_foreign_addresses = False
        try:
            command(line)
        finally:
            self.permit_foreign_addresses = True

    def _at_a_declared_port(self, command: Any, line: str) -> None:
        try:
            command(line)
        except _NoPortError:
            self.respond("425 All ports of data connections are taken, try again.")

    def log(self, msg: str, logfun: Any = None) -> None:
        """What pyftpdlib would log of each command."""


class _Server(FTPServer):  # type: ignore[misc]
    """One listening socket."""

    def __init__(self, sock: socket.socket, handler: type[FTPHandler], loop: IOLoop, context: ServiceContext) -> None:
        self.context = context
        self.max_cons = context.limits.connections
        super().__init__(sock, handler, ioloop=loop)


class FtpService:
    """FTP on any number of ports."""

    def __init__(self, context: ServiceContext, ports: list[Port], data_ports: tuple[int, int]) -> None:
        logging.getLogger("pyftpdlib").handlers[:] = logger.handlers or [logging.NullHandler()]
        logging.getLogger("pyftpdlib").setLevel(logging.ERROR)
        logging.getLogger("pyftpdlib").propagate = False
        self._loop = IOLoop()
        settings = {
            "authorizer": SessionAuthorizer(context),
            "passive_ports": list(range(data_ports[0], data_ports[1] + 1)),
            "timeout": context.limits.idle_s,
        }
        handler = type("FtpControl", (_Control,), settings)
        for sock in (sock for port in ports for sock in port.sockets):
            _Server(sock, handler, self._loop, context)
        self._is_ending = False
        self._ended: SimpleQueue[ClientKey] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pepscope-ftp", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end_of(self, key: ClientKey) -> None:
        """Have every connection that logged in with a session of this key end, within a moment."""
        self._ended.put(key)

    def close(self) -> None:
        """End every connection, and listen no more."""
        self._is_ending = True
        self._thread.join()

    def _run(self) -> None:
        while not self._is_ending:
            try:
                self._loop.loop(timeout=_WAKE_S, blocking=False)
                self._close_ended()
            except Exception:
                logger.exception("an FTP connection ended by an error of ours", extra={"fields": {"event": "bug"}})
        self._loop.close()

    def _close_ended(self) -> None:
        while not self._ended.empty():
            key = self._ended.get()
            for control in [one for one in self._loop.socket_map.values() if isinstance(one, _Control)]:
                if control.owner is key:
                    control.close()
