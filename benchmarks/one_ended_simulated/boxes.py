"""Middleboxes that answer handshakes: relays of bytes in two connections, and SYN proxies.

A SYN proxy follows netfilter's SYNPROXY: the client's SYN is answered with a shut window, the server's handshake
follows the client's ACK, its window is passed on, and from then on packets go through untouched but for number bases
and the server's timestamps, which go on from the one in the proxy's SYN-ACK as if the server's own SYN-ACK had had it
(`tsoff` in `nf_synproxy_core.c`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.one_ended_simulated.applications import Forwarder
from benchmarks.one_ended_simulated.endpoints import Endpoint, State
from benchmarks.one_ended_simulated.events import Clock
from benchmarks.one_ended_simulated.habits import Stack
from benchmarks.one_ended_simulated.packets import ACK, SYN, Offer, Packet


def join_relay(
    clock: Clock, near: Endpoint, far: Endpoint, delay_s: float, queue_bytes: int, *, connects_first: bool
) -> None:
    """Make two endpoints of one box a relay: `near` faces the client, `far` opens the other leg.

    A relay that `connects_first` answers the client's SYN only when the far leg stands.
    """
    Forwarder(clock, near, far, delay_s, queue_bytes)
    Forwarder(clock, far, near, delay_s, queue_bytes)
    if not connects_first:
        near.on_open = lambda: clock.after(delay_s, far.connect)
        return
    take = near.receive

    def receive(packet: Packet) -> None:
        if not packet.flags & SYN or far.state is State.OPEN:
            take(packet)
        elif far.state is State.IDLE:
            far.on_open = lambda: take(packet)
            far.connect()

    near.receive = receive  # type: ignore[method-assign]


class SynProxy:
    """Answers SYNs for the server; `to_client` and `to_server` put packets on the routes."""

    def __init__(self, clock: Clock, stack: Stack, *, shuts_window: bool) -> None:
        self.clock, self.stack, self.shuts_window = clock, stack, shuts_window
        self.to_client: Callable[[Packet], None] = lambda _: None
        self.to_server: Callable[[Packet], None] = lambda _: None
        self.syn: Packet | None = None
        self.is_spliced = False
        self.held: list[Packet] = []
        self.stamp = self.stamp_offset = 0

    def from_client(self, packet: Packet) -> None:
        """Answer a SYN; hold the rest until the server has answered."""
        if packet.flags & SYN:
            self.syn, self.stamp = packet, int(self.clock.now_s * 1000)
            self.to_client(self._packet(SYN | ACK, 0 if self.shuts_window else 29_200, packet, self._offer(packet)))
        elif self.is_spliced:
            self.to_server(packet)
        elif self.syn is not None:
            if not self.held:
                self.to_server(replace(self.syn, offer=self._offer(self.syn)))
                self.clock.after(1.0, self._again)
            self.held.append(packet)

    def from_server(self, packet: Packet) -> None:
        """Pass on, but for the handshake, which the client has had."""
        if not packet.flags & SYN:
            self.to_client(replace(packet, timestamp=packet.timestamp + self.stamp_offset))
            return
        if self.syn is None:
            return
        if not self.is_spliced:
            self.is_spliced, self.stamp_offset = True, self.stamp - packet.timestamp
            for held in self.held:
                self.to_server(held)
        else:
            self.to_server(self.held[0])
        if self.shuts_window:
            window_bytes = packet.window_bytes >> self.syn.scale << self.syn.scale
            self.to_client(self._packet(ACK, window_bytes, self.syn, None))

    def _again(self) -> None:
        if not self.is_spliced and self.syn is not None:
            self.to_server(replace(self.syn, offer=self._offer(self.syn)))
            self.clock.after(1.0, self._again)

    def _offer(self, syn: Packet) -> Offer:
        assert syn.offer is not None
        return replace(syn.offer, layout=self.stack.layout, segment_size=min(1460, syn.offer.segment_size))

    def _packet(self, flags: int, window_bytes: int, syn: Packet, offer: Offer | None) -> Packet:
        return Packet(
            0 if flags & SYN else 1, 1, flags, window_bytes, b"", self.stamp, syn.timestamp, (), offer, syn.scale,
            syn.has_timestamps, 0,
        )  # fmt: skip
