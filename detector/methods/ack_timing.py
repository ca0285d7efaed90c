"""Acknowledgement timing: Methods 1 and 2 of Wei et al. (UMass TR 2005-59, section III-A) and their general form.

An acknowledgement that reached the sender before the receiver can have sent it was made by somebody in between. The
general form asks whether any clock relation of bounded drift, with the steps that clocks make, fits all data and
acknowledgements (`detector.clock`); Method 1 takes the clocks as synchronised, Method 2 takes the offset from the first
datum. Absence of violations is weak: a split point that never queues shows none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from detector.clock import TIMESTAMP_ERROR_S, ClockRelation
from detector.clouds import FlowClouds, least_hold_ns, loss_share, spared_points
from detector.curves import NEVER
from detector.early_acks import ahead_of_receiver, violations
from detector.pair import ClockMode, Pair
from pepscope.packets import Direction
from pepscope.results import Evidence, Number, Outcome

METHOD = "ack_timing"

#: Coarsest tick of an ordinary host's capture clock (64 Hz timers): a slack of this size counts half.
COARSE_TICK_S = 1 / 64

#: Share of equal successive timestamps from which a capture's clock is taken to tick coarsely.
TICKING_SHARE = 0.05

#: Acknowledgements needed at the sender before their absence of violations says anything.
LEAST_ACKS = 10

#: Weight of a fit: a split point without a queue fits as well. A least acknowledgement round trip that is the whole
#: path's, as data in both directions show it, leaves only split points at the receiver's end of the path.
FIT_STRENGTH = 0.3
WHOLE_PATH_STRENGTH = 0.6
WHOLE_PATH_SHARE = 0.98


#: The path's round trip as data show it is not credible below this share of the least acknowledgement's: a clock that
#: was set in between shortens the one and not the other, by as much as it likes.
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


@dataclass(frozen=True, slots=True)
class _Published:
    """Methods 1 and 2 on one flow: violating share, least margin (s, negative when violated), and how many violate."""

    share: float
    margin_s: float
    violating: int


def examine(pair: Pair, clock: ClockRelation) -> Evidence:
    """Test whether the acknowledgements' timing allows an end-to-end connection."""
    flow = _larger(clock)
    if flow is None or len(flow.ack_seen_ns) == 0:
        reason = "needs the connection in both captures, aligned by payload or sequence numbers"
        return Evidence(METHOD, Outcome.INAPPLICABLE, "ack-timing-unknown", 0.0, f"Acknowledgement timing {reason}.")
    first, second = published(flow, ClockMode.SYNCHRONISED), published(flow, ClockMode.OFFSET)
    tick_s = _tick_s(pair)
    violating = violations(flow, clock)
    ahead, compared = ahead_of_receiver(flow, clock)
    numbers: dict[str, Number] = {
        "direction": flow.direction.name.lower(),
        "clocks": clock.mode.value,
        "clock_basis": clock.basis.value,
        "slack_s": _finite(clock.slack_s),
        "exact_slack_s": _finite(clock.exact_slack_s),
        "violating_share": float(violating.mean()) if len(violating) else 0.0,
        "violating_acks": int(violating.sum()),
        "acks": len(flow.ack_seen_ns),
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
        "timestamp_tick_s": tick_s,
        "handshake_s": _handshake_s(pair, flow.direction),
    }
    if clock.mode is not ClockMode.GENERAL:
        return _judge_published(flow, clock, first if clock.mode is ClockMode.SYNCHRONISED else second, numbers)
    return _judge_general(clock, tick_s, int(violating.sum()), numbers)


def published(flow: FlowClouds, mode: ClockMode) -> _Published:
    """Method 1 (theta = 0) or Method 2 with i = 1 (theta from the first datum), with the receiver's own ACK times."""
    known = flow.ack_sent_ns != NEVER
    if not known.any() or len(flow.data_sent_ns) == 0:
        return _Published(0.0, math.inf, 0)
    theta = 0 if mode is ClockMode.SYNCHRONISED else int(flow.data_arrived_ns[0] - flow.data_sent_ns[0])
    margin = (flow.ack_seen_ns[known] - flow.ack_sent_ns[known] + theta) / 1e9
    violating = margin < -TIMESTAMP_ERROR_S
    return _Published(float(violating.mean()), float(margin.min()), int(violating.sum()))


