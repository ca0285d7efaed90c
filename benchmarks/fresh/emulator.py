"""Two TUN devices in two namespaces and what a link does between them; a process of its own: see `main`.

One epoll loop, one queue a direction, one absolute timer.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import math
import os
import random
import select
import struct
import sys
import time
from pathlib import Path

from benchmarks.fresh.links import Link
from benchmarks.fresh.namespaces import enter

_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_TIMER_ABSOLUTE = 1
_MOST_BYTES = 65_536


class Direction:
    """One direction: takes packets in at any time, gives them out when they have come through."""

    def __init__(self, source: int, target: int, link: Link, seed: str) -> None:
        self.source, self.target = source, target
        self._link = link
        self._chance = random.Random(seed)
        self._free_ns = 0
        self._last_ns = 0
        self._waiting: list[tuple[int, int, bytes]] = []
        self._count = 0

    def take(self, packet: bytes, now_ns: int) -> None:
        """Queue, delay or lose a packet."""
        link, chance = self._link, self._chance
        if chance.random() < link.loss:
            return
        thinned = link.acknowledgements_lost and chance.random() < link.acknowledgements_lost
        if thinned and _is_plain_acknowledgement(packet):
            return
        depart = now_ns
        if link.rate_bit_s:
            rate = link.rate_bit_s * (1 + link.rate_swing * math.sin(2 * math.pi * now_ns / 1e9 / link.swing_period_s))
            if (self._free_ns - now_ns) * rate / 8e9 + len(packet) > link.queue_bytes:
                return
            self._free_ns = max(self._free_ns, now_ns) + int(len(packet) * 8e9 / rate)
            depart = self._free_ns
        arrive = depart + int((link.delay_ms + link.jitter_ms * chance.random()) * 1e6)
        if chance.random() < link.reordered:
            arrive += int(link.reorder_ms * 1e6)
        else:
            arrive = self._last_ns = max(arrive, self._last_ns)
        if link.rewrite:
            packet = _rewritten(packet, link.rewrite, chance)
        for _ in range(2 if chance.random() < link.duplicated else 1):
            self._count += 1
            heapq.heappush(self._waiting, (arrive, self._count, packet))

    def give(self, now_ns: int) -> None:
        """Write out what has come through."""
        while self._waiting and self._waiting[0][0] <= now_ns:
            packet = heapq.heappop(self._waiting)[2]
            try:
                os.write(self.target, packet)
            except OSError:
                continue  # the far interface is down or full: lost, as on any link

    def next_ns(self) -> int | None:
        """When the next packet has come through."""
        return self._waiting[0][0] if self._waiting else None


def _is_plain_acknowledgement(packet: bytes) -> bool:
    if packet[0] >> 4 == 4:
        tcp, end, protocol = (packet[0] & 15) * 4, struct.unpack_from(">H", packet, 2)[0], packet[9]
    else:
        tcp, end, protocol = 40, 40 + struct.unpack_from(">H", packet, 4)[0], packet[6]
    return protocol == 6 and packet[tcp + 13] == 0x10 and tcp + (packet[tcp + 12] >> 4) * 4 == end


def _rewritten(packet: bytes, fields: tuple[str, ...], chance: random.Random) -> bytes:
    data = bytearray(packet)
    if data[0] >> 4 != 4:
        if "ttl" in fields:
            data[7] = 57
        return bytes(data)
    if "ip-id" in fields:
        struct.pack_into(">H", data, 4, chance.randrange(65_536))
    if "ttl" in fields:
        data[8] = 57
    if "dscp" in fields:
        data[1] = 0x28 | data[1] & 3
    header = (data[0] & 15) * 4
    struct.pack_into(">H", data, 10, 0)
    total = sum(struct.unpack_from(f">{header // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", data, 10, ~(total + (total >> 16)) & 0xFFFF)
    return bytes(data)


def open_tun(namespace: str, device: str) -> int:
    """Attach to a TUN device of a namespace; this thread stays in that namespace."""
    enter(namespace)
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TUN | _IFF_NO_PI))
    return descriptor


def carry(directions: tuple[Direction, Direction]) -> None:
    """Carry packets for ever."""
    library = ctypes.CDLL(None, use_errno=True)
    timer = library.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK)
    poll = select.epoll()
    poll.register(timer, select.EPOLLIN)
    for direction in directions:
        poll.register(direction.source, select.EPOLLIN)
    by_source = {direction.source: direction for direction in directions}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == timer:
                _drain(timer)
                continue
            _take_all(by_source[descriptor])
        now = time.monotonic_ns()
        for direction in directions:
            direction.give(now)
        due = [at for direction in directions if (at := direction.next_ns()) is not None]
        _set_timer(library, timer, min(due) if due else 0)


def _take_all(direction: Direction) -> None:
    while True:
        try:
            packet = os.read(direction.source, _MOST_BYTES)
        except BlockingIOError:
            return
        direction.take(packet, time.monotonic_ns())


def _drain(timer: int) -> None:
    try:
        os.read(timer, 8)
    except BlockingIOError:
        return


def _set_timer(library: ctypes.CDLL, timer: int, at_ns: int) -> None:
    setting = struct.pack("qqqq", 0, 0, at_ns // 10**9, at_ns % 10**9)
    library.timerfd_settime(timer, _TIMER_ABSOLUTE, ctypes.c_char_p(setting), None)


def main() -> None:
    """`python -m benchmarks.fresh.emulator SETTINGS`, a JSON file; prints `ready` on standard output."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    first = open_tun(settings["first_namespace"], settings["first_device"])
    second = open_tun(settings["second_namespace"], settings["second_device"])
    links = [Link(**{**link, "rewrite": tuple(link["rewrite"])}) for link in settings["links"]]
    directions = (
        Direction(first, second, links[0], f"{settings['seed']}/a"),
        Direction(second, first, links[1], f"{settings['seed']}/b"),
    )
    print("ready", flush=True)
    carry(directions)


if __name__ == "__main__":
    main()
