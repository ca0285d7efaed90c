"""A labelled pair of captures: the records at both ends, which connection is which, and of what class they are."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.metamorphic.records import Records, records_of
from tests.captures.containers import read_capture

if TYPE_CHECKING:
    from collections.abc import Sequence

SIDES = ("server", "mobile")

#: Recordings are younger than this.
_EPOCH_NS = 10**18

#: Pairs that a process keeps read: some 2 MB each, and reading one takes as long as judging it.
_KEPT = 400


@dataclass(frozen=True, slots=True)
class Flow:
    """A connection whose class is known: its number in each capture that ever held it.

    `truth` is `regular`, `split` or `proxy`, `acceptable` what it may be called (`unpaired`: one capture holds it).
    """

    name: str
    truth: str
    acceptable: frozenset[str]
    connection: dict[str, int]


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


@lru_cache(_KEPT)
def _read(directory: str, name: str) -> LabelledPair:
    run = next(run for run in _manifest(directory) if run["id"] == name)
    records, numbers = {}, {}
    for side in SIDES:
        ends = [_ends(flow[f"{side}_capture"]) for flow in run["flows"] if flow.get(f"{side}_capture")]
        openers = {frozenset(pair): pair[0] for pair in ends}
        records[side] = _later(records_of(read_capture(Path(directory) / run["files"][side]["name"]), openers))
        numbers[side] = {frozenset(pair): number for number, pair in records[side].ends().items()}
    flows = tuple(_flow(run, flow, numbers, place) for place, flow in enumerate(run["flows"]))
    regular = all(flow.truth == "regular" for flow in flows)
    return LabelledPair(records, flows, regular, dict.fromkeys(SIDES, "raw"))


def _later(records: Records) -> Records:
    """Simulated captures begin at the epoch; later, so that a clock may be set back and still be written."""
    return replace(records, time_ns=records.time_ns + np.where(records.time_ns < _EPOCH_NS, _EPOCH_NS, 0))


def _flow(run: dict[str, Any], flow: dict[str, Any], numbers: dict[str, dict[frozenset[str], int]], place: int) -> Flow:
    seen = {
        side: numbers[side].get(frozenset(_ends(flow[f"{side}_capture"])))
        for side in SIDES
        if flow.get(f"{side}_capture")
    }
    connection = {side: number for side, number in seen.items() if number is not None}
    return Flow(f"{run['id']}#{place}", flow["class"], frozenset(flow["acceptable_kinds"]), connection)


def _ends(text: str) -> tuple[str, str]:
    """`a:1 > b:2` as manifests write it, in the form of the JSON contract."""
    ends = []
    for end in text.split(" > "):
        address, _, port = end.rpartition(":")
        address = address.strip("[]")
        ends.append(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
    return ends[0], ends[1]
