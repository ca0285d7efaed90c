"""Pings (RFC 792, RFC 4443): round trips that no split of TCP shortens, over the same links as everything else."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.one_ended_simulated.captures import Address, Tap, checksum, network_header
from benchmarks.one_ended_simulated.channels import Channel
from benchmarks.one_ended_simulated.events import Clock

_DATA = bytes(range(48))
_SIZE_BYTES = 98


@dataclass(frozen=True, slots=True)
class Spot:
    """A tap on the way, the addresses that it sees, and the hop limits of requests and replies there."""

    tap: Tap | None
    client: Address
    server: Address
    hops_up: int
    hops_down: int


Part = Spot | tuple[Channel, Channel]


class Ping:
    """One request and its reply, if neither is lost, over the parts from the client to the server."""

    def __init__(self, clock: Clock, parts: Sequence[Part], identifier: int, number: int, answer_s: float) -> None:
        self.clock, self.parts, self.identifier, self.number = clock, tuple(parts), identifier, number
        self.answer_s = answer_s

    def start(self) -> None:
        """Send the request now."""
        self._walk(0, up=True)

    def _walk(self, place: int, *, up: bool) -> None:
        order = self.parts if up else self.parts[::-1]
        for index in range(place, len(order)):
            part = order[index]
            if isinstance(part, Spot):
                if part.tap is not None:
                    part.tap.frames.append((self.clock.now_s, self._frame(part, up=up)))
                continue
            arrival_s = part[0 if up else 1].carry(_SIZE_BYTES)
            if arrival_s is not None:
                self.clock.at(arrival_s, partial(self._walk, index + 1, up=up))
            return
        if up:
            back: Callable[[], None] = partial(self._walk, 0, up=False)
            self.clock.after(self.answer_s, back)

    def _frame(self, spot: Spot, *, up: bool) -> bytes:
        source, target = (spot.client, spot.server) if up else (spot.server, spot.client)
        is_4 = source.version == 4
        kind = (8 if up else 0) if is_4 else (128 if up else 129)
        message = bytearray(struct.pack(">BBHHH", kind, 0, 0, self.identifier, self.number) + _DATA)
        pseudo = b"" if is_4 else source.packed + target.packed + struct.pack(">II", len(message), 58)
        struct.pack_into(">H", message, 2, checksum(pseudo + message))
        hops = spot.hops_up if up else spot.hops_down
        return network_header(source, target, 1 if is_4 else 58, hops, self.number, len(message)) + bytes(message)
