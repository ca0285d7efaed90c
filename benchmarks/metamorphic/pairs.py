"""A labelled pair of captures: the records at both ends, which connection is which, and of what class they are."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.metamorphic.records import SYN, Array, Records, records_of
from tests.captures.containers import read_capture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SIDES = ("server", "mobile")

#: Recordings are younger than this.
_EPOCH_NS = 10**18

#: Pairs that a process keeps read: some 2 MB each, and reading one takes as long as judging it.
_KEPT = 400

#: Data segments after a takeover below which a capture that holds more of them before it does not tell what became of
#: the connection: fewer than this, or than this share of all. The comparison of segments by parts asks for as many
#: (docs/methods/identity.md).
FEWEST_AFTER_TAKEOVER = 20
LEAST_SHARE_AFTER_TAKEOVER = 1 / 16

#: Half of the sequence numbers: offsets are counted up to it, either way.
_HALF = 1 << 31


@dataclass(frozen=True, slots=True)
class Takeover:
    """A middlebox takes part in a connection from byte `from_byte` of the stream `up` (or down) on.

    `base` is the sequence number of that stream's byte 0 at each side, and `stream_bytes` how far the stream went
    there, as recorded.
    """

    from_byte: int
    up: bool
    base: dict[str, int]
    stream_bytes: dict[str, int]

    def renumbered(self, constant: int) -> Takeover:
        """The same after a constant was added to the stream's sequence numbers."""
        moved = {side: (base + constant) % (2 * _HALF) for side, base in self.base.items()}
        return replace(self, base=moved)


