"""Progress: how far the sender is ahead of the receiver.

End to end, no byte is acknowledged to the sender before it has arrived. What is acknowledged and has not arrived sits
in a middlebox. A relay (Split-TCP) holds a buffer's worth; a store-and-forward proxy receives the transfer at the wired
rate and forwards it later, so that the sender is done when the receiver has few bytes or none.

The clock offset is the one most favourable to end to end: the flow's own data arrive as early as causality allows
(`detector.clocks.relating`), so that an unknown clock cannot fake a lead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from detector.clocks.capture_ticks import ticks_of_accused_s
from detector.clocks.clock_relation import TIMESTAMP_ERROR_S, ClockBasis, ClockRelation
from detector.clocks.early_acks import violations
from detector.clocks.relation_columns import ClockRelations, LargerFlows
from detector.method import Context, Findings, Method
from detector.pair import Vantage
from detector.streams.known import UNKNOWN, are_known
from detector.streams.loaded import packets_of
from detector.streams.sides import Sides
from detector.streams.window_course import window_course, windows_captured
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray, Figure, Words, evidence_where
from pepscope.results.finding import Finding, Weight, inapplicable, intact, split
from pepscope.results.verdicts import Evidence, FloatArray, Number

NAME = "progress"

_UP, _DOWN = DIRECTIONS
_DIRECTIONS = tuple(direction.name.lower() for direction in DIRECTIONS)

#: Weight of a fit; the same observation as the acknowledgements' timing, seen in bytes.
FIT_STRENGTH = 0.2

#: Flows smaller than the initial window (RFC 6928) are under way before the first acknowledgement.
LEAST_BYTES = 10 * 1460

#: A sender that is done while the receiver has less than this, and was never held back, was taken in at its own rate.
FAR_AHEAD_SHARE = 0.5

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

#: A relay passes its first bytes on as they come. Where the fastest byte of all was held for this share of the shorter
#: side's transfer, the transfer was stored first.
HELD_SHARE = 0.5
#: A relay's program that waits for a processor, some time slices on a busy machine, holds its first bytes as well.
TIME_SLICES_S = 0.02

#: Share acknowledged to the sender when the receiver's first byte came, from which the transfer was stored first.
STORED_SHARE = 0.5

#: A relay that is still connecting onward takes in about one unscaled receive window; more than two were stored.
STORED_BYTES = 2 * 65535


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
    beyond_buffers_bytes: int  # most by which the lead exceeded what a relay's buffers could hold then; may be negative
    buffers_bytes: int  # what they could hold at that time


class ProgressFinding(Finding):
    """How far the sender is ahead of the receiver."""

    SENDER_IN_STEP = intact(
        "sender-in-step",
        Weight(
            "timing", 0.0, -1.5, -1.5, 0.0,
            "As `acks-after-data`, in bytes.",
        ),
    )  # fmt: skip
    SENDER_AHEAD = split(
        "sender-ahead",
        Weight(
            "timing", -6.0, 0.0, -0.5, 0.0,
            "The lead is a buffer's; a store that streams leads by no more.",
        ),
    )  # fmt: skip
    SENDER_FAR_AHEAD = split(
        "sender-far-ahead",
        Weight(
            "timing", -6.0, 0.0, 0.0, 0.0,
            "Most of the transfer was taken in early, but a relay's socket buffers may hold as much.",
        ),
    )  # fmt: skip
    SENDER_BEYOND_BUFFERS = split(
        "sender-beyond-buffers",
        Weight(
            "timing", -6.0, -4.0, 0.0, -4.0,
            "The sender led by more than the socket buffers of a relay hold.",
        ),
    )  # fmt: skip
    STORED_BEFORE_FORWARDED = split(
        "stored-before-forwarded",
        Weight(
            "timing", -6.0, -6.0, 0.0, -6.0,
            "Nothing was forwarded while much more than a receive window was taken in.",
        ),
    )  # fmt: skip
    HELD_BEFORE_FORWARDED = split(
        "held-before-forwarded",
        Weight(
            "timing", -6.0, -4.0, 0.0, -6.0,
            "Even the fastest byte waited for much of the transfer's duration; a relay behind a queue that other "
            "connections had filled does the same.",
        ),
    )  # fmt: skip
    PROGRESS_UNKNOWN = inapplicable("progress-unknown")


def examine(context: Context) -> Findings:
    """Measure how many acknowledged bytes the receiver did not have yet."""
    leads = _Leads.of(context)
    unknown = np.ones(len(context.observations), np.bool_)
    unknown[leads.rows] = False
    clocks = context.clocks.at(leads.rows)
    fits = clocks.are_separable | (leads.numbers["most_bytes"] <= 0)
    was_set = ~fits & clocks.numbers["was_set"]
    too_coarse = _within_ticks(context, leads.rows, ~fits & ~was_set)
    figures, firm = leads.figures(), np.full(len(leads.rows), FIT_STRENGTH)
    known = [
        *evidence_where(fits, NAME, ProgressFinding.SENDER_IN_STEP, figures, _IN_STEP, (), firm),
        *evidence_where(was_set, NAME, ProgressFinding.PROGRESS_UNKNOWN, figures, _CLOCK_WAS_SET),
        *evidence_where(too_coarse, NAME, ProgressFinding.PROGRESS_UNKNOWN, figures, _TOO_COARSE),
    ]
    columns = [
        *evidence_where(unknown, NAME, ProgressFinding.PROGRESS_UNKNOWN, (), _TOO_SHORT),
        *(part.at(leads.rows) for part in known),
    ]
    ahead = np.flatnonzero(~fits & ~was_set & ~too_coarse)
    accused = clocks.at(ahead)
    violating, _ = violations(leads.flows.at(ahead), accused)
    evidence = {
        int(leads.rows[place]): _ahead(
            leads.lead(place), count, clock, {each.name: each.values[place] for each in figures}
        )
        for place, count, clock in zip(ahead.tolist(), violating.tolist(), accused, strict=True)
    }
    return Findings.of_rows(evidence, columns)


_TOO_SHORT = Words("The transfer is too short, or was not seen at both ends, to measure how far the sender is ahead.")
_CLOCK_WAS_SET = Words("A capture's clock was set during the connection, so how far the sender is ahead is not known.")
_TOO_COARSE = Words(
    "The captures' times are too coarse to measure how far the sender is ahead: acknowledgements come before their "
    "data by less than the clocks' ticks."
)
_IN_STEP = Words(
    "Under some admissible clock relation no byte was acknowledged to the sender before it had arrived.",
    ("A split point that never queues looks the same.",),
)


def _within_ticks(context: Context, rows: Int64Array, accused: BoolArray) -> BoolArray:
    """Which of the `accused` of some connections contradict every clock by no more than their captures' ticks."""
    places = np.flatnonzero(accused)
    within = np.zeros(len(rows), np.bool_)
    if len(places):
        pairs = [context.observations[row].pair for row in rows[places].tolist()]
        ticks = ticks_of_accused_s(pairs)
        overlap_s = -context.clocks.at(rows[places]).numbers["slack_s"]
        within[places] = overlap_s <= TIMESTAMP_ERROR_S + ticks
    return within


