"""What clocks and capture tools do to recorded captures."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.captures.containers import CaptureFile, Frame

if TYPE_CHECKING:
    from benchmarks.fresh.scenario import Edits

#: Packets that a capture loses at once when the machine cannot follow.
_BURST = (3, 25)


def edited(capture: CaptureFile, place: str, edits: Edits, chance: random.Random) -> CaptureFile:
    """The capture as the clock and the tool of its place would have written it."""
    if not capture.frames:
        return capture
    frames = capture.frames
    first_ns, last_ns = frames[0].time_ns, frames[-1].time_ns
    begin_ns = first_ns + round(edits.begin.get(place, 0.0) * (last_ns - first_ns))
    end_ns = last_ns - round(edits.end.get(place, 0.0) * (last_ns - first_ns))
    frames = [frame for frame in frames if begin_ns <= frame.time_ns <= end_ns]
    if share := edits.dropped.get(place, 0.0):
        frames = _without_bursts(frames, share, chance)
    if place == "mobile":
        frames = [replace(frame, time_ns=_by_clock(frame.time_ns, first_ns, last_ns, edits)) for frame in frames]
    return CaptureFile(capture.link_type, [replace(f, original_length=f.wire_length) for f in frames])


def _without_bursts(frames: list[Frame], share: float, chance: random.Random) -> list[Frame]:
    """The frames without bursts that are such a share of them all, in the mean."""
    mean = sum(_BURST) / 2
    kept, skip = list[Frame](), 0
    for frame in frames:
        if skip == 0 and chance.random() < share / mean / (1 - share):
            skip = chance.randint(*_BURST)
        if skip:
            skip -= 1
            continue
        kept.append(frame)
    return kept


def _by_clock(time_ns: int, first_ns: int, last_ns: int, edits: Edits) -> int:
    """The time by a clock that is off, drifts and is set at its steps, each at a share of the capture's time."""
    after_ns = time_ns - first_ns
    moved_ns = time_ns + int(edits.offset_s * 1e9) + int(after_ns * edits.drift_ppm / 1e6)
    return moved_ns + sum(int(step_s * 1e9) for at, step_s in edits.steps if after_ns > at * (last_ns - first_ns))
