"""Who may have shut windows, as the core finds it, against the NumPy reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.streams.shut_windows import ShutBy
from pepscope import _core
from pepscope.captures.packets import Direction
from tests.detector.generated_streams import packets_of
from tests.detector.streams import reference_shut_windows as reference
from tests.detector.streams.reference_shut_windows import Side

SHARE = 0.05


def sides_of(random: np.random.Generator) -> tuple[Side, Side, int]:
    """Acknowledgements as the sender and the receiver captured them, some of the sender's shut by another host, and
    what to add to what the receiver's capture holds acknowledged."""
    count, shift = int(random.integers(0, 40)), int(random.integers(-2, 3))
    steps = random.choice([0, 100, 100, -100], count)
    own = packets_of(random, count).replaced(
        acknowledgement_offset=np.cumsum(steps),
        window_bytes=random.choice([0, 40, 700, 900], count, p=[0.1, 0.1, 0.4, 0.4]).astype(np.uint32),
    )
    seen = own.replaced(
        acknowledgement_offset=own.acknowledgement_offset + shift,
        window_bytes=np.where(random.random(count) < 0.2, random.choice([0, 5]), own.window_bytes).astype(np.uint32),
        ip_id=own.ip_id if random.random() < 0.6 else own.ip_id + np.uint16(3),
        payload_bytes=own.payload_bytes,
    )
    powers = [(None, 0, 2)[int(place)] for place in random.integers(0, 3, 2)]
    seen, own = (some_of(random, packets) for packets in (seen, own))
    return Side(seen, powers[0]), Side(own, powers[1]), shift


def some_of(random: np.random.Generator, packets: _core.PacketColumns) -> _core.PacketColumns:
    """Most packets."""
    kept = random.random(len(packets)) < random.choice([0.5, 0.9, 1.0])
    return _core.PacketColumns(**{name: getattr(packets, name)[kept] for name in _core.PacketColumns.COLUMNS})


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**32 - 1))
def test_hosts_are_those_of_the_reference(seed: int) -> None:
    sender, receiver, shift = sides_of(np.random.default_rng(seed))
    for way in Direction:
        wanted = reference.shut_by(sender, receiver, way, shift, SHARE)
        assert ShutBy(_core.shut_by(sender, receiver, way.value, shift, SHARE)) is wanted


def test_generated_windows_are_shut_by_each() -> None:
    """Or the comparison above would compare nothing."""
    found = Counter(
        reference.shut_by(sender, receiver, Direction.UP, shift, SHARE)
        for sender, receiver, shift in (sides_of(np.random.default_rng(seed)) for seed in range(300))
    )
    assert min(found[each] for each in ShutBy) > 10
