"""How far data must travel before it is acknowledged: the first segment of a connection may cross only so many routers.

The handshake crosses the whole path; then the hop limit is lowered (IP_TTL, IPV6_UNICAST_HOPS) and a question is sent.
An end-to-end connection loses it at a router, and its acknowledgement comes only after the limit is raised again. A box
that terminates the connection, or acknowledges in the receiver's name (RFC 3135), acknowledges what reaches the box. A
SYN proxy answers handshakes alone: it acknowledges no data. The kernel's queue of what is not acknowledged yet
(SIOCOUTQ, tcp(7)) shows it without any right.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import time
from dataclasses import dataclass

from prober.host.other_end import is_other_end_here
from prober.host.reset import reset_on_close
from prober.host.tcp_info import tcp_info

_SIOCOUTQ = 0x5411  # linux/sockios.h: bytes in the send queue, which holds them until they are acknowledged
#: ESTABLISHED and CLOSE_WAIT (include/net/tcp_states.h).
_OPEN = (1, 8)
#: The queue is looked at so often, or after this share of the time passed: a hundredth is as exact as any time here is.
_POLL_S = 0.0005
_POLL_SHARE = 0.01
_DEFAULT_HOPS = 64


@dataclass(frozen=True, slots=True)
class DataAnswer:
    """What became of one question; times in seconds, None where nothing came in time."""

    #: With how many hops the question was sent; None: with the system's own limit.
    hops: int | None
    handshake_s: float
    #: From the question to its acknowledgement, while the limit was low.
    acknowledged_after_s: float | None
    #: From the question to the first byte of the answer.
    answered_after_s: float | None
    #: The first bytes of the answer.
    head: bytes
    #: Whether the connection's other end is a socket of this host, whatever address it was made to.
    ends_here: bool
    least_round_trip_s: float | None
    #: This host's port of the connection, by which a capture knows it.
    local_port: int = 0
    #: What the other end offered in the handshake: option bits (TCPI_OPT_*), window scale and segment size.
    offered: tuple[int, int, int] = (0, 0, 0)
    #: Whether the other end had reset the connection before it acknowledged the question.
    was_reset: bool = False

    @property
    def is_acknowledged(self) -> bool:
        """Whether the question was acknowledged in time."""
        return self.acknowledged_after_s is not None


def ask(
    address: str,
    port: int,
    question: bytes,
    hops: int | None,
    low_s: float,
    patience_s: float,
    answer_s: float | None = None,
) -> DataAnswer:
    """Connect, ask with so many hops, and wait `low_s` for the acknowledgement; then with all, for the answer.

    The answer is waited for `answer_s`, or as long as for the connection. Raises OSError where no connection comes
    about within `patience_s`.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.settimeout(patience_s)
        begun_s = time.monotonic()
        link.connect((address, port))
        handshake_s = time.monotonic() - begun_s
        if hops is not None:
            _limit(link, hops)
        sent_s = time.monotonic()
        link.sendall(question)
        acknowledged_s = _acknowledged(link, sent_s, low_s)
        was_reset = acknowledged_s is None and _info(link).get("state") not in _OPEN
        if hops is not None:
            _limit(link, _DEFAULT_HOPS)
        head, answered_s = _answer(link, sent_s, patience_s if answer_s is None else answer_s)
        info = _info(link)
        ends_here = is_other_end_here(link)
        local_port = int(link.getsockname()[1])
        reset_on_close(link)
    least_us = info.get("min_rtt", 0)
    least_s = least_us / 1e6 if 0 < least_us < 0xFFFFFFFF else None
    # The first four bits hold the scale of what the other end offers.
    offered = (info.get("options", 0), info.get("wscale", 0) & 0xF, info.get("snd_mss", 0))
    return DataAnswer(
        hops=hops,
        handshake_s=handshake_s,
        acknowledged_after_s=acknowledged_s,
        answered_after_s=answered_s,
        head=head,
        ends_here=ends_here,
        least_round_trip_s=least_s,
        local_port=local_port,
        offered=offered,
        was_reset=was_reset,
    )


def _limit(link: socket.socket, hops: int) -> None:
    if link.family == socket.AF_INET6:
        link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)
    else:
        link.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)


def _acknowledged(link: socket.socket, sent_s: float, wait_s: float) -> float | None:
    """When nothing is left to be acknowledged; None where that does not come to pass, or the connection breaks."""
    while (passed_s := time.monotonic() - sent_s) < wait_s:
        if _info(link).get("state") not in _OPEN:
            return None  # a reset empties the queue as well
        if not struct.unpack("i", fcntl.ioctl(link, _SIOCOUTQ, b"\0\0\0\0"))[0]:
            return passed_s
        time.sleep(max(_POLL_S, _POLL_SHARE * passed_s))
    return None


def _answer(link: socket.socket, sent_s: float, patience_s: float) -> tuple[bytes, float | None]:
    try:
        link.settimeout(patience_s)
        head = link.recv(2048)
    except OSError:
        return b"", None
    return head, (time.monotonic() - sent_s if head else None)


def _info(link: socket.socket) -> dict[str, int]:
    try:
        return dict(tcp_info(link))
    except OSError:
        return {}
