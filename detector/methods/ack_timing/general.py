"""The general form: whether any clock relation of bounded drift, with the steps that clocks make, fits all packets."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.clocks.clock_relation import TIMESTAMP_ERROR_S
from detector.clocks.untimed import are_untimed
from detector.methods.ack_timing import wording
from detector.methods.ack_timing.findings import NAME, AckTimingFinding
from detector.methods.ack_timing.measured import DIRECTION_NAMES, Measured, finite
from detector.methods.ack_timing.nearer import Nearer, nearer_than_handshake
from detector.methods.ack_timing.strengths import (
    COARSE_TICK_S,
    CREDIBLE_SHARE,
    FIT_STRENGTH,
    HANDSHAKE_SHARE,
    LEAST_ACKS,
    NEARER_SHARE,
    OWN_SHARE,
    WHOLE_PATH_SHARE,
    WHOLE_PATH_STRENGTH,
)
from detector.streams.known import are_known, seconds
from pepscope.results.evidence.columns import BoolArray, EvidenceColumns, Figure, evidence_where
from pepscope.results.verdicts import FloatArray


class _Path(Struct, frozen=True):
    """Round trips (s) as data in both directions show them; infinite where they do not, NaN for no acknowledgement."""

    data_s: FloatArray
    hold_s: FloatArray  # the receiver's least delay of an acknowledgement
    least_s: FloatArray  # the least acknowledgement's, at the senders of both directions

    @property
    def path_s(self) -> FloatArray:
        """End to end the least acknowledgement crosses the path and waits for as long as the receiver's capture shows:
        where that was taken in mid-path, the rest of the path is part of the wait."""
        return self.data_s + self.hold_s


class _Strengths(Struct, frozen=True):
    """How firmly each finding shows, of those whose strength the packets tell."""

    before_data: FloatArray
    before_receivers: FloatArray
    cross_whole_path: FloatArray
    nearer_than_path: FloatArray


class _Grounds(Struct, frozen=True):
    """Which connections each rule decides, in the order of the rules."""

    unusual: BoolArray
    was_set: BoolArray
    untimed: BoolArray
    before_data: BoolArray
    before_receivers: BoolArray
    nearer_than_handshake: BoolArray
    too_few: BoolArray
    cross_whole_path: BoolArray
    nearer_than_path: BoolArray
    after_data: BoolArray


def judge_general(measured: Measured, chosen: BoolArray, figures: list[Figure]) -> list[EvidenceColumns]:
    """The evidence on the `chosen` connections; each rule looks at those that the rules before left over."""
    finding, unknown = AckTimingFinding, AckTimingFinding.ACK_TIMING_UNKNOWN
    path = _path(measured)
    of_larger, nearer = nearer_than_handshake(measured, path.data_s)
    strengths = _strengths(measured, path)
    grounds = _grounds(measured, chosen, nearer, path, strengths)
    figures = [*figures, *_handshake_figures(of_larger)]
    with_path = [*figures, *_path_figures(path)]
    beside_path = [Figure("path_s", path.path_s)]
    own = [
        Figure("direction", [DIRECTION_NAMES[not is_up] for is_up in nearer.is_up.tolist()]),
        Figure("round_trip_min_s", finite(seconds(nearer.least_ns))),
        *_handshake_figures(nearer),
    ]
    of_own = {each.name: each for each in own}
    of_nearer = [of_own.get(each.name, each) for each in figures]
    beside_nearer = [
        Figure("round_trips", nearer.round_trips),
        Figure("least_round_trip_s", seconds(nearer.least_ns)),
    ]
    fit = np.full(len(measured), FIT_STRENGTH)
    return [
        *evidence_where(grounds.unusual, NAME, unknown, figures, wording.unusual_steps),
        *evidence_where(grounds.was_set, NAME, unknown, figures, wording.clock_was_set),
        *evidence_where(grounds.untimed, NAME, unknown, figures, wording.untimed),
        *evidence_where(
            grounds.before_data, NAME, finding.ACKS_BEFORE_DATA, figures, wording.before_data, (),
            strengths.before_data,
        ),
        *evidence_where(
            grounds.before_receivers, NAME, finding.ACKS_BEFORE_RECEIVERS, figures, wording.before_receivers, (),
            strengths.before_receivers,
        ),
        *evidence_where(
            grounds.nearer_than_handshake, NAME, finding.ACKS_NEARER_THAN_HANDSHAKE, of_nearer,
            wording.nearer_than_handshake, beside_nearer, nearer.strength,
        ),
        *evidence_where(grounds.too_few, NAME, unknown, figures, wording.too_few),
        *evidence_where(
            grounds.cross_whole_path, NAME, finding.ACKS_CROSS_WHOLE_PATH, with_path, wording.cross_whole_path,
            beside_path, strengths.cross_whole_path,
        ),
        *evidence_where(
            grounds.nearer_than_path, NAME, finding.ACKS_NEARER_THAN_PATH, with_path, wording.nearer_than_path,
            beside_path, strengths.nearer_than_path,
        ),
        *evidence_where(grounds.after_data, NAME, finding.ACKS_AFTER_DATA, with_path, wording.after_data, (), fit),
    ]  # fmt: skip


def _grounds(measured: Measured, chosen: BoolArray, nearer: Nearer, path: _Path, strengths: _Strengths) -> _Grounds:
    slack_s, spared, ahead = measured.of_clocks("slack_s"), measured.spared, measured.ahead
    left = chosen.copy()

    def taken(where: BoolArray) -> BoolArray:
        some = left & where
        left[some] = False
        return some

    unusual = taken(measured.of_clocks("unusual_steps") > 0)
    was_set = taken(measured.of_clocks("was_set"))
    ticks_finely = measured.tick_s <= TIMESTAMP_ERROR_S
    is_ahead = ticks_finely & (ahead > np.maximum(spared, OWN_SHARE * measured.compared))
    # Where single constraints contradict the one clock it may have been set, and then data show no round trip.
    steady = measured.of_clocks("exact_slack_s") >= -TIMESTAMP_ERROR_S
    is_known = np.isfinite(path.path_s)
    nearer_s = NEARER_SHARE * np.where(is_known, path.path_s, 0.0) - (TIMESTAMP_ERROR_S + measured.tick_s)
    is_shorter = steady & is_known & (measured.of_clocks("round_trip_min_s") < nearer_s)
    accused = (slack_s < -TIMESTAMP_ERROR_S) | nearer.found | is_ahead | is_shorter
    untimed = taken(~np.isfinite(measured.tick_s) | _are_untimed(measured, left & accused))
    contradicted = slack_s < -(TIMESTAMP_ERROR_S + measured.tick_s)
    # A contradiction by less than the clocks' ticks is none, and one by little more is weak evidence.
    rather_nearer = taken(contradicted & nearer.found & (nearer.strength > 2 * strengths.before_data))
    before_data = taken(contradicted)
    before_receivers = taken(is_ahead)
    is_nearer = rather_nearer | taken(nearer.found)
    points = np.minimum(measured.of_clocks("lower_points"), measured.of_clocks("upper_points"))
    too_few = taken(~np.isfinite(slack_s) | (points < LEAST_ACKS))
    crossing = taken(_crosses_whole_path(measured, path))
    shorter = taken(is_shorter)
    return _Grounds(
        unusual, was_set, untimed, before_data, before_receivers, is_nearer, too_few, crossing, shorter, left
    )  # fmt: skip


def _strengths(measured: Measured, path: _Path) -> _Strengths:
    slack_s, spared, ahead = measured.of_clocks("slack_s"), measured.spared, measured.ahead
    overlap_s = np.where(np.isfinite(slack_s), np.maximum(-slack_s, 0.0), 0.0)
    counted = np.maximum(measured.violating, 1)
    overlapping = overlap_s / (overlap_s + COARSE_TICK_S) * counted / (counted + spared)
    twice = path.least_s >= WHOLE_PATH_SHARE * seconds(measured.handshake_path_ns)
    whole = np.where(twice, 1.0 - (1.0 - WHOLE_PATH_STRENGTH) ** 2, WHOLE_PATH_STRENGTH)
    with np.errstate(invalid="ignore", divide="ignore"):
        shorter = 1.0 - measured.of_clocks("round_trip_min_s") / path.path_s
    return _Strengths(overlapping, ahead / np.maximum(ahead + spared, 1), whole, shorter)


def _handshake_figures(nearer: Nearer) -> list[Figure]:
    return [
        Figure("handshake_path_s", finite(seconds(nearer.handshake_path_ns))),
        Figure("acks_nearer_than_handshake", nearer.count, are_known(nearer.handshake_path_ns)),
    ]


def _path_figures(path: _Path) -> list[Figure]:
    return [
        Figure("data_round_trip_s", finite(path.data_s)),
        Figure("receiver_hold_min_s", path.hold_s),
        Figure("round_trip_min_both_ways_s", finite(path.least_s)),
    ]


def _are_untimed(measured: Measured, accused: BoolArray) -> BoolArray:
    """Of which of the `accused` the times of a capture tell nothing."""
    untimed = np.zeros(len(accused), np.bool_)
    places = np.flatnonzero(accused)
    untimed[places] = are_untimed([measured.pairs[place] for place in places.tolist()])
    return untimed


def _path(measured: Measured) -> _Path:
    hold_s = measured.of_larger.hold_s
    least_s = measured.of_clocks("least_acknowledged_s")
    return _Path(measured.of_clocks("data_high_s") - measured.of_clocks("data_low_s"), hold_s, least_s)


def _crosses_whole_path(measured: Measured, path: _Path) -> BoolArray:
    """Where even the fastest acknowledgement took what data show of the path, as far as that is credible.

    A capture without any pure acknowledgement may lack a middlebox's: those that data carry are the far end's anyway.
    """
    path_s, least_s = path.path_s, path.least_s
    credible = np.isfinite(path_s) & (path_s >= CREDIBLE_SHARE * least_s)
    credible &= np.isnan(measured.handshake_s) | (path_s >= HANDSHAKE_SHARE * measured.handshake_s)
    crosses: BoolArray = measured.shows_pure & credible & (least_s >= WHOLE_PATH_SHARE * path_s)
    return crosses