def _ahead(found: Lead, violating: int, clock: ClockRelation, numbers: dict[str, Number]) -> Evidence:
    """The finding where the sender is ahead under every admissible clock: how the middlebox held the data."""
    spared = clock.lower_spared + clock.upper_spared
    strength = max(violating, 1) / (max(violating, 1) + spared)
    if found.acknowledged_share_at_start >= STORED_SHARE and found.acknowledged_at_start_bytes >= STORED_BYTES:
        summary = (
            f"{100 * found.acknowledged_share_at_start:.0f} % of {found.total_bytes:,} bytes had been acknowledged "
            "to the sender before the first byte reached the receiver: a middlebox stored them first and then "
            "forwarded them."
        )
        return ProgressFinding.STORED_BEFORE_FORWARDED.evidence(NAME, strength, summary, numbers)
    shorter_s = min(found.sender_duration_s, found.receiver_duration_s)
    if found.least_hold_s >= max(HELD_SHARE * shorter_s, TIME_SLICES_S) and found.total_bytes >= STORED_BYTES:
        summary = (
            f"Even the fastest byte took {found.least_hold_s:.3g} s longer than both legs' round trips explain, of a "
            f"transfer of {shorter_s:.3g} s: a middlebox stored the data first and then forwarded them."
        )
        queue = ("A relay behind a queue that other connections had filled before looks the same.",)
        return ProgressFinding.HELD_BEFORE_FORWARDED.evidence(NAME, strength, summary, numbers, queue)
    return _lead(found, strength, numbers)


