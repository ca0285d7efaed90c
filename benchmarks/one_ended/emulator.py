"""All links of one network in one process: TUN devices in namespaces, one event loop, one timer.

`python -m benchmarks.one_ended.emulator SETTINGS REPORT`: SETTINGS is JSON with `seed`, `ports` (`[namespace, device]`)
and `links`: `a` and `b` are indices of ports, `down` (from a to b) and `up` are each a `links.Direction`, `addresses`
are behind b, `hold_s` says by source address how long pure ACKs from a are held back (a box that means to look far
away). Where several links share the port a, the destination address decides. Prints `ready`. On SIGTERM it writes to
REPORT how late packets were given out, and what each direction carried.
"""

from __future__ import annotations

import ctypes
import gc
import heapq
import json
import math
import os
import random
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.fresh.emulator import open_tun
from benchmarks.one_ended.links import Direction
from benchmarks.one_ended.priority import EMULATOR, raise_threads

_TIMER_ABSOLUTE = 1
_MOST_BYTES = 65_536
_TCP, _ACK_ONLY = 6, 0x10


class Carrier:
    """One direction at work. Times are in ns of the monotonic clock."""

    def __init__(
        self, name: str, target: int, link: Direction, chance: random.Random, hold_s: dict[str, float]
    ) -> None:
        self.name, self.target = name, target
        self._hold_ns = {socket.inet_aton(address): int(hold * 1e9) for address, hold in hold_s.items()}
        self._link, self._chance = link, chance
        self._free_ns = self._last_ns = self._seen_ns = 0
        self._phase_ns = chance.randrange(1_000_000_000)
        self._delay_ns = int(link.delay_s * 1e9)
        self._repeat_ns = int(link.repeat_s * 1e9)
        self._grant_ns = int(link.grant_s * 1e9)
        self._sleep_ns, self._cycle_ns = int(link.sleep_after_s * 1e9), int(link.wake_cycle_s * 1e9)
        self._ns_a_byte = 8e9 / link.rate_bit_s
        self.packets = self.lost = self.slept = 0

    def take(self, packet: bytes, now_ns: int) -> tuple[int, bytes] | None:
        """When the packet comes out, and as what; None where it is lost."""
        link, chance = self._link, self._chance
        if link.loss and chance.random() < link.loss:
            self.lost += 1
            return None
        if (self._free_ns - now_ns) > link.queue_bytes * self._ns_a_byte:
            self.lost += 1
            return None
        begin = max(self._free_ns, now_ns)
        if begin == now_ns:
            if self._cycle_ns and now_ns - self._seen_ns > self._sleep_ns:
                begin = self._next_multiple(now_ns, self._cycle_ns)
                self.slept += 1
            elif self._grant_ns:
                begin = self._next_multiple(now_ns, self._grant_ns)
        self._seen_ns = begin
        self._free_ns = begin + int(len(packet) * self._ns_a_byte)
        arrive = self._free_ns + self._delay_ns
        if link.jitter_s:
            arrive += int(-math.log(1 - chance.random()) * link.jitter_s * 1e9)
        if link.repeat_share and chance.random() < link.repeat_share:
            arrive += self._repeat_ns
        arrive = self._last_ns = max(arrive, self._last_ns)
        if self._hold_ns and _is_plain_acknowledgement(packet):
            arrive += self._hold_ns.get(packet[12:16], 0)
        self.packets += 1
        return arrive, _lowered(packet, link.hops) if link.hops else packet

    def _next_multiple(self, now_ns: int, period_ns: int) -> int:
        return now_ns + (self._phase_ns - now_ns) % period_ns


def _is_plain_acknowledgement(packet: bytes) -> bool:
    header = (packet[0] & 15) * 4
    if packet[9] != _TCP or packet[header + 13] != _ACK_ONLY:
        return False
    return header + (packet[header + 12] >> 4) * 4 == int.from_bytes(packet[2:4], "big")


def _lowered(packet: bytes, hops: int) -> bytes:
    """The packet with a TTL lowered by so many routers, its checksum updated (RFC 1624)."""
    hops = min(hops, packet[8] - 1)
    total = int.from_bytes(packet[10:12], "big") + (hops << 8)
    total = (total & 0xFFFF) + (total >> 16)
    return b"".join((packet[:8], bytes((packet[8] - hops, packet[9])), total.to_bytes(2, "big"), packet[12:]))


