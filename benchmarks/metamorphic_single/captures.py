"""Labelled captures of one end: simulated or real networks, and the small ones of the tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.metamorphic.records import Records, records_of
from benchmarks.one_ended_score.truths import GroupTruth, read_truths
from detector.detection import detect
from pepscope.captures.capture import open_capture
from tests.captures.containers import read_capture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Captures kept in a process: hundreds of cases ask for the same.
_KEPT = 400

#: Captures begin at this time at the least, so that their clocks may be set back and their times still be written.
_EPOCH_NS = 1_600_000_000 * 10**9

#: Names the captures of a folder, and their groups.
_MANIFEST = "manifest.json"

#: Hidden legs from this on (s) are to be found.
SHOWN_S = 0.015


@dataclass(frozen=True, slots=True)
class ConnectionTruth:
    """Whether something splits a connection on one side of the capture, and whether in the network.

    `shows`: the leg behind it is `SHOWN_S` or longer, and what splits it answers nothing of what is asked itself. Other
    splits may look end to end.
    """

    is_split: bool
    is_split_in_network: bool
    shows: bool

    @classmethod
    def of(cls, group: GroupTruth) -> ConnectionTruth:
        """That of a group, or of one of its hosts."""
        hidden_s = group.hidden_s or (0.0, 0.0)
        return cls(group.is_split, group.is_split_in_network, hidden_s[0] >= SHOWN_S and not group.answers_itself)


#: Side of a group (`server`: the far end is a network of clients) and number of a connection.
Stretch = tuple[str, int]


@dataclass(frozen=True, slots=True)
class LabelledCapture:
    """A capture as files of records that are judged together, and the truth of each stretch of its connections.

    A capture between the ends has groups on both sides, and two stretches of a connection.
    """

    files: tuple[Records, ...]
    truths: Mapping[Stretch, ConnectionTruth]
    link: str = "raw"

    @property
    def place(self) -> str:
        """Which end of pairs (`benchmarks.metamorphic`) was captured: `server`, or `mobile` for the clients'."""
        at_clients = sum(side == "client" for side, _ in self.truths)
        return "mobile" if 2 * at_clients > len(self.truths) else "server"


@dataclass(frozen=True, slots=True)
class Source:
    """A capture of a network's folder, still unread."""

    folder: str
    file: str

    @property
    def name(self) -> str:
        """Folder and file."""
        return f"{Path(self.folder).name}/{self.file}"

    def read(self) -> LabelledCapture:
        """The TCP packets as recorded, without link layers."""
        return _read(self)


def sources(directories: Sequence[Path]) -> list[Source]:
    """Every capture with groups in the networks' folders in or below these directories, and of folders with a
    manifest as that of `tests/captures/one_ended`."""
    known = [path for name in ("truth.json", _MANIFEST) for directory in directories for path in directory.rglob(name)]
    folders = sorted({path.parent for path in known})
    return [Source(str(folder), file) for folder in folders for file in _groups(str(folder))]


@lru_cache(_KEPT)
def _groups(folder: str) -> dict[str, list[GroupTruth]]:
    """The groups of each capture in a folder."""
    manifest = Path(folder) / _MANIFEST
    if not manifest.exists():
        return read_truths(Path(folder))
    rows = json.loads(manifest.read_text(encoding="utf-8"))["captures"]
    return {row["file"]: [_group(row["file"], group) for group in row["groups"]] for row in rows}


def _group(file: str, group: Mapping[str, Any]) -> GroupTruth:
    span = group["hidden_round_trip_range_s"]
    return GroupTruth(
        network="", capture=file, access="", middle="", side=group["side"], prefix=group["network"],
        port=group["port"], host=None, kind=group["class"], where=group["where"],
        hidden_s=None if span is None else (span[0], span[1]), near_s=None, cache=False, thinks=group["thinks"],
        whole=True, exchanges=None, mechanism=None, cut=False,
    )  # fmt: skip


@lru_cache(_KEPT)
def _read(source: Source) -> LabelledCapture:
    path = Path(source.folder) / source.file
    openers = {frozenset((each.client, each.server)): each.client for each in open_capture(path).connections}
    records = records_of(read_capture(path), openers)
    if len(records) and records.time_ns.min() < _EPOCH_NS:
        records = replace(records, time_ns=records.time_ns + _EPOCH_NS)
    return LabelledCapture((records,), _truths(path, records, _groups(source.folder)[source.file]))


def _truths(path: Path, records: Records, groups: Sequence[GroupTruth]) -> dict[Stretch, ConnectionTruth]:
    """The truth of each stretch: its host's, else that of its group where all of it is alike."""
    known = {(group.side, group.prefix, group.port, group.host): group for group in groups}
    numbers = {frozenset(ends): number for number, ends in records.ends().items()}
    result = detect(str(path))
    truths = {}
    for group in result.groups:
        side = group.side.value
        for place in group.pairs:
            name = result.pairs[place].vantages[0]
            far = name.server if side == "client" else name.client
            host = far.rsplit(":", 1)[0].strip("[]")
            whole = known.get((side, group.network, group.port, None))
            truth = known.get((side, group.network, group.port, host), whole if whole and whole.whole else None)
            number = numbers.get(frozenset((name.client, name.server)))
            if truth is not None and number is not None:
                truths[side, number] = ConnectionTruth.of(truth)
    return truths


def renumbered(truths: Mapping[Stretch, ConnectionTruth], shift: int) -> dict[Stretch, ConnectionTruth]:
    """The truths of connections whose numbers are `shift` higher."""
    return {(side, number + shift): truth for (side, number), truth in truths.items()}


def first_free_number(capture: LabelledCapture) -> int:
    """A number above those of all connections."""
    return max((records.connections for records in capture.files), default=0)


def span_ns(records: Records) -> int:
    """Time between the first and the last record."""
    return int(np.ptp(records.time_ns)) if len(records) else 0
