"""What the counts over the segments of aligned connections mean, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from detector.methods.identity.agreement import ClassComparison, compare_acknowledgements, compare_data
from detector.methods.identity.dropped_acks import PlaceCounts, probable_loss
from detector.methods.identity.segment_counts import SegmentCounts, segment_counts
from detector.methods.identity.segments import MOST_SKIPPED_IP_IDS
from detector.methods.identity.shifted_stamps import with_one_shift
from detector.streams.flow_figures import FlowFigures
from detector.streams.loaded import packets_of
from detector.streams.sides import Sides
from detector.streams.summaries import COMPLETE, Summaries
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.verdicts import FloatArray


class Aligned(NamedTuple):
    """Connections whose segments in both captures lie over each other."""

    sides: Sides
    segments: Sequence[_core.PairSegments]

    @property
    def packets(self) -> tuple[Int64Array, Int64Array]:
        """Packets that the captures at the clients' and at the servers' sides hold."""
        client, server = (
            np.array([*map(len, packets_of(side))], np.int64) for side in (self.sides.clients, self.sides.servers)
        )
        return client, server


class Comparison(Struct, frozen=True):
    """What fields say of aligned connections: rows of arrays are packet directions, columns connections."""

    aligned: Aligned
    summaries: tuple[Summaries, Summaries]  # at the clients' sides, and at the servers'
    counts: SegmentCounts
    client: FlowFigures
    server: FlowFigures
    data: ClassComparison
    acknowledgements: ClassComparison
    of_data: ClassComparison  # those of the pure acknowledgements that acknowledge data within a stream
    lacks_packets: BoolArray  # either capture lacks packets of a direction
    is_whole: BoolArray  # the emitter's capture lacks none
    missed: FloatArray  # share of a stream that a capture is known to have missed: the client's, the server's
    lost: FloatArray  # share of both streams together

    def __len__(self) -> int:
        return len(self.aligned.segments)

    @property
    def arrived(self) -> Int64Array:
        """Segments that arrived within what both captures cover."""
        return np.asarray((self.data.arrived + self.acknowledgements.arrived).sum(axis=0))

    @property
    def classes(self) -> dict[str, ClassComparison]:
        """The four classes of segments by their names among an evidence's numbers."""
        return {
            f"{direction.name.lower()}_{name}": part.at(direction)
            for direction in DIRECTIONS
            for name, part in (("data", self.data), ("acks", self.acknowledgements))
        }

    def places(self, number: int) -> dict[Direction, PlaceCounts]:
        """Where acknowledgements of a connection stand; none where the emitter's capture lacks packets."""
        counts = self.counts
        return {
            direction: PlaceCounts(
                int(counts.acknowledged_at_both[direction, number]),
                int(counts.acknowledged_where_emitted[direction, number]),
                int(counts.acknowledged_where_arrived[direction, number]),
                int(counts.acknowledged_at_neither[direction, number]),
            )
            if self.is_whole[direction, number]
            else PlaceCounts(0, 0, 0, 0)
            for direction in DIRECTIONS
        }


def compare(aligned: Aligned) -> Comparison:
    """What the counts over the packets of each direction mean, by what the captures are known to have missed."""
    names = (
        "missed_bytes", "stream_bytes", "initial_sequence_number", "maximum_segment_size", "sack_permitted",
        "options_captured", "timestamps",
    )  # fmt: skip
    near, far = aligned.sides.client, aligned.sides.server
    client, server = FlowFigures(near, *names), FlowFigures(far, *names)
    lacking = np.array(
        [[side.of_flow(way, "missing_packets") != COMPLETE for way in DIRECTIONS] for side in (near, far)]
    )
    missed = np.array([_missed_share(client), _missed_share(server)])
    counts = segment_counts(aligned.segments, MOST_SKIPPED_IP_IDS)
    lost_data = np.maximum(missed, np.minimum(0.5, counts.uncovered))
    probably = probable_loss(np.maximum(lost_data, np.minimum(0.5, counts.uncovered_reverse)), counts.shown)
    # Of an emitter's capture that holds a timestamp in a SYN no tool took timestamps away.
    may_add = np.array([(flows["timestamps"] > 0).any(axis=0) for flows in (client, server)])
    data, acknowledgements, of_data = with_one_shift(
        (
            compare_data(counts.data, largest_payload(client, server), lost_data, may_add),
            compare_acknowledgements(counts.acknowledgements, counts.positions, probably, may_add),
            compare_acknowledgements(counts.of_data, counts.of_data_positions, probably, may_add),
        )
    )
    return Comparison(
        aligned, (near, far), counts, client, server, data, acknowledgements, of_data,
        np.asarray(lacking.any(axis=0)), ~np.array([lacking[0, 0], lacking[1, 1]]), missed,
        np.array([_lost_share(client), _lost_share(server)]),
    )  # fmt: skip


def _missed_share(flows: FlowFigures) -> FloatArray:
    """Share of stream bytes that this capture is known to have missed, at most a half."""
    of_streams = flows["missed_bytes"] / np.maximum(flows["stream_bytes"], 1)
    return np.asarray(np.minimum(0.5, np.where(flows["stream_bytes"] > 0, of_streams, 0.0).max(axis=0)))


def _lost_share(flows: FlowFigures) -> FloatArray:
    """Share of all bytes of both streams that this capture is known to have missed."""
    missed, streams = flows["missed_bytes"].sum(axis=0), flows["stream_bytes"].sum(axis=0)
    return np.asarray(np.minimum(0.5, missed / np.maximum(1, streams)))


def largest_payload(client: FlowFigures, server: FlowFigures) -> FloatArray:
    """Payload that a wire segment can hold at most, by the direction of data; more is an offload's super-packet."""
    # A host announces what the other may send it.
    sizes = np.nan_to_num(np.array([flows["maximum_segment_size"][::-1] for flows in (client, server)]))
    most, least = sizes.max(axis=0), sizes.min(axis=0)
    return np.where(least > 0, least, np.where(most > 0, most, 1460.0))
