"""Teardown: what reaches the sender after the receiver aborts a transfer.

End to end, no more is acknowledged than the receiver got before it aborted. A split point goes on reading from the
sender into its own buffer, and its connection to the sender may outlive the other by far (Wei et al., section III-D).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.method import Context, Findings, Method
from detector.pair import Pair, Vantage
from detector.streams.known import UNKNOWN
from detector.streams.sides import Sides
from pepscope import _core
from pepscope.captures.packets import Direction, PacketColumns, TcpFlag
from pepscope.results.evidence.columns import BoolArray, Words, evidence_where
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, Number

NAME = "teardown"
#: Acknowledged bytes beyond what the receiver got that a capture may owe to lost packets, in segments.
TOLERATED_SEGMENTS = 10

#: The largest window without the option that scales it (RFC 9293, section 3.1), which a capture may lack.
LARGEST_UNSCALED_BYTES = 65_535


class TeardownFinding(Finding):
    """What an abort leaves behind."""

    NO_ABORT = inapplicable("no-abort")
    NEEDS_SECOND_CAPTURE = inapplicable("needs-second-capture", is_missing=True)


_NEEDS_BOTH = Words("How an abort travels needs captures at both ends.")
_NOT_ABORTED = Words("Neither end aborted this connection in the middle of a transfer.")


def examine(context: Context) -> Findings:
    """Compare how far the sender was acknowledged with how far an aborting receiver came."""
    pairs, sides = context.pairs, context.sides
    lack_one = np.zeros(len(pairs), np.bool_)
    lack_one[context.seen_once] = True
    resets = _resets(sides)
    evidence = {
        row: found
        for row, of_receivers in zip(sides.rows.tolist(), resets.T.tolist(), strict=True)
        if any(of_receivers) and (found := _aborted(pairs[row], of_receivers)) is not None
    }
    others = ~lack_one
    others[list(evidence)] = False
    columns = [
        *evidence_where(lack_one, NAME, TeardownFinding.NEEDS_SECOND_CAPTURE, (), _NEEDS_BOTH),
        *evidence_where(others, NAME, TeardownFinding.NO_ABORT, (), _NOT_ABORTED),
    ]
    return Findings.of_rows(evidence, columns)


def _resets(sides: Sides) -> BoolArray:
    """Of which connections the receiver of data up and down (rows) sent RST in its own capture."""
    name = "reset_time_ns"
    by_server, by_client = sides.server.of_flow(Direction.DOWN, name), sides.client.of_flow(Direction.UP, name)
    return np.array([by_server != UNKNOWN, by_client != UNKNOWN])


def _aborted(pair: Pair, resets: Sequence[bool]) -> Evidence | None:
    """What an abort in the middle of a transfer shows; None without one. `resets`: as `_resets`."""
    client, server = pair.client_side, pair.server_side
    if client is None or server is None:
        return None
    upward, downward = (Direction.UP, client, server), (Direction.DOWN, server, client)
    is_download = client.stream_bytes(Direction.DOWN) > client.stream_bytes(Direction.UP)
    for direction, sender, receiver in (downward, upward) if is_download else (upward, downward):
        if not resets[direction]:
            continue
        abort = find_abort(receiver.packets, direction)
        if abort is not None:
            return _compare(pair, direction, sender, receiver, abort)
    return None


def find_abort(packets: PacketColumns, direction: Direction) -> _core.Abort | None:
    """Whether, in its own capture, the receiver of `direction` ended the connection before that stream's end was seen.

    An RST from the receiver is an abort, and so is a FIN after which it answered data with RST.
    """
    return _core.abort(direction.value, packets)


def _compare(pair: Pair, direction: Direction, sender: Vantage, receiver: Vantage, abort: _core.Abort) -> Evidence:
    seen = _core.abort_at_sender(direction.value, sender.packets)
    reached = abort.reached_bytes + pair.receiver_shift(direction)
    # Numbers far beyond what was sent are another connection's of these ports, whose SYN a capture lost.
    acknowledged = min(seen.acknowledged_bytes, _acknowledged_bytes(sender.packets, direction, reached))
    beyond = acknowledged - reached
    # The largest segment stands in for an MSS option that is missing.
    segment = receiver.flow(direction.reverse).maximum_segment_size or max(seen.largest_payload_bytes, 1460)
    tolerated = TOLERATED_SEGMENTS * segment
    receiver_after_s = (int(receiver.packets.time_ns[-1]) - abort.time_ns) / 1e9
    sender_after_s = None if seen.end_ns is None else (int(sender.packets.time_ns[-1]) - seen.end_ns) / 1e9
    numbers: dict[str, Number] = {
        "direction": direction.name.lower(),
        "receiver_reached_bytes": reached,
        "acknowledged_to_sender_bytes": acknowledged,
        "acknowledged_beyond_bytes": beyond,
        "receiver_packets_after_abort_s": receiver_after_s,
        "sender_packets_after_abort_s": sender_after_s,
        "abort_reached_sender": seen.end_ns is not None,
        "zero_window_probes": seen.zero_window_probes,
    }
    if beyond > tolerated:
        return TransferFinding.ACKNOWLEDGED_BEYOND_ABORT.evidence(
            NAME, (1.0 - tolerated / (2.0 * beyond)) * pair.pairing_confidence,
            f"The receiver aborted after {reached:,} bytes, but {acknowledged:,} bytes were acknowledged to the "
            "sender: a middlebox holds the rest.", numbers,
        )  # fmt: skip
    if seen.end_ns is None:
        return TeardownFinding.NO_ABORT.undecided(NAME, "The sender's capture does not show the abort.", numbers)
    return TransferFinding.ABORT_END_TO_END.evidence(
        NAME, 0.3 * pair.pairing_confidence,
        "The abort reached the sender, and no byte was acknowledged that the receiver had not got.", numbers,
        ("A split point without a queue that forwards aborts looks the same.",),
    )  # fmt: skip


def _acknowledged_bytes(packets: PacketColumns, direction: Direction, reached_bytes: int) -> int:
    """How far a sender's capture shows its stream acknowledged, of what was sent (and the FIN).

    Sent is what reached the receiver, and what the capture holds: data, or acknowledgements where it holds no data. The
    stream ends where more than the receiver's window is missing beyond: a sender is never so far ahead.
    """
    is_data = (packets.direction == direction) & (packets.payload_bytes > 0)
    is_sent_back = (packets.direction != direction) & (packets.flags & TcpFlag.RST == 0)
    acknowledged = packets.acknowledgement_offset[is_sent_back]
    begins, payload_bytes = packets.sequence_offset[is_data], packets.payload_bytes[is_data]
    if not len(begins):
        begins, payload_bytes = acknowledged, np.zeros(len(acknowledged), payload_bytes.dtype)
    order = np.argsort(begins, kind="stable")
    ends = np.maximum.accumulate(np.maximum((begins + payload_bytes)[order], reached_bytes))
    window_bytes = max(LARGEST_UNSCALED_BYTES, int(packets.window_bytes.max(initial=0)))
    beyond_gaps = np.flatnonzero(begins[order][1:] - ends[:-1] > window_bytes)
    end = ends[beyond_gaps[0] if len(beyond_gaps) else -1] if len(ends) else reached_bytes
    return max(0, int(acknowledged[acknowledged <= end + 1].max(initial=0)))


METHOD = Method(NAME, "teardown", (TeardownFinding, TransferFinding), examine)
