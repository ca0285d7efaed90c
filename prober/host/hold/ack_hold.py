"""Holds back this end's ACKs, for Method 3 of Wei et al. (UMass TR 2005-59, section III-A).

Every segment with the ACK bit, but for SYN and RST, of chosen ports waits for T on its way out, in order. Captures of
this end show when a segment left, not when it was made. Where netfilter can hand segments to us they wait in its queue
(`prober.host.hold.nfqueue`), else in a TUN device (`prober.host.hold.tun_hold`).
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from prober.errors import ImpossibleError, MeasurementError
from prober.host.hold.hold_line import HoldLine, HoldReport
from prober.host.hold.nfqueue import PacketQueue
from prober.host.hold.packet_rules import HeldTraffic, InstalledRules, makers, remove_stale
from prober.host.hold.tun_hold import TunHolding

#: Longer holds run into the limits of TCP's own timers (RFC 6298: a first retransmission timeout of 1 s, doubling).
LONGEST_DELAY_S = 30.0


#: Exists where the kernel has IPv6.
_IPV6 = Path("/proc/thread-self/net/if_inet6")


class AckHold:
    """A hold, from entering to leaving its context; to be entered in the network namespace that it is for.

    Leaving in order waits until the ends of the connections have passed, each held like all before: no ACK ever leaves
    early. Leaving with an exception drops what waits. If the process dies, the kernel drops what waits and a keeper
    process removes the rules.
    """

    def __init__(self, traffic: HeldTraffic, delay_s: float) -> None:
        """Prepare to hold `traffic` for `delay_s`. Raises ValueError for times that cannot be held."""
        if not (math.isfinite(delay_s) and 0 < delay_s <= LONGEST_DELAY_S):
            raise ValueError(f"the delay of ACKs must be at most {LONGEST_DELAY_S:g} s, got {delay_s!r}")
        self.traffic = traffic
        self.delay_s = delay_s
        self._holding: _QueueHolding | TunHolding | None = None
        self._line: HoldLine[int] | HoldLine[bytes] | None = None
        self._claim = contextlib.ExitStack()
        self._last = HoldReport("none", delay_s, 0, 0, 0.0, 0)

    def __enter__(self) -> AckHold:
        """Begin. Raises ImpossibleError where no way of holding works here, MeasurementError where another hold is."""
        with contextlib.ExitStack() as claiming:
            claiming.enter_context(_claimed(self.traffic))
            self._holding = _open(self.traffic)
            self._line = self._holding.line(self.delay_s)
            self._line.start()
            self._claim = claiming.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(in_order=kind is None)

    def report(self) -> HoldReport:
        """What was held, so far or in all."""
        if self._line is not None and self._holding is not None:
            self._last = self._line.report(self._holding.means)
        return self._last

    def close(self, *, in_order: bool = True) -> HoldReport:
        """End; a second time does nothing. Raises MeasurementError where it broke off, or where rules stay behind."""
        line, holding = self._line, self._holding
        if line is None or holding is None:
            return self._last
        with contextlib.ExitStack() as closing:
            closing.callback(self._claim.close)
            closing.callback(holding.close)
            closing.callback(self._forget)
            closing.callback(self.report)
            closing.callback(line.stop)
            if in_order:
                line.drain()
            holding.end_diversion()
            if in_order:
                line.drain()  # what came before the rules went
        if in_order and line.failure:
            raise MeasurementError(line.failure)
        return self._last

    def _forget(self) -> None:
        self._line = self._holding = None


class _QueueHolding:
    """Segments in a queue of netfilter."""

    means = "nfqueue"

    def __init__(self, traffic: HeldTraffic) -> None:
        """Bind a queue and install rules. Raises ImpossibleError."""
        remove_stale()
        ways = makers()
        if not ways:
            raise ImpossibleError("neither iptables nor nft is installed")
        self._queue = PacketQueue()
        try:
            self._rules = _first_that_works(traffic, self._queue.number)
        except BaseException:
            self._queue.close()
            raise

    def line(self, delay_s: float) -> HoldLine[int]:
        return HoldLine(self, delay_s)

    def fileno(self) -> int:
        return self._queue.fileno()

    def receive(self) -> list[int]:
        return self._queue.receive()

    def release(self, items: list[int]) -> int:
        try:
            self._queue.release_through(items[-1])
        except OSError:
            return len(items)
        return 0

    def dropped_packets(self) -> int:
        return self._queue.dropped_packets()

    def end_diversion(self) -> None:
        self._rules.remove()

    def close(self) -> None:
        self._queue.close()


def hold_acks(host: str, port: int, delay_s: float, *, last_port: int | None = None) -> AckHold:
    """A mobile's hold on what goes to a server's port, or to a range up to `last_port`. Raises ValueError."""
    return AckHold(HeldTraffic(((port, last_port or port),), host), delay_s)


def lacking(traffic: HeldTraffic | None = None) -> str:
    """Why this end cannot hold ACKs back, as one sentence; empty where it can."""
    try:
        holding = _open(traffic or HeldTraffic(((9, 9),), versions=(4,)))
    except ImpossibleError as error:
        return str(error)
    try:
        holding.end_diversion()
    finally:
        holding.close()
    return ""


@contextlib.contextmanager
def _claimed(traffic: HeldTraffic) -> Iterator[None]:
    """Claim the ports, so that no other hold takes their segments and releases them after its own T.

    A claim is a name in the namespace's abstract socket addresses (unix(7)): it ends with the process that has it.
    """
    side = "from" if traffic.at_server else f"to-{traffic.host}"
    with contextlib.ExitStack() as claims:
        for first, last in traffic.ports:
            for port in range(first, last + 1):
                claim = claims.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
                try:
                    claim.bind(f"\0pepscope-ack-hold-{side}-{port}")
                except OSError:
                    raise MeasurementError(f"the ACKs of port {port} are being held already") from None
        yield


def _open(traffic: HeldTraffic) -> _QueueHolding | TunHolding:
    if traffic.at_server and not _IPV6.exists():
        traffic = replace(traffic, versions=(4,))
    try:
        return _QueueHolding(traffic)
    except ImpossibleError as no_queue:
        try:
            return TunHolding(traffic)
        except ImpossibleError as no_tun:
            raise ImpossibleError(f"ACKs cannot be held back here: {no_queue}; nor by a TUN device: {no_tun}") from None


def _first_that_works(traffic: HeldTraffic, queue: int) -> InstalledRules:
    complaints = []
    for maker in makers():
        try:
            return InstalledRules(maker(traffic, queue))
        except ImpossibleError as error:
            complaints.append(str(error))
    raise ImpossibleError("; ".join(complaints))
