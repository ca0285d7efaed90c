"""What a check measures: for each address the distance, for each port how far handshakes and data must travel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from prober.check.data_probe import DataAnswer, ask
from prober.check.distances import MOST_HOPS, Distance, datagram_distance, handshake_hops
from prober.check.questions import question
from prober.check.targets import DOCUMENTATION_ADDRESSES, Place, Target

Given = TypeVar("Given")
Found = TypeVar("Found")

#: Connections with one hop limit that must agree: packets of one connection in a thousand may be lost or take another
#: way; that all of so many do is not to be expected.
TRIES = 3
#: A path for TCP may be a router shorter than the one for datagrams (ECMP): data that crossed so many routers less than
#: the host lies away did not reach it.
MARGIN_HOPS = 1
#: Hosts that are asked at the same time; ports of one host are asked one after the other.
_AT_ONCE = 6
_PROBE_S = 1.0
_PATIENCE_S = 5.0
_LEAST_LOW_S = 0.7
#: Round trips that an acknowledgement may take while the limit is low.
_LOW_ROUND_TRIPS = 3.0


@dataclass(frozen=True, slots=True)
class PlaceObservation:
    """What one port of one host showed; hops are counted from 1, the first router."""

    place: Place
    distance: Distance
    #: The fewest hops with which handshakes complete, and the most after which a router dropped one.
    handshake_hops: int | None = None
    handshake_beyond_hops: int = 0
    #: Questions without a hop limit, then those with one.
    plain: tuple[DataAnswer, ...] = ()
    limited: tuple[DataAnswer, ...] = ()
    error: str = ""

    def acknowledged_hops(self) -> int | None:
        """The fewest hops with which every try was acknowledged; None where no number was."""
        return min((hops for hops, tries in self._tries().items() if all(tries)), default=None)

    def lost_hops(self) -> int | None:
        """The most hops with which no try was acknowledged."""
        return max((hops for hops, tries in self._tries().items() if not any(tries)), default=None)

    def _tries(self) -> dict[int, list[bool]]:
        tries: dict[int, list[bool]] = {}
        for answer in self.limited:
            if answer.hops is not None:
                tries.setdefault(answer.hops, []).append(answer.is_acknowledged)
        return {hops: found for hops, found in tries.items() if len(found) >= TRIES}


@dataclass(frozen=True, slots=True)
class DocumentationAddressObservation:
    """A port of a documentation address, at which no host can be: `answer` is None where nothing answered."""

    address: str
    port: int
    answer: DataAnswer | None

    @property
    def family(self) -> int:
        """The version of IP."""
        return 6 if ":" in self.address else 4


@dataclass(frozen=True, slots=True)
class Observations:
    """All that a check saw."""

    places: tuple[PlaceObservation, ...]
    documentation_addresses: tuple[DocumentationAddressObservation, ...]
    unresolved: dict[str, str] = field(default_factory=dict)


def measure(
    places: Sequence[Place], deadline_s: float, progress: Callable[[int, int], object] | None = None
) -> Observations:
    """Measure all places, `_AT_ONCE` hosts at a time, and stop to begin new ones `deadline_s` seconds from now."""
    end = time.monotonic() + deadline_s
    hosts: dict[str, list[Place]] = {}
    for place in places:
        hosts.setdefault(place.address, []).append(place)
    dead = _documentation_targets(places)
    done = _Counting(len(hosts) + len(dead), progress)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="check") as pool:
        asked = [pool.submit(done.counted, partial(_host, end=end), each) for each in hosts.values()]
        silent = [pool.submit(done.counted, _documentation_address, each) for each in dead]
        return Observations(
            tuple(found for task in asked for found in task.result()), tuple(task.result() for task in silent)
        )


class _Counting:
    """Counts what is done, for a bar of progress."""

    def __init__(self, total: int, progress: Callable[[int, int], object] | None) -> None:
        self._lock, self._done, self._total, self._progress = threading.Lock(), 0, total, progress

    def counted(self, work: Callable[[Given], Found], given: Given) -> Found:
        try:
            return work(given)
        finally:
            with self._lock:
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, self._total)


def _host(places: Sequence[Place], end: float) -> list[PlaceObservation]:
    """All ports of one address."""
    distance = Distance(0, None, None, ())
    found = []
    for number, place in enumerate(places):
        if time.monotonic() > end:
            found.append(PlaceObservation(place, distance, error="there was no time left"))
            continue
        try:
            if number == 0:
                distance = datagram_distance(place.address, _PROBE_S)
            found.append(_place(place, distance))
        except OSError as error:
            found.append(PlaceObservation(place, distance, error=error.strerror or str(error)))
    return found


def _place(place: Place, distance: Distance) -> PlaceObservation:
    text = question(place.target)
    plain = tuple(ask(place.address, place.target.port, text, None, _PATIENCE_S, _PATIENCE_S) for _ in range(2))
    low_s = max(_LEAST_LOW_S, _LOW_ROUND_TRIPS * min(each.handshake_s for each in plain))
    most = min(MOST_HOPS, max(distance.beyond_hops, distance.answered_hops or 0) or MOST_HOPS)
    answered, beyond = handshake_hops(place.address, place.target.port, most, TRIES, _PROBE_S)
    farthest = distance.beyond_hops - MARGIN_HOPS
    limited = _limited(place, text, low_s, farthest) if farthest >= 1 else []
    return PlaceObservation(place, distance, answered, beyond, plain, tuple(limited))


def _limited(place: Place, text: bytes, low_s: float, farthest: int) -> list[DataAnswer]:
    """Ask with the most hops that cannot reach the host; where that is acknowledged, find by halves where it begins."""

    def tries(hops: int) -> Iterator[DataAnswer]:
        for _ in range(TRIES):
            yield ask(place.address, place.target.port, text, hops, low_s, _PATIENCE_S)

    answers = list(tries(farthest))
    if not all(each.is_acknowledged for each in answers):
        return answers
    lost, acknowledged = 0, farthest
    while acknowledged - lost > 1:
        middle = (lost + acknowledged) // 2
        for each in tries(middle):
            answers.append(each)
            if not each.is_acknowledged:
                lost = middle
                break
        else:
            acknowledged = middle
    return answers


def _documentation_targets(places: Sequence[Place]) -> list[tuple[str, Target]]:
    """Every port that is checked, at the documentation addresses of the families that are checked."""
    asked = dict.fromkeys((place.family, place.target.port, place.target.tls) for place in places)
    return [
        (address, Target("example.com", port, tls))
        for family, port, tls in asked
        for address in DOCUMENTATION_ADDRESSES[family]
    ]


def _documentation_address(given: tuple[str, Target]) -> DocumentationAddressObservation:
    address, target = given
    try:
        return DocumentationAddressObservation(
            address, target.port, ask(address, target.port, question(target), None, _PROBE_S, _PATIENCE_S)
        )
    except OSError:
        return DocumentationAddressObservation(address, target.port, None)
