"""What a simulated SYN proxy does to timestamps, as netfilter's does."""

from __future__ import annotations

from benchmarks.one_ended_simulated.boxes import SynProxy
from benchmarks.one_ended_simulated.events import Clock
from benchmarks.one_ended_simulated.packets import ACK, SYN, Offer, Packet
from tests.one_ended_simulated.networks import STACK

OFFER = Offer(STACK.layout, 1460, 7, sack=True, timestamps=True)


def packet(sequence: int, flags: int, timestamp: int, offer: Offer | None = None) -> Packet:
    return Packet(sequence, 1, flags, 65_160, b"", timestamp, 0, (), offer, 7, True, 0)


def test_the_servers_timestamps_go_on_from_the_proxys() -> None:
    clock = Clock()
    proxy = SynProxy(clock, STACK, shuts_window=True)
    to_client: list[tuple[int, Packet]] = []
    proxy.to_client = lambda sent: to_client.append((round(clock.now_s * 1000), sent))
    for at_s, take, came in (
        (1.00, proxy.from_client, packet(0, SYN, 5, OFFER)),
        (1.04, proxy.from_client, packet(1, ACK, 45)),
        (1.10, proxy.from_server, packet(0, SYN | ACK, 70_000, OFFER)),  # left the server at 1.07
        (1.20, proxy.from_server, packet(1, ACK, 70_100)),
    ):
        clock.at(at_s, lambda take=take, came=came: take(came))  # type: ignore[misc]
    clock.run(2.0)
    assert [(at_ms, sent.timestamp) for at_ms, sent in to_client] == [(1000, 1000), (1100, 1000), (1200, 1100)]
