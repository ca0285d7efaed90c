"""What methods found on connections, a row a piece of evidence, as tables have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pepscope.captures.tables.texts import SlicedTexts, gathered
from pepscope.results.distinct import distinct
from pepscope.results.encoding.pieces import FigureTexts
from pepscope.results.evidence.columns import Int64Array
from pepscope.results.evidence.growing import Coded
from pepscope.results.evidence.table import EvidenceTable, Part

if TYPE_CHECKING:
    from pepscope.results.frames import Column


def evidence_columns(evidence: EvidenceTable, rows: Int64Array) -> tuple[Int64Array, Mapping[str, Column]]:
    """How many pieces of evidence each connection of some rows has, and all of these in order as columns by name.

    Figures are JSON text, caveats joined by `; `.
    """
    pieces = evidence.pieces(rows)
    counts = np.bincount(pieces.owner, minlength=len(rows))
    summaries, numbers, caveats = _texts(evidence, rows, pieces.owner, pieces.number)
    return counts, {
        "method": Coded.of([form.method for form in pieces.forms]).at(pieces.form),
        "outcome": Coded.of([form.outcome.value for form in pieces.forms]).at(pieces.form),
        "finding": Coded.of([str(form.finding) for form in pieces.forms]).at(pieces.form),
        "strength": pieces.strength,
        "summary": summaries,
        "numbers": numbers,
        "caveats": caveats,
    }


def _texts(
    evidence: EvidenceTable, rows: Int64Array, owner: Int64Array, number: Int64Array
) -> tuple[SlicedTexts, SlicedTexts, Coded[str]]:
    """Summaries, figures and caveats of pieces of evidence, each of the connection in the row that is its `owner`."""
    blocks, begins = evidence.blocks_of(rows), np.zeros(len(rows), np.int64)
    every: list[Part] = []  # of all blocks, whose figures are one run then
    summaries: list[tuple[Int64Array, SlicedTexts]] = []
    caveats: list[tuple[Int64Array, Coded[tuple[str, ...]]]] = []
    before = 0
    for block in distinct(blocks):
        ends, parts = evidence.parts(block, as_arrays=True)
        is_here = blocks == block
        begins[is_here] = before + ends[rows[is_here] - evidence.begin(block)]
        for part in parts:
            places = before + part.places
            said, misled = part.form.said(len(places), part.columns)
            summaries.append((places, said))
            caveats.append((places, misled))
            every.append(part._replace(places=places))
        before += int(ends[-1])
    at = begins[owner] + number
    return gathered(summaries, at), FigureTexts().of(before, every).at(at), _joined(caveats, before).at(at)


def _joined(caveats: Sequence[tuple[Int64Array, Coded[tuple[str, ...]]]], count: int) -> Coded[str]:
    """The caveats of so many pieces of evidence, given by their places."""
    codes, texts = np.zeros(count, np.int64), list[str]()
    for places, lists in caveats:
        codes[places] = len(texts) + lists.codes.astype(np.int64)
        texts += map("; ".join, lists.values)
    return Coded.of(texts).at(codes)
