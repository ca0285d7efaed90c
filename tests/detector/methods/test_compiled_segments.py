"""Both captures' segments, read, laid over each other and compared, against their NumPy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.methods.identity.agreement import compare_acknowledgements, compare_data
from detector.methods.identity.dropped_acks import PlaceCounts
from detector.methods.identity.segment_counts import SegmentCounts, segment_counts
from detector.methods.identity.segments import COPIES, FEWEST_JOINED, MAJORITY
from pepscope import _core
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, PacketColumns, TcpFlag
from tests.detector.methods.generated_segments import (
    alone,
    arrived,
    changes,
    emitted_data,
    packets_of,
    seeds,
    together,
)
from tests.detector.methods.reference_comparison import Compared, aligned_segments, compare_direction
from tests.detector.methods.reference_segments import Segments, VantageColumns, read_segments

LOST_SHARE = 0.1
LARGEST_PAYLOAD = 1460

offsets = st.sampled_from([0, 0, 7, -1448, 1 << 40])
moves = st.tuples(offsets, offsets)
reset_times = st.none() | st.integers(0, 200)
either = st.booleans()


def connection(random: np.random.Generator, up: int, down: int) -> tuple[dict[Direction, Segments], ...]:
    """The data, and the pure acknowledgements of the other direction's data, that either host emits."""
    data = {way: emitted_data(random, count) for way, count in zip(Direction, (up, down), strict=True)}
    pure = {}
    for way in Direction:
        ends = data[way.reverse].end
        drawn = emitted_data(random, int(len(ends) * random.random()))
        chosen = np.sort(ends[random.integers(0, max(1, len(ends)), len(drawn))]) if len(ends) else drawn.start
        nothing = np.zeros(len(drawn), np.int64)
        pure[way] = drawn.replaced(start=nothing, length=nothing, acknowledgement=chosen)
    return data, pure


def moved(segments: Segments, own: int, other: int) -> Segments:
    return segments.replaced(start=segments.start + own, acknowledgement=segments.acknowledgement + other)


