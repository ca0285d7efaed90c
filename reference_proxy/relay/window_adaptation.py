"""Window adaptation: Split-TCP that sends to the mobile what a control law allows (seed 003, section 4).

        server ---- leg ---- [ proxy: law ] ---- leg ---- Node-B [ queue ] ~~~ mobile
                                    ^                        |
                                    +--- queue reports (UDP) +

Every Ts the Node-B reports its queue and its rate; the sliding-mode law (the same Rust code that the simulator runs)
answers with the packets to send during the step, so that the queue settles around q0: never empty, never full. TCP on
the mobile leg stays what it is and repairs losses, but the law decides how far it may get ahead. A window in user
space is made of two holds on what is handed to the kernel:

- within a step, whole packets up to the law's quota, what is left of one carried over;
- never more unacknowledged (SIOCOUTQ) than fills the Node-B's buffer and the way there and back, so that lost reports
  or a mobile without acknowledgements cannot increase the window; and nothing while the kernel still holds bytes that
  it has not sent, since those would count as under way without being so.

The server is held back by the window that the full buffer closes, as in all Split-TCP. All connections of one proxy
share the law, since reports are about one mobile. Without reports for `silence_s` the proxy goes on as plain
Split-TCP.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pepscope import _core
from reference_proxy.configuration import RateSource
from reference_proxy.errors import ConfigurationError
from reference_proxy.sockets import segment_bytes, unacknowledged_bytes, unsent_bytes

if TYPE_CHECKING:
    import socket

    from reference_proxy.configuration import Adaptation
    from reference_proxy.relay.buffers import Buffer
    from reference_proxy.relay.queue_reports import QueueReport

logger = logging.getLogger("reference_proxy")

#: How often a waiting connection checks whether acknowledgements made room.
POLL_S = 1e-3


def make_law(settings: Adaptation) -> _core.SlidingMode:
    """The control law. Raises ConfigurationError where the parameters break the paper's guideline."""
    try:
        return _core.SlidingMode(
            step_s=settings.step_s,
            delay_steps=settings.delay_steps,
            frames_per_packet=settings.frames_per_packet,
            reference_frames=settings.reference_frames,
            buffer_frames=settings.buffer_frames,
            smoothing=settings.smoothing,
            approach_per_s=settings.approach_per_s,
            switching_frames_s=settings.switching_frames_s,
            extremes_steps=settings.extremes_steps,
        )
    except ValueError as error:
        raise ConfigurationError(f"adaptation: {error}") from None


class Gate:
    """The permission to send to the mobile, shared by its connections: a quota of packets each step."""

    def __init__(self, settings: Adaptation) -> None:
        self._settings = settings
        self._law = make_law(settings)
        self._last_step: int | None = None
        self._reported_at: float | None = None
        self._began_at: float | None = None
        self._is_silent = False
        self._wants_more = False
        self.quota_packets = 0.0
        self.spent_packets = 0.0

    @property
    def is_open(self) -> bool:
        """Reports have failed: nothing is held back."""
        return self._is_silent

    def handle_report(self, report: QueueReport, now: float) -> bool:
        """Begin a step; False for a report that is old or came twice."""
        if self._last_step is not None and not self._is_silent and not report.is_after(self._last_step):
            return False
        self._last_step = report.step
        self._reported_at = self._began_at = now
        if self._is_silent:
            logger.info("queue reports are back", extra={"fields": {"event": "reports-back"}})
        self._is_silent = False
        carried = self.quota_packets - self.spent_packets if self._wants_more else 0.0
        if not self._wants_more:
            self._law.correct_last(self.spent_packets)
        frames = report.served_frames if self._settings.rate_source is RateSource.SERVED else report.offered_frames
        quota = self._law.step(float(report.queued_frames), frames / self._settings.step_s)
        self.quota_packets = quota + min(max(carried, 0.0), 1.0)
        self.spent_packets = 0.0
        self._wants_more = self.quota_packets < 1.0
        return True

    def notice_silence(self, now: float) -> None:
        """Open the gate if reports have stayed away for too long."""
        if self._reported_at is None:
            self._reported_at = now
        if not self._is_silent and now - self._reported_at >= self._settings.silence_s:
            self._is_silent = True
            logger.warning(
                "no queue reports: going on as Split-TCP",
                extra={"fields": {"event": "reports-missing", "silence_s": self._settings.silence_s}},
            )

    def allowed_packets(self, now: float) -> int:
        """Whole packets that may leave now."""
        if self._began_at is None:
            return 0
        quota = self.quota_packets
        if self._settings.spreads_packets and quota >= 1.0:
            # The n-th leaves when the n-1 before it have had their share of the step.
            passed = min(1.0, (now - self._began_at) / self._settings.step_s)
            quota = min(quota, passed * quota + 1.0)
        allowed = int(quota - self.spent_packets)
        self._wants_more = self._wants_more or self.spent_packets + 1.0 > self.quota_packets
        return max(0, allowed)

    def spend(self, packets: float) -> None:
        """So many left."""
        self.spent_packets += packets

    def ask_for_more(self) -> None:
        """A relay holds bytes that the quota does not let pass."""
        if self.spent_packets + 1.0 > self.quota_packets:
            self._wants_more = True

    def next_release(self, now: float) -> float:
        """When the next packet may leave, as far as the step decides."""
        if self._began_at is None or self.spent_packets + 1.0 > self.quota_packets:
            return now + self._settings.step_s
        if not self._settings.spreads_packets:
            return now + POLL_S
        share = self.spent_packets / self.quota_packets
        return max(self._began_at + share * self._settings.step_s, now + POLL_S)

    @property
    def window_packets(self) -> float:
        """Most that may be unacknowledged: a full buffer, and what the link serves on the way there and back."""
        settings = self._settings
        on_the_way = (2 * settings.delay_steps + 2) * settings.step_s * self._law.mean_rate_frames_s
        return (settings.buffer_frames + on_the_way) / settings.frames_per_packet


class GatedRelease:
    """The direction down of one connection."""

    passes_all = False

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._packet_bytes = 0

    def room(self, buffer: Buffer) -> int:
        """The free room: a gate with a small quota fills the buffer, and the server waits."""
        return buffer.room

    def came(self, buffer: Buffer, count: int, now: float) -> None:
        """Nothing to note."""

    def releasable(self, buffer: Buffer, target: socket.socket, now: float) -> int:
        """Whole packets within quota and window; a last short packet counts as one."""
        if self._gate.is_open:
            self._packet_bytes = 0
            return buffer.held
        self._packet_bytes = segment_bytes(target)
        packets = self._gate.allowed_packets(now)
        if packets == 0:
            self._gate.ask_for_more()
            return 0
        window_bytes = int(max(1.0, self._gate.window_packets)) * self._packet_bytes
        room_bytes = window_bytes - unacknowledged_bytes(target)
        if unsent_bytes(target) or room_bytes < min(self._packet_bytes, buffer.held):
            return 0
        # Whole packets, so that the count equals the network's; a shorter rest is sent only at the end.
        whole = min(packets, room_bytes // self._packet_bytes, buffer.held // self._packet_bytes)
        return whole * self._packet_bytes or buffer.held

    def gone(self, count: int) -> None:
        """Spend the quota."""
        if self._packet_bytes:
            self._gate.spend(-(-count // self._packet_bytes))

    def next_release(self, now: float) -> float | None:
        """With the step, or when acknowledgements may have come."""
        return self._gate.next_release(now)

    def close(self) -> None:
        """Nothing to give back."""
