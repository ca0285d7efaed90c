"""References: round trips to hosts that no TCP split can shorten, because they are not TCP.

A split point answers for a host at the transport layer of TCP only. ICMP echo (RFC 792, RFC 4443) and UDP exchanges go
to the host itself, unless something answers for it there as well (a DNS resolver or a QUIC proxy in the network). What
else differs from TCP's round trips must be thought of: a host may answer ICMP late or rarely, a UDP application may
compute, a QUIC handshake takes cryptography and datagrams of 1,200 bytes, and the load at the time may differ.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from pepscope.extras import needed

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from pepscope.captures.packets import BoolArray, Int64Array, UInt8Array


class ReferenceKind(IntEnum):
    """What ties an answer to its request."""

    ICMP_ECHO = 0  # identifier and sequence number
    DNS = 1  # identifier of a DNS message; the host is the resolver, and the time holds what it asks of others
    NTP = 2  # the request's transmit timestamp, which comes back as origin timestamp (RFC 5905)
    STUN = 3  # transaction ID (RFC 8489)
    QUIC_INITIAL = 4  # a QUIC server's first datagram, under the connection ID that the client told (RFC 9000)
    QUIC_RETURN = (
        5  # a QUIC client's first datagram under the connection ID that the server told: its host is the client
    )
    UDP_ECHO = 6  # the answer repeats the datagram, as far as captured and up to 64 bytes
    UDP_TURN = 7  # the other side's next datagram: surely an answer only where `is_first`, since streams take turns too

    @property
    def title(self) -> str:
        """Its name in results, such as `icmp-echo`."""
        return self.name.lower().replace("_", "-")


#: Kinds whose answer carries what only the request told.
TIED_KINDS = tuple(kind for kind in ReferenceKind if kind is not ReferenceKind.UDP_TURN)


class References(Struct, frozen=True):
    """Round trips as columns of equal length, by the time of the request, as the capture point saw them.

    Of each host and kind at most 256 are kept, those whose rank is a multiple of a power of two: quantiles are those of
    all, a minimum is one of a part. Each is from the first datagram of a request to the first datagram of its answer.
    Where the request was repeated meanwhile, the answer may be to any of them, so the round trip is at least
    `round_trip_ns - repeated_ns`.
    """

    host_address: npt.NDArray[np.uint8]  # who answered; rows of 16 bytes, IPv4 behind ::ffff:0:0/96
    asking_address: npt.NDArray[np.uint8]
    host_port: Int64Array  # 0 for ICMP
    kind: UInt8Array  # numbers of `ReferenceKind`
    asked_ns: Int64Array  # since the epoch
    asked_frame: Int64Array  # number of the request's first datagram in the capture, from 1
    answered_frame: Int64Array
    round_trip_ns: Int64Array
    repeated_ns: Int64Array  # how much later the last datagram of the request was captured; 0 where one asked
    request_bytes: Int64Array  # behind the ICMP or UDP header, on the wire
    answer_bytes: Int64Array
    is_first: BoolArray  # nothing was answered before between these end points (of ICMP: under this identifier)

    def __len__(self) -> int:
        return len(self.kind)

    def of(self, rows: npt.NDArray[np.intp] | BoolArray) -> References:
        """Those of some rows."""
        return References(**{name: getattr(self, name)[rows] for name in self.__struct_fields__})

    def tied(self) -> References:
        """Those whose answer must be to that request, and to one datagram: no turns, nothing repeated."""
        return self.of(np.isin(self.kind, TIED_KINDS) & (self.repeated_ns == 0))

    def to_frame(self) -> pd.DataFrame:
        """One row a reference, addresses as text, kinds as categories."""
        with needed():
            import pandas as pd

        from pepscope.captures.tables.addresses import address_texts

        columns = {name: getattr(self, name) for name in self.__struct_fields__}
        columns["host_address"] = address_texts(self.host_address)
        columns["asking_address"] = address_texts(self.asking_address)
        titles = pd.Index([kind.title for kind in ReferenceKind])
        columns["kind"] = pd.Categorical.from_codes(self.kind.astype(np.int8), categories=titles)
        return pd.DataFrame(columns)
