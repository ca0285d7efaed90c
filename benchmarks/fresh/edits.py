"""What clocks and capture tools do to recorded captures."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.captures.containers import CaptureFile

if TYPE_CHECKING:
    from benchmarks.fresh.scenario import Edits

#: Packets that a capture loses at once when the machine cannot follow.
_BURST = (3, 25)


def edited(capture: CaptureFile, place: str, edits: Edits, chance: random.Random) -> CaptureFile:
    """The capture as the clock and the tool of its place would have written it."""
    if not capture.frames:
        return capture
    frames = capture.frames
    first, last = frames[0].time_ns, frames[-1].time_ns
    begin = first + round(edits.begin.get(place, 0.0) * (last - first))
    end = last - round(edits.end.get(place, 0.0) * (last - first))
    frames = [frame for frame in frames if begin <= frame.time_ns <= end]
    if share := edits.dropped.get(place, 0.0):
        frames = _without_bursts(frames, share, chance)
    if place == "mobile":
        frames = [replace(frame, time_ns=_clock(frame.time_ns, first, last, edits)) for frame in frames]
    return CaptureFile(capture.link_type, [replace(f, original_length=f.wire_length) for f in frames])


def _without_bursts(frames: list, share: float, chance: random.Random) -> list:  # type: ignore[type-arg]
    mean = sum(_BURST) / 2
    kept, skip = [], 0
    for frame in frames:
        if skip == 0 and chance.random() < share / mean / (1 - share):
            skip = chance.randint(*_BURST)
        if skip:
            skip -= 1
            continue
        kept.append(frame)
    return kept


def _clock(time_ns: int, first: int, last: int, edits: Edits) -> int:
    moved = time_ns + int(edits.offset_s * 1e9) + int((time_ns - first) * edits.drift_ppm / 1e6)
    return moved + sum(int(step * 1e9) for at, step in edits.steps if time_ns - first > at * (last - first))
