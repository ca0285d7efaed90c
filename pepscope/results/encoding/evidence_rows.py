"""What methods found on connections, a row a piece of evidence, as tables have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pepscope.results.distinct import distinct
from pepscope.results.encoding.pieces import PIECE_COLUMNS, piece_columns
from pepscope.results.evidence.columns import Int64Array
from pepscope.results.evidence.table import EvidenceTable

#: The column that holds numbers, not texts.
_STRENGTH = "strength"


def evidence_pieces(evidence: EvidenceTable, rows: Int64Array) -> tuple[Int64Array, Mapping[str, npt.NDArray[Any]]]:
    """How many pieces of evidence each connection of some rows has, and all of these in order as `PIECE_COLUMNS`."""
    blocks = np.array([evidence.block_of(row) for row in rows.tolist()], np.int64)
    begins, counts = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    made = [_pieces_of_nothing()]
    before = 0
    for block in distinct(blocks):
        ends, pieces = _of_block(evidence, block)
        is_here = blocks == block
        places = rows[is_here] - evidence.begin(block)
        begins[is_here], counts[is_here] = before + ends[places], np.diff(ends)[places]
        before += int(ends[-1])
        made.append(pieces)
    at = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return counts, {name: np.concatenate([pieces[name] for pieces in made])[at] for name in PIECE_COLUMNS}


def _of_block(evidence: EvidenceTable, block: int) -> tuple[Int64Array, dict[str, npt.NDArray[Any]]]:
    """Where the pieces on each connection of a block begin, and where the last ones end; and all of its pieces."""
    ends, parts = evidence.parts(block, as_arrays=True)
    count = int(ends[-1])
    pieces: dict[str, npt.NDArray[Any]] = {name: np.empty(count, object) for name in PIECE_COLUMNS}
    pieces[_STRENGTH] = np.empty(count)
    for places, form, strengths, columns in parts:
        for name, values in zip(PIECE_COLUMNS, piece_columns(form, strengths, columns), strict=True):
            pieces[name][places] = values
    return ends, pieces


def _pieces_of_nothing() -> dict[str, npt.NDArray[Any]]:
    return {name: np.zeros(0, np.float64 if name == _STRENGTH else object) for name in PIECE_COLUMNS}
