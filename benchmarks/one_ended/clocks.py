"""Timestamp clocks of their own for the hosts of a network, written into its captures.

All hosts share one kernel, whose timestamps (RFC 7323) would all come from one clock. The captures are therefore
rewritten: each TSval, and each TSecr that echoes it, becomes what the sender's own clock would have shown. Which
stack sent a segment follows from the plan, so a middle that ends connections shows one clock for all servers.
"""

from __future__ import annotations

import random
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.fresh.packets import ACK, TCP, Option
from benchmarks.one_ended.plan import Clock
from benchmarks.one_ended.truth import side

if TYPE_CHECKING:
    from benchmarks.one_ended.plan import Plan

_GLOBAL_BYTES, _RECORD_BYTES = 24, 16
_ETHERNET, _ETHERNET_BYTES = 1, 14
_MODULUS = 1 << 32


class Clocks:
    """The clock of each segment's sender, as one place of a plan sees it."""

    def __init__(self, plan: Plan, place: str) -> None:
        self._plan = plan
        self._client_face = side(place) == "client" or place == "middle-access"
        self._clocks = {"middle": plan.middle_stack.clock}
        self._servers: dict[str, str] = {}
        self._others = {plan.middle_address: "middle"}
        translated = plan.kind.truth == "regular" and plan.kind.source == "middle"
        self._translated = translated
        for client in plan.clients:
            self._clocks[client.name] = client.stack.clock
            # Behind a translated address the hosts cannot be told apart: there they have one clock.
            name = plan.clients[0].name if translated else client.name
            self._others |= dict.fromkeys(client.addresses, name)
        if translated:
            self._others[plan.middle_address] = plan.clients[0].name
        for server in plan.servers:
            self._servers[server.address] = server.name
            self._clocks[server.name] = server.stack.clock
            if server.balancer is not None:
                self._servers[server.balancer.backend_address] = f"{server.name}b"
                self._clocks[f"{server.name}b"] = server.balancer.backend_stack.clock
                self._others[server.balancer.address] = server.name
        self._spared = {a for client in plan.clients if not client.taken for a in client.addresses}
        self._offsets: dict[tuple[str, ...], int] = {}

    def of(self, source: str, source_port: int, target: str, target_port: int) -> tuple[Clock, int] | None:
        """Clock and offset of the stack that sends from `source` to `target`; None where it is not known."""
        from_server = source in self._servers
        server, other = (source, target) if from_server else (target, source)
        port = source_port if from_server else target_port
        if server not in self._servers or other not in self._others:
            return None
        kind = self._plan.kind
        ended = (
            port in self._plan.split_ports and other not in self._spared and kind.truth == "split"
            and kind.mechanism != "local-acknowledgement"
        )  # fmt: skip
        if from_server:
            name = "middle" if ended and self._client_face else self._servers[server]
        else:
            inner = self._servers[server].endswith("b")
            name = "middle" if ended and not self._client_face and not inner else self._others[other]
        clock = self._clocks[name]
        return clock, self._offset(name, clock, server, other)

    def _offset(self, name: str, clock: Clock, server: str, other: str) -> int:
        if not clock.each_peer:
            return clock.offset
        key = (name, server) if self._translated else (name, server, other)
        if key not in self._offsets:
            self._offsets[key] = random.Random(f"{clock.offset}/{key}").randrange(_MODULUS)
        return self._offsets[key]


def shown(clock: Clock, offset: int, milliseconds: int) -> int:
    """What a clock shows when the kernel's shows so many milliseconds."""
    ticks = milliseconds * clock.rate_hz * (1_000_000_000 + clock.drift_ppb) // 1_000_000_000_000
    return (ticks + offset) % _MODULUS


def rewrite(path: Path, plan: Plan, place: str) -> None:
    """Rewrite the timestamps in a capture of tcpdump's (pcap, this machine's byte order)."""
    data = bytearray(path.read_bytes())
    clocks = Clocks(plan, place)
    link = _ETHERNET_BYTES if struct.unpack_from("=I", data, 20)[0] & 0xFFFF == _ETHERNET else 0
    at = _GLOBAL_BYTES
    while at + _RECORD_BYTES <= len(data):
        size = struct.unpack_from("=I", data, at + 8)[0]
        _rewrite_packet(data, at + _RECORD_BYTES + link, at + _RECORD_BYTES + size, clocks)
        at += _RECORD_BYTES + size
    path.write_bytes(data)


def _rewrite_packet(data: bytearray, start: int, end: int, clocks: Clocks) -> None:
    if end - start < 40 or data[start] >> 4 != 4 or data[start + 9] != TCP:
        return
    tcp = start + (data[start] & 15) * 4
    if end < tcp + 20:
        return
    option = _timestamps_at(data, tcp, min(end, tcp + (data[tcp + 12] >> 4) * 4))
    if option is None:
        return
    source, target = (socket.inet_ntoa(data[start + at : start + at + 4]) for at in (12, 16))
    source_port, target_port = struct.unpack_from(">HH", data, tcp)
    value, echo = struct.unpack_from(">II", data, option)
    own = clocks.of(source, source_port, target, target_port)
    peer = clocks.of(target, target_port, source, source_port)
    if own is None or peer is None:
        return
    written = struct.pack(
        ">II", shown(*own, value), shown(*peer, echo) if echo and data[tcp + 13] & ACK else echo
    )  # fmt: skip
    if (option - tcp) % 2 == 0:
        _update_checksum(data, tcp + 16, bytes(data[option : option + 8]), written)
    data[option : option + 8] = written


def _timestamps_at(data: bytearray, tcp: int, end: int) -> int | None:
    at = tcp + 20
    while at < end and data[at] != Option.END:
        if data[at] == Option.NOP:
            at += 1
            continue
        if at + 1 >= end or data[at + 1] < 2:
            return None
        if data[at] == Option.TIMESTAMPS and at + 10 <= end:
            return at + 2
        at += data[at + 1]
    return None


def _update_checksum(data: bytearray, at: int, before: bytes, after: bytes) -> None:
    """RFC 1624, equation 3."""
    total = ~struct.unpack_from(">H", data, at)[0] & 0xFFFF
    total += sum(~word & 0xFFFF for word in struct.unpack(">4H", before)) + sum(struct.unpack(">4H", after))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", data, at, ~total & 0xFFFF)
