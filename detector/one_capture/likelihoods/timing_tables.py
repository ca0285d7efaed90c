"""How long exchanges take beyond the transport's round trip: densities learned from networks whose truth is known.

The *excess* of an exchange is the time that its answer took beyond a round trip of the transport. End to end it is what
the answering application took, and what the path varies; with a hidden leg it is the leg's round trip on top of that.
The tables hold, by side and kind of exchange and by how much the transport's own round trips vary, the density of the
excess end to end, and of what a hidden leg leaves above its round trip. Late answers have no table, because any delay
may be a habit of an application: they take a common delay and up to `LATE_RATIOS` times as long, as slow processors and
timers with other work beside them do; or a person takes part, and they take anything.

The tables are made by `python -m benchmarks.one_ended_learning`; docs/methods/exchange_timing.md draws them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from pepscope.results.verdicts import GroupSide

Floats = npt.NDArray[np.float64]

#: Classes of exchanges with a table each, in the order of their codes: TLS handshake flights, which libraries answer by
#: themselves; line protocols; HTTP/1; encrypted turns; other turns.
CLASSES = ("handshake", "line", "http", "encrypted", "turn")

#: What is added to the code of a class where the exchange is the first that a server answers in its connection. A
#: relay that connects to the server only when it has accepted the client makes it wait for two round trips of the
#: hidden leg: for the handshake there, and for the answer.
OPENING = len(CLASSES)

#: Share of relays that connect only then.
CONNECTS_LATER = 0.5

#: Round trips of hidden legs that are told apart (s), each standing for all legs that are nearer to it than to others.
HIDDEN_S: Floats = np.geomspace(0.004, 2.0, 80)

#: Legs that one of `HIDDEN_S` stands for are averaged over: long legs are further apart than their answers vary.
_WITHIN: Floats = np.geomspace(HIDDEN_S[0], HIDDEN_S[1], 13)[:-1] / np.sqrt(HIDDEN_S[0] * HIDDEN_S[1])

#: Shortest delays that may be common to all answers of an application (s), and how many times as long it may take; the
#: delay is uniform in between.
LATE_S: Floats = np.geomspace(0.003, 4.0, 40)
LATE_RATIOS = (1.25, 1.6, 2.2)

#: How probable each of them is, by delay and then by ratio: a host that takes ten times as long is half as frequent.
LATE_SHARES: Floats = np.repeat(LATE_S**-0.3 / (LATE_S**-0.3).sum() / len(LATE_RATIOS), len(LATE_RATIOS))

#: What people take to answer (s); log-uniform.
_PERSON_S = (0.1, 100.0)

#: Share of the answers of a late application that come as if it were not.
PROMPT_SHARE = 0.03

#: Late answers are averaged over the middles of so many equal parts of their range.
_PARTS = 16

#: Excess is looked up in bins, as fine as the densities can differ: 3 % wide, symmetric around zero.
_FINEST_S = 0.0002
_BINS_S: Floats = np.geomspace(_FINEST_S, 60.0, 400)
_EDGES_S: Floats = np.concatenate([-_BINS_S[::-1], [0.0], _BINS_S])


@dataclass(frozen=True, slots=True)
class TimingTables:
    """Log densities (nats per second of excess) of one side, looked up by bins of the excess.

    `nats` has axes class (`CLASSES`, then the same as `OPENING`), variation of the path, hypothesis and bin. Hypotheses
    are end to end, then a hidden leg of each of `HIDDEN_S`, answers that are late by each of `LATE_S` and
    `LATE_RATIOS`, and those of a person. `variation_edges_s` bound the classes of variation; `variation_nats` is the
    log probability of each of them end to end and behind a split.
    """

    nats: npt.NDArray[np.float32]
    variation_edges_s: Floats
    variation_nats: Floats

    END = 0
    HIDDEN = slice(1, 1 + len(HIDDEN_S))
    LATE = slice(1 + len(HIDDEN_S), 1 + len(HIDDEN_S) + len(LATE_SHARES))
    PERSON = 1 + len(HIDDEN_S) + len(LATE_SHARES)

    def variation_class(self, variation_s: Floats) -> npt.NDArray[np.intp]:
        """The class of each variation; the last one, of all paths together, where nothing is known (NaN)."""
        return variation_class(self.variation_edges_s, variation_s)


def variation_class(edges_s: Floats, variation_s: Floats) -> npt.NDArray[np.intp]:
    """The class of each variation between these edges; one more, the last, where it is not known (NaN)."""
    known = np.searchsorted(edges_s, np.nan_to_num(variation_s), side="right")
    return np.where(np.isnan(variation_s), len(edges_s) + 1, known)


def excess_bin(excess_s: Floats) -> npt.NDArray[np.intp]:
    """The bin of each excess, as `TimingTables.nats` has them."""
    return np.clip(np.searchsorted(_EDGES_S, excess_s, side="right") - 1, 0, len(_EDGES_S) - 2)


@cache
def timing_tables(side: GroupSide) -> TimingTables:
    """The tables for captures at this side (client or server), as they are installed with the program."""
    content = json.loads(files(__package__).joinpath("timing_tables.json").read_text("ascii"))
    return tables_of(content, side)


def tables_of(content: dict[str, Any], side: GroupSide) -> TimingTables:
    """The tables of one side from what the learning wrote."""
    learned = content["sides"][side.value]
    edges_s = np.asarray(content["excess_edges_s"], np.float64)
    middle_s = (_EDGES_S[1:] + _EDGES_S[:-1]) / 2
    by_class = [
        [
            _hypotheses(edges_s, end, hidden, middle_s, opening=opening)
            for end, hidden in zip(tables[kind], learned["hidden"][kind], strict=True)
        ]
        for opening, tables in ((False, learned["end"]), (True, learned["end_opening"]))
        for kind in CLASSES
    ]
    return TimingTables(
        np.log(np.asarray(by_class)).astype(np.float32),
        np.asarray(content["variation_edges_s"], np.float64),
        np.log(np.asarray([learned["variation"]["end"], learned["variation"]["hidden"]], np.float64)),
    )


def _hypotheses(edges_s: Floats, end: list[float], hidden: list[float], at_s: Floats, *, opening: bool) -> Floats:
    """Densities at these excesses by each hypothesis."""
    end_to_end = _density(edges_s, end, at_s)
    above = _above_legs(edges_s, hidden, at_s, 1)
    if opening:
        above = CONNECTS_LATER * _above_legs(edges_s, hidden, at_s, 2) + (1 - CONNECTS_LATER) * above
    return np.concatenate([end_to_end[None], above, _late(edges_s, end, at_s), _person(end_to_end, at_s)[None]])


def _above_legs(edges_s: Floats, hidden: list[float], at_s: Floats, crossed: int) -> Floats:
    """Densities behind each of `HIDDEN_S`, whose round trip the answer takes `crossed` times."""
    return np.asarray([
        np.mean([_density(edges_s, hidden, at_s - crossed * near_s) for near_s in leg_s * _WITHIN], axis=0)
        for leg_s in HIDDEN_S
    ])  # fmt: skip


def _density(edges_s: Floats, probability: list[float], at_s: Floats) -> Floats:
    """The density of a histogram; its outermost bins reach to its outermost edges."""
    place = np.clip(np.searchsorted(edges_s, at_s, side="right") - 1, 0, len(probability) - 1)
    density: Floats = (np.asarray(probability) / np.diff(edges_s))[place]
    return density


def _late(edges_s: Floats, end: list[float], at_s: Floats) -> Floats:
    """Densities of answers that take each of `LATE_S` or longer, on top of what they take end to end."""
    middles = (np.arange(_PARTS) + 0.5) / _PARTS
    late = [
        np.mean([_density(edges_s, end, at_s - least_s * (1 + (ratio - 1) * part)) for part in middles], axis=0)
        for least_s in LATE_S
        for ratio in LATE_RATIOS
    ]
    mixed: Floats = (1 - PROMPT_SHARE) * np.asarray(late) + PROMPT_SHARE * _density(edges_s, end, at_s)[None]
    return mixed


def _person(end_to_end: Floats, at_s: Floats) -> Floats:
    least_s, most_s = _PERSON_S
    taken = np.clip(at_s, least_s, None)
    by_person = np.where((at_s >= least_s) & (at_s <= most_s), 1 / (taken * np.log(most_s / least_s)), 0.0)
    mixed: Floats = (1 - PROMPT_SHARE) * by_person + PROMPT_SHARE * end_to_end
    return mixed
