"""The packets that show what was found on one connection, as capture, frame and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.pair import Vantage
from detector.shown.telling_packets.observing import Observed
from detector.shown.telling_packets.registry import POINTERS
from detector.shown.telling_packets.telling import Pointer, Scene, Telling
from pepscope.captures.capture import Capture
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.captures.packets import Int64Array
from pepscope.results.evidence.named import PairPackets
from pepscope.results.verdicts import Evidence, VantageName

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
    shown = []
    for item in evidence:
        if (other := others.get(item.method)) is not None:
            shown.append(other(item))
        else:
            chosen = observed.at_every_vantage if item.method == "one_place" else observed
            shown.append(names.of_evidence(item, chosen, most))
    return PairPackets(names.frames_of(observed.seen.pair.vantages), tuple(shown))


def _end_points(vantages: Iterable[VantageName]) -> list[tuple[str, str, str]]:
    return [(each.capture, each.client, each.server) for each in vantages]


class _Frames(Struct, frozen=True):
    """The packets of one connection as its file has them."""

    connection: int
    capture: Capture
    time_ns: Int64Array
    frames: npt.NDArray[np.int64]

    def named(self, telling: Telling) -> EvidencePacket:
        """A packet by file, frame and time."""
        file, frame = self.capture.located(self.frames.item(telling.row))
        return EvidencePacket(file, frame, self.time_ns.item(telling.row), telling.shows)


class PacketNames:
    """Names the packets of one connection after the other as their files have them."""

    def __init__(self, captures: Mapping[str, Capture]) -> None:
        self.captures = dict(captures)
        self._latest: dict[str, _Frames] = {}  # by capture

    def of_evidence(self, evidence: Evidence, observed: Observed, most: int) -> tuple[EvidencePacket, ...]:
        """The packets that show a finding, the most telling first: `most` moments, each at up to two vantage points.

        Empty for findings that say what is missing, and for those of methods of other distributions.
        """
        pointer = POINTERS.get(evidence.method, _NONE).get(evidence.finding)
        if pointer is None:
            return ()
        pointed = pointer(Scene(observed, evidence, self.captures, most))
        frames = self._frames
        named = [each if isinstance(each, EvidencePacket) else frames(each.vantage).named(each) for each in pointed]
        return tuple(dict.fromkeys(named))

    def frames_of(self, vantages: Iterable[Vantage]) -> dict[str, tuple[int, int]]:
        """The first and the last frame of a connection, by capture; none of captures of several files."""
        found = {}
        for vantage in vantages:
            kept = self._frames(vantage)
            if len(kept.frames) and len(kept.capture.files) == 1:
                found[vantage.capture] = kept.frames.item(0), kept.frames.item(-1)
        return found

    def _frames(self, vantage: Vantage) -> _Frames:
        number = vantage.connection.id
        latest = self._latest.get(vantage.capture)
        if latest is None or latest.connection != number:
            capture = self.captures[vantage.capture]
            packets = capture.packets(number) if vantage.clock_set_back else vantage.packets
            frames = np.asarray(capture.frame_numbers(number))
            latest = self._latest[vantage.capture] = _Frames(number, capture, packets.time_ns, frames)
        return latest


_NONE: Mapping[str, Pointer] = {}
