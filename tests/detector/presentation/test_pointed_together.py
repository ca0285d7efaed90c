"""Packets that show findings on many connections are those that show each, on generated packets and on captures."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.clocks.clock_relation import ClockBasis, ClockRelation
from detector.clocks.sender_axis import SenderAxis
from detector.clocks.steps import ClockPiece
from detector.method import Context, Observation
from detector.options import ClockMode
from detector.pair import Vantage
from detector.pairing.captures import pair_captures
from detector.presentation.telling_packets import acknowledgements, rows
from detector.presentation.telling_packets.observing import Observed
from detector.presentation.telling_packets.registry import POINTERS
from detector.presentation.telling_packets.telling import Scene, Telling, spread, strongest
from pepscope import _core
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction, PacketColumns, TcpFlag
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import CORPUS
from tests.detector.generated_packets import packets_of, shapes
from tests.detector.vantage.test_compiled_common_packets import captured_elsewhere

changes = st.sets(st.sampled_from(("lose", "delay", "shift", "guess", "zero-id", "stamp", "one-way", "other")))
seeds = st.integers(0, 2**32 - 1)
directions = st.sampled_from(list(Direction))


def vantage(packets: PacketColumns) -> Vantage:
    return Vantage("a", cast("Any", None), packets, {})


@settings(deadline=None, max_examples=60)
@given(shapes, changes, seeds, directions, st.sampled_from([0, 700]), st.integers(1, 6), st.booleans())
def test_acknowledgements_are_those_of_the_reference(shape, how, seed, direction, shift, most, related):
    sender, receiver = captured_elsewhere(packets_of(shape), how, seed)
    start = int(sender.time_ns[0]) if len(sender) else 0
    piece = ClockPiece(start, start + 9, start, 2e6, 3e-5, -math.inf, math.inf, 0.0)
    clock = ClockRelation(
        ClockMode.GENERAL, ClockBasis.NONE, (piece,), 0.0, 0.0, 0, 0, 0, 0, 0.0, {}, -math.inf, math.inf
    )
    lines = clock.lines if related else None
    (found,) = _core.soonest_acknowledgements([sender], [receiver], [direction], [shift], [lines], [5e5], most)
    origin_ns, start_ns = (int(each.time_ns[0]) if len(each) else 0 for each in (sender, receiver))
    axis = SenderAxis(direction, origin_ns, start_ns, clock if related else None, 5e5)
    held = acknowledgements._Held(direction, vantage(sender), vantage(receiver), shift, axis)
    wanted = [
        (held.rows[place], held.acknowledged[place], held.early_s[place], held.pointed(place, "", "")[1:])
        for place in strongest(held.early_s, most)
    ]
    assert [each[:3] for each in found] == [each[:3] for each in wanted]
    assert [[] if row is None else [row] for *_, row in found] == [[one.row for one in each[3]] for each in wanted]


@given(shapes, changes, seeds, directions)
def test_ends_of_flows_are_those_of_their_rows(shape, how, seed, direction):
    for packets in captured_elsewhere(packets_of(shape), how, seed):
        data, new, acknowledging = (
            list_rows(packets, direction).tolist()
            for list_rows in (rows.data_rows, rows.first_copies, rows.acknowledging_rows)
        )
        flow = [packets], [direction]
        assert _core.data_ends(*flow, only_new=False) == [(data[0], data[-1]) if data else None]
        assert _core.data_ends(*flow, only_new=True) == [(new[0], new[-1]) if new else None]
        furthest = [(row, packets.acknowledgement_offset[row]) for row in acknowledging[-1:]]
        assert _core.furthest_acknowledgements(*flow) == [next(iter(furthest), None)]
        first = rows.row_of_byte(vantage(packets), direction, 0)
        opening = first if first is not None or not data else data[0]
        assert _core.stream_openings(*flow) == [None if opening is None else (opening, packets.payload_bytes[opening])]
        (flagged,) = _core.first_flagged_packets([packets], direction, int(TcpFlag.FIN))
        assert (None if flagged is None else flagged[0]) == rows.first_flagged(packets, direction, int(TcpFlag.FIN))
        assert flagged is None or flagged[1].time_ns == packets.time_ns[flagged[0]]


@settings(deadline=None, max_examples=60)
@given(shapes, changes, seeds, st.integers(1, 9), st.integers(0, 2))
def test_of_many_segments_some_are_compared_that_are_spread_over_all(shape, how, seed, looked_at, order):
    client, server = captured_elsewhere(packets_of(shape), how, seed)
    (found,) = _core.compared_segments([client], [server], [(0, None)], order, looked_at, 1000)
    places = spread(rows.data_rows(server, Direction.UP), looked_at)
    arrived, left, changed = _core.least_changed(Direction.UP, client, server, 0, places)
    ranked = np.argsort(changed if order == 0 else -changed, kind="stable")
    ranked = ranked[changed[ranked] > 0] if order == 2 else ranked
    assert [(row, sent) for _, (sent, _), (row, _) in found] == [(arrived[at], left[at]) for at in ranked]


@pytest.mark.parametrize("name", ["reg_dl_par20", "prx_ngx_par6", "reg_bidir"])
def test_connections_are_pointed_to_together_as_one_by_one(name: str) -> None:
    captures = [open_capture(CORPUS / f"{name}.{place}.pcap.gz") for place in ("srv", "mob")]
    paired = pair_captures(captures[0], captures[1])
    observations = [Observation(pair) for pair in paired.pairs(paired.matches)]
    clocks = Context(observations).clocks
    by_path = {capture.path: capture for capture in captures}
    for numbers in ({}, {"direction": "up"}, {"direction": "down"}):
        evidence = Evidence("method", Outcome.INTACT, "finding", 1.0, "", numbers, ())
        scenes = [
            Scene(Observed(each, each, partial(clocks.__getitem__, row)), evidence, by_path, 3)
            for row, each in enumerate(observations)
        ]
        for pointer in {pointer for of_method in POINTERS.values() for pointer in of_method.values()}:
            assert [_rows(shown) for shown in pointer(scenes)] == [_rows(pointer([scene])[0]) for scene in scenes]


def _rows(shown: Any) -> list[tuple[str, int, str]]:
    return [(each.vantage.capture, each.row, each.shows) for each in shown if isinstance(each, Telling)]
