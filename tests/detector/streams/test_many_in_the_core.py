"""Calls of the core for many connections give what the calls for one give."""

from __future__ import annotations

import numpy as np
import pytest

from detector.methods.identity.segments import (
    COPIES,
    FEWEST_JOINED,
    MAJORITY,
    MOST_SKIPPED_IP_IDS,
    SAMPLE_PACKETS,
    align_segments,
    thinning_for,
    windows_on_wire,
)
from detector.pair import Pair, Vantage
from detector.pairing.alignment import COMPARED_PIECES, OVERLAP_BYTES, align, align_all
from detector.streams.sides import AlignmentColumns, Sides
from pepscope import _core
from pepscope.captures.capture import open_capture
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import PacketColumns
from tests.detector.corpus import CORPUS, RUNS, pairs

CHOSEN = ["reg_dl_par20", "reg_dl_quickack__snap68", "prx_ngx_par6", "spl_ha_dl_small_umts__mid", "reg_dl_abort"]


def sides_of(run: str) -> Sides:
    return Sides.of(list(pairs(run)))


@pytest.mark.parametrize("run", CHOSEN)
def test_alignments_of_many_are_those_of_each(run: str) -> None:
    sides = sides_of(run)
    expected = [
        {direction: align(client, server, direction) for direction in DIRECTIONS}
        for client, server in zip(sides.clients, sides.servers, strict=True)
    ]
    found, columns = align_all(sides)
    assert found == expected
    for direction, column in zip(DIRECTIONS, columns, strict=True):
        for one, two in zip(column, AlignmentColumns.of([each[direction] for each in found]), strict=True):
            np.testing.assert_array_equal(one, two)
    for direction in DIRECTIONS:
        left, right = ([each.payload[direction] for each in side] for side in (sides.clients, sides.servers))
        compared, agreed = _core.compare_payloads(left, right, COMPARED_PIECES, OVERLAP_BYTES)
        one_by_one = [
            _core.compare_payload(one, two, 0, COMPARED_PIECES, OVERLAP_BYTES)
            for one, two in zip(left, right, strict=True)
        ]
        assert list(zip(compared.tolist(), agreed.tolist(), strict=True)) == one_by_one
        same = [one.opening == two.opening for one, two in zip(left, right, strict=True)]
        assert _core.same_openings(left, right).tolist() == same


@pytest.mark.parametrize("run", CHOSEN)
def test_segments_of_many_are_those_of_each(run: str) -> None:
    sides = sides_of(run)
    together = align_segments(sides)
    on_wire = windows_on_wire(sides)
    alone = [segments_of(pair, on_wire[:, place].tolist()) for place, pair in enumerate(sides.pairs)]
    assert [each is None for each in together] == [each is None for each in alone]
    counts = [
        _core.segment_counts([each for each in found if each is not None], MOST_SKIPPED_IP_IDS)
        for found in (together, alone)
    ]
    np.testing.assert_equal(counts[0], counts[1])


def segments_of(pair: Pair, on_wire: list[bool]) -> _core.PairSegments | None:
    client, server = pair.client_side, pair.server_side
    assert client is not None
    assert server is not None

    def columns(vantage: Vantage) -> tuple[PacketColumns, tuple[int, int], tuple[int | None, int | None]]:
        flows = vantage.connection.up, vantage.connection.down
        powers = [flow.window_shift or 0 if wire else 0 for flow, wire in zip(flows, on_wire, strict=True)]
        return vantage.packets, (powers[0], powers[1]), (flows[0].reset_time_ns, flows[1].reset_time_ns)

    alignments = [pair.alignment[direction] for direction in DIRECTIONS]
    supported = [
        (alignment.compared > 0 and alignment.matched >= 0.5)
        or all(vantage.flow(direction).initial_sequence_number is not None for vantage in pair.vantages)
        for direction, alignment in zip(DIRECTIONS, alignments, strict=True)
    ]
    return _core.align_segments(
        columns(client), columns(server),
        shifts=(-alignments[0].shift_bytes, -alignments[1].shift_bytes), supported=(supported[0], supported[1]),
        sampled_every=int(thinning_for(max(len(client.packets), len(server.packets)))),
        fewest_sampled=SAMPLE_PACKETS // 8, fewest_joined=FEWEST_JOINED, copies=COPIES, majority=MAJORITY,
    )  # fmt: skip


@pytest.mark.parametrize("run", CHOSEN)
def test_packets_that_share_a_block_are_those_of_each(run: str) -> None:
    capture = open_capture(str(CORPUS / RUNS[run]["files"]["mobile"]["name"]))
    numbers = list(range(len(capture.connections)))
    for chosen in (numbers, numbers[::-1], numbers[::3], numbers[-1:]):
        every, *payload, fallen, blanked = capture.load(chosen, 0)
        for row, (number, packets, up, down) in enumerate(zip(chosen, every, *payload, strict=True)):
            alone = capture.packets(number)
            for name in PacketColumns.COLUMNS:
                assert getattr(packets, name).tolist() == getattr(alone, name).tolist()
            assert [up.pieces, down.pieces] == [each.pieces for each in capture.payload(number).values()]
            assert (row in fallen) == bool((np.diff(alone.time_ns) < 0).any())
            assert (row in blanked) == any(sample.is_one_byte_repeated for sample in (up, down))
            assert packets.replaced(ttl=packets.ttl).sequence_offset.tolist() == alone.sequence_offset.tolist()
            last = packets.packet(len(packets) - 1)
            assert (last.time_ns, last.ip_id) == (int(alone.time_ns[-1]), int(alone.ip_id[-1]))
            with pytest.raises(IndexError, match="no such packet"):
                packets.packet(len(packets))
    with pytest.raises(IndexError):
        capture.load([len(numbers)], 0)
