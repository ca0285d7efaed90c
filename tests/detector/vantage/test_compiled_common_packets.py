"""The compiled comparison of two captures' packets against its NumPy reference, on generated packets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.vantage.one_place import COARSEST_NS, FORMAT_RESOLUTION_NS, ODD_SHARE
from pepscope import _core
from pepscope.captures.packets import Direction, Mark, PacketColumns
from tests.detector.generated_packets import packets_of, shapes
from tests.detector.vantage import reference_common_packets as reference

#: What the other capture has that the first has not.
changes = st.sets(st.sampled_from(("lose", "delay", "hop", "shift", "guess", "zero-id", "stamp", "one-way", "other")))
SHIFTS = (700, -90)


def captured_elsewhere(packets: PacketColumns, how: set[str], seed: int) -> tuple[PacketColumns, PacketColumns]:
    random = np.random.default_rng(seed)
    if "stamp" in how:
        packets = packets.replaced(marks=packets.marks | np.uint16(Mark.HAS_TIMESTAMPS))
    if "zero-id" in how:
        packets = packets.replaced(ip_id=np.zeros_like(packets.ip_id))
    if "one-way" in how:
        packets = taken(packets, packets.going(Direction.DOWN))
    kept = random.random(len(packets)) < (0.8 if "lose" in how else 1.0)
    other = taken(packets, kept)
    delays = random.integers(0, 50_000, len(other)) if "delay" in how else 200
    offsets = other.sequence_offset
    if "shift" in how:
        offsets = offsets + np.array(SHIFTS)[other.direction]
    if "guess" in how:
        offsets = offsets + 33
    return packets, other.replaced(
        time_ns=other.time_ns + 5_000 + delays * np.where(other.direction == Direction.UP, 1, -1),
        sequence_offset=offsets,
        ttl=other.ttl - np.uint8("hop" in how),
        ip_id=random.integers(0, 9, len(other)).astype(np.uint16) if "other" in how else other.ip_id,
    )


def taken(packets: PacketColumns, kept: np.ndarray) -> PacketColumns:
    return PacketColumns(**{name: getattr(packets, name)[kept] for name in PacketColumns.COLUMNS})


@settings(deadline=None)
@given(shapes, changes, st.integers(0, 2**32 - 1))
def test_packets_are_in_common_as_in_the_reference(shape, how, seed):
    one, two = captured_elsewhere(packets_of(shape), how, seed)
    shifts = SHIFTS if "shift" in how else (0, 0)
    found = _core.common_packets(one, two, shifts, FORMAT_RESOLUTION_NS, COARSEST_NS, ODD_SHARE)
    common = reference.packets_in_common(one, two, shifts)
    resolutions = [reference.resolution_ns(packets.time_ns, COARSEST_NS) for packets in (one, two)]
    resolution = max(*resolutions, FORMAT_RESOLUTION_NS)
    assert (found.count, found.comparable) == (len(common), common.comparable)
    assert found.other_hop_limits == np.count_nonzero(~common.same_ttl)
    assert found.resolution_ns == resolution
    assert found.uneven == reference.uneven(common, resolution)
    wanted = reference.spread_ns(common, ODD_SHARE)
    assert found.round_trips_ns == (None if wanted is None else pytest.approx(wanted, rel=1e-12, abs=1e-6))


def test_resolution_is_the_power_of_ten_that_divides_all_times():
    assert reference.resolution_ns(np.array([1_000_000, 3_000_000, 4_500_000]), COARSEST_NS) == 100_000
    assert reference.resolution_ns(np.array([1, 1_000]), COARSEST_NS) == 1
