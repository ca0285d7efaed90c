"""The compiled lead of a sender, early FINs and transfer spans against their NumPy references."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.clocks.clouds import SAME_COPY_NS
from detector.streams.curves import without_backward_steps
from detector.streams.known import UNKNOWN
from pepscope import _core
from pepscope.captures.packets import Direction
from tests.detector.methods import reference_sender_lead as reference
from tests.detector.methods.reference_sender_lead import Captured, Lines
from tests.detector.streams.generated_connections import BEGIN_NS, MILLISECOND_NS, captures, counts, events, seeds

shifts = st.sampled_from([0, 5, -40_000])
pieces = st.integers(1, 3)
BUFFERS = (300, 1448, 200, 400, 1)


def captured(seed: int, count: int, how: set[str], shift: int, steps: int) -> list[Captured]:
    """The flows of a generated connection, with windows and a clock relation near that of their data."""
    random = np.random.default_rng(seed)
    ends = [
        packets.replaced(
            window_bytes=random.choice([60_000, 60_000, 90_000, 500], len(packets)).astype(np.uint32),
            # What was known at a time has no one answer where times fall back.
            time_ns=np.maximum.accumulate(without_backward_steps(packets).time_ns),
        )
        for packets in captures(seed, count, how, shift)
    ]
    made = []
    for direction in Direction:
        sender, receiver = ends if direction is Direction.UP else ends[::-1]
        added = shift if direction is Direction.DOWN else -shift
        (flow,) = _core.flow_times([direction], [sender], [receiver], [added], [True], [True], 1 << 16, SAME_COPY_NS)
        if flow is not None:
            made.append(Captured(direction, sender, receiver, added, flow, clock(random, flow, direction, steps)))
    return made


def clock(random: np.random.Generator, flow: _core.FlowTimes, direction: Direction, steps: int) -> Lines:
    if flow.data_count == 0:
        return [(0, 0, 0.0, 0.0)]
    ends = (flow.data_sent_ns, flow.data_arrived_ns)
    client_ns, server_ns = ends if direction is Direction.UP else ends[::-1]
    offset = float(np.median(server_ns - client_ns)) + float(random.choice([0, 0.5, 3e7, -3e7]))
    starts = sorted(int(start) for start in random.choice(client_ns, steps))
    return [(start, int(client_ns[0]), offset + place * 1e8, 1e-4 * place) for place, start in enumerate(starts)]


def lead_of(item: Captured, windows: bool, clock_given: bool, error_ns: int) -> tuple[int, ...] | None:
    """The numbers of a lead in the order of the reference; None where too few times are known."""
    found = _core.sender_leads(
        [item.flow], [item.receiver], [item.sender if windows else None], [item.shift], [item.lines], [clock_given],
        error_ns, BUFFERS,
    )  # fmt: skip
    numbers = tuple(column[0] for column in found.values())
    return None if UNKNOWN in numbers else numbers


@settings(deadline=None, max_examples=300)
@given(seeds, counts, events, shifts, pieces, st.booleans(), st.booleans(), st.sampled_from([0, MILLISECOND_NS]))
def test_a_sender_leads_as_in_the_reference(seed, count, how, shift, steps, clock_given, windows, error_ns):
    for item in captured(seed, count, how, shift, steps):
        numbers = lead_of(item, windows, clock_given, error_ns)
        assert numbers == reference.sender_lead(item, clock_given, error_ns, BUFFERS, windows)


@settings(deadline=None, max_examples=200)
@given(seeds, counts, events, pieces, st.integers(0, 3 * 10**9), st.integers(0, 3 * 10**9))
def test_fins_come_as_early_as_in_the_reference(seed, count, how, steps, sent_ns, arrived_ns):
    for item in captured(seed, count, how, 0, steps):
        asked = (BEGIN_NS + sent_ns, BEGIN_NS + arrived_ns)
        (lead_ns,) = _core.fin_leads_ns([item.flow], [asked[0]], [asked[1]], [item.lines]).tolist()
        assert (None if np.isnan(lead_ns) else lead_ns) == reference.fin_lead_ns(item, *asked)


@settings(deadline=None, max_examples=200)
@given(seeds, counts, events, shifts, st.sampled_from([1, 20_000]))
def test_transfers_span_as_in_the_reference(seed, count, how, shift, shortest_bytes):
    for item in captured(seed, count, how, shift, 1):
        asked = (item.direction, item.sender, item.receiver, item.shift, shortest_bytes)
        found = _core.transfer_spans(*asked)
        wanted = reference.transfer_spans(item, shortest_bytes)
        assert (found and (found.sender_ns, found.receiver_ns, found.bytes)) == wanted


def test_generated_connections_show_leads():
    """Or the comparisons above would compare nothing."""
    items = [item for seed in range(30) for item in captured(seed, 200, {"relay", "lose"}, 5, 1)]
    leads = [found for item in items if (found := lead_of(item, True, False, 0)) is not None]
    assert sum(most > 0 for _, most, *_ in leads) > 10
    assert any(beyond > 0 for *_, beyond, _ in leads)
