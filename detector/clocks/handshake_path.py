"""The path's round trip as a handshake shows it whose SYN and SYN-ACK crossed the whole path."""

from __future__ import annotations

from detector.pair import Pair, Vantage
from pepscope.captures.packets import Direction


def handshake_round_trip_ns(pair: Pair, direction: Direction) -> int | None:
    """Round trip from the capture at the sender of `direction`'s data to the receiver, as the handshake took it.

    The lesser of two measurements, each by one clock: SYN-ACK to ACK (or SYN to SYN-ACK) at the sender's capture, and
    the whole handshake at the receiver's less the part beyond the sender's capture. A SYN that waits for a radio to
    wake up, or a clock that is set in between, delays one of them only. None unless both captures hold the same SYN and
    the same SYN-ACK, once each: a proxy answers SYNs itself, and of repeated ones it is not known which was answered.
    """
    sender, receiver = pair.sender(direction), pair.receiver(direction)
    if sender is None or receiver is None or not _is_one_handshake(sender, receiver):
        return None
    toward, beyond = _legs_ns(sender, direction)
    from_receiver, from_sender = _legs_ns(receiver, direction)
    if toward is None or beyond is None or from_receiver is None or from_sender is None:
        return None
    return min(toward, from_receiver + from_sender - beyond)


def _legs_ns(vantage: Vantage, direction: Direction) -> tuple[int | None, int | None]:
    """The handshake's round trips from the capture to the receiver of `direction`'s data, and to its sender."""
    connection = vantage.connection
    legs = connection.handshake_syn_ack_ns, connection.handshake_ack_ns
    return legs if direction is Direction.UP else legs[::-1]


def _is_one_handshake(one: Vantage, other: Vantage) -> bool:
    """Whether both captures hold the same SYN and the same SYN-ACK, once each."""
    flows = ((one.connection.up, other.connection.up), (one.connection.down, other.connection.down))
    for first, second in flows:
        if first.initial_sequence_number is None or first.initial_sequence_number != second.initial_sequence_number:
            return False
        if first.syn_count != 1 or second.syn_count != 1:
            return False
    return True
