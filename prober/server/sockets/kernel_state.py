"""What the kernel reports of a connection: its SYN, what is unread or unacknowledged (linux/tcp.h, tcp(7))."""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import struct
import termios
import time
from collections.abc import Mapping

from prober.host.tcp_info import tcp_info

TCP_SAVE_SYN = 27
TCP_SAVED_SYN = 28

#: State of a connection that is over, however it ended.
TCP_CLOSE = 7

_SYN_BYTES = 256


def last_tcp_info(sock: socket.socket) -> Mapping[str, int]:
    """Fields of `struct tcp_info`; empty where there is no socket any more."""
    try:
        return tcp_info(sock)
    except OSError:
        return {}


def save_syns(listener: socket.socket) -> None:
    """Have the kernel keep the SYN of each connection, where it can."""
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.IPPROTO_TCP, TCP_SAVE_SYN, 1)


def saved_syn(sock: socket.socket) -> bytes:
    """IP and TCP header of the connection's SYN; the kernel gives it once, and frees it."""
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, TCP_SAVED_SYN, _SYN_BYTES)
    except OSError:
        return b""


def unacknowledged_bytes(sock: socket.socket) -> int:
    """Bytes handed to TCP that the peer has not acknowledged, sent or not (SIOCOUTQ)."""
    return _asked(sock, termios.TIOCOUTQ)


def unread_bytes(sock: socket.socket) -> int:
    """Bytes that TCP has taken in and no process has read (SIOCINQ)."""
    return _asked(sock, termios.FIONREAD)


def _asked(sock: socket.socket, request: int) -> int:
    answer = fcntl.ioctl(sock.fileno(), request, b"\0\0\0\0")
    return int(struct.unpack("i", answer)[0])


def await_acknowledged(sock: socket.socket, timeout_s: float) -> tuple[str, Mapping[str, int]]:
    """Wait until the peer has all that was sent; the ending and the last `tcp_info` while it was under way.

    `finished`, `aborted-by-peer` or `idle`, where nothing was acknowledged for `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = 0.001
    last_state = last_tcp_info(sock)
    best = -1
    while True:
        try:
            state = tcp_info(sock)
            left = unacknowledged_bytes(sock)
        except (OSError, ValueError):
            return "aborted-by-peer", last_state
        if not state or (state["state"] == TCP_CLOSE and left):
            return "aborted-by-peer", last_state
        last_state = state
        if left == 0:
            return "finished", state
        if left != best:
            best, deadline = left, time.monotonic() + timeout_s
        if time.monotonic() > deadline:
            return "idle", state
        _wait(sock, pause_s)
        pause_s = min(pause_s * 1.5, 0.05)


def _wait(sock: socket.socket, pause_s: float) -> None:
    """Wait a little, or until something new can be read: the peer's next request brings its acknowledgement along."""
    poller = select.poll()
    try:
        poller.register(sock, select.POLLIN)
        is_early = bool(poller.poll(0)) or not poller.poll(pause_s * 1000)
    except (OSError, ValueError):
        return
    if is_early:
        time.sleep(min(pause_s, 0.005))
