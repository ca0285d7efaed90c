"""Teardown: what happens at the sender when the receiver gives up in the middle of a transfer.

End to end nobody can acknowledge more than the receiver got before it aborted. A split point goes on reading from the
sender into its own buffer, and its connection to the sender may outlive the other by far (Wei et al., section III-D).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from detector.pair import Pair, Vantage
from pepscope.packets import NO_ACKNOWLEDGEMENT, Direction, Mark, PacketColumns, TcpFlag
from pepscope.results import Evidence, Number, Outcome

if TYPE_CHECKING:
    from detector.clock import ClockRelation

METHOD = "teardown"
#: Acknowledged bytes beyond what the receiver got that a capture may owe to lost packets, in segments.
TOLERATED_SEGMENTS = 10


@dataclass(frozen=True, slots=True)
class Abort:
    """A receiver that gave up: when it first said so, and how far it had come by its last word (its own offsets)."""

    time_ns: int
    reached_bytes: int
    by_reset: bool


def examine(pair: Pair, clock: ClockRelation) -> Evidence:
    """Compare how far the sender was acknowledged with how far an aborting receiver came.

    Findings: `acknowledged-beyond-abort` (split), `abort-end-to-end` (intact, weak), `no-abort`,
    `needs-second-capture`.
    """
    if len(pair.vantages) < 2:
        return _inapplicable("needs-second-capture", "How an abort travels needs captures at both ends.")
    for direction in sorted(Direction, key=lambda d: -pair.vantages[0].flow(d).stream_bytes):
        sender, receiver = pair.sender(direction), pair.receiver(direction)
        if sender is None or receiver is None:
            continue
        abort = find_abort(receiver.packets, direction)
        if abort is not None:
            return _compare(pair, direction, sender, receiver, abort)
    return _inapplicable("no-abort", "Nobody aborted this connection in the middle of a transfer.")


def find_abort(packets: PacketColumns, direction: Direction) -> Abort | None:
    """Whether, in its own capture, the receiver of `direction` ended the connection before that stream's end was seen.

    An RST from the receiver is an abort, and so is a FIN after which it answered data with RST.
    """
    reply = packets.direction == direction.reverse
    resets = reply & ((packets.flags & TcpFlag.RST) != 0)
    if not resets.any():
        return None
    finished = (packets.direction == direction) & ((packets.flags & TcpFlag.FIN) != 0)
    first_reset = int(packets.time_ns[resets].min())
    if finished.any() and int(packets.time_ns[finished].min()) <= first_reset:
        return None  # the stream had ended: a reset after it aborts nothing
    data = (packets.direction == direction) & (packets.payload_bytes > 0)
    ends = packets.sequence_offset[data] + packets.payload_bytes[data].astype(np.int64)
    acks = packets.acknowledgement_offset[reply & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)]
    if len(ends) == 0:
        return None
    ending = reply & ((packets.flags & (TcpFlag.RST | TcpFlag.FIN)) != 0)
    reached = max(int(ends.max()), int(acks.max(initial=0)))
    return Abort(int(packets.time_ns[ending].min()), reached, True)


def _compare(pair: Pair, direction: Direction, sender: Vantage, receiver: Vantage, abort: Abort) -> Evidence:
    packets = sender.packets
    replies = packets.direction == direction.reverse
    acked = replies & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT) & ((packets.flags & TcpFlag.RST) == 0)
    acknowledged = int(packets.acknowledgement_offset[acked].max(initial=0))
    reached = abort.reached_bytes + pair.receiver_shift(direction)
    beyond = acknowledged - reached
    largest = int(packets.payload_bytes.max(initial=0))  # of a segment, where no SYN option says how long they are
    segment = receiver.flow(direction.reverse).maximum_segment_size or max(largest, 1460)
    tolerated = TOLERATED_SEGMENTS * segment
    over = replies & ((packets.flags & (TcpFlag.RST | TcpFlag.FIN)) != 0)
    last_ns = int(packets.time_ns[-1])
    receiver_after_s = (int(receiver.packets.time_ns[-1]) - abort.time_ns) / 1e9
    sender_after_s = (last_ns - int(packets.time_ns[over].min())) / 1e9 if over.any() else None
    probes = int(np.count_nonzero((packets.direction == direction) & ((packets.marks & Mark.ZERO_WINDOW_PROBE) != 0)))
    numbers: dict[str, Number] = {
        "direction": direction.name.lower(),
        "receiver_reached_bytes": reached,
        "acknowledged_to_sender_bytes": acknowledged,
        "acknowledged_beyond_bytes": beyond,
        "receiver_packets_after_abort_s": receiver_after_s,
        "sender_packets_after_abort_s": sender_after_s,
        "abort_reached_sender": bool(over.any()),
        "zero_window_probes": probes,
    }
    if beyond > tolerated:
        return Evidence(
            METHOD, Outcome.SPLIT, "acknowledged-beyond-abort",
            (1.0 - tolerated / (2.0 * beyond)) * pair.pairing_confidence,
            f"The receiver aborted after {reached} bytes, but {acknowledged} bytes were acknowledged to the sender: "
            "the rest sits in a box in between.", numbers,
        )  # fmt: skip
    if not over.any():
        return _inapplicable("no-abort", "The sender's capture does not show the abort.", numbers)
    return Evidence(
        METHOD, Outcome.INTACT, "abort-end-to-end", 0.3 * pair.pairing_confidence,
        "The abort reached the sender, and nothing was acknowledged that the receiver had not got.", numbers,
        ("A split point without a queue that passes aborts on looks the same.",),
    )  # fmt: skip


def _inapplicable(finding: str, summary: str, numbers: dict[str, Number] | None = None) -> Evidence:
    return Evidence(METHOD, Outcome.INAPPLICABLE, finding, 0.0, summary, numbers or {})
