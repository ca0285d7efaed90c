"""Pieces of evidence as `detect-2` writes them: as documents, and as text of many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pepscope.results.encoding.templates import VALUE, Column, Layout, Template, as_columns
from pepscope.results.evidence.columns import Form
from pepscope.results.evidence.growing import Repeated
from pepscope.results.evidence.table import Part

#: Members of a piece of evidence that name packets, where none were looked for.
UNNAMED = {"packets": None, "find": None}


def _piece(form: Form, value: Callable[[], Any]) -> dict[str, Any]:
    """A piece of evidence but for its packets; `value` gives what differs from piece to piece, in this order."""
    return {
        "method": form.method,
        "outcome": form.outcome.value,
        "finding": str(form.finding),
        "strength": value(),
        "summary": value(),
        "numbers": {name: value() for name in form.names},
        "caveats": value(),
    }


def piece_documents(form: Form, strengths: Sequence[float], columns: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Pieces of evidence of one form as documents that name no packets."""
    summaries, caveats = form.said(len(strengths), columns)
    values = zip(strengths, summaries, *form.figures(columns), caveats, strict=True)
    return [{**_piece(form, iter(each).__next__), **UNNAMED} for each in values]


#: What `piece_columns` gives of pieces of evidence.
PIECE_COLUMNS = ("method", "outcome", "finding", "strength", "summary", "numbers", "caveats")


def piece_columns(
    form: Form, strengths: Sequence[float], columns: Sequence[Sequence[Any]]
) -> tuple[str | Sequence[Any], ...]:
    """Pieces of evidence of one form as `PIECE_COLUMNS`, a text where all have the same: figures are JSON text, caveats
    joined by `; `."""
    count = len(strengths)
    summaries, caveats = form.said(count, columns)
    joined = {each: "; ".join(each) for each in {*map(tuple, caveats)}}
    numbers = Template(dict.fromkeys(form.names, VALUE), Layout(None))
    filled = numbers.filled(as_columns(form.figures(columns)), count)
    texts = [each.decode("utf-8", "surrogatepass") for each in filled]
    together = [joined[tuple(each)] for each in caveats]
    return form.method, form.outcome.value, str(form.finding), strengths, [*summaries], texts, together


class PieceTexts:
    """Makes the texts of pieces of evidence that stand so many levels deep."""

    def __init__(self, layout: Layout, level: int) -> None:
        self._layout = layout
        self._level = level
        self._templates: dict[int, tuple[Form, Template]] = {}  # by object: forms of a table are one for each kind
        self._caveats: dict[tuple[str, ...], bytes] = {}
        self._unnamed = self.members(UNNAMED)

    def shape(
        self, part: Part, summaries: Sequence[str], caveats: Sequence[Sequence[str]], named: Mapping[int, bytes]
    ) -> tuple[Template, list[Column]]:
        """Pieces of evidence of one form as template and columns; `named` are `members` of those that name packets."""
        count = len(part.places)
        codes = np.zeros(count, np.uint32)
        codes[[*named]] = np.arange(1, len(named) + 1)
        members = codes, [self._unnamed, *named.values()]
        lists = self._lists(caveats)
        figures = as_columns([summaries, *part.form.figures(part.columns)])
        return self._template(part.form), [np.asarray(part.strengths, np.float64), *figures, lists, members]

    def _template(self, form: Form) -> Template:
        if id(form) not in self._templates:
            closing = self._layout.line(self._level) + b"}"
            pieces = Template(_piece(form, lambda: VALUE), self._layout, self._level, end=closing).pieces
            self._templates[id(form)] = form, Template.of_text(*pieces, b"")
        return self._templates[id(form)][1]

    def _lists(self, caveats: Sequence[Sequence[str]]) -> Column:
        """The lists of caveats of some pieces as text."""
        if isinstance(caveats, Repeated):
            return np.zeros(len(caveats), np.uint32), [self._list(tuple(caveats.value))]
        texts = {each: self._list(each) for each in {*map(tuple, caveats)}}
        return [texts[tuple(each)] for each in caveats]

    def _list(self, caveats: tuple[str, ...]) -> bytes:
        text = self._caveats.get(caveats)
        if text is None:
            text = self._layout.text(list(caveats), self._level + 1)
            if len(self._caveats) < _MOST_CAVEATS:
                self._caveats[caveats] = text
        return text

    def members(self, named: dict[str, Any]) -> bytes:
        """The members that name packets, and the last bracket of the piece."""
        return b"," + self._layout.text(named, self._level)[1:]


#: Lists of caveats whose text is kept: nearly all pieces of evidence have one of a few.
_MOST_CAVEATS = 1024
