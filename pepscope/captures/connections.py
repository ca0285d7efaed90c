"""Connections: one TCP connection as one capture saw it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, overload

if TYPE_CHECKING:
    from pepscope import _core


class Close(StrEnum):
    """How a connection ended within the capture."""

    FIN = "fin"
    RESET = "reset"
    OPEN = "open"


class MissingPackets(StrEnum):
    """Packets of one side that a capture provably lacks, because of a filter or another route."""

    NONE = "none"
    ALL = "all"
    PURE_ACKNOWLEDGEMENTS = "pure-acknowledgements"
    DATA = "data"


#: How a connection ended, what it was tunnelled in, and what is missing of a flow, in the order of the codes in
#: `Capture.connection_columns`.
CLOSES = tuple(Close)
MISSING_PACKETS = tuple(MissingPackets)
TUNNELS = ("none", "gtp-u", "gre", "ip-in-ip", "vxlan", "udp", "geneve", "l2tp")


class FlowSummary(NamedTuple):
    """What one side of a connection sent. Times are nanoseconds since the epoch; `None` where it was not seen."""

    packets: int
    payload_bytes: int  # with retransmissions
    stream_bytes: int  # highest offset reached
    data_packets: int
    pure_acknowledgements: int  # packets with neither payload nor SYN, FIN or RST
    retransmitted_packets: int
    retransmitted_bytes: int
    reordered_packets: int
    duplicate_packets: int
    missed_bytes: int  # acknowledged by the other side, never captured
    zero_windows: int  # times its advertised window went to zero
    zero_window_probes: int  # that were sent
    window_min_bytes: int
    window_max_bytes: int
    round_trip_time_samples: int  # of data that this side sent, as this capture saw them
    round_trip_time_min_ns: int | None
    round_trip_time_mean_ns: float | None
    round_trip_time_max_ns: int | None
    first_time_ns: int | None
    first_data_time_ns: int | None
    last_data_time_ns: int | None
    initial_sequence_number: int | None  # of its SYN, or by the SYN-ACK that answers it; None where both are missing
    syn_count: int  # that were sent: a SYN which the capture holds again is one
    maximum_segment_size: int | None
    window_scale: int | None
    window_shift: int | None  # by which windows are scaled; None where the SYN options that settle it were not captured
    sack_permitted: bool
    timestamps: bool
    options_captured: bool  # all of the first SYN's options: else one that is None or False may have been there
    options_truncated_packets: int
    ttl: int  # of its first packet
    fin_time_ns: int | None
    reset_time_ns: int | None
    syn_options: bytes  # TCP option bytes of the first SYN, as far as they were captured
    missing_packets: MissingPackets


class Connection(NamedTuple):
    """One TCP connection: `client` sent the SYN (guessed, and marked so, where no SYN and no SYN-ACK was captured)."""

    id: int  # rank by first packet in its capture
    client_address: str
    server_address: str
    ip_version: int
    client_port: int
    server_port: int
    side_guessed: bool
    first_time_ns: int
    last_time_ns: int
    packets: int
    handshake_syn_ack_ns: int | None  # SYN to SYN-ACK
    handshake_ack_ns: int | None  # SYN-ACK to the client's first ACK
    tunnel_up: int  # tunnel identifier (TEID, key, VNI) of each flow; 0 where none
    tunnel_down: int
    close: Close
    tunnel: str  # one of TUNNELS; "udp" is an unknown header with whole IP packets behind it
    up: FlowSummary
    down: FlowSummary

    @property
    def client(self) -> str:
        """`address:port`, IPv6 in brackets."""
        return endpoint(self.client_address, self.client_port)

    @property
    def server(self) -> str:
        """`address:port`, IPv6 in brackets."""
        return endpoint(self.server_address, self.server_port)


def endpoint(address: str, port: int) -> str:
    """Write an address and a port as `ip:port` or `[ipv6]:port`."""
    return endpoints([address], [port])[0]


def endpoints(addresses: Iterable[str], ports: Iterable[int]) -> list[str]:
    """Write many addresses, each with its port."""
    ends = zip(addresses, ports, strict=True)
    return [f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address, port in ends]


def address_of(end_point: str) -> str:
    """The address of `ip:port` or `[ipv6]:port`."""
    return end_point.rpartition(":")[0].strip("[]")


class ConnectionSequence(Sequence[Connection]):
    """Connections of a capture, each made when it is asked for."""

    def __init__(self, core: _core.Capture) -> None:
        self._core = core

    def __len__(self) -> int:
        return self._core.connection_count

    @overload
    def __getitem__(self, index: int) -> Connection: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Connection]: ...
    def __getitem__(self, index: int | slice) -> Connection | Sequence[Connection]:
        if isinstance(index, slice):
            return [self._at(position) for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"connection {index} of {len(self)}")
        return self._at(position)

    def _at(self, position: int) -> Connection:
        fields, up, down = self._core.connection(position, CLOSES, MISSING_PACKETS)
        return Connection._make((*fields, FlowSummary._make(up), FlowSummary._make(down)))
