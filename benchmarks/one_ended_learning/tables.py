"""The densities of `timing_tables.json`, counted from networks whose truth is known, and smoothed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming, exchange_timing
from detector.one_capture.likelihoods.timing_tables import (
    CLASSES,
    HIDDEN_S,
    OPENING,
    SHIFT_EDGES_S,
    Floats,
    variation_class,
)
from detector.one_capture.networks import NetworkTable, Places, places
from pepscope.captures.capture import open_capture
from pepscope.results.verdicts import GroupSide

#: Bins of the excess (s): fine where end-to-end exchanges lie, then in steps of a quarter.
EDGES_MS = (
    *(-60_000, -100, -30, -10, -5, -2.5, -1, 0, 0.5, 1, 1.5, 2, 3, 4, 5, 6.5, 8, 10, 12.5, 16, 20, 25, 32, 40, 50),
    *(63, 80, 100, 126, 160, 200, 250, 320, 400, 630, 1_000, 2_500, 10_000, 60_000),
)

#: Classes of how much round trips vary: a wire, a wireless LAN, a mobile cell, a cell with queues or wake-ups.
VARIATION_EDGES_MS = (1.5, 6, 20)

#: Natures of hidden legs, by how much answers across them vary (10 to 60 % quantile): wires, wireless LANs, cells,
#: queues.
NATURE_EDGES_MS = (3, 7, 16)

#: Groups with so many exchanges across a leg show its nature.
NATURE_EXCHANGES = 8

#: Natures of paths and hosts that are end to end, by how much what libraries answer varies: the same, and a queue.
END_NATURE_EDGES_MS = (3, 7, 16, 50)

#: Paths and hosts that are end to end take up to so much longer than round trips of the transport, in each answer;
#: what is later is a habit, which is a hypothesis of its own.
MOST_SHIFT_S = 0.03

#: Groups with so many exchanges that libraries answer (handshakes, line protocols) show by how much.
SHIFT_EXCHANGES = 6

#: Share of slow lines without grants among what shifts answers end to end.
STEADY_SHIFTS = 0.05

#: Exchanges that a density of a class of its own is worth before any was seen.
PRIOR_EXCHANGES = 12.0

#: Groups that each class of variation is credited with.
PRIOR_GROUPS = 2.0

#: What takes longer beyond path and leg (s) says nothing of them.
PEOPLE_S = 0.2

#: The density that is left where nothing was ever seen: one exchange in so many.
FLOOR = 2_000.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Exchanges of one group whose truth is known; `hidden_s` is NaN end to end."""

    side: GroupSide
    kind: np.ndarray
    variation: int
    excess_s: Floats
    hidden_s: Floats

    @property
    def crosses(self) -> np.ndarray:
        """Which exchanges cross a hidden leg once."""
        crosses: np.ndarray = (self.hidden_s >= HIDDEN_S[0]) & (self.kind < OPENING)
        return crosses

    @property
    def nature(self) -> int | None:
        """The class of the hidden leg by the spread of what answers take beyond it; None end to end, or of few."""
        above_s = (self.excess_s - self.hidden_s)[self.crosses]
        above_s = above_s[above_s < PEOPLE_S]
        if len(above_s) < NATURE_EXCHANGES:
            return None
        return _nature(above_s)

    @property
    def by_library_s(self) -> Floats | None:
        """The excess of what libraries answered end to end; None of few."""
        by_library = np.isin(self.kind % OPENING, [CLASSES.index(name) for name in ("handshake", "line")])
        if not np.isnan(self.hidden_s).all() or by_library.sum() < SHIFT_EXCHANGES:
            return None
        taken_s: Floats = self.excess_s[by_library]
        return taken_s

    @property
    def end_nature(self) -> int | None:
        """The class of what is end to end by how much the answers of libraries vary; None behind a leg, or of few."""
        if self.by_library_s is None:
            return None
        low_s, high_s = np.quantile(self.by_library_s, [0.1, 0.6])
        return int(np.searchsorted(np.asarray(END_NATURE_EDGES_MS) / 1e3, high_s - low_s, side="right"))

    @property
    def is_late(self) -> bool:
        """Whether even the fast answers of libraries are late, and the path does not explain it."""
        if self.by_library_s is None or self.variation == len(VARIATION_EDGES_MS):
            return False
        return float(np.quantile(self.by_library_s, 0.2)) >= MOST_SHIFT_S

    @property
    def shift_s(self) -> float | None:
        """By how much the fast answers of libraries exceed the transport's round trips end to end; None of few."""
        if self.by_library_s is None:
            return None
        shift_s = float(np.quantile(self.by_library_s, 0.2))
        return shift_s if shift_s < MOST_SHIFT_S else None


