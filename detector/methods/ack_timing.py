"""Acknowledgement timing: Methods 1 and 2 of Wei et al. (UMass TR 2005-59, section III-A) and their general form.

A middlebox made an acknowledgement that reached the sender before the receiver can have sent it. The general form
tests whether any clock relation of bounded drift, with the steps that clocks make, fits all data and
acknowledgements (`detector.clocks.relation`); Method 1 takes the clocks as synchronised, Method 2 takes the offset from
the first datum. Absence of violations is weak: a split point that never queues shows none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from detector.clocks.clouds import FlowClouds, larger, least_hold_ns, loss_share, spared_points
from detector.clocks.early_acks import ahead_of_receiver, violations
from detector.clocks.handshake_path import handshake_round_trip_ns
from detector.clocks.relation import TIMESTAMP_ERROR_S, ClockRelation
from detector.method import Method, Observation, by_connection
from detector.options import ClockMode
from detector.pair import Pair
from pepscope import _core
from pepscope.captures.packets import Direction
from pepscope.results.finding import CERTAIN, Finding, Weight, inapplicable, intact, split
from pepscope.results.verdicts import Evidence, Number

NAME = "ack_timing"

#: Coarsest tick of an ordinary host's capture clock (64 Hz timers): a slack of this size counts half.
COARSE_TICK_S = 1 / 64

#: Share of equal successive timestamps from which a capture's clock is taken to tick coarsely.
TICKING_SHARE = 0.05

#: So many packets show whether it does.
TICKING_PACKETS = 100_000

#: Acknowledgements needed at the sender before their absence of violations is evidence.
LEAST_ACKS = 10

#: Weight of a fit: a split point without a queue fits as well. A least acknowledgement round trip that is the whole
#: path's, as data in both directions show it, leaves only split points at the receiver's end of the path. A handshake
#: that crossed the whole path is a second, independent measurement of the path's round trip.
FIT_STRENGTH = 0.3
WHOLE_PATH_STRENGTH = 0.6
WHOLE_PATH_SHARE = 0.98


#: The path's round trip as data show it is not credible below this share of the least acknowledgement's: a clock that
#: was set during the connection shortens the one and not the other, by any amount.
CREDIBLE_SHARE = 0.75

#: The same of the handshake's round trip, which one clock timed; it may be twice the path's where a radio woke up.
HANDSHAKE_SHARE = 0.5

#: Share of the acknowledgements that have one of the receiver's own beside them from which their being earlier is a
#: body: a capture that loses records loses few of the first ones only.
OWN_SHARE = 0.25
OWN_BEFORE = "acks_before_receivers_own"
OWN_COMPARED = "acks_compared_with_receivers_own"

#: An acknowledgement round trip below this share of the path's, as data in both directions show it, suggests that
#: acknowledgements come from nearer than the receiver.
NEARER_SHARE = 0.5

#: Acknowledgements that must have come from nearer than the handshake: one may be measured from the wrong copy.
SEVERAL_ACKS = 2


@dataclass(frozen=True, slots=True)
class _Published:
    """Methods 1 and 2 on one flow: violating share, least margin (s, negative when violated), and how many violate."""

    share: float
    margin_s: float
    violating: int


class AckTimingFinding(Finding):
    """When acknowledgements came: one cause, one family with the sender's progress."""

    ACKS_BEFORE_DATA = split(
        "acks-before-data",
        Weight(
            "timing", 1.5 * CERTAIN, 0.0, 0.0, 0.0,
            "Bytes were acknowledged that had not reached the receiver, under every admissible clock: impossible end "
            "to end, so it outweighs any one finding.",
        ),
    )  # fmt: skip
    ACKS_AFTER_DATA = intact(
        "acks-after-data",
        Weight(
            "timing", 0.0, -1.0, -2.5, 0.0,
            "One clock fits; a split point without a queue fits as well, and a middlebox that acknowledges before one.",
        ),
    )  # fmt: skip
    ACKS_NEARER_THAN_PATH = split(
        "acks-nearer-than-path",
        Weight(
            "timing", -2.0, 0.0, 0.0, 0.0,
            "Acknowledgements came from nearer than the receiver, or the data always met a queue.",
        ),
    )  # fmt: skip
    ACKS_NEARER_THAN_HANDSHAKE = split(
        "acks-nearer-than-handshake",
        Weight(
            "timing", -4.5, 0.0, 0.0, 0.0,
            "Acknowledgements took less than half of what SYN and SYN-ACK took over the whole path; most of them "
            "did so on "
            "none of 304 regular paths of the training draws, and on four in ten with local acknowledgement.",
        ),
    )  # fmt: skip
    ACKS_BEFORE_RECEIVERS = split(
        "acks-before-receivers",
        Weight(
            "timing", -6.0, 0.0, 0.0, 0.0,
            "The receiver had not acknowledged those bytes yet; its capture may have lost the first of repeated ones.",
        ),
    )  # fmt: skip
    ACKS_CROSS_WHOLE_PATH = intact(
        "acks-cross-whole-path",
        Weight(
            "timing", 0.0, -3.0, -4.0, -5.0,
            "Even the fastest acknowledgement took the whole path; a middlebox that acknowledges is nearer.",
        ),
    )  # fmt: skip
    ACK_TIMING_UNKNOWN = inapplicable("ack-timing-unknown")