def _lead(found: Lead, strength: float, numbers: dict[str, Number]) -> Evidence:
    """The finding for the size of the lead: a relay's buffers, or more than they hold."""
    if found.beyond_buffers_bytes > 0:
        # The further beyond, the less an unusual relay's larger buffers explain it.
        strength *= found.beyond_buffers_bytes / (found.beyond_buffers_bytes + found.buffers_bytes)
        summary = (
            f"{found.beyond_buffers_bytes + found.buffers_bytes:,} bytes were acknowledged to the sender and had not "
            f"reached the receiver, but the socket buffers of a relay hold {found.buffers_bytes:,} at most: a "
            "middlebox stored the transfer and forwarded it later."
        )
        tuned = ("A relay with socket buffers configured larger looks the same.",)
        return ProgressFinding.SENDER_BEYOND_BUFFERS.evidence(NAME, strength, summary, numbers, tuned)
    if found.delivered_share_when_done <= FAR_AHEAD_SHARE and found.held_back is False:
        summary = (
            f"When all {found.total_bytes:,} bytes had been acknowledged to the sender, the receiver had "
            f"{100 * found.delivered_share_when_done:.0f} % of them, and no closed receive window held the sender "
            "back: a middlebox held the rest."
        )
        fits = ("The socket buffers of a relay can hold as much.",)
        return ProgressFinding.SENDER_FAR_AHEAD.evidence(NAME, strength, summary, numbers, fits)
    summary = (
        f"Up to {found.most_bytes:,} bytes were acknowledged to the sender before they reached the receiver; when the "
        f"sender was done, {100 * found.delivered_share_when_done:.0f} % had arrived."
    )
    return ProgressFinding.SENDER_AHEAD.evidence(NAME, strength, summary, numbers)


class _Leads(Struct, frozen=True):
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

    @classmethod
    def of(cls, context: Context) -> _Leads:
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
        return cls(
            flows.rows[long],
            flows.at(long),
            {name: column[long] for name, column in found.items()},
            [
                _is_held_back((sides.clients if up else sides.servers)[place], _DOWN if up else _UP)
                if is_captured
                else None
                for place, up, is_captured in zip(
                    long.tolist(), is_up[long].tolist(), are_captured[long].tolist(), strict=True
                )
            ],
            _least_holds_s(sides, is_up, clocks)[long],
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


def _least_holds_s(sides: Sides, is_up: BoolArray, clocks: ClockRelations) -> FloatArray:
    """How long a middlebox held the fastest byte; needs the beginning of the connection at both ends.

    The least delays of data in both directions add up to a round trip in which the clocks' offset cancels. Each leg's
    least round trip is known from its acknowledgements; one more of the longer leg is left to a proxy that connects
    onward only when it is asked.
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
    rest_s = around_s - (first_s + then_s) - np.maximum(first_s, then_s)
    return np.where(is_known, np.maximum(0.0, rest_s), 0.0)


def _is_held_back(sender: Vantage, advertising: Direction) -> bool:
    """Whether the receive windows that a sender was shown fell to a small share of what they had been."""
    return sender.derived(window_course, advertising).least_share < HELD_BACK_SHARE


METHOD = Method(NAME, "transfer progress", (ProgressFinding,), examine)
