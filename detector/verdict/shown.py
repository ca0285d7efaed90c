"""What is shown of connections beside their verdicts, as columns: where they were seen, sizes and times."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from detector.pair import Pair
from detector.streams.loaded import captures_of, legs_of
from detector.streams.sides import Sides
from detector.streams.summaries import Summaries
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray
from pepscope.results.evidence.growing import Repeated
from pepscope.results.pairs.columns import VantageRows


class Shown(Struct, frozen=True, dict=True):
    """What is shown of connections that were seen at one or two vantage points in TCP."""

    pairs: Sequence[Pair]
    sides: Sides  # those of them that have both

    @property
    def _have_both(self) -> bool:
        return len(self.sides) == len(self.pairs)

    @cached_property
    def _first(self) -> Summaries:
        if self._have_both:
            return self.sides.client
        return Summaries([pair.vantages[0] for pair in self.pairs])

    @cached_property
    def _last(self) -> Summaries:
        if self._have_both:
            return self.sides.server
        return Summaries([pair.vantages[-1] for pair in self.pairs])

    @property
    def summaries(self) -> tuple[Summaries, Summaries]:
        """At the first vantage point and at the last, which may be the same."""
        return self._first, self._last

    @cached_property
    def _are_alone(self) -> BoolArray:
        if self._have_both:
            return np.zeros(len(self.pairs), np.bool_)
        return np.array([len(pair.vantages) == 1 for pair in self.pairs], np.bool_)

    def vantage_rows(self) -> tuple[VantageRows, VantageRows]:
        """Where connections were seen, client side first."""
        if self._have_both:
            tcp_alone = Repeated("tcp", len(self.pairs))
            sides = (self.sides.clients, self._first), (self.sides.servers, self._last)
            near, far = (VantageRows(captures_of(side), *ends.end_points(), tcp_alone) for side, ends in sides)
            return near, far
        if any(pair.datagram_leg is not None for pair in self.pairs):
            names = [pair.names for pair in self.pairs]
            second = [each[1] if each[1:] else None for each in names]
            return VantageRows.of([each[0] for each in names]), VantageRows.of(second)
        tcp, alone = ["tcp"] * len(self.pairs), self._are_alone.tolist()
        first = VantageRows([pair.vantages[0].capture for pair in self.pairs], *self._first.end_points(), tcp)
        captures = [None if one else pair.vantages[-1].capture for pair, one in zip(self.pairs, alone, strict=True)]
        columns = ([*_unless(alone, texts)] for texts in (*self._last.end_points(), tcp))
        return first, VantageRows(captures, *columns)

    def packets(self) -> Int64Array:
        """Packets at all vantage points."""
        return self._over_vantages([each.numbers("packets") for each in (self._first, self._last)], np.add) + np.array(
            [0 if leg is None else sum(leg.flow.datagrams) for leg in legs_of(self.pairs)], np.int64
        )

    def payload_bytes(self) -> tuple[Int64Array, Int64Array]:
        """What connections carried up and down, where more of it was seen."""
        up, down = (
            self._over_vantages([each.of_flow(way, "stream_bytes") for each in (self._first, self._last)], np.maximum)
            for way in (Direction.UP, Direction.DOWN)
        )
        return up, down

    def lasted_ns(self) -> Int64Array:
        """From the first packet to the last, where that took longer."""
        lasted = [each.numbers("last_time_ns") - each.numbers("first_time_ns") for each in (self._first, self._last)]
        return self._over_vantages(lasted, np.maximum)

    def started_ns(self) -> Int64Array:
        """When connections began, by the first vantage point's clock."""
        return self._first.numbers("first_time_ns")

    def _over_vantages(self, numbers: Sequence[Int64Array], together: np.ufunc) -> Int64Array:
        """A number of each vantage point's connection, and of two what both give together."""
        first, last = numbers
        return np.where(self._are_alone, first, together(first, last))


def _unless(alone: Sequence[bool], texts: Sequence[str]) -> Sequence[str]:
    return ["" if one else text for one, text in zip(alone, texts, strict=True)]
