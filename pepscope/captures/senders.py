"""What each side of connections sends, as far as it tells of its stack and place, and how its data respond to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    import numpy.typing as npt

    from pepscope.captures.packets import Int64Array, UInt8Array, UInt32Array

    Int16Array = npt.NDArray[np.int16]
    Float64Array = npt.NDArray[np.float64]


class Senders(Struct, frozen=True):
    """Rows 2i and 2i + 1 are what the client and the server of connection i sent. -1 stands for what was not seen.

    Resets are left out, since anything in the network sends them in a host's name. *Later* packets are those without
    SYN.
    """

    connection: UInt32Array
    sent: UInt8Array  # direction of the packets
    syn_ns: Int64Array  # the first SYN (SYN-ACK); what follows with `syn_` is its own
    syn_hop_limit: Int16Array  # IPv4 TTL or IPv6 hop limit
    syn_window: Int64Array  # never scaled (RFC 7323)
    syn_tsval: Int64Array  # -1 without timestamps
    option_kinds: npt.NDArray[np.uint8]  # rows of 16: kinds in their order, padding (1) included, 0 behind the last
    later_packets: UInt32Array
    hop_limit: Int16Array  # of later packets: the most frequent one (the lowest of equally frequent ones)
    ticked_packets: UInt32Array  # later packets with timestamps; then when the first and last were captured, and TSval
    first_tick_ns: Int64Array
    first_tsval: Int64Array
    last_tick_ns: Int64Array
    last_tsval: Int64Array
    train_bytes: Int64Array  # of the other side's data that left back to back: between first and last acknowledgement
    train_spread_ns: Int64Array  # what these bytes took on the way here, beyond what passed between their leaving

    def __len__(self) -> int:
        return len(self.connection)


class LoadResponses(Struct, frozen=True):
    """How round trips and windows respond to the bytes in flight; rows 2i and 2i + 1: data up and down of the i-th
    connection that was asked for, in ascending order.

    A round trip is that of the last segment that an acknowledgement covers (Karn's rule, RFC 6298 section 3); its
    flight is what was unacknowledged once that segment had left. At the receiver of the data the round trips are its
    delays of acknowledgements. -1 and NaN stand for what is not known.
    """

    connection: UInt32Array
    sent: UInt8Array  # direction of the data
    samples: UInt32Array
    least_ns: Int64Array
    idle_ns: Int64Array  # median round trip of the quarter of samples with the least flight
    loaded_ns: Int64Array  # of the quarter with the most
    idle_flight_bytes: Int64Array  # median flights of these
    loaded_flight_bytes: Int64Array
    rank_correlation: Float64Array  # Spearman's, of round trip and flight; NaN where either is constant
    times_shut: UInt32Array  # the receiver's window fell to zero
    shut_ns: Int64Array  # for how long it was zero, as far as it opened again

    def __len__(self) -> int:
        return len(self.connection)
