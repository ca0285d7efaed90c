"""By how much senders lead their receivers, and what a relay between them can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S, ClockBasis
from detector.clocks.relation_columns import ClockRelations, LargerFlows
from detector.method import Context
from detector.streams.known import UNKNOWN, are_known
from detector.streams.loaded import packets_of
from detector.streams.sides import Sides
from detector.streams.window_course import least_window_shares, windows_captured
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array, PacketColumns
from pepscope.results.evidence.columns import BoolArray, Figure
from pepscope.results.verdicts import FloatArray

_UP, _DOWN = DIRECTIONS
_DIRECTIONS = tuple(direction.name.lower() for direction in DIRECTIONS)

#: Flows smaller than the initial window (RFC 6928) are under way before the first acknowledgement.
LEAST_BYTES = 10 * 1460

#: A receive window below this share of what it had been holds the sender back. Auto-tuned windows of a middlebox that
#: reads as fast as it receives stay above half; one that is closed by a full buffer falls to a segment or to zero.
HELD_BACK_SHARE = 0.1

#: A relay may hold this much of a transfer without closing its window: Linux's default limits for one receive and one
#: send buffer (6 MiB and 4 MiB). A lead below it hardly distinguishes a relay from a proxy.
RELAY_BUFFER_BYTES = 10 * 2**20

#: Linux lets a send buffer grow to two congestion windows, with BBR to three (tcp_sndbuf_expand), each segment in a
#: block of 4096 bytes with 256 of bookkeeping. A sender in slow start has at most its initial window (RFC 6928) and one
#: segment for each that was acknowledged (RFC 5681, section 3.1), so that what the receiver got bounds what a relay's
#: send buffer holds.
SEND_BUFFER_WINDOWS = 3
SEGMENT_BLOCK_BYTES = 4096 + 256
INITIAL_WINDOW_SEGMENTS = 10
SEGMENT_BYTES = 1448

#: What a relay's own buffers hold between its two sockets: HAProxy 16 KiB, squid's read-ahead 64 KiB, tinyproxy 96 KiB.
APPLICATION_BUFFER_BYTES = 96 * 2**10

#: The window before a receive buffer grows (a window of RFC 7323 starts at 65,535 bytes), of which a stack advertises
#: half: as much again may wait unread, however little was read.
FIRST_WINDOW_BYTES = 65535

#: How large the window may be for each byte that was read. Linux lets it grow to twice what the application read in a
#: round trip, and to three times as much where that doubled (tcp_rcv_space_adjust): to six times two thirds of all.
#: It shows the growth with what arrives (tcp_grow_window), so that bytes wait unread behind a window that still grows.
WINDOW_PER_READ_BYTE = 4

#: What a relay's application and its send buffer hold whatever was delivered.
FIXED_BUFFERS_BYTES = SEND_BUFFER_WINDOWS * SEGMENT_BLOCK_BYTES * INITIAL_WINDOW_SEGMENTS + APPLICATION_BUFFER_BYTES

#: A relay passes its first bytes on as they come. Where the fastest byte of all was held for the first share of the
#: shorter side's transfer, and for the second but round trips, the transfer was stored first.
HELD_SHARE = 0.5
STORE_SHARE = 0.9
#: A relay's program that waits for a processor, some time slices on a busy machine, holds its first bytes as well.
TIME_SLICES_S = 0.02


class Lead(Struct, frozen=True):
    """How one flow's sender is ahead, under the friendliest clock. Bytes at or below 0 mean never ahead."""

    total_bytes: int
    most_bytes: int  # most that was acknowledged and had not arrived
    delivered_share_when_done: float  # arrived when the last byte was acknowledged to the sender
    acknowledged_share_at_start: float  # acknowledged to the sender when the first byte arrived
    acknowledged_at_start_bytes: int
    held_back: bool | None  # the window advertised to the sender was closed, or nearly; None where it was not captured
    sender_duration_s: float  # until the last byte was acknowledged; a FIN may come long after
    receiver_duration_s: float
    least_hold_s: float  # how long even the fastest byte was held on the way; 0 where that is not known
    round_trips_s: float  # a store's least hold may be less than the sender's duration by so much
    beyond_buffers_bytes: int  # most by which the lead exceeded what a relay's buffers could hold then; may be negative
    buffers_bytes: int  # what they could hold at that time

    @property
    def shorter_s(self) -> float:
        """What the transfer took at the side where it took less."""
        return min(self.sender_duration_s, self.receiver_duration_s)

    @property
    def is_held_whole(self) -> bool:
        """Whether even the fastest byte was held for as long as the side that took less needed for all."""
        stored_s = STORE_SHARE * self.shorter_s - self.round_trips_s
        return self.least_hold_s >= max(HELD_SHARE * self.shorter_s, stored_s, TIME_SLICES_S)


