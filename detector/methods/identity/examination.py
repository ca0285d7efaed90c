"""What the comparison of the two captures' segments means for the connection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from detector.logistic import logistic
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
    compare_acknowledgements,
    compare_data,
    total_nats,
)
from detector.methods.identity.dropped_acks import PlaceCounts, one_receiver_nats, probable_loss
from detector.methods.identity.field_weights import field_numbers
from detector.methods.identity.findings import NAME, IdentityFinding
from detector.methods.identity.midway import change_of_maker
from detector.methods.identity.normaliser import weigh
from detector.methods.identity.rewriters import name_rewriters
from detector.methods.identity.segments import align_segments, thinning_for
from detector.pair import Pair, Vantage
from pepscope import _core
from pepscope.captures.connections import MissingPackets
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, Number

#: Natural-log likelihood ratio that decides: a thousand to one.
DECISIVE_NATS = math.log(1000.0)
#: Below this share of equal IP IDs in every class of segments another host gave them.
SHARED_IP_IDS = 0.5
#: Fewer arrived segments than this in the common span are not compared at all: one agrees or differs by chance in what
#: is counted from it (offsets, shifts), and from two on the likelihood ratio itself decides whether they are enough.
FEWEST_SEGMENTS = 2


@dataclass(frozen=True, slots=True)
class DirectionComparison:
    """One packet direction: data segments and pure acknowledgements, arrived against emitted."""

    data: ClassComparison
    acknowledgements: ClassComparison
    emitted_acknowledgements: int
    places: PlaceCounts
    counts: _core.DirectionCounts
    probably_lost: float  # share of acknowledgements that the emitter's capture may have missed

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
    comparisons = {d: _compare_direction(client, server, d, segments.compare(d)) for d in Direction}
    arrived = sum(c.data.arrived + c.acknowledgements.arrived for c in comparisons.values())
    if arrived < FEWEST_SEGMENTS:
        return IdentityFinding.TOO_FEW_SEGMENTS.undecided(
            NAME,
            f"The captures share {arrived} comparable segments of this connection; {FEWEST_SEGMENTS} are needed.",
            _field_numbers(comparisons),
        )
    return _judge(pair, client, server, comparisons, segments)


def _compare_direction(
    client: Vantage, server: Vantage, direction: Direction, counts: _core.DirectionCounts
) -> DirectionComparison:
    """What the counts over the packets of one direction mean, by what the captures are known to have missed."""
    emitter, arriver = (client, server) if direction is Direction.UP else (server, client)
    lost_data = max(_missed_share(emitter), min(0.5, counts.uncovered))
    lost = probable_loss(max(lost_data, min(0.5, counts.uncovered_reverse)), counts.shown)
    is_whole = emitter.flow(direction).missing_packets is MissingPackets.NONE
    return DirectionComparison(
        compare_data(counts.data, _largest_payload(emitter, arriver, direction), lost_data),
        compare_acknowledgements(counts.acknowledgements, counts.positions, lost),
        counts.emitted_acknowledgements,
        PlaceCounts(*counts.places) if is_whole else PlaceCounts(0, 0, 0, 0),
        counts,
        lost,
    )


def _missed_share(vantage: Vantage) -> float:
    """Share of stream bytes that this capture is known to have missed, at most a half."""
    flows = (vantage.connection.up, vantage.connection.down)
    shares = [f.missed_bytes / f.stream_bytes for f in flows if f.stream_bytes > 0]
    return min(0.5, max(shares, default=0.0))


def _lost_share(vantage: Vantage) -> float:
    """Share of all bytes of both streams that this capture is known to have missed."""
    flows = (vantage.connection.up, vantage.connection.down)
    return min(0.5, sum(f.missed_bytes for f in flows) / max(1, sum(f.stream_bytes for f in flows)))


def _largest_payload(emitter: Vantage, arriver: Vantage, direction: Direction) -> int:
    """Payload that a wire segment can hold at most; more is an offload's super-packet."""
    announced = [v.flow(direction.reverse).maximum_segment_size for v in (emitter, arriver)]
    known = [size for size in announced if size]
    return min(known) if known else 1460