def examine(observation: Observation) -> Evidence:
    """Test whether the acknowledgements' timing allows an end-to-end connection."""
    pair, clock = observation.pair, observation.clock
    flow = larger(clock.clouds)
    if flow is None or flow.times.ack_count == 0:
        reason = "needs the connection in both captures, aligned by payload or sequence numbers"
        return AckTimingFinding.ACK_TIMING_UNKNOWN.undecided(NAME, f"Acknowledgement timing {reason}.")
    first, second = published(flow, ClockMode.SYNCHRONISED), published(flow, ClockMode.OFFSET)
    tick_s = _tick_s(pair)
    violating, timed = violations(flow, clock)
    ahead, compared = ahead_of_receiver(flow, clock)
    numbers: dict[str, Number] = {
        "direction": flow.direction.name.lower(),
        "clocks": clock.mode.value,
        "clock_basis": clock.basis.value,
        "slack_s": _finite(clock.slack_s),
        "exact_slack_s": _finite(clock.exact_slack_s),
        "violating_share": violating / max(timed, 1),
        "violating_acks": violating,
        "acks": flow.times.ack_count,
        OWN_BEFORE: ahead,
        OWN_COMPARED: compared,
        "lower_constraints": clock.lower_points,
        "upper_constraints": clock.upper_points,
        "spared_constraints": clock.lower_spared + clock.upper_spared,
        "method1_share": first.share,
        "method1_margin_s": _finite(first.margin_s),
        "method2_share": second.share,
        "method2_margin_s": _finite(second.margin_s),
        "offset_s": clock.pieces[0].offset_ns / 1e9,
        "drift_ppm": clock.pieces[0].drift * 1e6,
        "pieces": len(clock.pieces),
        "step_s": clock.steps_s[0] if clock.steps_s else None,
        "round_trip_min_s": _finite(clock.round_trip_min_s),
        "clock_was_set": clock.was_set,
        "timestamp_tick_s": tick_s,
        "handshake_s": _handshake_s(pair, flow.direction),
    }
    if clock.mode is not ClockMode.GENERAL:
        return _judge_published(flow, clock, first if clock.mode is ClockMode.SYNCHRONISED else second, numbers)
    nearer = _nearer_than_handshake(pair, flow, tick_s, numbers)
    return _judge_general(clock, tick_s, violating, (ahead, compared), nearer, numbers)


def published(flow: FlowClouds, mode: ClockMode) -> _Published:
    """Method 1 (theta = 0) or Method 2 with i = 1 (theta from the first datum), with the receiver's own ACK times."""
    first_ns = flow.times.first_delay_ns
    if first_ns is None:
        return _Published(0.0, math.inf, 0)
    theta_ns = 0 if mode is ClockMode.SYNCHRONISED else first_ns
    found = flow.times.published(theta_ns, TIMESTAMP_ERROR_S)
    if found is None:
        return _Published(0.0, math.inf, 0)
    timed, violating, margin_s = found
    return _Published(violating / timed, margin_s, violating)