def captured(random: np.random.Generator, flows: dict[Direction, Segments]) -> PacketColumns:
    """Packets of both flows between each other; a few bear SYN or RST, or no acknowledgement."""
    packets = packets_of(flows)
    count = len(packets)
    order = np.argsort(np.arange(count) % max(1, count // 2) + random.random(count), kind="stable")
    columns = {name: getattr(packets, name)[order] for name in PacketColumns.COLUMNS}
    odd = random.random(count)
    columns["flags"] = columns["flags"] | np.where(odd < 0.03, TcpFlag.SYN, 0).astype(np.uint16)
    columns["flags"] |= np.where(odd > 0.98, TcpFlag.RST, 0).astype(np.uint16)
    unacknowledged = (odd > 0.1) & (odd < 0.12)
    columns["acknowledgement_offset"] = np.where(unacknowledged, NO_ACKNOWLEDGEMENT, columns["acknowledgement_offset"])
    columns["time_ns"] = np.arange(count, dtype=np.int64)
    return PacketColumns(**columns)


def both_captures(
    random: np.random.Generator, counts: tuple[int, int], how: set[str], shifts: tuple[int, int]
) -> tuple[PacketColumns, PacketColumns]:
    """Packets at the client and at the server; `shifts` lead from the server's offsets to the client's."""
    data, pure = connection(random, *counts)
    near, far = {}, {}
    for way in Direction:
        own, other = shifts[way], shifts[way.reverse]
        sent = together(data[way], pure[way])
        came = together(arrived(random, data[way], how), arrived(random, pure[way], how))
        here, there = (sent, came) if way is Direction.UP else (came, sent)
        near[way], far[way] = here, moved(there, -own, -other)
    return captured(random, near), captured(random, far)


def counted(
    client: VantageColumns, server: VantageColumns, sampled_every: int = 1, fewest_sampled: int = 0, **known: Any
) -> _core.PairSegments | None:
    return _core.align_segments(
        client, server, sampled_every=sampled_every, fewest_sampled=fewest_sampled, fewest_joined=FEWEST_JOINED,
        copies=COPIES, majority=MAJORITY, **known,
    )  # fmt: skip


def shown_ends(packets: PacketColumns) -> tuple[bool, bool]:
    """Whether a capture shows a SYN, and a reset or the FINs of both ends."""
    syn, fin, reset = (packets.flags & flag.value != 0 for flag in (TcpFlag.SYN, TcpFlag.FIN, TcpFlag.RST))
    closed = all((fin & (packets.direction == way.value)).any() for way in Direction)
    return bool(syn[:64].any()), bool(reset.any() or closed)


def compared(counts: SegmentCounts, way: Direction) -> Compared:
    acknowledgements = compare_acknowledgements(counts.acknowledgements, counts.positions, LOST_SHARE)
    of_data = compare_acknowledgements(counts.of_data, counts.of_data_positions, LOST_SHARE)
    return Compared(
        alone(compare_data(counts.data, LARGEST_PAYLOAD, LOST_SHARE), way, 0),
        alone(acknowledgements, way, 0),
        alone(of_data, way, 0),
        counts.emitted_acknowledgements[way, 0],
        PlaceCounts(
            counts.acknowledged_at_both[way, 0], counts.acknowledged_where_emitted[way, 0],
            counts.acknowledged_where_arrived[way, 0], counts.acknowledged_at_neither[way, 0],
        ),
        counts.carried_places[way, 0],
        counts.shown[way, 0],
        counts.uncovered[way, 0],
        counts.uncovered_reverse[way, 0],
    )  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(
    seeds, st.tuples(st.integers(0, 60), st.integers(0, 60)), changes, moves, st.tuples(either, either), either,
    st.tuples(reset_times, reset_times), st.sampled_from([1, 2, 3, 8]), st.sampled_from([0, 20]),
)  # fmt: skip
def test_pairs_are_laid_over_each_other_and_compared_as_in_the_reference(
    seed, counts, how, shifts, supported, is_known, resets, every, fewest
):
    random = np.random.default_rng(seed)
    client, server = both_captures(random, counts, how, shifts)
    near, far = (client, (0, 3), resets), (server, (1, 0), resets[::-1])
    known = {"shifts": shifts if is_known else (0, 0), "supported": supported}
    found = counted(near, far, every, fewest, **known)
    sides = aligned_segments(near, far, known["shifts"], supported, every, fewest)
    assert (found is None) == (sides is None)
    if found is None or sides is None:
        return
    is_reset = resets != (None, None)  # of one connection, so in both captures
    for way in Direction:
        ends = shown_ends((client, server)[way])
        wanted = compare_direction(
            sides, way, LARGEST_PAYLOAD, LOST_SHARE, is_whole=every == 1, is_reset=is_reset, shown_ends=ends,
            both_ways=len(set((client, server)[way].direction.tolist())) == len(Direction),
        )  # fmt: skip
        assert compared(segment_counts([found], 0), way) == wanted


@pytest.mark.parametrize("supported", [(False, False), (True, True)])
def test_streams_are_found_wherever_they_lie(supported):
    """Or the comparison above would compare nothing."""
    random = np.random.default_rng(3)
    client, server = both_captures(random, (60, 60), set(), (7, 1 << 40))
    found = counted((client, (0, 0), (None, None)), (server, (0, 0), (None, None)), shifts=(0, 0), supported=supported)
    assert found is not None
    for way in Direction:
        counts = segment_counts([found], 0)
        assert counts.data.partners[way, 0] > 30
        assert counts.positions.hits[way, 0] > 0


def test_half_of_the_regions_are_sampled():
    random = np.random.default_rng(5)
    long = emitted_data(random, 4000)
    whole = packets_of({Direction.UP: long})
    sampled = read_segments((whole, (0, 0), (None, None)), dict.fromkeys(Direction, 0), 2)[Direction.UP]
    assert 0.2 < len(sampled) / len(long) < 0.8
    columns = (whole, (0, 0), (None, None))
    found = counted(columns, columns, 2, shifts=(0, 0), supported=(True, True))
    assert found is not None
    counts = segment_counts([found], 0)
    assert counts.data.arrived[Direction.UP, 0] == counts.shown[Direction.UP, 0] == len(sampled)


def test_other_directions_are_refused():
    whole = packets_of({Direction.UP: emitted_data(np.random.default_rng(1), 10)})
    known: Any = {"shifts": (0, 0), "supported": (True, True)}
    found = counted((whole, (0, 0), (None, None)), (whole, (0, 0), (None, None)), **known)
    assert found is not None
    with pytest.raises(ValueError, match="`direction` must be 0 or 1, got 2"):
        found.cut_data(2, 2, 1)
