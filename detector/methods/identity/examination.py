"""What the comparison of the two captures' segments means for the connection."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from detector.method import Observation
from detector.methods.identity.acknowledger import (
    OWN_ACKNOWLEDGEMENT_NATS,
    other_maker_nats,
    own_acknowledgement_nats,
)
from detector.methods.identity.agreement import (
    HARD_FIELDS,
    SAME,
    ClassComparison,
    FieldSums,
    compare_acknowledgements,
    compare_data,
    sum_fields,
    total_nats,
)
from detector.methods.identity.dropped_acks import PlaceCounts, one_receiver_nats, probable_loss
from detector.methods.identity.field_weights import field_numbers
from detector.methods.identity.findings import NAME, IdentityFinding
from detector.methods.identity.midway import change_of_maker
from detector.methods.identity.normaliser import weigh
from detector.methods.identity.rewriters import name_rewriters
from detector.methods.identity.segments import MOST_SKIPPED_IP_IDS, align_segments, thinning_for
from detector.pair import Pair, Vantage
from pepscope import _core
from pepscope.captures.connections import FlowSummary, MissingPackets
from pepscope.captures.packets import Direction
from pepscope.results.hypotheses import logistic
from pepscope.results.verdicts import Evidence, Number

#: Natural-log likelihood ratio that decides: a thousand to one.
DECISIVE_NATS = math.log(1000.0)
#: Below this share of equal IP IDs in every class of segments another host gave them.
SHARED_IP_IDS = 0.5
#: Fewer arrived segments than this in the common span are not compared at all: one agrees or differs by chance in what
#: is counted from it (offsets, shifts), and from two on the likelihood ratio itself decides whether they are enough.
FEWEST_SEGMENTS = 2


class DirectionComparison(NamedTuple):
    """One packet direction: data segments and pure acknowledgements, arrived against emitted."""

    data: ClassComparison
    acknowledgements: ClassComparison
    counts: _core.DirectionCounts
    is_whole: bool  # the emitter's capture lacks no packets of this direction
    probably_lost: float  # share of acknowledgements that the emitter's capture may have missed

    def places(self) -> PlaceCounts:
        """Where acknowledgements stand; none where the emitter's capture lacks packets."""
        return PlaceCounts(*self.counts.places) if self.is_whole else PlaceCounts(0, 0, 0, 0)

    def of_data(self) -> ClassComparison:
        """Those of the pure acknowledgements that acknowledge data within a stream."""
        return compare_acknowledgements(self.counts.of_data, self.counts.of_data_positions, self.probably_lost)


def examine(observation: Observation) -> Evidence:
    """Compare the segments of both directions at both vantages."""
    pair = observation.pair
    client, server = pair.client_side, pair.server_side
    if client is None or server is None:
        return IdentityFinding.NEEDS_SECOND_CAPTURE.undecided(
            NAME, "Only one capture holds this connection: no segments to compare."
        )
    segments = align_segments(pair, client, server)
    if segments is None:
        return IdentityFinding.NOT_ALIGNED.undecided(
            NAME,
            "The captures' byte offsets cannot be aligned (no SYN, no payload and no packet in common): capture from "
            "the start of the connection, or with a larger snap length.",
        )
    comparisons = {
        direction: _compare_direction(emitter, arriver, direction, segments.compare(direction, MOST_SKIPPED_IP_IDS))
        for direction, emitter, arriver in ((Direction.UP, client, server), (Direction.DOWN, server, client))
    }
    arrived = sum([part.arrived for part in _classes(comparisons).values()])
    if arrived < FEWEST_SEGMENTS:
        return IdentityFinding.TOO_FEW_SEGMENTS.undecided(
            NAME,
            f"The captures share {arrived} comparable segments of this connection; {FEWEST_SEGMENTS} are needed.",
            field_numbers(_data_sums(comparisons), _acknowledgement_sums(comparisons)),
        )
    return _judge(pair, client, server, comparisons, segments, arrived)


def _compare_direction(
    emitter: Vantage, arriver: Vantage, direction: Direction, counts: _core.DirectionCounts
) -> DirectionComparison:
    """What the counts over the packets of one direction mean, by what the captures are known to have missed."""
    lost_data = max(_missed_share(emitter), min(0.5, counts.uncovered))
    lost = probable_loss(max(lost_data, min(0.5, counts.uncovered_reverse)), counts.shown)
    return DirectionComparison(
        compare_data(counts.data, _largest_payload(emitter, arriver, direction), lost_data),
        compare_acknowledgements(counts.acknowledgements, counts.positions, lost),
        counts,
        emitter.flow(direction).missing_packets is MissingPackets.NONE,
        lost,
    )


def _missed_share(vantage: Vantage) -> float:
    """Share of stream bytes that this capture is known to have missed, at most a half."""
    up, down = vantage.connection.up, vantage.connection.down
    return min(0.5, max(_missed_of_stream(up), _missed_of_stream(down)))


def _missed_of_stream(flow: FlowSummary) -> float:
    return flow.missed_bytes / flow.stream_bytes if flow.stream_bytes > 0 else 0.0


