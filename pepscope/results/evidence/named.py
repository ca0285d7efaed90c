"""Packets of a pair apart from the pair, as a table keeps them, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.growing import Coded
from pepscope.results.verdicts import Evidence, PairResult, VantageName


class PacketColumns(Struct, frozen=True):
    """The packets of many findings, one finding behind the other, and how many each finding has."""

    counts: Int64Array
    capture: Coded[str]
    frame: Int64Array
    time_ns: Int64Array
    shows: list[str]

    @classmethod
    def of(cls, named: Sequence[Sequence[EvidencePacket]]) -> PacketColumns:
        """The packets of findings."""
        packets = [*chain.from_iterable(named)]
        return cls(
            np.array([len(each) for each in named], np.int64),
            Coded.of([packet.capture for packet in packets]),
            np.array([packet.frame for packet in packets], np.int64),
            np.array([packet.time_ns for packet in packets], np.int64),
            [packet.shows for packet in packets],
        )

    def named(self) -> Iterator[tuple[EvidencePacket, ...]]:
        """The packets of each finding."""
        packets = map(EvidencePacket, self.capture, self.frame.tolist(), self.time_ns.tolist(), self.shows)
        return (tuple(islice(packets, count)) for count in self.counts.tolist())


class PairPackets(Struct, frozen=True):
    """The packets that show what was found on one connection.

    `frames` are the first and the last frame of the connection by capture, `evidence` has an entry for each piece of
    evidence in its order.
    """

    frames: Mapping[str, tuple[int, int]]
    evidence: tuple[tuple[EvidencePacket, ...], ...]


def packets_in(pair: PairResult) -> PairPackets | None:
    """The packets that a pair's evidence names; None where none were looked for."""
    if all(item.packets is None for item in pair.evidence):
        return None
    frames = {each.capture: each.frames for each in pair.vantages if each.frames is not None}
    return PairPackets(frames, tuple(item.packets or () for item in pair.evidence))


class SentPackets(Struct, frozen=True):
    """The packets of connections by row, as columns, which are pickled faster than an object for each packet."""

    rows: list[int]
    frames: list[Mapping[str, tuple[int, int]]]
    findings: list[int]  # of each connection
    packets: PacketColumns

    @classmethod
    def of(cls, packets: Mapping[int, PairPackets]) -> SentPackets:
        """Those of some connections."""
        shown = [each.evidence for each in packets.values()]
        frames = [each.frames for each in packets.values()]
        return cls([*packets], frames, [*map(len, shown)], PacketColumns.of([*chain.from_iterable(shown)]))

    def by_row(self) -> dict[int, PairPackets]:
        """The packets as they were."""
        named = self.packets.named()
        return {
            row: PairPackets(frames, tuple(islice(named, count)))
            for row, frames, count in zip(self.rows, self.frames, self.findings, strict=True)
        }


def shown_on(
    packets: Mapping[int, PairPackets], begins: Int64Array, count: int
) -> tuple[npt.NDArray[np.uint32], list[Sequence[EvidencePacket]]]:
    """The packets that show so many pieces of evidence, those of the pair at each place from its `begins` on: of each
    piece 1 and its place in a list, or 0 where none were looked for, and the list."""
    codes = np.zeros(count, np.uint32)
    shown: list[Sequence[EvidencePacket]] = []
    for place, named in packets.items():
        begin, pieces = int(begins[place]), len(named.evidence)
        codes[begin : begin + pieces] = 1 + len(shown) + np.arange(pieces)
        shown += named.evidence
    return codes, shown


def with_packets(
    vantages: tuple[VantageName, ...], evidence: tuple[Evidence, ...], packets: PairPackets
) -> tuple[tuple[VantageName, ...], tuple[Evidence, ...]]:
    """Vantages and evidence of a pair with the packets named."""
    return (
        tuple(replace(each, frames=packets.frames.get(each.capture)) for each in vantages),
        tuple(replace(item, packets=shown) for item, shown in zip(evidence, packets.evidence, strict=True)),
    )
