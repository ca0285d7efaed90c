"""Delayed acknowledgements: Method 3 of Wei et al. (UMass TR 2005-59, section III-A).

When the receiver delays every acknowledgement by T, no end-to-end round trip at the sender can be shorter than T.
A middlebox makes shorter ones. The user gives T, or the receiver's own capture shows it. Round trips are
timed from the first copy of the last byte that an acknowledgement covers and left out where it was sent again (Karn);
only acknowledgements without data, SYN, FIN and RST count at the sender and at the receiver, since a delay put on pure
acknowledgements does not delay the others. A delay that the receiver's capture shows holds for the bytes that it shows,
and only their round trips count: where it was taken in mid-path, a queue beyond it comes and goes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S, ClockRelation
from detector.clocks.clouds import SPARED_LEAST
from detector.clocks.untimed import are_untimed
from detector.method import Context, Findings, Method
from detector.pair import Pair, Vantage
from detector.streams.known import UNKNOWN, are_known
from detector.streams.loaded import option_of, packets_of
from detector.streams.summaries import Summaries
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import BoolArray, Direction, Int64Array, PacketColumns
from pepscope.results.evidence.columns import Words, evidence_where
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, Number

NAME = "delayed_ack"

#: Longest delay that a receiver may put on an acknowledgement by itself (RFC 9293 section 3.8.6.3: below 0.5 s).
DELAYED_ACK_LIMIT_S = 0.5

#: In a bulk transfer an ordinary receiver answers at least every second full segment at once, so that a delay on all of
#: many acknowledgements was put there; common stacks' delayed-ACK timers end at 0.2 s.
BULK_ACKS = 20
BULK_DELAY_S = 0.2

#: Fewer acknowledgements are no evidence.
LEAST_ACKS = 3

#: A step of the sender's clock explains short round trips only while they are fewer than this share.
MOSTLY = 0.9

#: Netem and timers release a held packet this much early.
TIMER_ERROR_S = 0.002


class _Held(Struct, frozen=True):
    """A delay T on the acknowledgements of one direction, and where it is known from."""

    direction: Direction
    delay_s: float
    given: bool


class DelayedAckFinding(Finding):
    """Round trips against the delay that the receiver put on its acknowledgements."""

    NO_ACK_DELAY = inapplicable("no-ack-delay")


def examine(context: Context) -> Findings:
    """Compare the least round trip at the sender with the delay that the receiver put on its acknowledgements."""
    judged: dict[int, list[Evidence]] = defaultdict(list)
    for row, held in _held(context):
        made = _judge(context.observations[row].pair, held, context.clocks[row])
        if made is not None:
            judged[row].append(made)
    unknown = np.ones(len(context.observations), np.bool_)
    unknown[list(judged)] = False
    return Findings.of_rows(
        {row: max(found, key=_weight) for row, found in judged.items()},
        evidence_where(unknown, NAME, DelayedAckFinding.NO_ACK_DELAY, (), _NOT_DELAYED),
    )


_NOT_DELAYED = Words("No delay on the receiver's acknowledgements is known (--ack-delay sets one).")


def _weight(item: Evidence) -> tuple[bool, float]:
    return item.finding is TransferFinding.ACKS_NOT_FROM_RECEIVER, item.strength


def _held(context: Context) -> list[tuple[int, _Held]]:
    """The delays that are known, each with the place of its connection; of one connection that up stands first."""
    delays_s = option_of(context.pairs, lambda options: options.ack_delay_s)
    given = [
        (row, _Held(direction, delay_s, given=True))
        for row, delay_s in enumerate(delays_s)
        if delay_s is not None
        for direction in DIRECTIONS
    ]
    unasked = np.array([delay_s is None for delay_s in delays_s], np.bool_)
    is_asked = (_data_packets(context) > 0) & unasked[:, None]
    counts, least_ns = np.zeros(is_asked.shape, np.int64), np.full(is_asked.shape, UNKNOWN)
    for direction in DIRECTIONS:
        rows = np.flatnonzero(is_asked[:, direction])
        found = _core.ack_delays([direction] * len(rows), _packets_of_receivers(context, direction, rows))
        counts[rows, direction], least_ns[rows, direction] = found
    needed_s = np.where(counts >= BULK_ACKS, BULK_DELAY_S, DELAYED_ACK_LIMIT_S)
    is_held = are_known(least_ns) & (counts >= LEAST_ACKS) & (least_ns / 1e9 > needed_s)
    return given + [
        (row, _Held(DIRECTIONS[way], int(least_ns[row, way]) / 1e9, given=False))
        for row, way in np.argwhere(is_held).tolist()
    ]


def _packets_of_receivers(context: Context, direction: Direction, rows: Int64Array) -> Sequence[PacketColumns]:
    """The packets of some connections as the captures at the receivers of `direction` hold them."""
    if context.are_plain:
        return packets_of(context.sides.servers if direction is Direction.UP else context.sides.clients, rows)
    receivers = [context.pairs[row].receiver(direction) for row in rows.tolist()]
    return [receiver.packets for receiver in receivers if receiver is not None]


def _data_packets(context: Context) -> Int64Array:
    """Data packets up and down (columns) that the captures at the receivers of connections (rows) hold."""
    sides, pairs = context.sides, context.pairs
    counts = np.zeros((len(pairs), 2), np.int64)
    for direction in DIRECTIONS:
        counts[sides.rows, direction] = sides.receiver(direction).of_flow(direction, "data_packets")
        alone = [
            (row, receiver)
            for row in context.seen_once.tolist()
            if (receiver := pairs[row].receiver(direction)) is not None
        ]
        received = Summaries([receiver for _, receiver in alone]).of_flow(direction, "data_packets")
        counts[[row for row, _ in alone], direction] = received
    return counts


def _judge(pair: Pair, held: _Held, clock: ClockRelation) -> Evidence | None:
    sender = pair.sender(held.direction)
    if sender is None:
        return None
    packets = sender.packets if held.given else _where_measured(pair, sender, held.direction, clock)
    round_trips = _core.plain_round_trips(held.direction.value, packets, held.delay_s - TIMER_ERROR_S)
    if round_trips.count < LEAST_ACKS:
        return None
    least_s, short = round_trips.least_s, round_trips.short
    path_s = _path_s(sender, held.direction, clock)
    numbers: dict[str, Number] = {
        "direction": held.direction.name.lower(),
        "ack_delay_s": held.delay_s,
        "ack_delay_given": held.given,
        "round_trip_min_s": least_s,
        "round_trips": round_trips.count,
        "shorter_than_delay": short,
        "path_round_trip_s": path_s,
    }
    caveats = ["A radio network that makes acknowledgements itself, without relaying the payload, looks the same."]
    if held.given:
        caveats.append("The user gave the delay; it must hold for every acknowledgement.")
    if why := _why_undecided(pair, held, clock, round_trips):
        return DelayedAckFinding.NO_ACK_DELAY.undecided(NAME, why, numbers, caveats)
    source = "given by the user" if held.given else "measured in its own capture"
    delayed = f"The receiver delayed every acknowledgement by {held.delay_s:.3g} s ({source})"
    if short:
        summary = (
            f"{delayed}, yet {short} of {round_trips.count} round trips at the sender are shorter, down to "
            f"{least_s:.3g} s: a middlebox acknowledges."
        )
        strength = short / (short + SPARED_LEAST)
        return TransferFinding.ACKS_NOT_FROM_RECEIVER.evidence(NAME, strength, summary, numbers, caveats)
    summary = (
        f"{delayed}, and none of {round_trips.count} round trips at the sender is shorter (least {least_s:.3g} s): "
        "only the receiver acknowledges."
    )
    # A path slower than the delay would pass however it is made.
    strength = 0.9 if path_s is not None and held.delay_s > path_s else 0.3
    return TransferFinding.ACKS_ONLY_FROM_RECEIVER.evidence(NAME, strength, summary, numbers, caveats)


def _why_undecided(pair: Pair, held: _Held, clock: ClockRelation, round_trips: _core.RoundTrips) -> str:
    """Why round trips tell nothing of who acknowledges; empty where none, or a body of them, is shorter than the
    delay."""
    short = round_trips.short
    if are_untimed([pair])[0] or (not held.given and _contradict_one_clock(clock)):
        return "The times of the captures contradict each other, so nothing shows how long acknowledgements took."
    if not short or _body(round_trips):
        return ""
    if short > SPARED_LEAST:
        return (
            f"{short} round trips are shorter than the delay, all at one time, as after a step of the sender's clock."
        )
    return f"{short} of {round_trips.count} round trips are shorter than the delay: too few for a finding."


def _where_measured(pair: Pair, sender: Vantage, direction: Direction, clock: ClockRelation) -> PacketColumns:
    """The sender's packets without data, and acknowledgements of data, that the receiver's capture does not show.

    None of these are left where the streams of the two captures are not aligned.
    """
    receiver, packets = pair.receiver(direction), sender.packets
    low = high = 0
    came = None if receiver is None else _is_data(receiver.packets, direction)
    if receiver is not None and came is not None and came.any() and direction in clock.clouds:
        starts = receiver.packets.sequence_offset[came] + pair.receiver_shift(direction)
        low, high = int(starts.min()), int((starts + receiver.packets.payload_bytes[came]).max())
    ends = packets.sequence_offset + packets.payload_bytes
    beyond = _is_data(packets, direction) & ((packets.sequence_offset < low) | (ends > high))
    acknowledged = packets.acknowledgement_offset
    beyond |= (packets.direction == direction.reverse) & ((acknowledged <= low) | (acknowledged > high))
    if not beyond.any():
        return packets
    return PacketColumns(**{name: getattr(packets, name)[~beyond] for name in PacketColumns.COLUMNS})


def _is_data(packets: PacketColumns, direction: Direction) -> BoolArray:
    return np.asarray((packets.direction == direction) & (packets.payload_bytes > 0))


def _body(round_trips: _core.RoundTrips) -> bool:
    """Whether the short round trips are many, and not all those during which one step of the sender's clock fell.

    A step shortens what is under way when it happens: acknowledgements that come within one longest round trip.
    """
    short = round_trips.short
    if short <= min(SPARED_LEAST, round_trips.count // 2):
        return False
    return short >= MOSTLY * round_trips.count or short - round_trips.short_at_once > SPARED_LEAST


def _contradict_one_clock(clock: ClockRelation) -> bool:
    """Whether data of both directions alone do: a clock was set, or two clocks timed the directions of a capture. Then
    the time between data and their acknowledgements may be either's as well."""
    return clock.data_high_s - clock.data_low_s < -TIMESTAMP_ERROR_S


def _path_s(sender: Vantage, direction: Direction, clock: ClockRelation) -> float | None:
    """Upper bound of the path's round trip without held acknowledgements: the handshake's, or what data show."""
    connection = sender.connection
    gap = connection.handshake_syn_ack_ns if direction is Direction.UP else connection.handshake_ack_ns
    known = [] if gap is None else [gap / 1e9]
    two_way = clock.data_high_s - clock.data_low_s
    if math.isfinite(two_way):
        known.append(two_way)
    return min(known, default=None)


METHOD = Method(NAME, "delayed acknowledgements", (DelayedAckFinding, TransferFinding), examine)