def samples(directory: Path) -> Iterator[Sample]:
    """The exchanges of all networks in a directory, by group."""
    for truth_file in sorted(directory.glob("*/truth.json")):
        truth = json.loads(truth_file.read_text("utf-8"))
        for capture in truth["captures"]:
            yield from _of_capture(truth_file.parent / capture["file"], capture)


def _of_capture(path: Path, truth: dict[str, Any]) -> Iterator[Sample]:
    capture = open_capture(str(path), tcp_needed=False)
    for side in (GroupSide.CLIENT, GroupSide.SERVER):
        groups = [group for group in truth["groups"] if group.get("side", truth["side"]) == side.value]
        if not groups or not capture.tcp_packet_count:
            continue
        at_client = side is GroupSide.CLIENT
        columns = capture.connection_columns()
        where = places(columns, at_client=at_client, table=NetworkTable())
        timing = exchange_timing(capture.exchanges(), where, at_client=at_client)
        yield from _by_group(side, where, timing, groups)


def _by_group(
    side: GroupSide, where: Places, timing: ExchangeTiming, groups: Sequence[dict[str, Any]]
) -> Iterator[Sample]:
    variation_s = timing.of_groups(timing.variation_s, where.member_group, len(where.network))
    class_of = variation_class(np.asarray(VARIATION_EDGES_MS) / 1e3, variation_s)
    hosts = np.asarray(where.member_address, dtype=object)[timing.member]
    group_of = where.member_group[timing.member]
    for number, (network, port) in enumerate(zip(where.network, where.port.tolist(), strict=True)):
        for truth in groups:
            if (truth["network"], truth["port"]) != (network, port) or not _is_ordinary(truth):
                continue
            wanted = (group_of == number) & ((hosts == truth["host"]) | (truth.get("host") is None))
            if truth["class"] == "split":
                leg_s = _leg_s(truth["hidden_round_trip_s"], hosts[wanted])
            else:
                leg_s = np.full(int(wanted.sum()), np.nan)
            yield Sample(side, timing.kind[wanted], int(class_of[number]), timing.excess_s[wanted], leg_s)


#: What does not let all exchanges cross its hidden leg, or hides it: parts of mechanisms' names.
_HIDES = ("tls", "web", "holding")


def _is_ordinary(truth: dict[str, Any]) -> bool:
    """Whether answers are neither thought about nor from a cache nor a front end, and handshakes the host's own."""
    hides = any(part in str(truth.get("mechanism")) for part in _HIDES)
    return not (truth.get("thinks") or truth.get("cache") or hides or truth["class"] == "syn-proxy")


def _leg_s(truth: Any, hosts: np.ndarray) -> Floats:
    if isinstance(truth, dict):
        return np.asarray([truth.get(host, np.nan) for host in hosts], np.float64)
    return np.full(len(hosts), np.nan if truth is None else truth, np.float64)


def learned(found: Sequence[Sample]) -> dict[str, Any]:
    """The content of the tables."""
    edges_s = np.asarray(EDGES_MS) / 1e3
    return {
        "excess_edges_s": edges_s.tolist(),
        "variation_edges_s": [edge / 1e3 for edge in VARIATION_EDGES_MS],
        "sides": {side.value: _side(edges_s, of_side(found, side)) for side in (GroupSide.CLIENT, GroupSide.SERVER)},
    }


def of_side(found: Sequence[Sample], side: GroupSide) -> list[Sample]:
    return [sample for sample in found if sample.side is side and not sample.is_late]


