"""Which files belong together: parts of one series, and series of two vantage points that saw the same connections."""

from __future__ import annotations

import csv
import hashlib
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from detector.corpora.survey import Survey, Words
from pepscope.errors import UsageError

#: Parts of a series follow each other; a part begins at most so much later than the one before ended.
_LONGEST_PAUSE_NS = 60_000_000_000

#: What a rotation writes into names: counters and times.
_COUNTER = re.compile(r"\d+")

#: Two vantage points that ran at the same time share at least this many connections, and this share of the fewer ones;
#: where clocks say that they did not, these must have the same initial sequence numbers: ports come again.
_LEAST_SHARED, _LEAST_SHARE = 1, 0.05

#: What goes on in a capture that begins so much later is taken for another connection from the same port.
_LONGEST_CONNECTION_NS = 3_600_000_000_000

_COLUMNS = ("path", "vantage", "network", "operator", "notes")


@dataclass(frozen=True, slots=True)
class Labels:
    """What a manifest says of a file."""

    vantage: str = ""
    network: str = ""
    operator: str = ""
    notes: str = ""


@dataclass(frozen=True, eq=False)
class Series:
    """What one vantage point captured: one file, or the parts of a rotated one in their order."""

    files: tuple[Survey, ...]
    labels: Labels

    @property
    def name(self) -> str:
        """The first file's, with how many follow."""
        first = self.files[0].file.name
        return first if len(self.files) == 1 else f"{first} (+{len(self.files) - 1})"

    @cached_property
    def keys(self) -> Words:
        """Of the connections of all files, each once."""
        return np.unique(np.concatenate([each.keys for each in self.files]))

    @cached_property
    def exact(self) -> Words:
        """Of the connections of all files, initial sequence numbers included, each once."""
        return np.unique(np.concatenate([each.exact for each in self.files]))

    @property
    def span_ns(self) -> tuple[int, int]:
        """Times of the first and the last packet."""
        return self.files[0].first_ns, max(each.last_ns for each in self.files)


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """What is judged together: one vantage point, or two that saw the same connections."""

    first: Series
    second: Series | None = None

    @property
    def series(self) -> tuple[Series, ...]:
        """One or two."""
        return (self.first,) if self.second is None else (self.first, self.second)

    @property
    def network(self) -> str:
        """The network that a manifest gives it."""
        return next((each.labels.network for each in self.series if each.labels.network), "")

    @property
    def digests(self) -> list[str]:
        """Of all files."""
        return [part.digest for each in self.series for part in each.files]

    @property
    def beginnings(self) -> list[tuple[str, int]]:
        """Names of all files with their first packets' times: what a file that is still written keeps."""
        return [(part.file.name, part.first_ns) for each in self.series for part in each.files]

    def without_keys(self) -> Unit:
        """As the work on it needs it: keys say what belongs together, and nothing after that."""
        none = np.empty(0, np.uint64)
        bare = [
            Series(tuple(replace(part, keys=none, exact=none) for part in each.files), each.labels)
            for each in self.series
        ]
        return Unit(*bare)

    def identity(self, of_options: str) -> str:
        """The same for the same content, options and version, whatever the files are called."""
        digest = hashlib.sha256(of_options.encode())
        for each in self.series:
            digest.update("|".join(["", each.labels.network, *(part.digest for part in each.files)]).encode())
        return digest.hexdigest()[:24]