class Emulator:
    """Ports, their carriers, and one queue of packets on their way."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._descriptors = [open_tun(namespace, device) for namespace, device in settings["ports"]]
        self._only: dict[int, Carrier] = {}
        self._by_address: dict[int, dict[bytes, Carrier]] = {}
        self.carriers: list[Carrier] = []
        for link in settings["links"]:
            near, far = self._descriptors[link["a"]], self._descriptors[link["b"]]
            made = [
                Carrier(
                    f"{link['name']}/{way}", target, Direction(**link[way]),
                    random.Random(f"{settings['seed']}/{link['name']}/{way}"), link["hold_s"] if way == "down" else {},
                )
                for way, target in (("down", far), ("up", near))
            ]  # fmt: skip
            self.carriers += made
            table = self._by_address.setdefault(near, {})
            table |= {socket.inet_aton(address): made[0] for address in link["addresses"]}
            self._only[far] = made[1]
        self._waiting: list[tuple[int, int, int, bytes]] = []
        self._count = 0
        self.late_ns: list[int] = []
        self.ended = False

    def carry(self) -> None:
        """Carry packets until `ended`."""
        library = ctypes.CDLL(None, use_errno=True)
        timer = library.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK)
        poll = select.epoll()
        for descriptor in (timer, *self._descriptors):
            poll.register(descriptor, select.EPOLLIN)
        armed = 0
        while not self.ended:
            for descriptor, _ in poll.poll(0.5):
                if descriptor == timer:
                    _drain(timer)
                    armed = 0
                else:
                    self._take_all(descriptor)
            self._give()
            due = self._waiting[0][0] if self._waiting else 0
            if due != armed:
                seconds, rest = divmod(due, 10**9)
                setting = (ctypes.c_long * 4)(0, 0, seconds, rest)
                library.timerfd_settime(timer, _TIMER_ABSOLUTE, setting, None)
                armed = due

    def _take_all(self, descriptor: int) -> None:
        only, table = self._only.get(descriptor), self._by_address.get(descriptor, {})
        while True:
            try:
                packet = os.read(descriptor, _MOST_BYTES)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4:
                continue
            carrier = only or table.get(packet[16:20])
            if carrier is None:
                continue
            out = carrier.take(packet, time.monotonic_ns())
            if out is not None:
                self._count += 1
                heapq.heappush(self._waiting, (out[0], self._count, carrier.target, out[1]))

    def _give(self) -> None:
        waiting, now = self._waiting, time.monotonic_ns()
        while waiting and waiting[0][0] <= now:
            due, _, target, packet = heapq.heappop(waiting)
            self.late_ns.append(now - due)
            try:
                os.write(target, packet)
            except OSError:
                continue  # the far interface is down or full: lost, as on any link
            if not len(self.late_ns) % 16:
                now = time.monotonic_ns()


def _drain(timer: int) -> None:
    try:
        os.read(timer, 8)
    except BlockingIOError:
        return


def lateness(late_ns: list[int]) -> dict[str, float]:
    """Median, 99th percentile and maximum, in seconds."""
    ordered = sorted(late_ns) or [0]
    last = len(ordered) - 1
    return {name: ordered[round(last * share)] / 1e9 for name, share in (("median", 0.5), ("p99", 0.99), ("max", 1.0))}


def main() -> None:
    """Carry packets until SIGTERM."""
    emulator = Emulator(json.loads(Path(sys.argv[1]).read_text()))

    def end(signum: int, frame: object) -> None:
        del signum, frame
        emulator.ended = True

    signal.signal(signal.SIGTERM, end)
    gc.disable()  # nothing here is cyclic
    raise_threads(0, EMULATOR)
    print("ready", flush=True)
    emulator.carry()
    report = {
        "lateness_s": lateness(emulator.late_ns),
        "carried": {c.name: {"packets": c.packets, "lost": c.lost, "slept": c.slept} for c in emulator.carriers},
    }
    Path(sys.argv[2]).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
