"""The evidence of a table as text, read block by block: the connections that were packed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pepscope import _core
from pepscope.results.encoding.pieces import FormTexts, PieceTexts
from pepscope.results.evidence.columns import Int64Array
from pepscope.results.evidence.table import EvidenceTable

#: Blocks that stay made, as `pepscope.results.evidence.reading` explains.
_KEPT = 2


class Block(NamedTuple):
    """The pieces of evidence on the connections of a block, form by form.

    Those on connection i of the block are from `ends[i]` to `ends[i + 1]`; `form` and `place` say where each is.
    """

    begin: int  # the row of the first connection
    ends: Int64Array
    form: Int64Array
    place: Int64Array
    forms: Sequence[FormTexts]
    listed: _core.ListedTexts

    def summary(self, row: int, item: int) -> str:
        """What one piece of evidence on a connection says."""
        at = int(self.ends[row - self.begin]) + item
        said: str = self.forms[self.form[at]].summaries[self.place[at]]
        return said


class EvidenceTexts:
    """Makes the texts of the evidence in a table and keeps those of the blocks that are read."""

    def __init__(self, table: EvidenceTable, pieces: PieceTexts) -> None:
        self._table = table
        self._pieces = pieces
        self._made: dict[int, Block] = {}

    def block(self, row: int) -> Block:
        """The block of a connection."""
        number = self._table.block_of(row)
        if number not in self._made:
            while len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
            self._made[number] = self._of_block(number)
        return self._made[number]

    def _of_block(self, number: int) -> Block:
        ends, parts = self._table.parts(number)
        form, place = np.zeros(int(ends[-1]), np.int64), np.zeros(int(ends[-1]), np.int64)
        forms = list[FormTexts]()
        for part in parts:
            form[part.places], place[part.places] = len(forms), np.arange(len(part.places))
            forms.append(self._pieces(part.form, part.strengths, part.columns))
        texts = [each.texts for each in forms]
        listed = _core.ListedTexts(ends, form.astype(np.uint32), place.astype(np.uint32), texts)
        return Block(self._table.begin(number), ends, form, place, forms, listed)