def read_manifest(path: str) -> dict[str, Labels]:
    """Labels by path: CSV with a head line; `path` must be among its columns, `vantage`, `network`, `operator` and
    `notes` may be. Raises UsageError."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
            names = rows[0].keys() if rows else ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"the manifest {path} cannot be read: {error}") from None
    unknown = [str(name) for name in names if name not in _COLUMNS]
    if "path" not in names or unknown:
        raise UsageError(
            f"the manifest {path} must have the columns {', '.join(_COLUMNS)} or some of them, path among them"
            + (f", not {', '.join(unknown)}" if unknown else "")
        )
    return {row["path"]: Labels(*((row.get(name) or "").strip() for name in _COLUMNS[1:])) for row in rows}


class Matched(NamedTuple):
    """Units, and names of captures that share most connections at times so far apart that they are in none together:
    the clock of one is wrong, or a tool changed its times."""

    units: list[Unit]
    apart: list[tuple[str, str]]


def match(surveys: Sequence[Survey], manifest: Mapping[str, Labels]) -> Matched:
    """What is judged together. Every series is in one unit at least; in as many as other vantage points share its
    connections."""
    every = list(_series(surveys, manifest))
    pairs, apart = [], []
    for one, other in _candidates(every):
        if _belong_together(one, other):
            pairs.append(Unit(one, other) if one.span_ns <= other.span_ns else Unit(other, one))
        elif _seem_of_another_time(one, other):
            apart.append((one.name, other.name))
    paired = {each.name for unit in pairs for each in unit.series}
    return Matched(pairs + [Unit(each) for each in every if each.name not in paired], apart)


def _candidates(every: Sequence[Series]) -> list[tuple[Series, Series]]:
    """Series that share a connection, or that a manifest gives one network and two vantage points."""
    named: defaultdict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(every):
        if each.labels.vantage and each.labels.network:
            named[each.labels.network].append(number)
    found = {pair for numbers in named.values() for pair in itertools.combinations(numbers, 2)}
    found |= _sharing([each.keys for each in every])
    return [(every[one], every[other]) for one, other in sorted(found)]


def _sharing(keys: Sequence[Words]) -> set[tuple[int, int]]:
    """Places of sets that have a key in common, the lower first. All keys are sorted once: the work grows with their
    number and with what is shared, not with the number of pairs."""
    owners = np.repeat(np.arange(len(keys)), [len(each) for each in keys])
    every = np.concatenate([np.empty(0, np.uint64), *keys])
    order = np.argsort(every, kind="stable")
    every, owners = every[order], owners[order]
    found = set[tuple[int, int]]()
    places, apart = np.arange(len(every)), 1
    while len(places):
        places = places[places + apart < len(every)]
        places = places[every[places] == every[places + apart]]
        pairs = np.unique(np.stack([owners[places], owners[places + apart]], axis=1), axis=0)
        found.update((int(one), int(other)) for one, other in pairs)
        apart += 1
    return found


def _series(surveys: Sequence[Survey], manifest: Mapping[str, Labels]) -> Iterable[Series]:
    by_pattern: defaultdict[tuple[str, Labels], list[Survey]] = defaultdict(list)
    for each in surveys:
        labels = _labels(each.file.name, manifest)
        by_pattern[series_pattern(each.file.name), labels].append(each)
    for (_, labels), files in by_pattern.items():
        # A copy under another name says nothing new.
        distinct = {each.digest: each for each in sorted(files, key=lambda each: each.file, reverse=True)}
        ordered = sorted(distinct.values(), key=lambda each: (each.first_ns, each.file))
        for part in _runs(ordered):
            yield Series(tuple(part), labels)


def series_pattern(name: str) -> str:
    """What names of one rotated series have in common: `trace.pcap`, `trace.pcap1`; `day_00001_20260102.pcap`."""
    path = Path(name)
    return f"{path.parent}/{_COUNTER.sub('#', path.name).rstrip('#')}"


def _runs(ordered: Sequence[Survey]) -> Iterable[list[Survey]]:
    """Files that follow each other in time, each begun after the one before ended."""
    run: list[Survey] = []
    for each in ordered:
        follows = run and 0 <= each.first_ns - run[-1].last_ns <= _LONGEST_PAUSE_NS
        if run and not follows:
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def _labels(name: str, manifest: Mapping[str, Labels]) -> Labels:
    """By the path as the manifest writes it: whole, or its end."""
    if name in manifest:
        return manifest[name]
    parts = Path(name).parts
    return next((manifest[path] for start in range(1, len(parts)) if (path := "/".join(parts[start:])) in manifest),
                Labels())  # fmt: skip


def _seem_of_another_time(one: Series, other: Series) -> bool:
    """Whether most connections of one are in the other, long before or after: within the hour a long connection may go
    on in a later capture."""
    (begins, ends), (other_begins, other_ends) = one.span_ns, other.span_ns
    if max(begins - other_ends, other_begins - ends) < _LONGEST_CONNECTION_NS:
        return False
    fewest = min(len(one.keys), len(other.keys))
    return fewest > 0 and 2 * len(np.intersect1d(one.keys, other.keys, assume_unique=True)) > fewest


def _belong_together(one: Series, other: Series) -> bool:
    """Whether both saw the same connections at the same time, or a manifest names two vantage points of one network.

    Vantage points with one name are one place.
    """
    named = bool(one.labels.vantage and other.labels.vantage)
    if named and one.labels.vantage == other.labels.vantage:
        return False
    if {each.digest for each in one.files} & {each.digest for each in other.files}:
        return False
    (begins, ends), (other_begins, other_ends) = one.span_ns, other.span_ns
    apart = begins > other_ends or other_begins > ends
    if named and one.labels.network and one.labels.network == other.labels.network and not apart:
        return True
    mine, others = (one.exact, other.exact) if apart else (one.keys, other.keys)
    shared = len(np.intersect1d(mine, others, assume_unique=True))
    return shared >= max(_LEAST_SHARED, _LEAST_SHARE * min(len(mine), len(others)))
