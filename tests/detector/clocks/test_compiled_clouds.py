"""The compiled times of flows, their clouds and early acknowledgements against their NumPy references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.clocks.clouds import SAME_COPY_NS
from detector.streams.curves import NEVER
from pepscope import _core
from pepscope.captures.packets import Direction, PacketColumns
from tests.detector.clocks import reference_clouds, reference_early_acks
from tests.detector.streams.generated_connections import MILLISECOND_NS, captures, counts, events, seeds

COLUMNS = (
    "data_sent_ns", "data_arrived_ns", "ack_value", "ack_seen_ns", "ack_sent_ns", "arrival_ns", "own_ack",
    "round_trip_ns", "earliest_ack_ns",
)  # fmt: skip
ERROR_NS = 1e6
DRIFT_LIMIT = 5e-4

shifts = st.sampled_from([0, 5, -40_000])
limits = st.sampled_from([1, 7, 1 << 16])
Both = tuple[_core.FlowTimes, reference_clouds.FlowTimes]


def flows(seed: int, count: int, how: set[str], shift: int = 0, limit: int = 1 << 16) -> list[Both]:
    """Times of the flows of a generated connection, compiled and by the reference."""
    client, server = captures(seed, count, how, shift)
    began = bool(seed % 2)
    made = []
    for direction in Direction:
        ends: tuple[PacketColumns, PacketColumns] = (client, server) if direction is Direction.UP else (server, client)
        asked = (direction, *ends, shift if direction is Direction.DOWN else 0, began, not began, limit)
        (found,) = _core.flow_times(
            [direction], [ends[0]], [ends[1]], [asked[3]], [began], [not began], limit, SAME_COPY_NS
        )
        wanted = reference_clouds.flow_times(*asked)
        assert (found is None) == (wanted is None)
        if found is not None and wanted is not None:
            made.append((found, wanted))
    return made


def lines(random: np.random.Generator, flow: reference_clouds.FlowTimes, pieces: int) -> reference_early_acks.Lines:
    """A clock relation near the data's own."""
    x, y = reference_clouds.data_points(flow)
    if len(x) == 0:
        return [(0, 0, 0.0, 0.0)]
    offset = float(np.median(y)) + float(random.choice([0, 3e7, -3e7]))
    starts = sorted(int(start) for start in random.choice(x, pieces))
    return [(start, int(x[0]), offset + place * 1e8, 1e-4 * place) for place, start in enumerate(starts)]


@settings(deadline=None, max_examples=300)
@given(seeds, counts, events, shifts, limits)
def test_times_of_a_flow_are_those_of_the_reference(seed, count, how, shift, limit):
    for found, wanted in flows(seed, count, how, shift, limit):
        for name in COLUMNS:
            assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
        assert found.sender_missed == wanted.sender_missed
        assert found.receiver_missed == wanted.receiver_missed


@settings(deadline=None, max_examples=200)
@given(seeds, counts, events, st.booleans(), st.integers(0, 9), st.integers(0, 9), st.sampled_from([1, 5, 4096]))
def test_clouds_are_those_of_the_reference(seed, count, how, server_clock, lower_spared, upper_spared, bins):
    both = flows(seed, count, how)
    times, references = [found for found, _ in both], [wanted for _, wanted in both]
    found = _core.Constraints.of_flows(times, server_clock, lower_spared, upper_spared, bins)
    lower, upper, reference, base = reference_clouds.gathered(
        references, lower_spared, upper_spared, bins, server_clock=server_clock
    )
    assert (found.reference_ns, found.base_ns) == (reference, base)
    data_points = {
        direction: [reference_clouds.data_points(flow) for flow in references if flow.direction is direction]
        for direction in Direction
    }
    data_lower, data_upper = (
        reference_clouds.cloud_of(data_points[direction], reference, base, 1, bins, highest=direction is Direction.DOWN)
        for direction in (Direction.DOWN, Direction.UP)
    )
    for columns, cloud in ((found.lower, lower), (found.upper, upper)):
        assert [column.tolist() for column in columns] == [cloud.x_ns.tolist(), cloud.y_ns.tolist()]
    if not server_clock:
        of_connections, of_bounds = _core.clock_bounds([times], [(lower_spared, upper_spared)], bins, DRIFT_LIMIT, 41)
        bounds = of_connections[0]
        assert (bounds.lower[1].tolist(), bounds.upper[1].tolist()) == (lower.y_ns.tolist(), upper.y_ns.tolist())
        exact = found.separate(DRIFT_LIMIT)
        data = _core.Constraints(
            (data_lower.x_ns, data_lower.y_ns), (data_upper.x_ns, data_upper.y_ns), reference, base, 0, 0
        )
        wanted_lines = {
            "exact": exact,
            "data": data.separate(DRIFT_LIMIT),
            "most": found.separate_most(DRIFT_LIMIT, 41, exact),
        }
        assert {name: tuple(of_bounds[name][:, 0]) for name in wanted_lines} == wanted_lines
        for name in ("reference_ns", "base_ns", "lower_count", "upper_count"):
            assert of_bounds[name][0] == getattr(bounds, name)
        assert tuple(of_bounds["span_ns"][:, 0]) == (bounds.span_ns or (0.0, 0.0))
    x = np.concatenate([lower.x_ns, upper.x_ns])
    assert found.span_ns == ((x.min(), x.max()) if len(x) else None)
    low, high = found.unspared_bounds_ns()
    assert low == (np.sort(lower.y_ns)[-1 - lower_spared] if len(lower) > lower_spared else -np.inf)
    assert high == (np.sort(upper.y_ns)[upper_spared] if len(upper) > upper_spared else np.inf)


