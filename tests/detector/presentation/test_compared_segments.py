"""The segments that show a finding of packet identity are those of the reference, on generated packets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.method import Observation
from detector.pair import Pair, StreamAlignment, Vantage
from detector.presentation.telling_packets import segments
from detector.presentation.telling_packets.observing import Observed
from detector.presentation.telling_packets.telling import Scene, Telling
from pepscope.captures.packets import Direction, PacketColumns
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.generated_packets import packets_of, shapes
from tests.detector.presentation import reference_segments as reference
from tests.detector.vantage.test_compiled_common_packets import captured_elsewhere

MOST = 5

#: What is named first, by how many fields changed.
ORDERS: dict[Callable[[Sequence[Scene]], list[list[Telling]]], Callable[[int], int]] = {
    segments.same: lambda changes: changes,
    segments.other: lambda changes: -changes,
    segments.either: lambda changes: -changes,
}
changes = st.sets(st.sampled_from(("lose", "delay", "shift", "guess", "zero-id", "stamp", "one-way", "other")))
seeds = st.integers(0, 2**32 - 1)


def vantage(name: str, packets: PacketColumns) -> Vantage:
    return Vantage(name, cast("Any", None), packets, {})


def scene(client: Vantage, server: Vantage, shift: int, numbers: dict[str, Any]) -> Scene:
    alignment = {direction: StreamAlignment(shift, 1, 1.0) for direction in Direction}
    seen = Observation(Pair(client, server, alignment, 1.0))
    evidence = Evidence("identity", Outcome.INTACT, "same-packets", 1.0, "", numbers, ())
    return Scene(Observed(seen, seen, lambda: seen.clock), evidence, {}, MOST)


def expected(asked: Scene) -> list[tuple[int, Telling, Telling]]:
    """Changes, and the segment as it left and as it arrived, without words."""
    pair, found = asked.pair, []
    for direction in Direction:
        emitter, receiver = pair.sender(direction), pair.receiver(direction)
        assert emitter is not None
        assert receiver is not None
        found += [
            (number, Telling(emitter, left, ""), Telling(receiver, row, ""))
            for number, row, left in reference.compared(emitter, receiver, direction, pair.receiver_shift(direction))
        ]
    return found


def rows(tellings: list[Telling]) -> list[tuple[str, int]]:
    return [(each.vantage.capture, each.row) for each in tellings]


@pytest.mark.parametrize("point", ORDERS)
@settings(deadline=None, max_examples=60)
@given(shapes, changes, seeds, st.sampled_from([0, 700]))
def test_segments_are_those_of_the_reference(point, shape, how, seed, shift):
    one, two = captured_elsewhere(packets_of(shape), how, seed)
    asked = scene(vantage("client", one), vantage("server", two), shift, {})
    wanted = sorted(expected(asked), key=lambda each: ORDERS[point](each[0]))
    if point is segments.other:
        wanted = [each for each in wanted if each[0]]
    assert rows(point([asked])[0]) == rows([telling for _, *both in wanted[:MOST] for telling in both])


@settings(deadline=None, max_examples=60)
@given(shapes, changes, seeds)
def test_words_name_as_many_fields_as_changed(shape, how, seed):
    one, two = captured_elsewhere(packets_of(shape), how, seed)
    asked = scene(vantage("client", one), vantage("server", two), 0, {})
    numbers = {(left.row, arrived.row, left.vantage.capture): number for number, left, arrived in expected(asked)}
    (told,) = segments.either([asked])
    for left, arrived in zip(told[::2], told[1::2], strict=True):
        named = sum(arrived.shows.count(word) for word in ("length", "IP ID", "timestamps", "TSval", "window"))
        changed = numbers[left.row, arrived.row, left.vantage.capture]
        assert named == changed if changed else arrived.shows.startswith("arrives as it left")


@settings(deadline=None, max_examples=60)
@given(shapes, changes, seeds, st.integers(0, 60_000))
def test_a_change_is_shown_by_what_stands_beside_it(shape, how, seed, byte):
    one, two = captured_elsewhere(packets_of(shape), how, seed)
    asked = scene(vantage("client", one), vantage("server", two), 0, {"direction": "up", "from_byte": byte})
    wanted = [each for each in expected(asked) if each[1].vantage.capture == "client"]
    starts = two.sequence_offset
    before = [each for each in wanted if starts[each[2].row] < byte][-1:]
    behind = [each for each in wanted if starts[each[2].row] >= byte][: MOST - 1]
    assert rows(segments.around_change(asked)) == rows([one for _, *both in (*before, *behind) for one in both])