def _judge_general(
    clock: ClockRelation,
    tick_s: float,
    violating: int,
    before_own: tuple[int, int],
    nearer: Evidence | None,
    numbers: dict[str, Number],
) -> Evidence:
    """`before_own`: how many acknowledgements came before the receiver's own, and of how many."""
    tolerated = TIMESTAMP_ERROR_S + tick_s
    caveats = ["Packets that a capture lost can shift single points; as many points as loss explains were left out."]
    if len(clock.pieces) > 1:
        caveats.append("A clock step was assumed; the packets before and after it were tested separately.")
    if clock.unusual_steps:
        summary = (
            f"Data and acknowledgements contradict each other unless a clock was set {len(clock.pieces) - 1} times: "
            "such a clock is rare, and so is a split whose queue grew and shrank so seldom."
        )
        return AckTimingFinding.ACK_TIMING_UNKNOWN.undecided(NAME, summary, numbers, caveats)
    if clock.was_set:
        summary = (
            "Data and acknowledgements contradict each other, and a capture shows that its clock was set: its times "
            "fall back, or jump against its host's, or contradict each other by data alone."
        )
        return AckTimingFinding.ACK_TIMING_UNKNOWN.undecided(NAME, summary, numbers, caveats)
    if clock.slack_s < -tolerated:
        overlap = -clock.slack_s
        spared = clock.lower_spared + clock.upper_spared
        strength = overlap / (overlap + COARSE_TICK_S) * max(violating, 1) / (max(violating, 1) + spared)
        summary = (
            f"{violating} of {numbers['acks']} acknowledgements reached the sender before the receiver can have sent "
            f"them, under every admissible clock relation: data and acknowledgements contradict each other by "
            f"{overlap:.3g} s."
        )
        if violating == 0:
            summary = (
                "No admissible clock relation fits the acknowledgements of both directions together: they are "
                f"{overlap:.3g} s too early for an end-to-end connection."
            )
        if nearer is not None and nearer.strength > 2 * strength:
            return nearer  # a contradiction by less than a clock's tick is weak evidence
        return AckTimingFinding.ACKS_BEFORE_DATA.evidence(NAME, strength, summary, numbers, caveats)
    ahead, compared = before_own
    if ahead > max(clock.lower_spared + clock.upper_spared, OWN_SHARE * compared):
        summary = (
            f"{ahead} of {compared} acknowledgements reached the sender before the receiver sent its own of the same "
            "bytes, under every admissible clock relation: a middlebox sent them."
        )
        caveats.append("A capture at the receiver that lost the first of repeated acknowledgements looks the same.")
        strength = ahead / (ahead + clock.lower_spared + clock.upper_spared)
        return AckTimingFinding.ACKS_BEFORE_RECEIVERS.evidence(NAME, strength, summary, numbers, caveats)
    if nearer is not None:
        return nearer
    if not math.isfinite(clock.slack_s) or min(clock.lower_points, clock.upper_points) < LEAST_ACKS:
        summary = "Too few data segments and acknowledgements at both ends to judge their timing."
        return AckTimingFinding.ACK_TIMING_UNKNOWN.undecided(NAME, summary, numbers, caveats)
    caveats.append("A split point that never queues would fit as well.")
    # End to end the least acknowledgement crosses the path and waits for as long as the receiver's capture shows: where
    # that was taken in mid-path, the rest of the path is part of the wait.
    path_s = clock.data_high_s - clock.data_low_s + least_hold_ns(clock.clouds) / 1e9
    numbers["data_round_trip_s"] = _finite(clock.data_high_s - clock.data_low_s)
    numbers["receiver_hold_min_s"] = least_hold_ns(clock.clouds) / 1e9
    numbers["round_trip_min_both_ways_s"] = least_s = _least_round_trip_s(clock)
    whole = math.isfinite(path_s) and least_s is not None and path_s >= CREDIBLE_SHARE * least_s
    handshake_s = numbers["handshake_s"]
    whole &= not isinstance(handshake_s, float) or path_s >= HANDSHAKE_SHARE * handshake_s
    if whole and least_s is not None and least_s >= WHOLE_PATH_SHARE * path_s:
        shown_s = numbers["handshake_path_s"]
        twice = isinstance(shown_s, float) and least_s >= WHOLE_PATH_SHARE * shown_s
        summary = (
            f"Even the fastest acknowledgement took the round trip of the whole path ({least_s:.3g} s; data alone show "
            f"{path_s:.3g} s), and one clock relation fits all packets with {clock.slack_s:.3g} s of slack."
        )
        return AckTimingFinding.ACKS_CROSS_WHOLE_PATH.evidence(
            NAME, 1.0 - (1.0 - WHOLE_PATH_STRENGTH) ** (2 if twice else 1), summary, numbers, caveats
        )
    # Where single constraints contradict the one clock it may have been set, and then data show no round trip.
    steady = clock.exact_slack_s >= -TIMESTAMP_ERROR_S
    if steady and math.isfinite(path_s) and clock.round_trip_min_s < NEARER_SHARE * path_s:
        summary = (
            f"The fastest acknowledgement took {clock.round_trip_min_s:.3g} s, where data alone show a round trip of "
            f"{path_s:.3g} s: it may come from nearer than the receiver."
        )
        caveats.append("Data that never met an empty queue show a longer round trip than the path has.")
        strength = 1.0 - clock.round_trip_min_s / path_s
        return AckTimingFinding.ACKS_NEARER_THAN_PATH.evidence(NAME, strength, summary, numbers, caveats)
    summary = f"One clock relation fits all data and acknowledgements, with {clock.slack_s:.3g} s of slack."
    return AckTimingFinding.ACKS_AFTER_DATA.evidence(NAME, FIT_STRENGTH, summary, numbers, caveats)


