"""Pieces of evidence as `detect-2` writes them: as documents, and as text of many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from pepscope import _core
from pepscope.results.encoding.packets import UNNAMED
from pepscope.results.encoding.templates import VALUE, Layout, Template, json_texts
from pepscope.results.evidence.columns import Form


class FormTexts(NamedTuple):
    """Pieces of evidence of one form: what each says, and its text up to the members that name packets."""

    summaries: Sequence[str]
    texts: _core.JsonTexts


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


#: What `piece_rows` gives of each piece of evidence.
PIECE_COLUMNS = ("method", "outcome", "finding", "strength", "summary", "numbers", "caveats")


def piece_rows(form: Form, strengths: Sequence[float], columns: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Pieces of evidence of one form as `PIECE_COLUMNS`: figures as JSON text, caveats joined by `; `."""
    count = len(strengths)
    summaries, caveats = form.said(count, columns)
    joined = ["; ".join(each) for each in caveats]
    numbers = Template(dict.fromkeys(form.names, VALUE), Layout(None))
    figures = numbers.filled([*map(json_texts, form.figures(columns))], count)
    texts = [figures[place].decode("utf-8", "surrogatepass") for place in range(count)]
    common = repeat(form.method), repeat(form.outcome.value), repeat(str(form.finding))
    return list(zip(*common, strengths, summaries, texts, joined))  # noqa: B905  # repeats have no end


class PieceTexts:
    """Makes the texts of pieces of evidence that stand so many levels deep."""

    def __init__(self, layout: Layout, level: int) -> None:
        self._layout = layout
        self._level = level
        self._templates: dict[int, tuple[Form, Template]] = {}  # by object: forms of a table are one for each kind
        self._caveats: dict[tuple[str, ...], bytes] = {}
        self._closing = layout.line(level) + b"}"

    def __call__(self, form: Form, strengths: Sequence[float], columns: Sequence[Sequence[Any]]) -> FormTexts:
        """The texts of pieces of evidence of one form, each without its last bracket."""
        count = len(strengths)
        summaries, caveats = form.said(count, columns)
        if id(form) not in self._templates:
            template = Template(_piece(form, lambda: VALUE), self._layout, self._level, self._closing)
            self._templates[id(form)] = form, template
        _, template = self._templates[id(form)]
        said: list[_core.JsonTexts | bytes] = [self._layout.text(form.summary), self._list(form.caveats)]
        if form.wording is not None:
            said = [json_texts(summaries), _core.JsonTexts.of([self._list(each) for each in caveats])]
        elif form.summary is None:
            said[0] = json_texts(summaries)
        values = [json_texts(strengths), said[0], *map(json_texts, form.figures(columns)), said[1]]
        return FormTexts(summaries, template.filled(values, count))

    def _list(self, caveats: Sequence[str]) -> bytes:
        key = tuple(caveats)
        text = self._caveats.get(key)
        if text is None:
            text = self._layout.text(list(key), self._level + 1)
            if len(self._caveats) < _MOST_CAVEATS:
                self._caveats[key] = text
        return text


#: Lists of caveats whose text is kept: nearly all pieces of evidence have one of a few.
_MOST_CAVEATS = 1024