class Leads(Struct, frozen=True):
    """The leads of the larger flows of connections, as columns; `rows` are the connections' places in their context.

    `numbers` are those of `pepscope._core.sender_leads`: times at the receiver are brought onto the sender's clock with
    no forward delay at best, unless the user gave the clock relation, and what was acknowledged to the sender by a time
    (with the errors of timestamps) is held against what had arrived.
    """

    rows: Int64Array
    flows: LargerFlows
    numbers: Mapping[str, Int64Array]
    held_back: Sequence[bool | None]
    least_hold_s: FloatArray
    round_trips_s: FloatArray

    @classmethod
    def of(cls, context: Context) -> Leads:
        """The leads where times at both ends are known, and the transfer is not too short."""
        flows = context.clocks.flows
        clocks, sides, is_up = context.clocks.at(flows.rows), context.sides.at(flows.rows), flows.is_up
        are_captured, are_in_bytes = _windows_shown(sides, is_up)
        shifts = np.where(is_up, -sides.aligned(Direction.UP).shift_bytes, sides.aligned(Direction.DOWN).shift_bytes)
        ends = list(zip(packets_of(sides.clients), packets_of(sides.servers), is_up.tolist(), strict=True))
        senders = [client if up else server for client, server, up in ends]
        found = _core.sender_leads(
            flows.times,
            [server if up else client for client, server, up in ends],
            [
                packets if is_known else None
                for packets, is_known in zip(senders, (are_captured & are_in_bytes).tolist(), strict=True)
            ],
            shifts.tolist(),
            clocks.lines,
            [basis is ClockBasis.ASSUMED for basis in clocks.bases],
            round(TIMESTAMP_ERROR_S * 1e9),
            (
                FIXED_BUFFERS_BYTES,
                SEGMENT_BYTES,
                SEND_BUFFER_WINDOWS * SEGMENT_BLOCK_BYTES,
                FIRST_WINDOW_BYTES,
                WINDOW_PER_READ_BYTE,
            ),
        )
        long = np.flatnonzero(found["total_bytes"] >= LEAST_BYTES)
        least_hold_s, round_trips_s = _least_holds_s(sides, is_up, clocks)
        return cls(
            flows.rows[long],
            flows.at(long),
            {name: column[long] for name, column in found.items()},
            _held_back(senders, is_up, are_captured, long.tolist()),
            least_hold_s[long],
            round_trips_s[long],
        )

    def figures(self) -> list[Figure]:
        """The figures of every finding."""
        numbers, total = self.numbers, self.numbers["total_bytes"]
        return [
            Figure("direction", [_DIRECTIONS[not is_up] for is_up in self.flows.is_up.tolist()]),
            Figure("total_bytes", total),
            Figure("lead_bytes", numbers["most_bytes"]),
            Figure("lead_share", numbers["most_bytes"] / total),
            Figure("delivered_share_when_sender_done", numbers["delivered_when_done_bytes"] / total),
            Figure("acknowledged_share_when_receiver_began", numbers["acknowledged_at_start_bytes"] / total),
            Figure("sender_held_back", self.held_back),
            Figure("silence_s", numbers["silence_ns"] / 1e9),
            Figure("sender_duration_s", numbers["sender_duration_ns"] / 1e9),
            Figure("receiver_duration_s", numbers["receiver_duration_ns"] / 1e9),
            Figure("least_hold_s", self.least_hold_s),
            Figure("relay_buffers_bytes", numbers["buffers_bytes"]),
            Figure("lead_beyond_buffers_bytes", numbers["beyond_buffers_bytes"]),
        ]

    def lead(self, place: int) -> Lead:
        """The lead of one of them."""
        found = {name: int(column[place]) for name, column in self.numbers.items()}
        return Lead(
            found["total_bytes"],
            found["most_bytes"],
            found["delivered_when_done_bytes"] / found["total_bytes"],
            found["acknowledged_at_start_bytes"] / found["total_bytes"],
            found["acknowledged_at_start_bytes"],
            self.held_back[place],
            found["sender_duration_ns"] / 1e9,
            found["receiver_duration_ns"] / 1e9,
            float(self.least_hold_s[place]),
            float(self.round_trips_s[place]),
            found["beyond_buffers_bytes"],
            found["buffers_bytes"],
        )


