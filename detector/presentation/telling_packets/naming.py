"""The packets that show what was found on connections, as capture, frame and time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from msgspec import Struct

from detector.pair import Vantage
from detector.presentation.telling_packets.observing import Observed
from detector.presentation.telling_packets.telling import Pointer, Scene, Shown, Telling
from pepscope.captures.capture import NO_FRAME, Capture
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.results.evidence.named import PairPackets
from pepscope.results.verdicts import Evidence, VantageName

#: What shows a finding that no packets of a connection's own show.
OtherPackets = Callable[[Evidence], tuple[EvidencePacket, ...]]


class ConnectionToName(Struct, frozen=True):
    """A connection whose packets are to be named: what was found on it, and as methods examined it.

    `others` name the packets of the findings of some methods.
    """

    evidence: Sequence[Evidence]
    observed: Observed
    others: Mapping[str, OtherPackets] = MappingProxyType({})


def was_judged_as_seen(vantages: Iterable[VantageName], observed: Observed) -> bool:
    """Whether a connection was judged as the pair that it is, and not as another one; `vantages` tell."""
    return _end_points(vantages) == _end_points(observed.seen.pair.names)


def _end_points(vantages: Iterable[VantageName]) -> list[tuple[str, str, str]]:
    return [(each.capture, each.client, each.server) for each in vantages]


class PacketNames:
    """Names packets of connections as their files have them."""

    def __init__(self, captures: Mapping[str, Capture]) -> None:
        self.captures = dict(captures)

    def named(self, asked: Sequence[ConnectionToName], most: int) -> list[PairPackets]:
        """The packets that show what was found on connections, the most telling first: of each finding `most` moments,
        each at up to two vantage points."""
        pointed = self._pointed(asked, most)
        seen: dict[int, _Seen] = {}
        for each, of_pieces in zip(asked, pointed, strict=True):
            seen |= {id(vantage): _Seen(vantage, []) for vantage in each.observed.seen.pair.vantages}
            for telling in chain.from_iterable(of_pieces):
                if isinstance(telling, Telling):
                    at = seen.get(id(telling.vantage)) or seen.setdefault(
                        id(telling.vantage), _Seen(telling.vantage, [])
                    )
                    at.rows.append(telling.row)
        self._find(seen.values())
        return [
            PairPackets(_ends(each.observed, seen), tuple([_named(shown, seen) for shown in of_pieces]))
            for each, of_pieces in zip(asked, pointed, strict=True)
        ]

    def _find(self, seen: Iterable[_Seen]) -> None:
        """Look up frames and times of all rows, capture by capture."""
        of_capture: dict[str, list[_Seen]] = defaultdict(list)
        for each in seen:
            of_capture[each.vantage.capture].append(each)
        for path, connections in of_capture.items():
            capture = self.captures[path]
            numbers = [each.vantage.number for each in connections]
            found = capture.frames_of_rows(numbers, [each.rows for each in connections])
            for number, each, (ends, frames) in zip(numbers, connections, found, strict=True):
                each.ends = ends if len(capture.files) == 1 else None
                recorded = capture.packets(number) if each.vantage.clock_set_back else each.vantage.packets
                times_ns = recorded.time_ns[each.rows].tolist()
                each.located = zip(*_located(capture, frames), times_ns, strict=True)

    def _pointed(self, asked: Sequence[ConnectionToName], most: int) -> list[list[Shown]]:
        """What shows each piece of evidence on connections.

        Empty for findings that say what is missing, and for those of methods of other distributions.
        """
        from detector.presentation.telling_packets.registry import POINTERS

        pointed: list[list[Shown]] = [[()] * len(each.evidence) for each in asked]
        alike: dict[tuple[str, str], list[tuple[int, int, Scene]]] = defaultdict(list)
        for number, each in enumerate(asked):
            for piece, item in enumerate(each.evidence):
                if (other := each.others.get(item.method)) is not None:
                    pointed[number][piece] = other(item)
                    continue
                observed = each.observed.at_every_vantage if item.method == "one_place" else each.observed
                alike[item.method, item.finding].append((number, piece, Scene(observed, item, self.captures, most)))
        for (method, finding), scenes in alike.items():
            pointer = POINTERS.get(method, _NONE).get(finding)
            if pointer is not None:
                found = pointer([scene for *_, scene in scenes])
                for (number, piece, _), shown in zip(scenes, found, strict=True):
                    pointed[number][piece] = shown
        return pointed

    def frames_of_connections(self, capture: Capture, numbers: Sequence[int]) -> list[dict[str, tuple[int, int]]]:
        """The first and the last frame of connections of a capture; none of a capture of several files."""
        if len(capture.files) != 1:
            return [{} for _ in numbers]
        spans = capture.frame_spans(numbers).tolist()
        return [{} if first == NO_FRAME else {capture.path: (first, last)} for first, last in spans]


class _Seen(Struct):
    """A connection at a vantage: the rows that are asked for, and file, frame and time of each of them in their order.

    `ends` are its first and its last frame; None in a capture of several files.
    """

    vantage: Vantage
    rows: list[int]
    located: Iterator[tuple[str, int, int]] = iter(())
    ends: tuple[int, int] | None = None


def _located(capture: Capture, frames: Sequence[int]) -> tuple[Sequence[str], Sequence[int]]:
    """The files that hold some frames of a capture, and the numbers of the frames in these."""
    if len(capture.files) == 1:
        ((file, before),) = capture.files
        return [file] * len(frames), [frame - before for frame in frames]
    located = [capture.located(frame) for frame in frames]
    return [file for file, _ in located], [number for _, number in located]


def _ends(observed: Observed, seen: Mapping[int, _Seen]) -> dict[str, tuple[int, int]]:
    """The first and the last frame of a connection by capture."""
    known = ((vantage.capture, seen[id(vantage)].ends) for vantage in observed.seen.pair.vantages)
    return {capture: ends for capture, ends in known if ends is not None}


def _named(shown: Shown, seen: Mapping[int, _Seen]) -> tuple[EvidencePacket, ...]:
    """The packets that show a finding, each once."""
    packets = list[EvidencePacket]()
    for each in shown:
        if isinstance(each, Telling):
            packets.append(EvidencePacket(*next(seen[id(each.vantage)].located), each.shows))
        else:
            packets.append(each)
    return tuple(dict.fromkeys(packets))


_NONE: Mapping[str, Pointer] = {}
