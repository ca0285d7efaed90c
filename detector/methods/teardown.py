"""Teardown: what reaches the sender after the receiver aborts a transfer.

End to end, no more is acknowledged than the receiver got before it aborted. A split point goes on reading from the
sender into its own buffer, and its connection to the sender may outlive the other by far (Wei et al., section III-D).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detector.method import Method, Observation, by_connection
from detector.pair import Pair, Vantage
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Mark, PacketColumns, TcpFlag
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, Number

NAME = "teardown"
#: Acknowledged bytes beyond what the receiver got that a capture may owe to lost packets, in segments.
TOLERATED_SEGMENTS = 10


class TeardownFinding(Finding):
    """What an abort leaves behind."""

    NO_ABORT = inapplicable("no-abort")
    NEEDS_SECOND_CAPTURE = inapplicable("needs-second-capture", is_missing=True)


@dataclass(frozen=True, slots=True)
class Abort:
    """A receiver's abort: time of its first FIN or RST, and the highest offset it had received or acknowledged."""

    time_ns: int
    reached_bytes: int


def examine(observation: Observation) -> Evidence:
    """Compare how far the sender was acknowledged with how far an aborting receiver came."""
    pair = observation.pair
    if len(pair.vantages) < 2:
        return TeardownFinding.NEEDS_SECOND_CAPTURE.undecided(NAME, "How an abort travels needs captures at both ends.")
    for direction in sorted(Direction, key=lambda d: -pair.vantages[0].flow(d).stream_bytes):
        sender, receiver = pair.sender(direction), pair.receiver(direction)
        if sender is None or receiver is None:
            continue
        abort = find_abort(receiver.packets, direction)
        if abort is not None:
            return _compare(pair, direction, sender, receiver, abort)
    return TeardownFinding.NO_ABORT.undecided(NAME, "Neither end aborted this connection in the middle of a transfer.")


def find_abort(packets: PacketColumns, direction: Direction) -> Abort | None:
    """Whether, in its own capture, the receiver of `direction` ended the connection before that stream's end was seen.

    An RST from the receiver is an abort, and so is a FIN after which it answered data with RST.
    """
    reply = packets.going(direction.reverse)
    resets = reply & packets.flagged(TcpFlag.RST)
    if not resets.any():
        return None
    finished = packets.going(direction) & packets.flagged(TcpFlag.FIN)
    first_reset = int(packets.time_ns[resets].min())
    if finished.any() and int(packets.time_ns[finished].min()) <= first_reset:
        return None  # the stream had ended: a reset after it aborts nothing
    data = packets.going(direction) & (packets.payload_bytes > 0)
    ends = packets.sequence_offset[data] + packets.payload_bytes[data].astype(np.int64)
    acks = packets.acknowledgement_offset[reply & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)]
    if len(ends) == 0:
        return None
    ending = reply & ((packets.flags & (TcpFlag.RST | TcpFlag.FIN)) != 0)
    reached = max(int(ends.max()), int(acks.max(initial=0)))
    return Abort(int(packets.time_ns[ending].min()), reached)


def _compare(pair: Pair, direction: Direction, sender: Vantage, receiver: Vantage, abort: Abort) -> Evidence:
    packets = sender.packets
    replies = packets.going(direction.reverse)
    acked = replies & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT) & ~packets.flagged(TcpFlag.RST)
    acknowledged = int(packets.acknowledgement_offset[acked].max(initial=0))
    reached = abort.reached_bytes + pair.receiver_shift(direction)
    beyond = acknowledged - reached
    largest = int(packets.payload_bytes.max(initial=0))  # of a segment, if there is no MSS option
    segment = receiver.flow(direction.reverse).maximum_segment_size or max(largest, 1460)
    tolerated = TOLERATED_SEGMENTS * segment
    over = replies & ((packets.flags & (TcpFlag.RST | TcpFlag.FIN)) != 0)
    last_ns = int(packets.time_ns[-1])
    receiver_after_s = (int(receiver.packets.time_ns[-1]) - abort.time_ns) / 1e9
    sender_after_s = (last_ns - int(packets.time_ns[over].min())) / 1e9 if over.any() else None
    probes = int(np.count_nonzero(packets.going(direction) & packets.marked(Mark.ZERO_WINDOW_PROBE)))
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
        return TransferFinding.ACKNOWLEDGED_BEYOND_ABORT.evidence(
            NAME, (1.0 - tolerated / (2.0 * beyond)) * pair.pairing_confidence,
            f"The receiver aborted after {reached} bytes, but {acknowledged} bytes were acknowledged to the sender: "
            "a middlebox holds the rest.", numbers,
        )  # fmt: skip
    if not over.any():
        return TeardownFinding.NO_ABORT.undecided(NAME, "The sender's capture does not show the abort.", numbers)
    return TransferFinding.ABORT_END_TO_END.evidence(
        NAME, 0.3 * pair.pairing_confidence,
        "The abort reached the sender, and no byte was acknowledged that the receiver had not got.", numbers,
        ("A split point without a queue that forwards aborts looks the same.",),
    )  # fmt: skip


METHOD = Method(NAME, "teardown", (TeardownFinding, TransferFinding), by_connection(examine))
