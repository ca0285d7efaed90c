"""The compiled search for times that contradict themselves against its NumPy reference."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import PacketColumns, TcpFlag
from tests.detector.clocks import reference_untimed
from tests.detector.generated_packets import Shape, packets_of, shapes

QUICKEST_NS = 10_000
_SYN_OR_BYTES = (
    partial(reference_untimed.acks_before_syn, of_syn_alone=False),
    partial(reference_untimed.acks_before_syn, of_syn_alone=True),
    reference_untimed.acks_before_bytes,
)


def moved(packets: PacketColumns, up_ns: int, step_ns: int, still: tuple[int, int] = (0, 0)) -> PacketColumns:
    """The same packets with those up at another time, or at even steps, and some that stand still."""
    time_ns = packets.time_ns + np.where(packets.direction == 0, up_ns, 0)
    if step_ns:
        time_ns = np.arange(len(packets), dtype=np.int64) * step_ns
    first, last = still
    time_ns[first:last] = time_ns[first : first + 1] + np.arange(len(time_ns[first:last]))
    return packets.replaced(time_ns=time_ns)


def reference(packets: PacketColumns, most: int, least_ns: int) -> tuple[int, int, list[tuple[int, int]]]:
    counts = [count(packets, direction, least_ns) for count in _SYN_OR_BYTES for direction in DIRECTIONS]
    standing = reference_untimed.standing_turns(packets, most, QUICKEST_NS)
    return reference_untimed.even_steps(packets, most), standing, counts


@settings(deadline=None, max_examples=200)
@given(
    st.lists(shapes, max_size=4),
    st.sampled_from([0, 3_000_000, -3_000_000, 10**10]),
    st.sampled_from([0, 0, 1000, 10**6]),
    st.tuples(st.integers(0, 40), st.integers(0, 60)),
    st.sampled_from([5, 1000]),
    st.sampled_from([0, 1_000_000]),
)
def test_contradictions_are_those_of_the_reference(
    several: list[Shape], up_ns: int, step_ns: int, still: tuple[int, int], most: int, least_ns: int
) -> None:
    made = [moved(packets_of(shape), up_ns, step_ns, still) for shape in several]
    even, standing, early, compared = _core.contradicting_times(made, most, QUICKEST_NS, least_ns)
    expected = [reference(packets, most, least_ns) for packets in made]
    assert even.tolist() == [steps for steps, _, _ in expected]
    assert standing.tolist() == [turns for _, turns, _ in expected]
    assert [*zip(*early.tolist(), strict=True)] == [tuple(count[0] for count in counts) for _, _, counts in expected]
    assert [*zip(*compared.tolist(), strict=True)] == [tuple(count[1] for count in counts) for _, _, counts in expected]


def test_generated_connections_contradict_themselves() -> None:
    """Or the comparison above would compare nothing."""
    packets = packets_of(Shape(seed=1, count=100, with_syn=True, odd_share=0.1, ending=TcpFlag.ACK, jitter_ns=0))
    moves_ns = (10**10, -(10**10))
    later = [_core.contradicting_times([moved(packets, by_ns, 0)], 9, QUICKEST_NS, 0)[2] for by_ns in moves_ns]
    assert (later[0][[0, 2, 4], 0] > 0).all()
    assert (later[1][[1, 3, 5], 0] > 0).all()
    assert _core.contradicting_times([moved(packets, 0, 0, (20, 60))], 100, QUICKEST_NS, 0)[1][0] > 0
