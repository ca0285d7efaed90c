"""Evidence of a table made into what a writer needs, form by form, and read connection by connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from pepscope.results.evidence.columns import Form
from pepscope.results.evidence.table import EvidenceTable

Made = TypeVar("Made")

#: Makes something of each piece of evidence of a form, by strengths and by what is kept of each, as columns.
Making = Callable[[Form, Sequence[float], Sequence[Sequence[Any]]], Sequence[Made]]

#: Blocks that stay made: connections that were judged one by one stand behind those judged together, so that reading by
#: place goes through two blocks at a time.
_KEPT = 2


class EvidenceReader(Generic[Made]):
    """What a function makes of the evidence on connections that were packed together, kept while they are read."""

    def __init__(self, table: EvidenceTable, make: Making[Made]) -> None:
        self._table = table
        self._make = make
        self._made: dict[int, tuple[list[int], list[Made]]] = {}

    def on(self, row: int) -> list[Made]:
        """What is made of each piece of evidence on a connection, in their order."""
        block = self._table.block_of(row)
        if block not in self._made:
            while len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
            self._made[block] = self._of_block(block)
        ends, made = self._made[block]
        place = row - self._table.begin(block)
        return made[ends[place] : ends[place + 1]]

    def _of_block(self, block: int) -> tuple[list[int], list[Made]]:
        """Where the pieces on each connection of a block end, and what is made of all pieces."""
        ends, parts = self._table.parts(block)
        made: list[Any] = [None] * int(ends[-1])
        for places, form, strengths, columns in parts:
            for place, piece in zip(places.tolist(), self._make(form, strengths, columns), strict=True):
                made[place] = piece
        return ends.tolist(), made