def _lost_share(vantage: Vantage) -> float:
    """Share of all bytes of both streams that this capture is known to have missed."""
    up, down = vantage.connection.up, vantage.connection.down
    return min(0.5, (up.missed_bytes + down.missed_bytes) / max(1, up.stream_bytes + down.stream_bytes))


def _largest_payload(emitter: Vantage, arriver: Vantage, direction: Direction) -> int:
    """Payload that a wire segment can hold at most; more is an offload's super-packet."""
    reverse = direction.reverse
    first, second = emitter.flow(reverse).maximum_segment_size, arriver.flow(reverse).maximum_segment_size
    return min(first, second) if first and second else first or second or 1460


def _judge(
    pair: Pair,
    client: Vantage,
    server: Vantage,
    comparisons: Mapping[Direction, DirectionComparison],
    segments: _core.PairSegments,
    arrived: int,
) -> Evidence:
    classes = _classes(comparisons)
    data_sums, acknowledgement_sums = _data_sums(comparisons), _acknowledgement_sums(comparisons)
    data, acks = total_nats(data_sums), total_nats(acknowledgement_sums)
    syn_numbers = _syn_numbers_equal(client, server)
    total = weigh(
        sum_fields(classes.values()),
        numbers_kept=syn_numbers.count(True),
        renumbered=syn_numbers == [False, False],
        other_ip_ids=_has_other_ip_ids(classes.values()),
        one_receiver=lambda: one_receiver_nats(
            {direction: both.places() for direction, both in comparisons.items()},
            *(probable_loss(_missed_share(vantage), len(vantage.packets)) for vantage in (client, server)),
        ),
    )
    lost = {Direction.UP: _lost_share(client), Direction.DOWN: _lost_share(server)}
    change = _change_of_maker(client, server, segments, comparisons, lost)
    if change is not None:
        return change
    most_lost = max(lost.values())
    others = max([other_maker_nats(both.acknowledgements, most_lost, both.data) for both in comparisons.values()])
    numbers = {
        "data_nats": round(data, 2),
        "acknowledgement_nats": round(acks, 2),
        **_class_numbers(classes),
        **field_numbers(data_sums, acknowledgement_sums),
        "sampled_every": thinning_for(len(client.packets)),
        "other_acknowledger_nats": round(others, 2),
        **_missed_numbers(comparisons),
    }
    acks_alone_differ = data >= DECISIVE_NATS and (acks <= -DECISIVE_NATS or others > 0)
    if acks_alone_differ and total_nats(data_sums, HARD_FIELDS) >= DECISIVE_NATS:
        return IdentityFinding.ACKS_NOBODY_SENT.evidence(
            NAME, logistic(abs(data)),
            "Data segments arrive as the far end made them, but acknowledgements arrive that the far end never sent: a "
            "middlebox makes or rewrites ACKs.", numbers,
        )  # fmt: skip
    data_alone_differ = data <= -DECISIVE_NATS and acks >= DECISIVE_NATS
    if data_alone_differ and total_nats(acknowledgement_sums, HARD_FIELDS) >= DECISIVE_NATS:
        return IdentityFinding.PARTLY_SAME.undecided(
            NAME,
            "The far end made the acknowledgements, but not the data segments: a middlebox may resegment the data, or "
            "the captures do not belong together.", numbers,
        )  # fmt: skip
    if total >= DECISIVE_NATS:
        rewriters = name_rewriters(client, server, comparisons)
        but = f" (on the way: {', '.join(r.key for r in rewriters)})" if rewriters else ""
        is_own = own_acknowledgement_nats(pair, comparisons, lost) >= OWN_ACKNOWLEDGEMENT_NATS
        finding = IdentityFinding.SAME_PACKETS if is_own else IdentityFinding.SAME_DATA
        return finding.evidence(
            NAME, logistic(abs(total)),
            f"The segments that arrive are the segments that left: {_field_words(classes.values(), agreeing=True)} "
            f"agree over {arrived} segments{but}.",
            {**numbers, "rewriters": ", ".join([r.key for r in rewriters])}, [r.caveat for r in rewriters],
        )  # fmt: skip
    if total <= -DECISIVE_NATS:
        finding = IdentityFinding.OTHER_PACKETS if data < 0 else IdentityFinding.OTHER_ACKNOWLEDGEMENTS
        return finding.evidence(
            NAME, logistic(abs(total)) * pair.pairing_confidence,
            f"{'The same bytes' if _same_bytes(pair) else 'Bytes'} arrive in segments that the far end never sent: of "
            f"{arrived} segments, {_field_words(classes.values(), agreeing=False)} differ.", numbers,
            () if pair.pairing_confidence >= 0.99 else ("The pairing of the two connections is not certain.",),
        )  # fmt: skip
    return IdentityFinding.TOO_ALIKE.undecided(
        NAME,
        f"{arrived} segments were compared, but they could be the same packets as well as a relay's own; TCP "
        "timestamps or a longer transfer would decide.",
        numbers,
    )


def _same_bytes(pair: Pair) -> bool:
    """Whether the payload agrees, as far as it was compared."""
    return all(alignment.compared == 0 or alignment.matched >= 0.5 for alignment in pair.alignment.values())


