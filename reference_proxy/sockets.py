"""Addresses, and the socket options that proxies need and Python does not name (Linux: ip(7), ipv6(7), tcp(7))."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
import termios
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pepscope.settings.socket_address import parse_socket_address
from reference_proxy.errors import ConfigurationError, ProxyError

if TYPE_CHECKING:
    from collections.abc import Callable

SOL_IPV6 = 41
IP_TRANSPARENT = 19
IPV6_TRANSPARENT = 75

#: Both of them with the meaning "in TCP's send queue": all that is unacknowledged, and the part not yet sent.
SIOCOUTQ = termios.TIOCOUTQ
SIOCOUTQNSD = 0x894B

Address: TypeAlias = tuple[str, int]

_RESET = struct.pack("ii", 1, 0)
_CONGESTION_NAME_BYTES = 16


@dataclass(frozen=True, slots=True)
class LegSettings:
    """How the TCP connections of one leg behave."""

    #: Name of the kernel's algorithm; empty for its default.
    congestion_control: str = ""
    #: SO_RCVBUF and SO_SNDBUF; 0 leaves them to the kernel.
    receive_buffer_bytes: int = 0
    send_buffer_bytes: int = 0
    #: Largest window to advertise; 0 for none. The kernel offers between half of it and all.
    window_clamp_bytes: int = 0
    no_delay: bool = True


def read_address(text: str, name: str) -> Address:
    """`ADDRESS:PORT` or `[ADDRESS]:PORT`, the address in digits. Raises ConfigurationError."""
    address = parse_socket_address(text)
    if address is None:
        raise ConfigurationError(f"{name} must be ADDRESS:PORT with the address in digits, got {text!r}")
    return address


def family_of(host: str) -> socket.AddressFamily:
    """Family of an address in digits."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def allow_foreign_addresses(sock: socket.socket) -> None:
    """Let the socket have addresses that are not this machine's: the heart of spoofing. Needs CAP_NET_ADMIN."""
    try:
        if sock.family == socket.AF_INET6:
            sock.setsockopt(SOL_IPV6, IPV6_TRANSPARENT, 1)
        else:
            sock.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
    except PermissionError:
        raise ProxyError("transparent interception needs root or CAP_NET_ADMIN") from None


def prepare_leg(sock: socket.socket, settings: LegSettings) -> None:
    """Apply what must be set before connecting or listening; accepted sockets inherit it from the listener."""
    if settings.congestion_control:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, settings.congestion_control.encode("ascii"))
        except OSError:
            known = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _CONGESTION_NAME_BYTES)
            default = known.rstrip(b"\0").decode("ascii", "replace")
            raise ProxyError(
                f"this kernel does not offer the congestion control {settings.congestion_control!r}; its default is "
                f"{default!r}, and /proc/sys/net/ipv4/tcp_available_congestion_control lists the others"
            ) from None
    receive_bytes = settings.receive_buffer_bytes
    if settings.window_clamp_bytes:
        # Kernels raise TCP_WINDOW_CLAMP themselves with the first data (since 6.6), but no window is larger than the
        # buffer, which is twice what is asked for.
        receive_bytes = min(receive_bytes or settings.window_clamp_bytes, settings.window_clamp_bytes // 2)
    if receive_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    if settings.send_buffer_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
    if settings.no_delay:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def listen(address: Address, settings: LegSettings, *, transparent: bool, backlog: int) -> socket.socket:
    """A non-blocking listener. Raises ProxyError where the address cannot be had."""
    sock = socket.socket(family_of(address[0]), socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(SOL_IPV6, socket.IPV6_V6ONLY, 1)
        if transparent:
            allow_foreign_addresses(sock)
        prepare_leg(sock, settings)
        sock.bind(address)
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise ProxyError(f"cannot listen on {show(address)}: {error.strerror}") from None
    except ProxyError:
        sock.close()
        raise
    return sock


def unacknowledged_bytes(sock: socket.socket) -> int:
    """Bytes handed to TCP that the peer has not acknowledged, sent or not (SIOCOUTQ)."""
    return _asked(sock, SIOCOUTQ)


def unsent_bytes(sock: socket.socket) -> int:
    """Bytes handed to TCP that it has not sent for the first time (SIOCOUTQNSD)."""
    return _asked(sock, SIOCOUTQNSD)


def _asked(sock: socket.socket, request: int) -> int:
    answer = fcntl.ioctl(sock.fileno(), request, b"\0\0\0\0")
    return int(struct.unpack("i", answer)[0])


def segment_bytes(sock: socket.socket) -> int:
    """Largest payload of a segment on this connection."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)


def reset(sock: socket.socket) -> None:
    """Close with a reset, dropping what is queued."""
    if sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        sock.close()


def is_local(host: str) -> bool:
    """Whether an address in digits belongs to this machine."""
    with socket.socket(family_of(host), socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True


def show(address: Address | None) -> str:
    """`host:port`, with brackets around an IPv6 address; `-` for none."""
    if address is None:
        return "-"
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def end_points(sock: socket.socket) -> tuple[Address | None, Address | None]:
    """Local and remote address, as far as they are known."""
    return _name(sock.getsockname), _name(sock.getpeername)


def _name(ask: Callable[[], tuple[str, int]]) -> Address | None:
    try:
        return _plain(ask())
    except OSError:
        return None


def _plain(name: tuple[str, int]) -> Address:
    """Without flow label and scope, and IPv4 as IPv4."""
    host, port = name[:2]
    return host.removeprefix("::ffff:"), port