def _nearer_than_handshake(pair: Pair, flow: FlowClouds, tick_s: float, numbers: dict[str, Number]) -> Evidence | None:
    """Evidence where several acknowledgements came back sooner than the handshake that crossed the whole path."""
    path_ns = handshake_round_trip_ns(pair, flow.direction)
    numbers["handshake_path_s"] = None if path_ns is None else path_ns / 1e9
    if path_ns is None:
        return None
    times = flow.times
    count = times.round_trips_below(NEARER_SHARE * path_ns - (TIMESTAMP_ERROR_S + tick_s) * 1e9)
    numbers["acks_nearer_than_handshake"] = count
    least_ns = times.least_round_trip_ns
    if count < SEVERAL_ACKS or least_ns is None:
        return None
    known = times.round_trip_count
    return AckTimingFinding.ACKS_NEARER_THAN_HANDSHAKE.evidence(
        NAME, count / (known + 1),
        f"{count} of {known} acknowledgements came back in less than half of the {path_ns / 1e9:.3g} s that the "
        f"handshake took over the whole path, the fastest after {least_ns / 1e9:.3g} s: they come from nearer than "
        "the receiver.", numbers,
        ("A handshake that waited in both directions for longer than the path takes looks the same.",),
    )  # fmt: skip


def _judge_published(flow: FlowClouds, clock: ClockRelation, found: _Published, numbers: dict[str, Number]) -> Evidence:
    name = "Method 1 (synchronised clocks)" if clock.mode is ClockMode.SYNCHRONISED else "Method 2 (constant offset)"
    caveats = (f"{name} was requested: a clock that drifts, steps or has another offset causes false violations.",)
    times = flow.times
    if clock.mode is ClockMode.SYNCHRONISED and times.least_delay_ns is not None:
        early_s = times.least_delay_ns / 1e9
        if early_s < -TIMESTAMP_ERROR_S:
            summary = f"Data arrive {-early_s:.3g} s before they are sent: the clocks are not synchronised."
            return AckTimingFinding.ACK_TIMING_UNKNOWN.undecided(NAME, summary, numbers, caveats)
    spared = spared_points(times.ack_count * loss_share(times.receiver_missed))
    if found.violating > spared:
        overlap = -found.margin_s
        strength = overlap / (overlap + COARSE_TICK_S) * found.violating / (found.violating + spared)
        summary = f"By {name}, {found.share:.0%} of the acknowledgements came too early, by up to {overlap:.3g} s."
        return AckTimingFinding.ACKS_BEFORE_DATA.evidence(NAME, strength, summary, numbers, caveats)
    if times.ack_count < LEAST_ACKS:
        summary = "Too few acknowledgements to judge their timing."
        return AckTimingFinding.ACK_TIMING_UNKNOWN.undecided(NAME, summary, numbers, caveats)
    summary = f"By {name}, acknowledgements did not come too early, apart from those that capture loss explains."
    return AckTimingFinding.ACKS_AFTER_DATA.evidence(NAME, FIT_STRENGTH, summary, numbers, caveats)


def _handshake_s(pair: Pair, direction: Direction) -> float | None:
    """The handshake's round trip (s) at the sender of `direction`'s data; None where its capture lacks it."""
    sender = pair.sender(direction)
    if sender is None:
        return None
    connection = sender.connection
    gap = connection.handshake_syn_ack_ns if direction is Direction.UP else connection.handshake_ack_ns
    return None if gap is None else gap / 1e9


def _least_round_trip_s(clock: ClockRelation) -> float | None:
    """Least acknowledgement round trip (s) at the senders of both directions; None where there is none."""
    known = [flow.times.least_round_trip_ns for flow in clock.clouds.values()]
    return min((least_ns / 1e9 for least_ns in known if least_ns is not None), default=None)


def _tick_s(pair: Pair) -> float:
    """The coarser capture's clock tick, where many successive packets bear the same time; else 0."""
    ticks = [0.0]
    for vantage in pair.vantages:
        steps, equal, least_ns = _core.timestamp_steps(vantage.packets.time_ns, TICKING_PACKETS)
        if least_ns is not None and equal / steps >= TICKING_SHARE:
            ticks.append(least_ns / 1e9)
    return max(ticks)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


METHOD = Method(NAME, "acknowledgement timing", (AckTimingFinding,), by_connection(examine))