def _judge(
    pair: Pair,
    client: Vantage,
    server: Vantage,
    comparisons: Mapping[Direction, DirectionComparison],
    segments: _core.PairSegments,
) -> Evidence:
    data = total_nats(c.data for c in comparisons.values())
    acks = total_nats(c.acknowledgements for c in comparisons.values())
    numbers = _numbers(client, comparisons, data, acks)
    syn_numbers = _syn_numbers_equal(client, server)
    total = weigh(
        [part for _, part in _classes(comparisons)],
        numbers_kept=syn_numbers.count(True),
        renumbered=syn_numbers == [False, False],
        other_ip_ids=_has_other_ip_ids(comparisons),
        one_receiver=lambda: one_receiver_nats(
            {direction: both.places for direction, both in comparisons.items()},
            *(probable_loss(_missed_share(vantage), len(vantage.packets)) for vantage in (client, server)),
        ),
    )
    change = _change_of_maker(client, server, segments, comparisons)
    if change is not None:
        return change
    arrived = sum(c.data.arrived + c.acknowledgements.arrived for c in comparisons.values())
    hard_data = total_nats((c.data for c in comparisons.values()), HARD_FIELDS)
    hard_acks = total_nats((c.acknowledgements for c in comparisons.values()), HARD_FIELDS)
    lost = {Direction.UP: _lost_share(client), Direction.DOWN: _lost_share(server)}
    most_lost = max(lost.values())
    others = max(other_maker_nats(both.acknowledgements, most_lost, both.data) for both in comparisons.values())
    numbers["other_acknowledger_nats"] = round(others, 2)
    if min(hard_data, data) >= DECISIVE_NATS and (acks <= -DECISIVE_NATS or others > 0):
        return IdentityFinding.ACKS_NOBODY_SENT.evidence(
            NAME, logistic(abs(data)),
            "Data segments arrive as the far end made them, but acknowledgements arrive that the far end never sent: a "
            "middlebox makes or rewrites ACKs.", numbers,
        )  # fmt: skip
    if data <= -DECISIVE_NATS and min(hard_acks, acks) >= DECISIVE_NATS:
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
            f"The segments that arrive are the segments that left: {_field_words(comparisons, agreeing=True)} agree "
            f"over {arrived} segments{but}.",
            {**numbers, "rewriters": ", ".join(r.key for r in rewriters)}, tuple(r.caveat for r in rewriters),
        )  # fmt: skip
    if total <= -DECISIVE_NATS:
        finding = IdentityFinding.OTHER_PACKETS if data < 0 else IdentityFinding.OTHER_ACKNOWLEDGEMENTS
        return finding.evidence(
            NAME, logistic(abs(total)) * pair.pairing_confidence,
            f"{'The same bytes' if _same_bytes(pair) else 'Bytes'} arrive in segments that the far end never sent: of "
            f"{arrived} segments, {_field_words(comparisons, agreeing=False)} differ.", numbers,
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
) -> Evidence | None:
    """The finding that a middlebox splits a part of the connection; None where one stack made all the data."""
    for direction, both in comparisons.items():
        lost = _lost_share(client if direction is Direction.UP else server)
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
    numbers = [[v.flow(direction).initial_sequence_number for v in (client, server)] for direction in Direction]
    return [None if None in pair else pair[0] == pair[1] for pair in numbers]


def _has_other_ip_ids(comparisons: Mapping[Direction, DirectionComparison]) -> bool:
    shares = [part.fields["ip-id"].agreeing for _, part in _classes(comparisons) if "ip-id" in part.fields]
    return bool(shares) and max(shares) < SHARED_IP_IDS


def _classes(comparisons: Mapping[Direction, DirectionComparison]) -> list[tuple[str, ClassComparison]]:
    return [
        (f"{direction.name.lower()}_{kind}", part)
        for direction, both in comparisons.items()
        for kind, part in (("data", both.data), ("acks", both.acknowledgements))
    ]


def _field_words(comparisons: Mapping[Direction, DirectionComparison], *, agreeing: bool) -> str:
    """The fields that support the conclusion, those of largest weight first, with the share that agrees."""
    supporting: dict[str, list[tuple[float, int, float]]] = {}
    for _, part in _classes(comparisons):
        for name, agreement in part.fields.items():
            if agreement.nats and (agreement.nats > 0) == agreeing:
                supporting.setdefault(name, []).append((abs(agreement.nats), agreement.compared, agreement.agreeing))
    ranked = sorted(supporting.items(), key=lambda item: -sum(part[0] for part in item[1]))[:3]
    words = []
    for name, parts in ranked:
        share = sum(p[1] * p[2] for p in parts) / sum(p[1] for p in parts)
        words.append(f"{name.replace('-', ' ')} ({share:.0%} equal)")
    return ", ".join(words)


def _numbers(
    client: Vantage, comparisons: Mapping[Direction, DirectionComparison], data: float, acks: float
) -> dict[str, Number]:
    numbers: dict[str, Number] = {"data_nats": round(data, 2), "acknowledgement_nats": round(acks, 2)}
    for label, part in _classes(comparisons):
        if part.arrived == 0:
            continue
        numbers[f"{label}_segments"] = part.arrived
        numbers[f"{label}_with_counterpart"] = part.with_candidate
        if part.hops is not None:
            numbers[f"{label}_hops"] = part.hops
        for name, agreement in part.fields.items():
            numbers[f"{label}_{name.replace('-', '_')}_agreement"] = round(agreement.agreeing, 4)
    numbers |= _field_numbers(comparisons)
    numbers["sampled_every"] = thinning_for(len(client.packets))
    return numbers


def _field_numbers(comparisons: Mapping[Direction, DirectionComparison]) -> dict[str, Number]:
    parts = comparisons.values()
    return field_numbers((part.data for part in parts), (part.acknowledgements for part in parts))