@settings(deadline=None, max_examples=200)
@given(seeds, counts, events, st.integers(1, 3), st.integers(0, 4), st.sampled_from([0, 7, -40 * MILLISECOND_NS]))
def test_early_acknowledgements_are_those_of_the_reference(seed, count, how, pieces, spared, theta_ns):
    random = np.random.default_rng(seed)
    for found, wanted in flows(seed, count, how):
        given = lines(random, wanted, pieces)
        asked, reference = ([found], [given], [spared], ERROR_NS), (wanted, given, spared, ERROR_NS)
        assert tuple(_core.early_acks(*asked)[:, 0].tolist()) == reference_early_acks.early_acks(*reference)
        parts = [part for part in reference_early_acks.early_own_acks(*reference) if part[1]]
        least = min(parts, key=lambda part: part[0] / part[1], default=(0, 0))
        assert tuple(_core.early_own_acks(*asked)[:, 0].tolist()) == least
        counts, margin_s = _core.published([found], [theta_ns], 1e-3)
        published = reference_early_acks.published(wanted, theta_ns, 1e-3) or (0, 0, np.inf)
        assert (*counts[:, 0].tolist(), margin_s[0]) == published


def test_the_numbers_of_a_flow_are_those_of_its_columns():
    found, wanted = flows(1, 200, {"lose", "repeat", "miss", "reorder"})[-1]
    known = wanted.round_trip_ns[wanted.round_trip_ns != NEVER]
    delays = wanted.data_arrived_ns - wanted.data_sent_ns
    both = (wanted.arrival_ns != NEVER) & (wanted.ack_sent_ns != NEVER)
    assert (found.data_count, found.ack_count) == (len(delays), len(wanted.ack_value))
    assert found.timed_ack_count == np.count_nonzero(wanted.earliest_ack_ns != NEVER)
    assert (found.first_delay_ns, found.least_delay_ns) == (delays[0], delays.min())
    assert (found.round_trip_count, found.least_round_trip_ns) == (len(known), known.min())
    below = _core.round_trips_below([found, found], [float(np.median(known)), 0.0])
    assert below.tolist() == [np.count_nonzero(known < np.median(known)), 0]
    assert found.least_hold_ns == (wanted.ack_sent_ns - wanted.arrival_ns)[both].min()
    columns = _core.flow_numbers([found])
    (lost, held), (receiver_lost, receiver_held) = found.sender_missed, found.receiver_missed
    missed = {
        "sender_lost": lost, "sender_held": held, "receiver_lost": receiver_lost, "receiver_held": receiver_held
    }  # fmt: skip
    assert {name: column[0] for name, column in columns.items()} == {
        **{name: getattr(found, name) for name in columns if name not in missed}, **missed
    }  # fmt: skip


def test_generated_connections_show_early_acknowledgements_and_repeats():
    """Or the comparisons above would compare nothing."""
    found, wanted = flows(2, 200, {"relay", "repeat"})[-1]
    asked = ([found], [lines(np.random.default_rng(0), wanted, 1)], [2], ERROR_NS)
    (early,), (timed,) = _core.early_acks(*asked)
    assert 10 < early < timed
    (early_own,), _ = _core.early_own_acks(*asked)
    assert early_own > 0
    assert found.round_trip_count < found.ack_count


def test_columns_of_unequal_length_are_refused():
    column = np.zeros(3)
    with pytest.raises(ValueError, match="differ in length"):
        _core.Constraints((column, column[:2]), (column, column), 0, 0, 0, 0)