def _side(edges_s: Floats, found: Sequence[Sample]) -> dict[str, Any]:
    split = [bool(len(each.hidden_s) and not np.isnan(each.hidden_s).all()) for each in found]
    kind = np.concatenate([each.kind for each in found])
    excess_s = np.concatenate([each.excess_s for each in found])
    variation = np.concatenate([np.full(len(each.kind), each.variation) for each in found])
    whole = np.concatenate([np.full(len(each.kind), not is_split) for each, is_split in zip(found, split, strict=True)])
    end = _end_tables(edges_s, kind, excess_s, variation, whole, 0)
    return {
        "end": end,
        "end_opening": _end_tables(edges_s, kind, excess_s, variation, whole, OPENING),
        "hidden": _hidden_tables(edges_s, found, end),
        "natures": _shares_by_variation([(each.variation, each.nature) for each in found], len(NATURE_EDGES_MS) + 1),
        "end_by_nature": _by_nature_tables(edges_s, found, end),
        "end_natures": _shares_by_variation(
            [(each.variation, each.end_nature) for each in found], len(END_NATURE_EDGES_MS) + 1
        ),
        "shifts": _shift_shares(found),
        **({"shift_natures": shift_natures(found)} if found and found[0].side is GroupSide.SERVER else {}),
    }


