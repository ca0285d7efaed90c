"""The packets that show what was found on one connection, as capture, frame and time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from detector.method import Observation
from detector.pair import Vantage
from detector.shown.telling_packets.registry import POINTERS
from detector.shown.telling_packets.telling import Scene, Telling
from pepscope.captures.capture import Capture
from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.results.verdicts import Evidence


def packets_of(
    evidence: Evidence, observation: Observation, captures: Mapping[str, Capture], most: int
) -> tuple[EvidencePacket, ...]:
    """The packets that show a finding, the most telling first: `most` moments, with a packet at each vantage point.

    Empty for findings that say what is missing, and for those of methods of other distributions.
    """
    pointer = POINTERS.get(evidence.method, {}).get(evidence.finding)
    if pointer is None:
        return ()
    pointed = pointer(Scene(observation, evidence, dict(captures), most))
    named = [each if isinstance(each, EvidencePacket) else _named(each, captures) for each in pointed]
    return tuple(dict.fromkeys(named))


def _named(telling: Telling, captures: Mapping[str, Capture]) -> EvidencePacket:
    """The packet with its frame and its time as its file has them."""
    capture, number = captures[telling.vantage.capture], telling.vantage.connection.id
    time_ns = capture.packets(number).time_ns[telling.row]
    file, frame = capture.located(int(capture.frame_numbers(number)[telling.row]))
    return EvidencePacket(file, frame, int(time_ns), telling.shows)


def frames_of(vantages: Iterable[Vantage], captures: Mapping[str, Capture]) -> dict[str, tuple[int, int]]:
    """The first and the last frame of a connection, by capture; none of captures of several files."""
    found = {}
    for vantage in vantages:
        capture = captures[vantage.capture]
        frames = np.asarray(capture.frame_numbers(vantage.connection.id))
        if len(frames) and len(capture.files) == 1:
            found[vantage.capture] = int(frames[0]), int(frames[-1])
    return found