def _judge_general(clock: ClockRelation, tick_s: float, violating: int, numbers: dict[str, Number]) -> Evidence:
    tolerated = TIMESTAMP_ERROR_S + tick_s
    caveats = ["Lost capture packets can move single points; as many as they explain were left out."]
    if len(clock.pieces) > 1:
        caveats.append("A clock was taken to have stepped; the pieces were tested separately.")
    if clock.slack_s < -tolerated:
        overlap = -clock.slack_s
        spared = clock.lower_spared + clock.upper_spared
        strength = overlap / (overlap + COARSE_TICK_S) * max(violating, 1) / (max(violating, 1) + spared)
        summary = (
            f"{violating} of {numbers['acks']} acknowledgements reached the sender before the receiver can have sent "
            f"them, whatever the clocks: data and acknowledgements contradict each other by {overlap:.3g} s."
        )
        if violating == 0:
            summary = (
                f"No clock fits the acknowledgements of both directions together: they are {overlap:.3g} s too early "
                "for an end-to-end connection."
            )
        return Evidence(METHOD, Outcome.SPLIT, "acks-before-data", strength, summary, numbers, tuple(caveats))
    ahead, compared = (int(str(numbers[key])) for key in (OWN_BEFORE, OWN_COMPARED))
    if ahead > max(clock.lower_spared + clock.upper_spared, OWN_SHARE * compared):
        summary = (
            f"{ahead} of {compared} acknowledgements reached the sender before the receiver sent its own of the same "
            "bytes, whatever the clocks: a box in between sent them."
        )
        caveats.append("A capture at the receiver that lost the first of repeated acknowledgements looks the same.")
        strength = ahead / (ahead + clock.lower_spared + clock.upper_spared)
        return Evidence(METHOD, Outcome.SPLIT, "acks-before-receivers", strength, summary, numbers, tuple(caveats))
    if not math.isfinite(clock.slack_s) or min(clock.lower_points, clock.upper_points) < LEAST_ACKS:
        summary = "Too few data and acknowledgements at both ends for their timing to say anything."
        return Evidence(METHOD, Outcome.INAPPLICABLE, "ack-timing-unknown", 0.0, summary, numbers, tuple(caveats))
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
        summary = (
            f"Even the fastest acknowledgement took the whole path's round trip ({least_s:.3g} s; data "
            f"alone show {path_s:.3g} s), and one clock fits all packets with {clock.slack_s:.3g} s to spare."
        )
        return Evidence(
            METHOD, Outcome.INTACT, "acks-cross-whole-path", WHOLE_PATH_STRENGTH, summary, numbers, tuple(caveats)
        )
    if math.isfinite(path_s) and clock.round_trip_min_s < NEARER_SHARE * path_s:
        summary = (
            f"The fastest acknowledgement took {clock.round_trip_min_s:.3g} s, where data alone show a round trip of "
            f"{path_s:.3g} s: it may come from nearer than the receiver."
        )
        caveats.append("Data that never met an empty queue show a longer round trip than the path has.")
        strength = 1.0 - clock.round_trip_min_s / path_s
        return Evidence(METHOD, Outcome.SPLIT, "acks-nearer-than-path", strength, summary, numbers, tuple(caveats))
    summary = f"One admissible clock fits all data and acknowledgements, with {clock.slack_s:.3g} s to spare."
    return Evidence(METHOD, Outcome.INTACT, "acks-after-data", FIT_STRENGTH, summary, numbers, tuple(caveats))


def _judge_published(flow: FlowClouds, clock: ClockRelation, found: _Published, numbers: dict[str, Number]) -> Evidence:
    name = "Method 1 (synchronised clocks)" if clock.mode is ClockMode.SYNCHRONISED else "Method 2 (constant offset)"
    caveats = (f"{name} was asked for: a clock that drifts, steps or is off otherwise fakes violations.",)
    if clock.mode is ClockMode.SYNCHRONISED and len(flow.data_sent_ns):
        early_s = float((flow.data_arrived_ns - flow.data_sent_ns).min()) / 1e9
        if early_s < -TIMESTAMP_ERROR_S:
            summary = f"Data arrive {-early_s:.3g} s before they are sent: the clocks are not synchronised."
            return Evidence(METHOD, Outcome.INAPPLICABLE, "ack-timing-unknown", 0.0, summary, numbers, caveats)
    spared = spared_points(len(flow.ack_seen_ns) * loss_share(flow.receiver_missed))
    if found.violating > spared:
        overlap = -found.margin_s
        strength = overlap / (overlap + COARSE_TICK_S) * found.violating / (found.violating + spared)
        summary = f"By {name}, {found.share:.0%} of the acknowledgements came too early, by up to {overlap:.3g} s."
        return Evidence(METHOD, Outcome.SPLIT, "acks-before-data", strength, summary, numbers, caveats)
    if len(flow.ack_seen_ns) < LEAST_ACKS:
        summary = "Too few acknowledgements for their timing to say anything."
        return Evidence(METHOD, Outcome.INAPPLICABLE, "ack-timing-unknown", 0.0, summary, numbers, caveats)
    summary = f"By {name} no body of acknowledgements came too early."
    return Evidence(METHOD, Outcome.INTACT, "acks-after-data", FIT_STRENGTH, summary, numbers, caveats)


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
    known = [flow.round_trip_ns[flow.round_trip_ns != NEVER] for flow in clock.clouds.values()]
    return min((float(times.min()) / 1e9 for times in known if len(times)), default=None)


def _larger(clock: ClockRelation) -> FlowClouds | None:
    """The flow with most data points."""
    return max(clock.clouds.values(), key=lambda item: len(item.data_sent_ns), default=None)


def _tick_s(pair: Pair) -> float:
    """The coarser capture's clock tick, where many successive packets bear the same time; else 0."""
    ticks = [0.0]
    for vantage in pair.vantages:
        gaps = np.diff(vantage.packets.time_ns[:100_000])
        later = gaps[gaps > 0]
        if len(later) and (gaps == 0).mean() >= TICKING_SHARE:
            ticks.append(float(later.min()) / 1e9)
    return max(ticks)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
