"""What the comparison of the two captures' segments means for connections: all of them at once, as columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from detector.clocks.untimed import are_untimed
from detector.method import Context, Findings
from detector.methods.identity import wording
from detector.methods.identity.acknowledger import (
    FEWEST_AHEAD,
    OWN_ACKNOWLEDGEMENT_NATS,
    Acknowledging,
    acknowledgements_ahead,
    are_unseen,
    other_maker_nats,
    own_acknowledgement_nats,
)
from detector.methods.identity.agreement import (
    HARD_FIELDS,
    SAME,
    ClassComparison,
    sum_fields,
    total_nats,
)
from detector.methods.identity.comparison import Aligned, Comparison, compare, largest_payload
from detector.methods.identity.dropped_acks import one_receiver_nats, possible_losses
from detector.methods.identity.field_weights import field_figures
from detector.methods.identity.findings import NAME, IdentityFinding
from detector.methods.identity.midway import change_of_maker
from detector.methods.identity.normaliser import weigh
from detector.methods.identity.rewriters import rewriter_figures
from detector.methods.identity.segment_counts import Truths
from detector.methods.identity.segments import align_segments, thinning_for
from detector.methods.identity.wording import FEWEST_SEGMENTS, leading_fields
from detector.pair import Pair
from detector.streams.loaded import confidence_of, packets_of
from detector.streams.sides import Sides
from detector.vantage.not_captured import hold_pure_acknowledgements
from pepscope.captures.direction import DIRECTIONS, Direction
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.columns import (
    BoolArray,
    EvidenceColumns,
    Figure,
    Wording,
    evidence_columns,
    rounded,
)
from pepscope.results.hypotheses import logistics
from pepscope.results.verdicts import Evidence, FloatArray

#: Natural-log likelihood ratio that decides: a thousand to one.
DECISIVE_NATS = math.log(1000.0)
#: Below this share of equal IP IDs in every class of segments another host gave them.
SHARED_IP_IDS = 0.5


def examine(context: Context) -> Findings:
    """Compare the segments of both directions at both vantages."""
    sides = context.sides
    alone = dict.fromkeys(context.seen_once.tolist(), _needs_second_capture())
    laid_over = align_segments(sides)
    are_aligned = np.array([segments is not None for segments in laid_over], np.bool_)
    alone |= dict.fromkeys(sides.rows[~are_aligned].tolist(), _not_aligned())
    aligned = Aligned(
        sides.at(sides.rows[are_aligned]), [segments for segments in laid_over if segments is not None]
    )  # fmt: skip
    columns = []
    if aligned.segments:
        with np.errstate(divide="ignore", invalid="ignore"):  # where a share is of nothing, nothing is read of it
            columns = _judge(compare(aligned), alone)
    return Findings.of_rows(alone, columns)


@cache
def _needs_second_capture() -> Evidence:
    return IdentityFinding.NEEDS_SECOND_CAPTURE.undecided(
        NAME, "Only one capture holds this connection: no segments to compare."
    )


@cache
def _not_aligned() -> Evidence:
    return IdentityFinding.NOT_ALIGNED.undecided(
        NAME,
        "The captures' byte offsets cannot be aligned (no SYN, no payload and no packet in common): capture from "
        "the start of the connection, or with a larger snap length.",
    )


@cache
def _out_of_order() -> Evidence:
    return IdentityFinding.NOT_ALIGNED.undecided(
        NAME,
        "A capture does not hold its packets in the order of their times, so what differs may be their order: sort it "
        "(reordercap, mergecap).",
    )


class _Weighed(NamedTuple):
    """Natural-log likelihood ratios of each connection; positive ones speak for packets that are passed on."""

    data: FloatArray
    acks: FloatArray
    hard_data: FloatArray  # of the `HARD_FIELDS` alone
    hard_acks: FloatArray
    total: FloatArray  # of all segments
    other_acknowledger: FloatArray  # positive: some acknowledgements are another maker's than the receiver
    own_acknowledgement: FloatArray  # positive: acknowledgements are the receiver's own
    ahead: Int64Array  # acknowledgements ahead of their host, by direction of packets (rows): of the client, the server
    data_unseen: BoolArray  # a direction's data (rows) that a capture lacks by a filter or another route


def _judge(compared: Comparison, alone: dict[int, Evidence]) -> list[EvidenceColumns]:
    """The evidence on aligned connections; what concerns a part of a connection goes to `alone`."""
    weighed, sides = _weigh(compared), compared.aligned.sides
    few = compared.arrived < FEWEST_SEGMENTS
    changes = _changes_of_maker(compared, ~few)
    for number, change in changes.items():
        alone[int(sides.rows[number])] = change
    found = _findings(weighed, few, np.isin(np.arange(len(few)), list(changes)))
    for number in np.flatnonzero(np.isin(found, _ACCUSING)).tolist():
        if _is_out_of_order(sides.pairs[number]):
            alone[int(sides.rows[number])], found[number] = _out_of_order(), _CHANGED
    return _evidence(compared, weighed, found)


def _is_out_of_order(pair: Pair) -> bool:
    """Whether times fall back in a capture that contradicts itself: no clock was set, but the file holds one direction
    behind the other, and segments are looked for at the wrong places."""
    return any(vantage.clock_set_back for vantage in pair.vantages) and bool(are_untimed([pair])[0])


def _weigh(compared: Comparison) -> _Weighed:
    data_sums, acknowledgement_sums = _summed(compared.data), _summed(compared.acknowledgements)
    near, far = (flows["initial_sequence_number"] for flows in (compared.client, compared.server))
    other_number = (near != far) & ~np.isnan(near) & ~np.isnan(far)
    total = weigh(
        sum_fields(compared.classes.values()),
        numbers_kept=(near == far).sum(axis=0),
        renumbered=other_number.all(axis=0),
        other_ip_ids=_has_other_ip_ids(compared),
        one_receiver=lambda number: _one_receiver(compared, number),
    )
    others = np.maximum(
        *(
            other_maker_nats(compared.acknowledgements.at(way), compared.lost.max(axis=0), compared.data.at(way))
            for way in DIRECTIONS
        )
    )
    ahead = acknowledgements_ahead(compared.data, compared.acknowledgements, compared.counts.acknowledged_ahead)
    shown = Acknowledging(
        data=compared.data,
        acknowledgements=compared.acknowledgements,
        of_data=compared.of_data,
        carried_places=compared.counts.carried_places,
        ahead=ahead,
        emitted=compared.counts.emitted_acknowledgements,
        shared_places=compared.counts.acknowledged_at_both,
        renumbered=other_number.any(axis=0),
        lacks_packets=compared.lacks_packets,
        lost_shares=compared.lost,
        shows_pure=np.array([hold_pure_acknowledgements(side) for side in compared.summaries]),
    )
    hard_data, hard_acks = (total_nats(sums, HARD_FIELDS) for sums in (data_sums, acknowledgement_sums))
    return _Weighed(
        data=total_nats(data_sums),
        acks=total_nats(acknowledgement_sums),
        hard_data=hard_data,
        hard_acks=hard_acks,
        total=total,
        other_acknowledger=others,
        own_acknowledgement=own_acknowledgement_nats(shown),
        ahead=ahead,
        data_unseen=are_unseen(compared.data, compared.lacks_packets),
    )


def _findings(weighed: _Weighed, few: BoolArray, changed: BoolArray) -> Int64Array:
    """The code of what was found of each connection: the first that fits, in the order of the codes."""
    data, acks, total = weighed.data, weighed.acks, weighed.total
    passed = (data >= DECISIVE_NATS) & (weighed.hard_data >= DECISIVE_NATS)
    acks_differ = passed & ((acks <= -DECISIVE_NATS) | (weighed.other_acknowledger > 0))
    are_ahead = passed & (weighed.ahead.sum(axis=0) >= FEWEST_AHEAD)
    unseen_ahead = np.where(weighed.data_unseen[::-1], weighed.ahead, 0).sum(axis=0) >= FEWEST_AHEAD
    data_differ = (data <= -DECISIVE_NATS) & (acks >= DECISIVE_NATS)
    data_differ &= weighed.hard_acks >= DECISIVE_NATS
    is_own = weighed.own_acknowledgement >= OWN_ACKNOWLEDGEMENT_NATS
    same, other = total >= DECISIVE_NATS, total <= -DECISIVE_NATS
    found = [
        few, changed, are_ahead, acks_differ, data_differ, same & unseen_ahead, same & is_own, same, other & (data < 0),
        other,
    ]  # fmt: skip
    return np.select(found, list(range(_TOO_ALIKE)), _TOO_ALIKE)


def _evidence(compared: Comparison, weighed: _Weighed, found: Int64Array) -> list[EvidenceColumns]:
    """Each of the findings, with its strength and its figures."""
    fields = [*field_figures("data", compared.data), *field_figures("acks", compared.acknowledgements)]
    numbers = _figures(compared, weighed, fields)
    sides = compared.aligned.sides
    confidence = confidence_of(sides.pairs)
    surely = logistics(np.abs(weighed.total))
    strengths = {
        _ACKS_AHEAD: logistics(np.abs(weighed.data)) * confidence,
        _ACKS_NOBODY_SENT: logistics(np.abs(weighed.data)),
        _UNSEEN_AHEAD: surely * confidence,
        _SAME_PACKETS: surely,
        _SAME_DATA: surely,
        _OTHER_PACKETS: surely * confidence,
        _OTHER_ACKS: surely * confidence,
    }
    nothing = np.zeros(len(found))
    made: list[EvidenceColumns] = []
    for code, (finding, words) in _FORMS.items():
        is_found = found == code
        at = np.flatnonzero(is_found)
        if not len(at):
            continue
        further, beside = _own_figures(code, compared, weighed, is_found)
        figures = fields if code == _FEW else [*numbers, *further]
        strength = strengths.get(code, nothing)[at]
        of_many = wording.same_segments_of_many if words is wording.same_segments else None
        kept, others = _taken(figures, at), _taken(beside, at)
        made += evidence_columns(NAME, finding, sides.rows[at], strength, kept, words, others, of_many)
    return made


def _own_figures(
    code: int, compared: Comparison, weighed: _Weighed, is_found: BoolArray
) -> tuple[list[Figure], list[Figure]]:
    """What one finding alone says of the connections on which it `is_found`: among its figures, and beside these in its
    words."""
    sides = compared.aligned.sides
    if code == _FEW:
        return [], [Figure("arrived", compared.arrived)]
    if code in (_ACKS_AHEAD, _UNSEEN_AHEAD):
        return [], [Figure("ahead_of_client", weighed.ahead[Direction.UP.value])]
    if code in (_SAME_PACKETS, _SAME_DATA):
        rewriters, beside = rewriter_figures(compared, is_found)
        return [rewriters], [*beside, *leading_fields(compared, agreeing=True)]
    if code in _ACCUSING:
        same_bytes = Figure("same_bytes", _same_bytes(sides))
        sure = Figure("pairing_confidence", confidence_of(sides.pairs))
        return [], [*leading_fields(compared, agreeing=False), same_bytes, sure]
    return [], []


def _figures(compared: Comparison, weighed: _Weighed, fields: Sequence[Figure]) -> list[Figure]:
    """The figures of every finding but that of too few segments, among them those of single `fields`."""
    return [
        Figure("data_nats", rounded(weighed.data, 2)),
        Figure("acknowledgement_nats", rounded(weighed.acks, 2)),
        *_class_figures(compared),
        *fields,
        Figure("sampled_every", thinning_for(compared.aligned.packets[0])),
        Figure("other_acknowledger_nats", rounded(weighed.other_acknowledger, 2)),
        *_missed_figures(compared),
        Figure("acks_ahead", ahead := weighed.ahead.sum(axis=0), ahead > 0),
    ]


def _taken(figures: Sequence[Figure], at: Int64Array) -> list[Figure]:
    """The figures of some connections."""
    return [
        Figure(
            name,
            values[at] if isinstance(values, np.ndarray) else [values[place] for place in at.tolist()],
            None if is_known is None else is_known[at],
        )
        for name, values, is_known in figures
    ]


def _summed(part: ClassComparison) -> Any:
    return sum_fields([part.at(way) for way in DIRECTIONS])


def _one_receiver(compared: Comparison, number: int) -> float:
    """What the places of a connection's acknowledgements say for one receiver."""
    sides = compared.aligned.sides
    packets = (len(packets_of(side)[number]) for side in (sides.clients, sides.servers))
    losses = [
        possible_losses(float(share), count) for share, count in zip(compared.missed[:, number], packets, strict=True)
    ]
    return one_receiver_nats(compared.places(number), *losses)


