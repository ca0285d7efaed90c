"""Pieces of evidence as `detect-2` writes them: as documents, and as text of many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pepscope.captures.tables.texts import SlicedTexts
from pepscope.results.encoding.templates import VALUE, Column, Layout, Template, as_columns, filled
from pepscope.results.evidence.columns import Form
from pepscope.results.evidence.growing import Coded
from pepscope.results.evidence.table import Part

#: Members of a piece of evidence that name packets, where none were looked for.
UNNAMED = {"packets": None, "find": None}

#: Lists of caveats whose text is kept: nearly all pieces of evidence have one of a few.
_MOST_CAVEATS = 1024


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


class FigureTexts:
    """Makes the texts of figures of pieces of evidence: JSON without white space."""

    def __init__(self) -> None:
        self._templates: dict[tuple[str, ...], Template] = {}

    def of(self, count: int, parts: Sequence[Part]) -> SlicedTexts:
        """The texts of so many pieces of evidence, by their places."""
        order = np.zeros(count, np.uint32)
        shapes: list[tuple[Template, list[Column]]] = []
        for number, part in enumerate(parts):
            order[part.places] = number
            shapes.append((self._template(part.form.names), as_columns(part.form.figures(part.columns))))
        text, ends = filled(order, np.arange(1, count + 1), shapes)
        return SlicedTexts.behind_each_other(np.frombuffer(text, np.uint8), np.append(0, ends))

    def _template(self, names: tuple[str, ...]) -> Template:
        if names not in self._templates:
            self._templates[names] = Template(dict.fromkeys(names, VALUE), Layout(None))
        return self._templates[names]


class PieceTexts:
    """Makes the texts of pieces of evidence that stand so many levels deep."""

    def __init__(self, layout: Layout, level: int) -> None:
        self._layout = layout
        self._level = level
        self._templates: dict[int, tuple[Form, Template]] = {}  # by object: forms of a table are one for each kind
        self._caveats: dict[tuple[str, ...], bytes] = {}

    def shape(
        self, part: Part, summaries: SlicedTexts, caveats: Coded[tuple[str, ...]], packets: Column
    ) -> tuple[Template, list[Column]]:
        """Pieces of evidence of one form as template and columns; `packets` fills in the members that name these."""
        lists: Column = caveats.codes, [self._list(tuple(each)) for each in caveats.values]
        figures = as_columns(part.form.figures(part.columns))
        return self._template(part.form), [np.asarray(part.strengths, np.float64), summaries, *figures, lists, packets]

    def _template(self, form: Form) -> Template:
        if id(form) not in self._templates:
            closing = self._layout.line(self._level) + b"}"
            pieces = Template(_piece(form, lambda: VALUE), self._layout, self._level, end=closing).pieces
            self._templates[id(form)] = form, Template.of_text(*pieces, b"")
        return self._templates[id(form)][1]

    def _list(self, caveats: tuple[str, ...]) -> bytes:
        text = self._caveats.get(caveats)
        if text is None:
            text = self._layout.text(list(caveats), self._level + 1)
            if len(self._caveats) < _MOST_CAVEATS:
                self._caveats[caveats] = text
        return text
