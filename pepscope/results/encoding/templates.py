"""JSON text of many documents of one shape: the shape is written once, and values are filled in column by column."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from pepscope._core import filled_json
from pepscope.captures.tables.texts import SlicedTexts
from pepscope.results.evidence.growing import Coded
from pepscope.results.evidence.packing import plain_number

#: Stands for a value in the document that a template is made of. As the whole of a text it occurs in no result.
VALUE = "\x00"
_MARK = b'"\\u0000"'

_ENCODER = msgspec.json.Encoder(enc_hook=plain_number)


class Layout(msgspec.Struct, frozen=True):
    """How documents are laid out: by lines with so many more spaces for each level, or without white space (None)."""

    indent: int | None

    def text(self, document: Any, level: int = 0) -> bytes:
        """A document that stands so many levels deep; what JSON cannot write (infinities, NaN) becomes null."""
        compact = encoded(document)
        if self.indent is None:
            return compact
        text = msgspec.json.format(compact, indent=self.indent)
        return text.replace(b"\n", self.line(level)) if level else text

    def line(self, level: int) -> bytes:
        """What begins a line so many levels deep."""
        return b"" if self.indent is None else b"\n" + b" " * (self.indent * level)

    @property
    def after_name(self) -> bytes:
        """What follows the name of a member."""
        return b":" if self.indent is None else b": "


#: Text on its way out.
Octets: TypeAlias = bytes | memoryview

#: The values of a gap, one a document: numbers, texts, a list of values of which bytes are JSON already, places in such
#: a list, or places among texts that are JSON already.
Column = npt.NDArray[Any] | list[Any] | tuple[npt.NDArray[np.uint32], list[Any] | SlicedTexts] | SlicedTexts


class Template:
    """The text of a document in which `VALUE` stands for what differs, up to where it may be told to end."""

    def __init__(self, document: Mapping[str, Any], layout: Layout, level: int = 0, *, end: bytes = b"") -> None:
        text = layout.text(document, level)
        self.pieces: Sequence[bytes] = text.removesuffix(end).split(_MARK)

    @classmethod
    def of_text(cls, *pieces: bytes) -> Template:
        """A text with gaps between the pieces."""
        template = cls.__new__(cls)
        template.pieces = pieces
        return template

    def filled(self, columns: Sequence[Column], count: int) -> list[bytes]:
        """So many texts, filled in from columns."""
        text, ends = filled(np.zeros(count, np.uint32), np.arange(1, count + 1), [(self, columns)])
        return [bytes(text[begin:end]) for begin, end in pairwise([0, *ends.tolist()])]


def filled(
    order: npt.NDArray[np.uint32], ends: npt.NDArray[np.int64], parts: Sequence[tuple[Template, Sequence[Column]]]
) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """Texts of several templates one after the other: `order` says which of `parts` comes next. Also returns where the
    text of the first so many ends, for each of `ends`."""
    shapes = [(template.pieces, [_given(each) for each in columns]) for template, columns in parts]
    text, places = filled_json(order, ends, shapes, encoded)
    return text.data, places


def _given(column: Column) -> Any:
    if isinstance(column, tuple):
        codes, values = column
        return codes, values.slices if isinstance(values, SlicedTexts) else values
    return column.slices if isinstance(column, SlicedTexts) else column


def as_columns(values: Sequence[Sequence[Any]]) -> list[Column]:
    """Arrays, lists and what else holds values as columns."""
    return [*map(_as_column, values)]


def _as_column(values: Sequence[Any]) -> Column:
    if isinstance(values, np.ndarray | list | SlicedTexts):
        return values
    return (values.codes, [*values.values]) if isinstance(values, Coded) else list(values)


def listed(column: Column) -> Sequence[Any]:
    """The values of a column."""
    if isinstance(column, tuple):
        codes, values = column
        return [values[code] for code in codes.tolist()]
    return column.tolist() if isinstance(column, np.ndarray) else column


def finite(value: Any) -> Any:
    """A document with null for what JSON cannot write; NumPy's scalars become Python's."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def plain_document(document: dict[str, Any]) -> dict[str, Any]:
    """What the encoder would write of a document, as plain dictionaries, lists, texts and numbers."""
    plain: dict[str, Any] = finite(msgspec.to_builtins(document, enc_hook=plain_number))
    return plain


def encoded(document: Any) -> bytes:
    """A document as JSON without white space; what JSON cannot write (infinities, NaN) becomes null."""
    try:
        return _ENCODER.encode(document)
    except UnicodeEncodeError:  # a path that is no Unicode keeps its surrogates
        plain = finite(msgspec.to_builtins(document, enc_hook=plain_number))
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")