def _windows_shown(sides: Sides, is_up: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Of which flows the capture at the sender holds the windows that it was shown, and of which the SYN options that
    scale them."""
    ways = (sides.client, _DOWN), (sides.server, _UP)
    captured = [windows_captured(summaries, way) for summaries, way in ways]
    scaled = [summaries.of_flow(way, "window_shift") != UNKNOWN for summaries, way in ways]
    return np.where(is_up, *captured), np.where(is_up, *scaled)


def _least_holds_s(sides: Sides, is_up: BoolArray, clocks: ClockRelations) -> tuple[FloatArray, FloatArray]:
    """How long a middlebox held the fastest byte, and by how much less that may be than the sender's duration of a
    transfer that was stored whole; needs the beginning of the connection at both ends.

    The least delays of data in both directions add up to a round trip in which the clocks' offset cancels. Each leg's
    least round trip is known from its acknowledgements; one more of the longer leg is left to a proxy that connects
    onward only when it is asked. The sender's duration ends with an acknowledgement, a round trip of its leg after the
    last byte was sent.
    """
    numbers = clocks.numbers
    around_s = numbers["data_high_s"] - numbers["data_low_s"]
    is_known = np.isfinite(around_s) & (numbers["pieces"] == 1)
    for direction in DIRECTIONS:
        is_known &= np.logical_and(*sides.began(direction))
    # Of data at their sender, and of what comes back at its sender: the client sends up, the server down.
    up_ns = sides.client.of_flow(_UP, "round_trip_time_min_ns")
    down_ns = sides.server.of_flow(_DOWN, "round_trip_time_min_ns")
    is_known &= are_known(up_ns, down_ns)
    first_s, then_s = np.where(is_up, up_ns, down_ns) / 1e9, np.where(is_up, down_ns, up_ns) / 1e9
    longer_s = np.maximum(first_s, then_s)
    rest_s = around_s - (first_s + then_s) - longer_s
    return np.where(is_known, np.maximum(0.0, rest_s), 0.0), np.where(is_known, longer_s + first_s, 0.0)


def _held_back(
    senders: Sequence[PacketColumns], is_up: BoolArray, are_captured: BoolArray, places: Sequence[int]
) -> list[bool | None]:
    """Whether the receive windows that senders in some places were shown fell to a small share of what they had been;
    None where these were not captured."""
    asked = [place for place in places if are_captured[place]]
    ways = [_DOWN if is_up[place] else _UP for place in asked]
    shares = least_window_shares([senders[place] for place in asked], ways)
    found: dict[int, bool] = dict(zip(asked, (shares < HELD_BACK_SHARE).tolist(), strict=True))
    return [found.get(place) for place in places]
