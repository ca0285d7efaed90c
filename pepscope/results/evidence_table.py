"""The evidence on many connections, as columns: what repeats is held once, the rest is packed."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from pepscope.results.columns import BytesColumn
from pepscope.results.verdicts import Evidence, Number, Outcome

#: Sentences without a figure that are held once; beyond so many different ones each is packed with its connection.
_MOST_SENTENCES = 4096

#: Connections whose sentences and figures are packed together: what they have in common is held once, and reading one
#: of them unpacks no more than so many.
_PACKED_TOGETHER = 32


@dataclass(frozen=True, slots=True)
class Form:
    """What pieces of evidence of one finding have in common, whichever connection they are on."""

    method: str
    outcome: Outcome
    finding: str
    names: tuple[str, ...]  # of the numbers
    caveats: tuple[str, ...]
    summary: str | None  # None where each has a sentence of its own


class EvidenceTable:
    """Evidence by connection; appended once, made again when it is asked for."""

    def __init__(self) -> None:
        self._forms: list[Form] = []
        self._form_of: dict[tuple[object, ...], int] = {}
        self._sentences = 0
        self._ends = array("q", [0])  # of each connection's rows
        self._form = array("I")
        self._strength = array("d")
        self._latest: list[list[object]] = []  # sentences and figures of each connection that is not packed yet
        self._packed = BytesColumn()  # of `_PACKED_TOGETHER` connections or fewer each
        self._packed_until = array("q")  # the row after the last one of each of these
        self._unpacked: tuple[int, list[list[Any]]] = (-1, [])  # the block that was asked for last

    def append(self, evidence: Sequence[Evidence]) -> None:
        """Add what was found on one more connection."""
        details: list[object] = []
        for item in evidence:
            form = self._form_number(item)
            self._form.append(form)
            self._strength.append(item.strength)
            if self._forms[form].summary is None:
                details.append(item.summary)
            details += item.numbers.values()
        self._ends.append(len(self._form))
        self._latest.append(details)
        if len(self._latest) == _PACKED_TOGETHER:
            self._pack()

    def extend(self, other: EvidenceTable) -> None:
        """Add the connections of another table."""
        self._pack()
        other._pack()
        row, base = len(self._ends) - 1, len(self._form)
        forms = {
            number: self._form_of[key] if key in self._form_of else self._add(key, other._forms[number])
            for key, number in other._form_of.items()
        }
        self._form.extend(forms[number] for number in other._form)
        self._strength.extend(other._strength)
        self._ends.extend(base + end for end in other._ends[1:])
        self._packed.extend(other._packed)
        self._packed_until.extend(row + end for end in other._packed_until)

    def _pack(self) -> None:
        if self._latest:
            self._packed.append(zlib.compress(_PACKER.encode(self._latest), 1))
            self._packed_until.append(len(self._ends) - 1)
            self._latest = []

    def __getitem__(self, row: int) -> tuple[Evidence, ...]:
        """What was found on a connection."""
        details = iter(self._details(row))
        return tuple(
            _evidence(form, strength, details)
            for form, strength in zip(self.forms(row), self.strengths(row), strict=True)
        )

    def item(self, row: int, place: int) -> Evidence:
        """One piece of what was found on a connection."""
        forms = self.forms(row)
        before = sum(len(form.names) + (form.summary is None) for form in forms[:place])
        return _evidence(forms[place], self.strengths(row)[place], islice(self._details(row), before, None))

    def documents(self, row: int) -> list[dict[str, Any]]:
        """What was found on a connection: the fields of each `Evidence` by name, for an encoder."""
        details = iter(self._details(row))
        # `zip` asks for the name first, so that it takes no detail beyond the last name.
        return [
            {
                "method": form.method,
                "outcome": form.outcome,
                "finding": form.finding,
                "strength": strength,
                "summary": next(details) if form.summary is None else form.summary,
                "numbers": dict(zip(form.names, details)),  # noqa: B905
                "caveats": form.caveats,
            }
            for form, strength in zip(self.forms(row), self.strengths(row), strict=True)
        ]

    def forms(self, row: int) -> list[Form]:
        """What was found on a connection, without strength and figures."""
        forms = self._forms
        return [forms[number] for number in self._form[self._ends[row] : self._ends[row + 1]]]

    def strengths(self, row: int) -> Sequence[float]:
        """How firmly each of `forms` was found."""
        return self._strength[self._ends[row] : self._ends[row + 1]]

    def _details(self, row: int) -> list[Any]:
        """Sentences and figures of a connection."""
        block = bisect_right(self._packed_until, row)
        begin = self._packed_until[block - 1] if block else 0
        if block == len(self._packed_until):
            details: list[Any] = msgspec.msgpack.decode(_PACKER.encode(self._latest[row - begin]))  # as packed ones
            return details
        if self._unpacked[0] != block:
            self._unpacked = block, msgspec.msgpack.decode(zlib.decompress(self._packed[block]))
        return self._unpacked[1][row - begin]

    def _form_number(self, item: Evidence) -> int:
        names = tuple(item.numbers)
        # A finding that a plug-in declares may have the text of another's.
        common = (item.method, item.outcome, type(item.finding), item.finding, names, item.caveats)
        if not names:
            known = self._form_of.get((*common, item.summary))
            if known is not None:
                return known
            if self._sentences < _MOST_SENTENCES:
                self._sentences += 1
                return self._add((*common, item.summary), _form(item, names, item.summary))
        known = self._form_of.get(common)
        return self._add(common, _form(item, names, None)) if known is None else known

    def _add(self, key: tuple[object, ...], form: Form) -> int:
        number = self._form_of[key] = len(self._forms)
        self._forms.append(form)
        return number


def _evidence(form: Form, strength: float, details: Iterator[Any]) -> Evidence:
    """The piece of evidence whose details come next."""
    summary = next(details) if form.summary is None else form.summary
    numbers = dict(zip(form.names, details))  # noqa: B905
    return Evidence(form.method, form.outcome, form.finding, strength, summary, numbers, form.caveats)


def _form(item: Evidence, names: tuple[str, ...], summary: str | None) -> Form:
    return Form(item.method, item.outcome, item.finding, names, item.caveats, summary)


def plain_number(value: object) -> Number:
    """A scalar of NumPy, which encoders do not know, as Python's; TypeError for what is no figure."""
    if isinstance(value, np.generic):
        number: Number = value.item()
        return number
    raise TypeError(f"a figure must be a number, a text or None, got {value!r}")


_PACKER = msgspec.msgpack.Encoder(enc_hook=plain_number)
