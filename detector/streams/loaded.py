"""Vantages and pairs that were loaded together: columns of what they have, and objects of those that are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np

from detector.options import DetectOptions
from detector.pair import DatagramLeg, LoadedVantage, Pair, SummaryTable, Vantage
from pepscope.captures.packets import Direction, Int64Array, PacketColumns, PayloadSample
from pepscope.results.evidence.growing import Repeated
from pepscope.results.verdicts import FloatArray

Made = TypeVar("Made")

_NOTHING = PayloadSample((), ())


class OnDemand(Sequence[Made], Generic[Made]):
    """Items that are made when they are read, each once."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.made: dict[int, Made] = {}

    @abstractmethod
    def _make(self, row: int) -> Made:
        """Make one of the items."""

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Made: ...
    @overload
    def __getitem__(self, place: slice) -> list[Made]: ...
    def __getitem__(self, place: int | slice) -> Made | list[Made]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._count))]
        row = place + self._count if place < 0 else place
        if row not in self.made:
            if not 0 <= row < self._count:
                raise IndexError(f"item {place} of {self._count}")
            self.made[row] = self._make(row)
        return self.made[row]

    def __iter__(self) -> Iterator[Made]:
        return map(self.__getitem__, range(self._count))


class LoadedVantages(OnDemand[Vantage]):
    """Connections of one capture, whose summaries are `rows` of one table (None: all of them, in order).

    `moved` are those whose capture's times fell back.
    """

    def __init__(
        self,
        capture: str,
        table: SummaryTable,
        packets: Sequence[PacketColumns],
        payload: Mapping[Direction, Sequence[PayloadSample]],
        set_back: Collection[int] = (),
    ) -> None:
        self.capture = capture
        self.table = table
        self.packets = packets
        self.payload = payload
        self.rows: Int64Array | None = None
        self._set_back = set_back
        self._made_in: tuple[LoadedVantages, list[int]] | None = None  # and the places there
        super().__init__(len(packets))

    def at(self, places: Int64Array) -> LoadedVantages:
        """Some of them, by place."""
        chosen: list[int] = places.tolist()
        payload = {way: [samples[place] for place in chosen] for way, samples in self.payload.items()}
        some = LoadedVantages(self.capture, self.table, [self.packets[place] for place in chosen], payload)
        some.rows = places if self.rows is None else self.rows[places]
        some._made_in = self, chosen
        return some

    def _make(self, row: int) -> Vantage:
        if self._made_in is not None:
            every, places = self._made_in
            return every[places[row]]
        payload = {way: samples[row] for way, samples in self.payload.items()}
        nothing: Any = None  # the summary is a row of the table
        was_set_back = row in self._set_back
        return LoadedVantage(self.capture, nothing, self.packets[row], payload, was_set_back, self.table, row)


class LoadedPairs(OnDemand[Pair]):
    """Pairs with both sides in TCP, neither of them encrypted, that were loaded together under the same options."""

    def __init__(
        self,
        make: Callable[[int], Pair],
        options: DetectOptions,
        confidence: FloatArray,
        grounds: Sequence[str],
    ) -> None:
        self.options = options
        self.confidence = confidence
        self.grounds = grounds
        self._of_row = make
        super().__init__(len(grounds))

    def _make(self, row: int) -> Pair:
        return self._of_row(row)

    def at(self, places: Int64Array) -> LoadedPairs:
        """Some of them, by place."""
        chosen: list[int] = places.tolist()
        grounds = [self.grounds[place] for place in chosen]
        return LoadedPairs(lambda row: self[chosen[row]], self.options, self.confidence[places], grounds)


def some_vantages(vantages: Sequence[Vantage], places: Int64Array) -> Sequence[Vantage]:
    """Those in some places."""
    return vantages.at(places) if isinstance(vantages, LoadedVantages) else [vantages[row] for row in places.tolist()]


def some_pairs(pairs: Sequence[Pair], places: Int64Array) -> Sequence[Pair]:
    """Those in some places."""
    return pairs.at(places) if isinstance(pairs, LoadedPairs) else [pairs[row] for row in places.tolist()]


def packets_of(vantages: Sequence[Vantage], places: Int64Array | None = None) -> Sequence[PacketColumns]:
    """The packets of vantages, or of those in some places."""
    if isinstance(vantages, LoadedVantages):
        packets = vantages.packets
        if places is None or len(places) == len(packets):
            return packets
        return [packets[place] for place in places.tolist()]
    chosen = vantages if places is None else [vantages[place] for place in places.tolist()]
    return [vantage.packets for vantage in chosen]


def payload_of(vantages: Sequence[Vantage], direction: Direction) -> Sequence[PayloadSample]:
    """The payload of a direction at each vantage; nothing where it has none."""
    if isinstance(vantages, LoadedVantages):
        return vantages.payload[direction]
    return [vantage.payload.get(direction) or _NOTHING for vantage in vantages]


def confidence_of(pairs: Sequence[Pair]) -> FloatArray:
    """How sure each pairing is."""
    if isinstance(pairs, LoadedPairs):
        return pairs.confidence
    return np.array([pair.pairing_confidence for pair in pairs], np.float64)


def grounds_of(pairs: Sequence[Pair]) -> Sequence[str]:
    """What each pairing was made on, in words."""
    return pairs.grounds if isinstance(pairs, LoadedPairs) else [pair.pairing_ground for pair in pairs]


def legs_of(pairs: Sequence[Pair]) -> Sequence[DatagramLeg | None]:
    """The UDP flow that carries the bytes of each pair at one side, if any."""
    return [None] * len(pairs) if isinstance(pairs, LoadedPairs) else [pair.datagram_leg for pair in pairs]


def captures_of(vantages: Sequence[Vantage]) -> Sequence[str]:
    """The capture that each vantage is of."""
    if isinstance(vantages, LoadedVantages):
        return Repeated(vantages.capture, len(vantages))
    return [vantage.capture for vantage in vantages]


def option_of(pairs: Sequence[Pair], of: Callable[[DetectOptions], Made]) -> list[Made]:
    """One of the options under which each pair is judged."""
    return [of(pairs.options)] * len(pairs) if isinstance(pairs, LoadedPairs) else [of(pair.options) for pair in pairs]