@dataclass(frozen=True, slots=True)
class Flow:
    """A connection whose class is known: its number in each capture that ever held it.

    `truth` is `regular`, `split` or `proxy`, `acceptable` what it may be called (`unpaired`: one capture holds it).
    With a `takeover` all of that holds only of captures that reach so far.
    """

    name: str
    truth: str
    acceptable: frozenset[str]
    connection: dict[str, int]
    takeover: Takeover | None = None

    def as_kept(self, records: Mapping[str, Records]) -> Flow | None:
        """The flow as far as these records show it; None where they show too little of it to have a truth.

        It is end to end where the records of a side end before a takeover, and has no truth where a side holds a few
        segments after it and more before: `regular` is then true of nearly all that was captured, and a split of the
        rest.
        """
        if self.takeover is None:
            return self
        held = [_held(records[side], number, self.takeover, side) for side, number in self.connection.items()]
        shown = min(held, key=lambda each: each.after, default=None)
        if shown is None or not shown.is_mostly_before:
            return self
        return None if shown.after else replace(self, truth="regular", acceptable=frozenset({"regular"}))


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two captures as records by side, the true flows, and how the captures are to be written and given.

    With `all_regular` connections that the truth does not name are regular, too.
    """

    records: dict[str, Records]
    flows: tuple[Flow, ...]
    all_regular: bool
    links: dict[str, str]
    first: str = "server"


@dataclass(frozen=True, slots=True)
class Source:
    """A run of a manifest, still unread."""

    directory: str
    run: str

    @property
    def name(self) -> str:
        return f"{Path(self.directory).name}/{self.run}"

    @property
    def is_simulated(self) -> bool:
        """Whether simulated hosts made it: the payload of all of these is one."""
        return _corpus(self.directory) == "simulated"

    def read(self) -> LabelledPair:
        """The pair as recorded, without link layers."""
        return _read(self.directory, self.run)


def sources(directories: Sequence[Path]) -> list[Source]:
    """Every run with captures at both ends and without a change of its own, in the order of the manifests."""
    return [
        Source(str(directory), run["id"])
        for directory in directories
        for run in _manifest(str(directory))
        if run.get("variant") is None and set(SIDES) <= set(run["files"])
    ]


@lru_cache(8)
def _manifest(directory: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((Path(directory) / "manifest.json").read_text())["runs"]
    return runs


@lru_cache(8)
def _corpus(directory: str) -> str | None:
    name: str | None = json.loads((Path(directory) / "manifest.json").read_text()).get("corpus")
    return name


@lru_cache(_KEPT)
def _read(directory: str, name: str) -> LabelledPair:
    run = next(run for run in _manifest(directory) if run["id"] == name)
    records, numbers = {}, {}
    for side in SIDES:
        ends = [_ends(flow[f"{side}_capture"]) for flow in run["flows"] if flow.get(f"{side}_capture")]
        openers = {frozenset(pair): pair[0] for pair in ends}
        records[side] = _later(records_of(read_capture(Path(directory) / run["files"][side]["name"]), openers))
        numbers[side] = {frozenset(pair): number for number, pair in records[side].ends().items()}
    flows = tuple(_flow(run, flow, numbers, place, records) for place, flow in enumerate(run["flows"]))
    regular = all(flow.truth == "regular" for flow in flows)
    return LabelledPair(records, flows, regular, dict.fromkeys(SIDES, "raw"))


def _later(records: Records) -> Records:
    """Simulated captures begin at the epoch; later, so that a clock may be set back and still be written."""
    return replace(records, time_ns=records.time_ns + np.where(records.time_ns < _EPOCH_NS, _EPOCH_NS, 0))


def _flow(
    run: dict[str, Any],
    flow: dict[str, Any],
    numbers: dict[str, dict[frozenset[str], int]],
    place: int,
    records: dict[str, Records],
) -> Flow:
    seen = {
        side: numbers[side].get(frozenset(_ends(flow[f"{side}_capture"])))
        for side in SIDES
        if flow.get(f"{side}_capture")
    }
    connection = {side: number for side, number in seen.items() if number is not None}
    name, acceptable = f"{run['id']}#{place}", frozenset(flow["acceptable_kinds"])
    return Flow(name, flow["class"], acceptable, connection, _takeover(flow, connection, records))


def _takeover(flow: dict[str, Any], connection: dict[str, int], records: dict[str, Records]) -> Takeover | None:
    from_byte = flow.get("split_from_byte")
    if from_byte is None:
        return None
    up = flow["direction"] == "upload"
    bases = {side: _base(records[side], number, up) for side, number in connection.items()}
    known = {side: base for side, base in bases.items() if base is not None}
    unbounded = Takeover(from_byte, up, known, dict.fromkeys(known, _HALF))
    reached = {side: _reach(records[side], connection[side], unbounded, side) for side in known}
    return replace(unbounded, stream_bytes=reached)


def _base(records: Records, number: int, up: bool) -> int | None:
    """The sequence number of byte 0 of a stream; None where its SYN is missing."""
    opening = (records.connection == number) & (records.is_up == up) & ((records.flags & SYN) > 0)
    return int(records.sequence[opening][0]) + 1 if opening.any() else None


def _reach(records: Records, number: int, takeover: Takeover, side: str) -> int:
    """How many bytes of the stream a capture reaches; one more than the takeover where that is unknown."""
    ends = _data_ends(records, number, takeover, side)
    return takeover.from_byte + 1 if ends is None else int(ends.max())


@dataclass(frozen=True, slots=True)
class _Held:
    """How many data segments of a stream with a takeover a capture holds, and how many of these end after it."""

    data: int
    after: int

    @property
    def is_mostly_before(self) -> bool:
        """Whether too few lie after the takeover to tell, beside more before it."""
        few = self.after < max(FEWEST_AFTER_TAKEOVER, LEAST_SHARE_AFTER_TAKEOVER * self.data)
        return self.after == 0 or (few and self.after < self.data - self.after)


def _held(records: Records, number: int, takeover: Takeover, side: str) -> _Held:
    """All of them, and after the takeover, where their places are unknown."""
    ends = _data_ends(records, number, takeover, side)
    if ends is None:
        return _Held(FEWEST_AFTER_TAKEOVER, FEWEST_AFTER_TAKEOVER)
    return _Held(len(ends), int((ends > takeover.from_byte).sum()))


def _data_ends(records: Records, number: int, takeover: Takeover, side: str) -> Array | None:
    """Where the data segments of the stream end, in bytes from its first one.

    None where the capture holds no data of the stream, or neither its beginning nor the recorded numbers.
    """
    data = (records.connection == number) & (records.is_up == takeover.up) & (records.payload_bytes > 0)
    base = _base(records, number, takeover.up)
    is_recorded = base is None
    base = takeover.base.get(side) if base is None else base
    if base is None or not data.any():
        return None
    begins = (records.sequence[data] - base + _HALF) % (2 * _HALF) - _HALF
    ends = np.asarray(begins + records.payload_bytes[data])
    if is_recorded and (begins.min() < 0 or ends.max() > takeover.stream_bytes.get(side, 0)):
        return None
    return ends


def _ends(text: str) -> tuple[str, str]:
    """`a:1 > b:2` as manifests write it, in the form of the JSON contract."""
    ends = []
    for end in text.split(" > "):
        address, _, port = end.rpartition(":")
        address = address.strip("[]")
        ends.append(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
    return ends[0], ends[1]