def _end_tables(
    edges_s: Floats, kind: np.ndarray, excess_s: Floats, variation: np.ndarray, whole: np.ndarray, opening: int
) -> dict[str, list[list[float]]]:
    """By class of exchanges and of variation; what is rare borrows from its class, and that from all classes."""
    ours = whole & (kind // OPENING == opening // OPENING)
    every = _smoothed(_counts(edges_s, excess_s[ours]), np.full(len(edges_s) - 1, 1.0))
    tables = {}
    for code, name in enumerate(CLASSES):
        of_kind = ours & (kind % OPENING == code)
        middle = _smoothed(_counts(edges_s, excess_s[of_kind]), every)
        by_variation = [of_kind & (variation == number) for number in range(len(VARIATION_EDGES_MS) + 1)]
        tables[name] = [
            *(_smoothed(_counts(edges_s, excess_s[rows]), middle).tolist() for rows in by_variation), middle.tolist(),
        ]  # fmt: skip
    return tables


def _hidden_tables(
    edges_s: Floats, found: Sequence[Sample], end: dict[str, list[list[float]]]
) -> dict[str, list[list[float]]]:
    """By class of exchanges and nature of the leg; what is rare borrows from all classes of that nature."""
    by_nature = [[each for each in found if each.nature == number] for number in range(len(NATURE_EDGES_MS) + 1)]
    every = [_smoothed(_above_counts(edges_s, of), np.full(len(edges_s) - 1, 1.0)) for of in by_nature]
    tables = {}
    for code, name in enumerate(CLASSES):
        own = [_smoothed(_above_counts(edges_s, of, code), prior) for of, prior in zip(by_nature, every, strict=True)]
        if name != "handshake":
            own = [_with_tail(edges_s, table, np.asarray(end[name][-1])) for table in own]
        tables[name] = [table.tolist() for table in own]
    return tables


def _above_counts(edges_s: Floats, found: Sequence[Sample], code: int | None = None) -> Floats:
    """How many exchanges, of one class or all, took so much longer than their leg."""
    counts = np.zeros(len(edges_s) - 1)
    for each in found:
        wanted = each.crosses if code is None else each.crosses & (each.kind == code)
        counts += _counts(edges_s, (each.excess_s - each.hidden_s)[wanted])
    return counts


def _by_nature_tables(
    edges_s: Floats, found: Sequence[Sample], end: dict[str, list[list[float]]]
) -> dict[str, list[list[float]]]:
    """End to end, by class of exchanges (of a connection's first ones behind the others) and nature."""
    natures = [[each for each in found if each.end_nature == number] for number in range(len(END_NATURE_EDGES_MS) + 1)]
    tables: dict[str, list[list[float]]] = {}
    for code, name in enumerate(CLASSES):
        every = np.asarray(end[name][-1])
        tables[name] = [
            _smoothed(_end_counts(edges_s, of, opening + code), every).tolist()
            for opening in (0, OPENING)
            for of in natures
        ]
    return tables


def _end_counts(edges_s: Floats, found: Sequence[Sample], code: int) -> Floats:
    counts = np.zeros(len(edges_s) - 1)
    for each in found:
        counts += _counts(edges_s, each.excess_s[each.kind == code])
    return counts


def _shares_by_variation(found: Sequence[tuple[int, int | None]], natures: int) -> list[list[float]]:
    """How frequent each nature is among groups, by how much their round trips vary; then among all of them."""
    known = [(variation, nature) for variation, nature in found if nature is not None]
    every = np.bincount([nature for _, nature in known], minlength=natures) + PRIOR_GROUPS
    rows = [
        np.bincount([nature for of, nature in known if of == number], minlength=natures)
        + PRIOR_GROUPS * natures * every / every.sum()
        for number in range(len(VARIATION_EDGES_MS) + 1)
    ]
    return [(row / row.sum()).tolist() for row in (*rows, every)]


def _shift_shares(found: Sequence[Sample]) -> list[list[float]]:
    """How frequent it is that a group's answers are shifted end to end: not at all, then by as much as each leg of
    `HIDDEN_S`; by how much round trips vary, then of all paths."""
    edges_s = np.concatenate([[-np.inf], HIDDEN_S / np.sqrt(HIDDEN_S[1] / HIDDEN_S[0]), [np.inf]])
    known = [(each.variation, shift_s) for each in found if (shift_s := each.shift_s) is not None]
    every = np.histogram([shift_s for _, shift_s in known], edges_s)[0]
    rows = [
        np.histogram([shift_s for of, shift_s in known if of == number], edges_s)[0]
        + PRIOR_EXCHANGES * every / every.sum()
        for number in range(len(VARIATION_EDGES_MS) + 1)
    ]
    return [(row / row.sum()).tolist() for row in (*rows, every)]


def shift_natures(found: Sequence[Sample]) -> list[list[float]]:
    """How frequent each nature is among groups that are shifted end to end, by the classes of `SHIFT_EDGES_S`. One in
    twenty is credited with the steadiest: no laboratory has slow lines without grants, which delay alike what is alike.
    """
    counts = np.zeros((len(SHIFT_EDGES_S) + 1, len(NATURE_EDGES_MS) + 1))
    for each in found:
        shift_s, by_library_s = each.shift_s, each.by_library_s
        if shift_s is not None and by_library_s is not None and shift_s >= HIDDEN_S[0]:
            counts[np.searchsorted(SHIFT_EDGES_S, shift_s, side="right"), _nature(by_library_s)] += 1
    every = counts.sum(axis=0) + PRIOR_GROUPS
    rows = counts + PRIOR_GROUPS * len(every) * every / every.sum()
    steadiest = np.arange(len(every)) == 0
    return [((1 - STEADY_SHIFTS) * row / row.sum() + STEADY_SHIFTS * steadiest).tolist() for row in rows]


def _nature(above_s: Floats) -> int:
    low_s, high_s = np.quantile(above_s, [0.1, 0.6])
    return int(np.searchsorted(np.asarray(NATURE_EDGES_MS) / 1e3, high_s - low_s, side="right"))


def _with_tail(edges_s: Floats, table: Floats, other: Floats) -> Floats:
    """The table with the other one's tail: answers that take longer than `PEOPLE_S` are applications' and people's
    doing, on split paths as on others."""
    tail = edges_s[:-1] >= PEOPLE_S
    body = table[~tail].sum()
    return np.where(tail, other, table * (1.0 - other[tail].sum()) / body)


def _counts(edges_s: Floats, values_s: Floats) -> Floats:
    return np.histogram(np.clip(values_s, edges_s[0], edges_s[-1] - 1e-9), edges_s)[0].astype(np.float64)


def _smoothed(counts: Floats, prior: Floats) -> Floats:
    """Probabilities by bin: as seen, with `PRIOR_EXCHANGES` of the prior and a floor in every bin."""
    shares = (counts + PRIOR_EXCHANGES * prior / prior.sum()) / (counts.sum() + PRIOR_EXCHANGES)
    floored = shares + 1.0 / FLOOR / len(shares)
    probabilities: Floats = floored / floored.sum()
    return probabilities


def rounded(value: Any) -> Any:
    """Numbers with six digits, more than anything learned has; the tables are a part of every installation."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
