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
    if sender is None or receiver is None or not _is_one_handshake(pair):
        return None
    toward, beyond = _legs_ns(sender, direction)
    whole = _legs_ns(receiver, direction)
    if toward is None or beyond is None or None in whole:
        return None
    return min(toward, sum(leg for leg in whole if leg is not None) - beyond)


def _legs_ns(vantage: Vantage, direction: Direction) -> tuple[int | None, int | None]:
    """The handshake's round trips from the capture to the receiver of `direction`'s data, and to its sender."""
    connection = vantage.connection
    legs = connection.handshake_syn_ack_ns, connection.handshake_ack_ns
    return legs if direction is Direction.UP else legs[::-1]


def _is_one_handshake(pair: Pair) -> bool:
    for direction in Direction:
        numbers = {vantage.flow(direction).initial_sequence_number for vantage in pair.vantages}
        if None in numbers or len(numbers) != 1:
            return False
    return all(vantage.flow(direction).syn_count == 1 for vantage in pair.vantages for direction in Direction)