def _change_of_maker(
    client: Vantage,
    server: Vantage,
    segments: _core.PairSegments,
    comparisons: Mapping[Direction, DirectionComparison],
    lost_shares: Mapping[Direction, float],
) -> Evidence | None:
    """The finding that a middlebox splits a part of the connection; None where one stack made all the data."""
    for direction, both in comparisons.items():
        lost = lost_shares[direction]
        # Where the emitter's capture lacks segments their neighbours look alike but for their place.
        held = both.data.arrived > 0 and both.data.with_candidate >= SAME * (1 - lost) * both.data.arrived
        if not held or other_maker_nats(both.data, lost) <= 0:
            continue
        upward = direction is Direction.UP
        emitter, arriver = (client, server) if upward else (server, client)
        largest = _largest_payload(emitter, arriver, direction)
        change = change_of_maker(segments, direction, largest, DECISIVE_NATS)
        if change is None:
            continue
        unchanged, other = "as they left", "as another stack makes them"
        first, then = (unchanged, other) if change.same_first else (other, unchanged)
        return IdentityFinding.MAKER_CHANGES.evidence(
            NAME, logistic(abs(change.nats)),
            f"Up to byte {change.from_byte} of the {direction.name.lower()} stream segments arrive {first}, from there "
            f"on {then}: a middlebox splits a part of the connection.",
            {"direction": direction.name.lower(), "from_byte": change.from_byte, "same_first": change.same_first},
        )  # fmt: skip
    return None


def _syn_numbers_equal(client: Vantage, server: Vantage) -> list[bool | None]:
    """For each direction whether its SYN left and arrived with one sequence number; None where a capture lacks it."""
    near, far = client.connection, server.connection
    return [_is_number_kept(near.up, far.up), _is_number_kept(near.down, far.down)]


def _is_number_kept(at_client: FlowSummary, at_server: FlowSummary) -> bool | None:
    first, second = at_client.initial_sequence_number, at_server.initial_sequence_number
    return None if first is None or second is None else first == second


def _has_other_ip_ids(parts: Iterable[ClassComparison]) -> bool:
    shares = [part.fields["ip-id"].agreeing for part in parts if "ip-id" in part.fields]
    return bool(shares) and max(shares) < SHARED_IP_IDS


def _classes(comparisons: Mapping[Direction, DirectionComparison]) -> dict[str, ClassComparison]:
    """The four classes of segments by their names among an evidence's numbers."""
    up, down = comparisons[Direction.UP], comparisons[Direction.DOWN]
    return {
        "up_data": up.data,
        "up_acks": up.acknowledgements,
        "down_data": down.data,
        "down_acks": down.acknowledgements,
    }


def _data_sums(comparisons: Mapping[Direction, DirectionComparison]) -> FieldSums:
    return sum_fields([both.data for both in comparisons.values()])


def _acknowledgement_sums(comparisons: Mapping[Direction, DirectionComparison]) -> FieldSums:
    return sum_fields([both.acknowledgements for both in comparisons.values()])


def _field_words(parts: Iterable[ClassComparison], *, agreeing: bool) -> str:
    """The fields that support the conclusion, those of largest weight first, with the share that agrees."""
    weights: dict[str, float] = {}
    compared: dict[str, int] = {}
    equal: dict[str, float] = {}
    for part in parts:
        for name, agreement in part.fields.items():
            if agreement.nats and (agreement.nats > 0) == agreeing:
                weights[name] = weights.get(name, 0.0) + abs(agreement.nats)
                compared[name] = compared.get(name, 0) + agreement.compared
                equal[name] = equal.get(name, 0.0) + agreement.compared * agreement.agreeing
    ranked = sorted(weights, key=weights.__getitem__, reverse=True)[:3]
    return ", ".join([f"{name.replace('-', ' ')} ({equal[name] / compared[name]:.0%} equal)" for name in ranked])


def _class_numbers(classes: Mapping[str, ClassComparison]) -> dict[str, Number]:
    """What was compared in each class of segments, and the share of each field that agrees."""
    numbers: dict[str, Number] = {}
    for label, part in classes.items():
        if part.arrived == 0:
            continue
        numbers[f"{label}_segments"] = part.arrived
        numbers[f"{label}_with_counterpart"] = part.with_candidate
        if part.hops is not None:
            numbers[f"{label}_hops"] = part.hops
        for name, agreement in part.fields.items():
            numbers[_agreement_name(label, name)] = round(agreement.agreeing, 4)
    return numbers


def _missed_numbers(comparisons: Mapping[Direction, DirectionComparison]) -> dict[str, Number]:
    """Acknowledgements of each direction that arrived, and that the emitter's capture missed by its host's IP IDs."""
    missed = {direction: both.counts.missed_acknowledgements for direction, both in comparisons.items()}
    return {f"{direction.name.lower()}_acks_missed": count for direction, count in missed.items() if count}


@cache
def _agreement_name(label: str, field: str) -> str:
    return f"{label}_{field.replace('-', '_')}_agreement"
