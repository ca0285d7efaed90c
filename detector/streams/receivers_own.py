"""Acknowledgements at the sender that are the receiver's own packets, as IP IDs show it.

What a middlebox changes in them (a regulator narrows windows, a path holds packets back) makes no other host of their
sender.
"""

from __future__ import annotations

import numpy as np

from detector.pair import Pair, Vantage
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.distinct import are_among
from pepscope.results.evidence.columns import BoolArray

#: Places among the fields by which a packet is known.
_IP_ID, _ACKNOWLEDGED = 0, 1


def are_receivers_own(pair: Pair, direction: Direction, rows: Int64Array) -> BoolArray:
    """Of which of these rows of the sender's capture of `direction`'s data, packets that came back, the receiver's
    capture holds the same packet: the same IP ID (0 is none), acknowledgement, timestamps and length."""
    sender, receiver = pair.sender(direction), pair.receiver(direction)
    if sender is None or receiver is None:
        return np.zeros(len(rows), np.bool_)
    arrived, shift_bytes = _fields(sender, rows, 0), pair.receiver_shift(direction)
    back = np.flatnonzero(receiver.packets.direction == direction.reverse)
    # Most packets have the number of none that is asked about.
    acknowledged = receiver.packets.acknowledgement_offset[back] + shift_bytes
    back = back[are_among(acknowledged, arrived[:, _ACKNOWLEDGED])]
    emitted = {*map(tuple, _fields(receiver, back, shift_bytes).tolist())}
    return np.array([each[_IP_ID] != 0 and tuple(each) in emitted for each in arrived.tolist()], np.bool_)


def _fields(vantage: Vantage, rows: Int64Array, shift_bytes: int) -> Int64Array:
    packets = vantage.packets
    acknowledged = packets.acknowledgement_offset[rows] + shift_bytes
    others = (packets.ip_id, packets.tsval, packets.tsecr, packets.payload_bytes)
    ip_id, *rest = (column[rows].astype(np.int64) for column in others)
    return np.stack([ip_id, acknowledged, *rest], axis=1)
