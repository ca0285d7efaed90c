"""The smallest link and the smallest congestion control in Python: `pepscope simulate examples/plug-ins.toml`.

The link sends at a rate and drops the more packets, the longer its queue is; the control adds a segment a round trip
and takes a quarter off after a loss.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from typing import Any

from reference_sim.plug_ins import Control, ControlAcknowledgement, Link, SimulatedPacket

_SECOND_NS = 1_000_000_000


class RandomEarlyLink(Link):
    """A line of `rate_bit_s` behind a queue of `most_packets` down, which drops at random before it is full."""

    def __init__(self, settings: Mapping[str, Any], seed: int, name: str) -> None:
        super().__init__(settings, seed, name)
        self.rate_bit_s = float(settings.get("rate_bit_s", 10e6))
        self.most_packets = int(settings.get("most_packets", 100))
        self.chance = random.Random(f"{seed} {name}")
        self.up: deque[tuple[int, SimulatedPacket]] = deque()
        self.queue: deque[tuple[int, SimulatedPacket]] = deque()
        self.free_at_ns = 0

    def handle_packet(self, now_ns: int, packet: SimulatedPacket) -> None:
        """Queue it, or drop it."""
        if packet.is_up:
            self.up.append((now_ns, packet))  # nothing waits there
        elif len(self.queue) >= self.most_packets or self.chance.random() < 0.02 * len(self.queue) / self.most_packets:
            packet.discard()
        else:
            took_ns = round(8 * packet.length_bytes * _SECOND_NS / self.rate_bit_s)
            self.free_at_ns = max(self.free_at_ns, now_ns) + took_ns
            self.queue.append((self.free_at_ns, packet))

    def poll_transmit(self, now_ns: int) -> SimulatedPacket | None:
        """What has been sent by now."""
        for waiting in (self.up, self.queue):
            if waiting and waiting[0][0] <= now_ns:
                return waiting.popleft()[1]
        return None

    def poll_timeout(self) -> int | None:
        """When the next packet has been sent."""
        return min((waiting[0][0] for waiting in (self.up, self.queue) if waiting), default=None)


class GentleControl(Control):
    """Slow start, then a segment a round trip; three quarters of the window remain after a loss."""

    slow_start_threshold_bytes: int | None = None

    def on_acknowledged(self, acknowledgement: ControlAcknowledgement) -> None:
        """Open the window."""
        if acknowledgement.in_recovery or not acknowledgement.is_window_limited:
            return
        new_bytes = acknowledgement.newly_acknowledged_bytes
        threshold_bytes = self.slow_start_threshold_bytes
        if threshold_bytes is None or self.window_bytes < threshold_bytes:
            self.window_bytes += new_bytes
        else:
            self.window_bytes += max(1, self.segment_bytes * new_bytes // self.window_bytes)

    def on_congestion(self, now_ns: int, cause: str, in_flight_bytes: int) -> None:  # noqa: ARG002 - of any time
        """Close it by a quarter, or to a segment."""
        self.slow_start_threshold_bytes = max(2 * self.segment_bytes, in_flight_bytes * 3 // 4)
        self.window_bytes = self.segment_bytes if cause == "timeout" else self.slow_start_threshold_bytes
