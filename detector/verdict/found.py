"""What all methods found on the connections that were examined together, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from pepscope.results.evidence.columns import EvidenceColumns, Form
from pepscope.results.finding import Finding
from pepscope.results.verdicts import Evidence, Outcome


class Piece(Struct, frozen=True):
    """A piece of evidence on one connection, in words where these are read: most of what is weighed is not told."""

    part: EvidenceColumns
    place: int
    method: str
    outcome: Outcome
    finding: str
    strength: float

    @classmethod
    def of(cls, part: EvidenceColumns, place: int) -> Piece:
        """The piece at a place of `part`."""
        form = part.form
        return cls(part, place, form.method, form.outcome, form.finding, float(part.strength[place]))

    @property
    def summary(self) -> str:
        """What is said of it."""
        return self.part.words(self.place).summary


class Found(Struct, frozen=True, dict=True):
    """Evidence on so many connections, in the order of the registry; of one method a connection has one piece."""

    count: int
    parts: Sequence[EvidenceColumns]

    @cached_property
    def _by_row(self) -> list[list[tuple[EvidenceColumns, int]]]:
        by_row: list[list[tuple[EvidenceColumns, int]]] = [[] for _ in range(self.count)]
        for part in self.parts:
            for place, row in enumerate(part.rows.tolist()):
                by_row[row].append((part, place))
        return by_row

    def evidence(self, row: int) -> tuple[Evidence, ...]:
        """The evidence on one connection, in words."""
        return tuple([part.evidence(place) for part, place in self._by_row[row]])

    def telling(self, row: int) -> list[Piece]:
        """The evidence on one connection that weighs, or that says what is missing."""
        return [Piece.of(part, place) for part, place in self._by_row[row] if _tells(part.form)]

    def findings(self, row: int) -> list[str]:
        """What was found on one connection."""
        return [part.form.finding for part, _ in self._by_row[row]]


def _tells(form: Form) -> bool:
    if form.outcome is not Outcome.INAPPLICABLE:
        return True
    return isinstance(form.finding, Finding) and form.finding.row.is_missing
