"""What a scenario's taps do to captures, done to those of real kernels once they are written.

A capture is read again and written anew: packets outside the tap's time and those that the capture is to miss are left
out, segments joined as an offload would, and times are those of the tap's clock. True time is that of the machine; a
clock's offset, drift and steps are relative to it, counted from the start of the path.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from pepscope.errors import CaptureError, LivePathError, ScenarioError

_FILE_HEADER_BYTES = 24
_NANOSECONDS = 0xA1B23C4D
_RECORD = struct.Struct("=IIII")
_SECOND_NS = 1_000_000_000
_MOST_BYTES = 262_144
#: Fields of a tap without effect, beside its name, place and snap length.
_RIGHT_CLOCK = {"offset_s": 0, "drift_ppm": 0, "steps": (), "granularity_s": 1e-9}


@dataclass(frozen=True, slots=True)
class Record:
    """A captured packet."""

    #: Since the start of the path.
    time_ns: int
    original_bytes: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Tap:
    """A tap at one of the places where a live path has a device."""

    name: str
    after_hop: int
    snap_bytes: int
    given: Mapping[str, Any]

    @property
    def has_effects(self) -> bool:
        """Whether its capture is another than the kernel's."""
        tap, clock = self.given, self.given["clock"]
        return bool(
            tap["loss_probability"]
            or tap["coalescing"] is not None
            or tap["from_s"]
            or tap["until_s"] is not None
            or any(clock[name] != right for name, right in _RIGHT_CLOCK.items())
        )


def live_taps(scenario: Any, parts: tuple[tuple[int, int], ...]) -> tuple[Tap, ...]:
    """The taps of a scenario. Raises ScenarioError for what captures of a live path cannot be, LivePathError."""
    devices = {end for part in parts for end in part}
    taps = []
    for number, tap in enumerate(scenario.record["taps"]):
        field = f"record.taps[{number}]"
        if tap["after_hop"] not in devices:
            places = ", ".join(str(place) for place in sorted(devices))
            raise ScenarioError(
                f"{field}.after_hop must be an end or the middle of the live path ({places}), got {tap['after_hop']}"
            )
        if tap["link_type"] != "raw":
            raise ScenarioError(f"{field}.link_type must be raw, the type of TUN devices, got {tap['link_type']}")
        if tap["nat"] is not None:
            raise ScenarioError(
                f"{field}.nat must be absent on a live path, whose packets keep their addresses; translate in a "
                "command of the middle"
            )
        if tap["coalescing"] is not None and find_spec("dpkt") is None:
            raise LivePathError(
                f"{field}.coalescing on a live path needs the package dpkt: pip install 'pepscope[emulate]'"
            )
        taps.append(Tap(tap["name"], tap["after_hop"], tap["snap_bytes"], tap))
    return tuple(taps)


def apply_tap(tap: Tap, path: Path, started_unix_ns: int, seed: int, sending: str | None) -> dict[str, int]:
    """Give a capture that libpcap has written the effects of its tap; packets written and missed.

    `sending` is the direction, `down` or `up`, in which the host beside the tap sends. Raises CaptureError, OSError.
    """
    counts = {"written_packets": 0, "missed_packets": 0}
    clock, chance = _Clock(tap.given["clock"]), random.Random(f"{seed} capture {tap.name}")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with path.open("rb") as source, unfinished.open("wb") as target:
            target.write(_header(source, path))
            for record in _shown(tap, source, started_unix_ns, sending):
                if chance.random() < tap.given["loss_probability"]:
                    counts["missed_packets"] += 1
                    continue
                time_ns = started_unix_ns + clock.reading(record.time_ns)
                target.write(_RECORD.pack(*divmod(time_ns, _SECOND_NS), len(record.data), record.original_bytes))
                target.write(record.data)
                counts["written_packets"] += 1
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return counts


def _header(source: BinaryIO, path: Path) -> bytes:
    header = source.read(_FILE_HEADER_BYTES)
    if len(header) < _FILE_HEADER_BYTES or struct.unpack_from("=I", header)[0] != _NANOSECONDS:
        raise CaptureError(f"{path} must be a capture with nanoseconds for the effects of its tap")
    return header


def _shown(tap: Tap, source: BinaryIO, started_unix_ns: int, sending: str | None) -> Iterator[Record]:
    """Packets of the tap's time, joined if it joins them, in order of when it shows them."""
    from_ns = round(tap.given["from_s"] * 1e9)
    until_s = tap.given["until_s"]
    until_ns = 1 << 62 if until_s is None else round(until_s * 1e9)
    coalescing = tap.given["coalescing"]
    coalescer = None
    if coalescing is not None:
        from reference_sim.live_path.coalescing import Coalescer

        coalescer = Coalescer(round(coalescing["within_s"] * 1e9), int(coalescing["most_bytes"]), sending)
    for record in _records(source, started_unix_ns):
        if not from_ns <= record.time_ns < until_ns:
            continue
        if coalescer is None:
            yield record
        else:
            yield from coalescer.push(record)
    if coalescer is not None:
        yield from coalescer.finish()


def _records(source: BinaryIO, started_unix_ns: int) -> Iterator[Record]:
    while len(header := source.read(_RECORD.size)) == _RECORD.size:
        seconds, nanoseconds, captured, original = _RECORD.unpack(header)
        if captured > _MOST_BYTES or len(data := source.read(captured)) < captured:
            raise CaptureError("a capture must not end within a packet for the effects of its tap")
        yield Record(seconds * _SECOND_NS + nanoseconds - started_unix_ns, original, data)


class _Clock:
    """What the clock of a tap shows, relative to the start of the path; read with times that never go back."""

    def __init__(self, clock: Mapping[str, Any]) -> None:
        self._offset_ns = round(clock["offset_s"] * 1e9)
        self._drift = clock["drift_ppm"] * 1e-6
        self._steps = [(round(step["at_s"] * 1e9), round(step["by_s"] * 1e9)) for step in clock["steps"]]
        self._granularity_ns: int = max(1, round(clock["granularity_s"] * 1e9))

    def reading(self, now_ns: int) -> int:
        """In nanoseconds."""
        while self._steps and self._steps[0][0] <= now_ns:
            self._offset_ns += self._steps.pop(0)[1]
        reading_ns: int = now_ns + self._offset_ns + round(self._drift * now_ns)
        return reading_ns - reading_ns % self._granularity_ns
