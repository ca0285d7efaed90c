"""The packets that show what was found on one connection, as capture, frame and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.shown.telling_packets.observing import Observed
from detector.shown.telling_packets.telling import Pointer, Scene, Telling
from pepscope.captures.capture import Capture
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.named import PairPackets
from pepscope.results.verdicts import Evidence, VantageName

if TYPE_CHECKING:
    from detector.pair import Vantage

#: What shows a finding that no packets of a connection's own show.
OtherPackets = Callable[[Evidence], tuple[EvidencePacket, ...]]


def named_packets(
    names: PacketNames,
    vantages: Iterable[VantageName],
    evidence: Iterable[Evidence],
    observed: Observed,
    most: int,
    others: Mapping[str, OtherPackets] = MappingProxyType({}),
) -> PairPackets | None:
    """The packets that show the evidence on a connection; None where it was judged as another pair than its own, which
    `vantages` tell.

    `others` name those of some methods.
    """
    if _end_points(vantages) != _end_points(observed.seen.pair.names):
        return None
    pointed: list[Sequence[Telling | EvidencePacket]] = []
    for item in evidence:
        if (other := others.get(item.method)) is not None:
            pointed.append(other(item))
        else:
            chosen = observed.at_every_vantage if item.method == "one_place" else observed
            pointed.append(names.pointed(item, chosen, most))
    return PairPackets(names.frames_of(observed.seen.pair.vantages), names.named(pointed))


def _end_points(vantages: Iterable[VantageName]) -> list[tuple[str, str, str]]:
    return [(each.capture, each.client, each.server) for each in vantages]


class _Frames(Struct, frozen=True):
    """The packets of one connection as its file has them."""

    connection: int
    capture: Capture
    time_ns: Int64Array
    frames: npt.NDArray[np.int64]

    def named(self, tellings: Sequence[Telling]) -> Iterator[EvidencePacket]:
        """Packets by file, frame and time."""
        rows = [telling.row for telling in tellings]
        located = map(self.capture.located, self.frames[rows].tolist())
        shown = zip(located, self.time_ns[rows].tolist(), tellings, strict=True)
        return (EvidencePacket(file, frame, time_ns, telling.shows) for (file, frame), time_ns, telling in shown)


class PacketNames:
    """Names the packets of one connection after the other as their files have them."""

    def __init__(self, captures: Mapping[str, Capture]) -> None:
        self.captures = dict(captures)
        self._latest: dict[str, _Frames] = {}  # by capture

    def pointed(self, evidence: Evidence, observed: Observed, most: int) -> Sequence[Telling | EvidencePacket]:
        """The packets that show a finding, the most telling first: `most` moments, each at up to two vantage points.

        Empty for findings that say what is missing, and for those of methods of other distributions.
        """
        from detector.shown.telling_packets.registry import POINTERS

        pointer = POINTERS.get(evidence.method, _NONE).get(evidence.finding)
        return () if pointer is None else pointer(Scene(observed, evidence, self.captures, most))

    def named(self, pointed: Sequence[Sequence[Telling | EvidencePacket]]) -> tuple[tuple[EvidencePacket, ...], ...]:
        """The packets of findings on one connection, each once."""
        by_vantage: dict[int, tuple[Vantage, list[Telling]]] = {}
        for each in chain.from_iterable(pointed):
            if isinstance(each, Telling):
                by_vantage.setdefault(id(each.vantage), (each.vantage, []))[1].append(each)
        named = {number: self._frames(vantage).named(tellings) for number, (vantage, tellings) in by_vantage.items()}
        return tuple(
            tuple(
                dict.fromkeys(
                    [next(named[id(each.vantage)]) if isinstance(each, Telling) else each for each in of_finding]
                )
            )
            for of_finding in pointed
        )

    def frames_of(self, vantages: Iterable[Vantage]) -> dict[str, tuple[int, int]]:
        """The first and the last frame of a connection, by capture; none of captures of several files."""
        found = {}
        for vantage in vantages:
            kept = self._frames(vantage)
            if len(kept.frames) and len(kept.capture.files) == 1:
                found[vantage.capture] = kept.frames.item(0), kept.frames.item(-1)
        return found

    def frames_of_connection(self, capture: Capture, number: int) -> dict[str, tuple[int, int]]:
        """The first and the last frame of a connection of a capture; none of a capture of several files."""
        frames = capture.frame_numbers(number)
        return {capture.path: (int(frames[0]), int(frames[-1]))} if len(frames) and len(capture.files) == 1 else {}

    def _frames(self, vantage: Vantage) -> _Frames:
        number = vantage.number
        latest = self._latest.get(vantage.capture)
        if latest is None or latest.connection != number:
            capture = self.captures[vantage.capture]
            packets = capture.packets(number) if vantage.clock_set_back else vantage.packets
            frames = np.asarray(capture.frame_numbers(number))
            latest = self._latest[vantage.capture] = _Frames(number, capture, packets.time_ns, frames)
        return latest


_NONE: Mapping[str, Pointer] = {}
