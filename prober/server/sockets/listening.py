"""Listening sockets, one for each port and address, and silence, a socket filter that drops every packet.

A filter of one instruction, `ret 0`, on a listening socket (SO_ATTACH_FILTER, socket(7)) drops every SYN before TCP
sees it: no SYN-ACK, no reset. It applies to all clients; existing connections have their own sockets and continue.
Usual kernels allow every user to attach one, some only root. A port that is always silent needs none: Linux also drops
SYNs while a listening socket has its maximum of waiting connections (listen(2)), and one is enough.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
import threading
from collections.abc import Callable, Iterable

from prober.errors import ServerError
from prober.server.sockets.kernel_state import save_syns

SO_ATTACH_FILTER = 26
SO_DETACH_FILTER = 27

#: As much as kernels allow by default (net.core.somaxconn since Linux 5.4).
_BACKLOG = 4096
_FILL_S = 5.0
#: How often to choose another port where the kernel's choice for one address is taken for the next.
_TRIES = 20

#: `struct sock_filter`: BPF_RET | BPF_K with 0, the bytes of a packet to keep.
_TAKE_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)


SetSilence = Callable[[socket.socket, bool], None]


def take_nothing(sock: socket.socket) -> None:
    """Drop whatever arrives for this socket. Raises OSError."""
    program = ctypes.create_string_buffer(_TAKE_NOTHING)
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))


def take_everything(sock: socket.socket) -> None:
    """End that. Raises OSError."""
    sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


def set_silence(sock: socket.socket, is_silent: bool) -> None:
    """Either of both. Raises OSError."""
    if is_silent:
        take_nothing(sock)
    else:
        take_everything(sock)


def lacking(set_silence: SetSilence = set_silence) -> str:
    """Why no port can be silenced here; empty where they can."""
    with socket.socket() as probe:
        try:
            set_silence(probe, True)
        except OSError as error:
            return f"this kernel allows only root to attach a socket filter: {error.strerror}"
    return ""


class Port:
    """One port, on every address that is listened on."""

    def __init__(self, name: str, sockets: list[socket.socket]) -> None:
        self.name = name
        self.sockets = sockets
        self.number = int(sockets[0].getsockname()[1])
        #: Makes a socket silent, or ends that; raises OSError. A server without privileges has another process do it.
        self.set_silence: SetSilence = set_silence
        self._silences = 0
        self._waiting: list[socket.socket] = []
        self._lock = threading.Lock()

    def silence(self) -> None:
        """Answer no SYN any more; each call must be ended by one of `end_silence`. Raises OSError."""
        with self._lock:
            if self._silences == 0:
                for sock in self.sockets:
                    self.set_silence(sock, True)
            self._silences += 1

    def end_silence(self) -> None:
        """Answer again, unless another session has silenced the port, too. Raises OSError."""
        with self._lock:
            self._silences -= 1
            if self._silences == 0:
                for sock in self.sockets:
                    self.set_silence(sock, False)

    def never_answer(self) -> None:
        """Answer no SYN for good. Raises ServerError."""
        try:
            self.silence()
        except OSError:
            self._be_full()

    def _be_full(self) -> None:
        """Have one connection wait that is never accepted."""
        try:
            for sock in self.sockets:
                sock.listen(0)
                address = sock.getsockname()[0]
                own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
                self._waiting.append(socket.create_connection((own, self.number), timeout=_FILL_S))
        except OSError as error:
            raise ServerError(f"port {self.number} ({self.name}) cannot be silent: {error}") from None

    def close(self) -> None:
        """Listen no more."""
        for sock in (*self._waiting, *self.sockets):
            sock.close()


def listen(name: str, addresses: Iterable[str], number: int, kind: int = socket.SOCK_STREAM) -> Port:
    """Listen on a port of every address; 0 takes one that is free on all. Raises ServerError."""
    usable = [address for address in addresses if _is_usable(address)]
    if not usable:
        raise ServerError("listen must have an address of a family that this host has")
    for is_last in [*[False] * (_TRIES - 1), True]:
        sockets: list[socket.socket] = []
        try:
            for address in usable:
                wanted = sockets[0].getsockname()[1] if sockets else number
                sockets.append(_open(address, wanted, kind))
        except OSError as error:
            for sock in sockets:
                sock.close()
            if number == 0 and sockets and not is_last:
                continue
            raise ServerError(_sentence(name, address, wanted, error)) from None
        return Port(name, sockets)
    raise AssertionError("unreachable")


def _open(address: str, number: int, kind: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, kind)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, number))
        sock.setblocking(False)
        if kind == socket.SOCK_STREAM:
            save_syns(sock)
            sock.listen(_BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def _is_usable(address: str) -> bool:
    """Whether the address can be bound at all: a host may be without IPv6, and `::` should not keep it from serving."""
    if address not in ("::", "0.0.0.0"):
        return True
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _sentence(name: str, address: str, number: int, error: OSError) -> str:
    where = f"cannot listen on {address} port {number} ({name}): {error.strerror}"
    if error.errno == errno.EACCES:
        where += f"; ports below 1024 need root or CAP_NET_BIND_SERVICE, or choose another: --port {name}=PORT"
    if error.errno == errno.EADDRINUSE:
        where += f"; choose another: --port {name}=PORT"
    return where
