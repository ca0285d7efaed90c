"""What measuring will cost, before anything was sent: bytes each way and time, at the rates that a plan assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from pepscope.captures.direction import Direction
from prober.protocol.application import Application

#: Payload of a segment and bytes of headers beside it, with TCP timestamps over IPv6: what costs most of usual ones.
_SEGMENT_BYTES = 1400
_HEADER_BYTES = 72
#: Initial window of slow start (RFC 6928).
_INITIAL_SEGMENTS = 10
#: Round trips before the first byte of an object is asked for, and bytes both ends say to get there.
_ROUND_TRIPS = {
    Application.TCP: 2,
    Application.HTTP_DATA: 2,
    Application.HTTP_IMAGE: 2,
    Application.HTTPS: 4,
    Application.FTP: 9,
}
_TALK_BYTES = {
    Application.TCP: 600,
    Application.HTTP_DATA: 1200,
    Application.HTTP_IMAGE: 1200,
    Application.HTTPS: 4000,
    Application.FTP: 2000,
}

#: What gzip leaves of a packet's headers and of what pcap writes before each; about 25 bytes in captures of ours.
_PACKED_HEADER_BYTES = 30


class PathRates(Protocol):
    """What to assume of a path that was not measured yet."""

    @property
    def down_bit_s(self) -> float:
        """Towards the mobile."""

    @property
    def up_bit_s(self) -> float:
        """Towards the server."""

    @property
    def round_trip_time_s(self) -> float:
        """Of an idle path."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one transfer, headers and acknowledgements included."""

    bytes_up: int
    bytes_down: int
    expected_s: float
    #: FTP moves its data over a connection of their own (RFC 959).
    connections: int = 1


def transfer_cost(application: Application, direction: Direction, size_bytes: int, rates: PathRates) -> Cost:
    """What moving an object of `size_bytes` costs. The time is that of an idle path at its full rate."""
    segments = math.ceil(size_bytes / _SEGMENT_BYTES)
    talk_bytes = _TALK_BYTES[application]
    data_bytes = size_bytes + segments * _HEADER_BYTES + talk_bytes
    # One acknowledgement for two segments (RFC 9293, section 3.8.6.3).
    acknowledgement_bytes = math.ceil(segments / 2) * _HEADER_BYTES + talk_bytes
    rate_bit_s = rates.down_bit_s if direction is Direction.DOWN else rates.up_bit_s
    path_segments = rate_bit_s * rates.round_trip_time_s / 8 / _SEGMENT_BYTES
    needed = min(segments, path_segments)
    slow_start_rounds = math.ceil(math.log2(needed / _INITIAL_SEGMENTS)) if needed > _INITIAL_SEGMENTS else 0
    waiting_s = (_ROUND_TRIPS[application] + slow_start_rounds) * rates.round_trip_time_s
    sent, answered = data_bytes, acknowledgement_bytes
    up, down = (answered, sent) if direction is Direction.DOWN else (sent, answered)
    connections = 2 if application is Application.FTP else 1
    return Cost(up, down, waiting_s + data_bytes * 8 / rate_bit_s, connections)


def fetched_capture_bytes(moved_bytes: int, snap_bytes: int) -> int:
    """What fetching the server's capture costs, of a task that moves so many bytes: it comes packed by gzip.

    Of each segment its payload is kept up to `snap_bytes`, and an object's payload does not compress.
    """
    segments = math.ceil(moved_bytes / (_SEGMENT_BYTES + _HEADER_BYTES))
    kept_payload_bytes = max(0, min(snap_bytes - _HEADER_BYTES, _SEGMENT_BYTES))
    acknowledgements = math.ceil(segments / 2)
    return segments * (kept_payload_bytes + _PACKED_HEADER_BYTES) + acknowledgements * _PACKED_HEADER_BYTES