def _has_other_ip_ids(compared: Comparison) -> Truths:
    """Whether another host gave the IP IDs, as every class of segments shows that has any to compare."""
    parts = [part.fields["ip-id"] for part in (compared.data, compared.acknowledgements)]
    known = np.concatenate([ids.is_compared for ids in parts])
    differ = np.concatenate([ids.agreeing for ids in parts]) < SHARED_IP_IDS
    return known.any(axis=0) & (differ | ~known).all(axis=0)


def _same_bytes(sides: Sides) -> BoolArray:
    """Of which connections the payload agrees, as far as it was compared."""
    agree = np.ones(len(sides), np.bool_)
    for direction in DIRECTIONS:
        aligned = sides.aligned(direction)
        agree &= (aligned.compared == 0) | (aligned.matched >= 0.5)
    return agree


def _changes_of_maker(compared: Comparison, judged: BoolArray) -> dict[int, Evidence]:
    """The findings that a middlebox splits a part of a connection; none where one stack made all the data."""
    data, lost = compared.data, compared.lost
    # Where the emitter's capture lacks segments their neighbours look alike but for their place.
    held = (data.arrived > 0) & (data.with_candidate >= SAME * (1 - lost) * data.arrived)
    asked = judged & held & (other_maker_nats(data, lost) > 0)
    largest = largest_payload(compared.client, compared.server)
    found: dict[int, Evidence] = {}
    for way, number in np.argwhere(asked).tolist():
        if number in found:
            continue
        direction = DIRECTIONS[way]
        change = change_of_maker(compared.aligned.segments[number], direction, int(largest[way, number]), DECISIVE_NATS)
        if change is None:
            continue
        unchanged, other = "as they left", "as another stack makes them"
        first, then = (unchanged, other) if change.same_first else (other, unchanged)
        found[number] = IdentityFinding.MAKER_CHANGES.evidence(
            NAME, float(logistics(np.abs(change.nats))),
            f"Up to byte {change.from_byte} of the {direction.name.lower()} stream segments arrive {first}, from there "
            f"on {then}: a middlebox splits a part of the connection.",
            {"direction": direction.name.lower(), "from_byte": change.from_byte, "same_first": change.same_first},
        )  # fmt: skip
    return found


