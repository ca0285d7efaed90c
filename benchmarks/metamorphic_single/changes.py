"""What may be changed about one capture. Most of it is done to pairs, too (`benchmarks.metamorphic.changes`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.metamorphic import changes as of_pairs
from benchmarks.metamorphic import rewriting
from benchmarks.metamorphic.changes import Parameters
from benchmarks.metamorphic.pairs import LabelledPair
from benchmarks.metamorphic.records import SYN, Records, joined
from benchmarks.metamorphic_single.captures import (
    LabelledCapture,
    Source,
    first_free_number,
    renumbered,
    span_ns,
)
from benchmarks.metamorphic_single.firewall import collecting_first_flights

_KEY_BITS = 24

#: Changes of pairs that need both captures, or that grouping by port does not survive.
_OF_PAIRS_ALONE = {"anonymise addresses", "anonymise one capture", "strip timestamps", "swap arguments"}
_OTHERWISE_HERE = {"merge an unrelated capture", "translate addresses"}


@dataclass(frozen=True, slots=True)
class Change:
    """Something that networks, clocks and capture tools do; `keeps` says why the truth stays what it was."""

    name: str
    keeps: str
    draw: Callable[[random.Random, Sequence[Source]], Parameters]
    apply: Callable[[LabelledCapture, Parameters], LabelledCapture]


def _of_pairs(change: of_pairs.Change) -> Change:
    """A change of one end of a pair as one of a capture of that end."""

    def apply(capture: LabelledCapture, parameters: Parameters) -> LabelledCapture:
        place = capture.place
        files, link = [], capture.link
        for records in capture.files:
            pair = LabelledPair({place: records}, (), all_regular=False, links={place: capture.link})
            changed = change.apply(pair, place, parameters)
            files.append(changed.records[place])
            link = changed.links[place]
        return replace(capture, files=tuple(files), link=link)

    return Change(change.name, change.keeps, lambda chance, _: change.draw(chance), apply)


def _each(edit: Callable[[Records, Parameters, np.random.Generator], Records]) -> Callable[..., LabelledCapture]:
    def apply(capture: LabelledCapture, parameters: Parameters) -> LabelledCapture:
        # Of one seed, so that a translation is the same in every file.
        files = (
            edit(records, parameters, np.random.default_rng(parameters.get("seed", 0))) for records in capture.files
        )
        return replace(capture, files=tuple(files))

    return apply


def _key(chance: random.Random, _: Sequence[Source]) -> Parameters:
    return {"key": chance.getrandbits(_KEY_BITS)}


def _seed(chance: random.Random, _: Sequence[Source]) -> Parameters:
    return {"seed": chance.getrandbits(31)}


def _nothing(_chance: random.Random, _: Sequence[Source]) -> Parameters:
    return {}


def _without_offered_timestamps(records: Records) -> Records:
    """No segment has the option but SYNs of openers."""
    opening = (records.flags & SYN > 0) & records.is_up
    return rewriting.without_timestamps(records, ~opening)


def _in_series(capture: LabelledCapture, parameters: Parameters) -> LabelledCapture:
    """Each file cut in time: a ring of capture files."""
    files = []
    for records in capture.files:
        parts = np.array_split(np.arange(len(records)), parameters["parts"])
        files += [records.take(part) for part in parts if len(part)]
    return replace(capture, files=tuple(files)) if files else capture


def _by_connection(capture: LabelledCapture, parameters: Parameters) -> LabelledCapture:
    """Each file by connections: a balancer of a capture tool that writes several files."""
    parts = parameters["parts"]
    files = [records.take(records.connection % parts == part) for records in capture.files for part in range(parts)]
    return replace(capture, files=tuple(records for records in files if len(records)) or capture.files)


def _unrelated(chance: random.Random, sources: Sequence[Source]) -> Parameters:
    source = sources[int(chance.random() * len(sources))]
    later = round(chance.uniform(-0.5, 0.8), 3)
    return {"folder": source.folder, "file": source.file, "key": chance.getrandbits(_KEY_BITS), "later": later}


def _with_unrelated(capture: LabelledCapture, parameters: Parameters) -> LabelledCapture:
    """What another host of the same end had captured, its addresses under a key, in the first file."""
    other = Source(parameters["folder"], parameters["file"]).read()
    here, there = capture.files[0], other.files[0]
    if other.place != capture.place or len(here) == 0 or len(there) == 0:
        return capture
    later_ns = round(parameters["later"] * span_ns(here))
    moved = rewriting.anonymised(there, parameters["key"])
    moved = replace(moved, time_ns=moved.time_ns + int(here.time_ns.min() - there.time_ns.min()) + later_ns)
    shift = first_free_number(capture)
    files = (joined(here, moved, shift), *capture.files[1:])
    return replace(capture, files=files, truths={**capture.truths, **renumbered(other.truths, shift)})


CHANGES: Sequence[Change] = (
    *(_of_pairs(change) for change in of_pairs.CHANGES if change.name not in _OF_PAIRS_ALONE | _OTHERWISE_HERE),
    Change(
        "translate addresses", "the openers are seen behind a NAT", _seed,
        _each(lambda r, _, c: rewriting.translated(r, True, c)),
    ),
    Change(
        "anonymise addresses", "the capture through an anonymiser that keeps networks", _key,
        _each(lambda r, p, _: rewriting.anonymised(r, p["key"])),
    ),
    Change(
        "strip timestamps", "a middlebox strips the option; no segment but the opener's SYN has it", _nothing,
        _each(lambda r, *_: _without_offered_timestamps(r)),
    ),
    Change(
        "counted times", "a tool that keeps no times counts packets instead, or writes one time",
        lambda chance, _: {"step_ns": chance.choice((0, 1_000, 1_000_000))},
        _each(lambda r, p, _: replace(r, time_ns=r.time_ns[:1].sum() + np.arange(len(r)) * p["step_ns"])),
    ),
    Change(
        "a firewall reads first flights", "it acknowledges what clients say first, and ends no connection",
        lambda chance, _: {"after_ns": round(1e6 * 10 ** chance.uniform(-0.5, 1.2))},
        _each(lambda r, p, _: collecting_first_flights(r, p["after_ns"])),
    ),
    Change(
        "half of the connections", "a capture tool that samples connections",
        lambda chance, _: {"part": chance.randrange(2)},
        _each(lambda r, p, _: r.take(r.connection % 2 == p["part"])),
    ),
    Change(
        "a series of files", "a ring of capture files, all of them given",
        lambda chance, _: {"parts": chance.choice((2, 3, 5))}, _in_series,
    ),
    Change(
        "a file for each queue", "a capture tool that spreads connections over files, all of them given",
        lambda chance, _: {"parts": chance.choice((2, 3))}, _by_connection,
    ),
    Change(
        "merge an unrelated capture", "other traffic at the same end, whose truth is known", _unrelated, _with_unrelated
    ),
)  # fmt: skip

BY_NAME: Mapping[str, Change] = {change.name: change for change in CHANGES}
