"""The evidence on many connections, as columns: what repeats is held once, the rest is packed."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from pepscope.results.columns import BytesColumn
from pepscope.results.verdicts import Evidence, Number, Outcome

#: Sentences without a figure that are held once; beyond so many different ones each is packed with its connection.
_MOST_SENTENCES = 4096

#: What a first connection's evidence looks like serves to compress that of the others, up to zlib's window.
_DICTIONARY_BYTES = 1 << 15


@dataclass(frozen=True, slots=True)
class Found:
    """What a method found on one connection, without sentence and figures; `place` is where the evidence has it."""

    method: str
    finding: str
    outcome: Outcome
    strength: float
    numbers: tuple[str, ...]  # their names
    place: int


@dataclass(frozen=True, slots=True)
class _Form:
    """What pieces of evidence of one finding have in common."""

    method: str
    outcome: Outcome
    finding: str
    names: tuple[str, ...]
    caveats: tuple[str, ...]
    summary: str | None  # None where each has a sentence of its own


class EvidenceTable:
    """Evidence by connection; appended once, made again when it is asked for."""

    def __init__(self) -> None:
        self._forms: list[_Form] = []
        self._form_of: dict[tuple[object, ...], int] = {}
        self._sentences = 0
        self._ends = array("q", [0])  # of each connection's rows
        self._form = array("I")
        self._strength = array("d")
        self._details = BytesColumn()  # of each connection: sentences and figures
        self._dictionary = b""

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
        packed = _PACKER.encode(details)
        self._dictionary = self._dictionary or packed[:_DICTIONARY_BYTES]
        compressor = zlib.compressobj(1, wbits=-15, zdict=self._dictionary)
        self._details.append(compressor.compress(packed) + compressor.flush())

    def __getitem__(self, row: int) -> tuple[Evidence, ...]:
        """What was found on a connection."""
        decompressor = zlib.decompressobj(wbits=-15, zdict=self._dictionary)
        details: list[Any] = msgspec.msgpack.decode(decompressor.decompress(self._details[row]))
        found, at = [], 0
        for place in range(self._ends[row], self._ends[row + 1]):
            form = self._forms[self._form[place]]
            summary = form.summary
            if summary is None:
                summary = details[at]
                at += 1
            until = at + len(form.names)
            numbers = dict(zip(form.names, details[at:until], strict=True))
            at = until
            found.append(
                Evidence(form.method, form.outcome, form.finding, self._strength[place], summary, numbers, form.caveats)
            )
        return tuple(found)

    def found(self, row: int) -> list[Found]:
        """What was found on a connection, in short."""
        start = self._ends[row]
        return [
            Found(form.method, form.finding, form.outcome, self._strength[place], form.names, place - start)
            for place in range(start, self._ends[row + 1])
            for form in (self._forms[self._form[place]],)
        ]

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
                return self._add((*common, item.summary), item, names, item.summary)
        known = self._form_of.get(common)
        return self._add(common, item, names, None) if known is None else known

    def _add(self, key: tuple[object, ...], item: Evidence, names: tuple[str, ...], summary: str | None) -> int:
        number = self._form_of[key] = len(self._forms)
        self._forms.append(_Form(item.method, item.outcome, item.finding, names, item.caveats, summary))
        return number


def _plain(number: object) -> Number:
    """NumPy's scalars, which MessagePack does not know, as Python's."""
    if isinstance(number, np.generic):
        value: Number = number.item()
        return value
    raise TypeError(f"a figure must be a number, a text or None, got {number!r}")


_PACKER = msgspec.msgpack.Encoder(enc_hook=_plain)