def _class_figures(compared: Comparison) -> list[Figure]:
    """What was compared in each class of segments, and the share of each field that agrees."""
    figures: list[Figure] = []
    for label, part in compared.classes.items():
        arrived = part.arrived > 0
        figures += [
            Figure(f"{label}_segments", part.arrived, arrived),
            Figure(f"{label}_with_counterpart", part.with_candidate, arrived),
            Figure(f"{label}_hops", part.hops, arrived & (part.with_candidate > 0)),
        ]
        figures += [
            Figure(_agreement_name(label, name), rounded(agreement.agreeing, 4), arrived & agreement.is_compared)
            for name, agreement in part.fields.items()
        ]
    return figures


def _missed_figures(compared: Comparison) -> list[Figure]:
    """Acknowledgements of each direction that arrived, and that the emitter's capture missed by its host's IP IDs."""
    counts = compared.counts.missed_acknowledgements.astype(np.int64)
    return [Figure(f"{way.name.lower()}_acks_missed", counts[way], counts[way] > 0) for way in DIRECTIONS]


@cache
def _agreement_name(label: str, field: str) -> str:
    return f"{label}_{field.replace('-', '_')}_agreement"


#: Codes of what was found of a connection, and the finding and its wording.
(
    _FEW, _CHANGED, _ACKS_AHEAD, _ACKS_NOBODY_SENT, _PARTLY, _UNSEEN_AHEAD, _SAME_PACKETS, _SAME_DATA, _OTHER_PACKETS,
    _OTHER_ACKS, _TOO_ALIKE,
) = range(11)  # fmt: skip
_ACCUSING = (_OTHER_PACKETS, _OTHER_ACKS)
_FORMS: Mapping[int, tuple[IdentityFinding, Wording]] = {
    _FEW: (IdentityFinding.TOO_FEW_SEGMENTS, wording.too_few),
    _ACKS_AHEAD: (IdentityFinding.ACKS_AHEAD, wording.acks_ahead),
    _ACKS_NOBODY_SENT: (IdentityFinding.ACKS_NOBODY_SENT, wording.acks_nobody_sent),
    _PARTLY: (IdentityFinding.PARTLY_SAME, wording.partly_same),
    _UNSEEN_AHEAD: (IdentityFinding.OTHER_ACKNOWLEDGEMENTS, wording.acks_ahead),
    _SAME_PACKETS: (IdentityFinding.SAME_PACKETS, wording.same_segments),
    _SAME_DATA: (IdentityFinding.SAME_DATA, wording.same_segments),
    _OTHER_PACKETS: (IdentityFinding.OTHER_PACKETS, wording.other_segments),
    _OTHER_ACKS: (IdentityFinding.OTHER_ACKNOWLEDGEMENTS, wording.other_segments),
    _TOO_ALIKE: (IdentityFinding.TOO_ALIKE, wording.too_alike),
}
