"""Rows of packets by what they carry against their reference, on generated packets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.presentation.telling_packets import rows, telling
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, PacketColumns, TcpFlag
from tests.detector.methods.generated_segments import emitted_data, packets_of, seeds
from tests.detector.presentation import reference_rows


def _packets(seed: int, count: int) -> PacketColumns:
    """Data of both directions whose acknowledgements go back and forth, some with flags of their own."""
    random = np.random.default_rng(seed)
    packets = packets_of({way: emitted_data(random, count) for way in (Direction.UP, Direction.DOWN)})
    acknowledged = random.choice([NO_ACKNOWLEDGEMENT, 0, 1, 1449, 2897, 90_000], len(packets))
    return packets.replaced(
        acknowledgement_offset=acknowledged.astype(np.int64),
        flags=random.choice(64, len(packets)).astype(np.uint16),
        payload_bytes=(packets.payload_bytes * random.choice([0, 1, 1], len(packets))).astype(np.uint32),
    )


@given(seeds, st.integers(0, 40), st.sampled_from(list(Direction)))
def test_rows_are_those_of_the_reference(seed: int, count: int, direction: Direction) -> None:
    packets = _packets(seed, count)
    for name in ("data_rows", "acknowledging_rows"):
        found = getattr(rows, name)(packets, direction)
        assert found.tolist() == getattr(reference_rows, name)(packets, direction)
    for flags in (int(TcpFlag.SYN), int(TcpFlag.RST | TcpFlag.FIN)):
        found = rows.flag_rows(packets, direction, flags)
        assert found.tolist() == reference_rows.flag_rows(packets, direction, flags)


@given(st.integers(0, 400), st.integers(2, 260))
def test_rows_are_spread_evenly_from_the_first_to_the_last(count: int, most: int) -> None:
    chosen = telling.spread(10 * np.arange(count), most).tolist()
    assert len(chosen) == min(count, most)
    if count:
        assert chosen[0] == 0
        assert chosen[-1] == 10 * (count - 1)
    gaps = np.diff(chosen) // 10
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1
