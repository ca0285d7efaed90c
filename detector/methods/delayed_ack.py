"""Delayed acknowledgements: Method 3 of Wei et al. (UMass TR 2005-59, section III-A).

When the receiver delays every acknowledgement by T, no end-to-end round trip at the sender can be shorter than T.
A middlebox makes shorter ones. The user gives T, or the receiver's own capture shows it. Round trips are
timed from the first copy of the last byte that an acknowledgement covers and left out where it was sent again (Karn);
only acknowledgements without data, SYN, FIN and RST count at the sender and at the receiver, since a delay put on pure
acknowledgements does not delay the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from detector.clocks.clouds import SPARED_LEAST
from detector.clocks.relation import ClockRelation
from detector.method import Method, Observation, by_connection
from detector.pair import Pair, Vantage
from detector.streams import curves
from detector.streams.curves import NEVER, BoolArray
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, FloatArray, Number

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


@dataclass(frozen=True, slots=True)
class _Held:
    """A delay T on the acknowledgements of one direction, and where it is known from."""

    direction: Direction
    delay_s: float
    given: bool


class DelayedAckFinding(Finding):
    """Round trips against the delay that the receiver put on its acknowledgements."""

    NO_ACK_DELAY = inapplicable("no-ack-delay")


def examine(observation: Observation) -> Evidence:
    """Compare the least round trip at the sender with the delay that the receiver put on its acknowledgements."""
    pair = observation.pair
    held = [found for direction in Direction if (found := _held(pair, direction)) is not None]
    judged = [made for item in held if (made := _judge(pair, item, observation.clock)) is not None]
    if not judged:
        summary = "No delay on the receiver's acknowledgements is known (--ack-delay sets one)."
        return DelayedAckFinding.NO_ACK_DELAY.undecided(NAME, summary)
    return max(judged, key=lambda item: (item.finding is TransferFinding.ACKS_NOT_FROM_RECEIVER, item.strength))


def acknowledgement_delays_s(receiver: Vantage, direction: Direction, at_most: int | None = None) -> FloatArray:
    """At the receiver: from the arrival of the last byte that each plain acknowledgement covers to its sending.

    With `at_most` only the first so many are timed.
    """
    arrived = receiver.derived(curves.first_arrivals, direction)
    sent = receiver.derived(curves.acknowledgements, direction)
    chosen = np.flatnonzero(sent.plain & (sent.value > max(sent.floor, 0)))[:at_most]
    arrival = arrived.at(sent.value[chosen] - 1)
    known = arrival != NEVER
    return np.asarray((sent.time_ns[chosen][known] - arrival[known]) / 1e9, np.float64)


def round_trips_s(sender: Vantage, direction: Direction) -> tuple[FloatArray, FloatArray]:
    """At the sender: round trips from the first copy of the last byte that each plain acknowledgement covers.

    Returns the times (s, from the first) at which they ended, and the round trips (s).
    """
    sent = sender.derived(curves.sent_data, direction)
    seen = sender.derived(curves.acknowledgements, direction)
    chosen = seen.plain & (seen.value > max(seen.floor, 0))
    value = seen.value[chosen]
    left = sent.first_copies.at(value - 1)
    known = (left != NEVER) & ~_within(value - 1, sent.repeats.start, sent.repeats.end)
    came = seen.time_ns[chosen][known]
    return np.asarray((came - came[:1]) / 1e9, np.float64), np.asarray((came - left[known]) / 1e9, np.float64)


def _held(pair: Pair, direction: Direction) -> _Held | None:
    if pair.options.ack_delay_s is not None:
        return _Held(direction, pair.options.ack_delay_s, given=True)
    receiver = pair.receiver(direction)
    if receiver is None or receiver.flow(direction).data_packets == 0:
        return None
    # One prompt acknowledgement is enough to know that not all were held.
    if acknowledgement_delays_s(receiver, direction, BULK_ACKS).min(initial=math.inf) <= BULK_DELAY_S:
        return None
    delays = acknowledgement_delays_s(receiver, direction)
    if len(delays) < LEAST_ACKS:
        return None
    least = float(delays.min())
    needed = BULK_DELAY_S if len(delays) >= BULK_ACKS else DELAYED_ACK_LIMIT_S
    return _Held(direction, least, given=False) if least > needed else None


def _judge(pair: Pair, held: _Held, clock: ClockRelation) -> Evidence | None:
    sender = pair.sender(held.direction)
    if sender is None:
        return None
    came, round_trips = round_trips_s(sender, held.direction)
    if len(round_trips) < LEAST_ACKS:
        return None
    least = float(round_trips.min())
    path_s = _path_s(sender, held.direction, clock)
    too_short = round_trips < held.delay_s - TIMER_ERROR_S
    short = int(too_short.sum())
    source = "given by the user" if held.given else "measured in its own capture"
    numbers: dict[str, Number] = {
        "direction": held.direction.name.lower(),
        "ack_delay_s": held.delay_s,
        "ack_delay_given": held.given,
        "round_trip_min_s": least,
        "round_trips": len(round_trips),
        "shorter_than_delay": short,
        "path_round_trip_s": path_s,
    }
    caveats = ["A radio network that makes acknowledgements itself, without relaying the payload, looks the same."]
    if held.given:
        caveats.append("The user gave the delay; it must hold for every acknowledgement.")
    if _body(came, round_trips, too_short):
        strength = short / (short + SPARED_LEAST)
        summary = (
            f"The receiver delayed every acknowledgement by {held.delay_s:.3g} s ({source}), yet {short} of "
            f"{len(round_trips)} round trips at the sender are shorter, down to {least:.3g} s: a middlebox "
            "acknowledges."
        )
        return TransferFinding.ACKS_NOT_FROM_RECEIVER.evidence(NAME, strength, summary, numbers, caveats)
    if short > SPARED_LEAST:
        summary = (
            f"{short} round trips are shorter than the delay, all at one time, as after a step of the sender's clock."
        )
        return DelayedAckFinding.NO_ACK_DELAY.undecided(NAME, summary, numbers, caveats)
    if short:
        summary = f"{short} of {len(round_trips)} round trips are shorter than the delay: too few for a finding."
        return DelayedAckFinding.NO_ACK_DELAY.undecided(NAME, summary, numbers, caveats)
    # A path slower than the delay would pass however it is made.
    strength = 0.9 if path_s is not None and held.delay_s > path_s else 0.3
    summary = (
        f"The receiver delayed every acknowledgement by {held.delay_s:.3g} s ({source}), and none of "
        f"{len(round_trips)} round trips at the sender is shorter (least {least:.3g} s): only the receiver "
        "acknowledges."
    )
    return TransferFinding.ACKS_ONLY_FROM_RECEIVER.evidence(NAME, strength, summary, numbers, caveats)


def _body(came: FloatArray, round_trips: FloatArray, too_short: BoolArray) -> bool:
    """Whether the short round trips are many, and not all those during which one step of the sender's clock fell.

    A step shortens what is under way when it happens: acknowledgements that come within one longest round trip.
    """
    short = int(too_short.sum())
    if short <= min(SPARED_LEAST, len(round_trips) // 2):
        return False
    if short >= MOSTLY * len(round_trips):
        return True
    times = came[too_short]
    within = np.searchsorted(times, times + float(round_trips.max()), side="right") - np.arange(short)
    return short - int(within.max()) > SPARED_LEAST


def _path_s(sender: Vantage, direction: Direction, clock: ClockRelation) -> float | None:
    """Upper bound of the path's round trip without held acknowledgements: the handshake's, or what data show."""
    connection = sender.connection
    gap = connection.handshake_syn_ack_ns if direction is Direction.UP else connection.handshake_ack_ns
    known = [] if gap is None else [gap / 1e9]
    two_way = clock.data_high_s - clock.data_low_s
    if math.isfinite(two_way):
        known.append(two_way)
    return min(known, default=None)


def _within(offsets: Int64Array, start: Int64Array, end: Int64Array) -> BoolArray:
    """Which offsets lie in one of the ranges (an offset near a repeated range may count as inside; no harm)."""
    if len(start) == 0:
        return np.zeros(len(offsets), np.bool_)
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order])
    index = np.searchsorted(start[order], offsets, side="right") - 1
    return np.asarray((index >= 0) & (reach[np.maximum(index, 0)] > offsets), np.bool_)


METHOD = Method(NAME, "delayed acknowledgements", (DelayedAckFinding, TransferFinding), by_connection(examine))
