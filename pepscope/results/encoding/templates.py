"""JSON text of many documents of one shape: the shape is written once, and values are filled in column by column."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from pepscope import _core
from pepscope.results.evidence.table import plain_number

#: Stands for a value in the document that a template is made of. As the whole of a text it occurs in no result.
VALUE = "\x00"
_MARK = b'"\\u0000"'

_ENCODER = msgspec.json.Encoder(enc_hook=plain_number)


@dataclass(frozen=True, slots=True)
class Layout:
    """How documents are laid out: by lines with so many more spaces for each level, or without white space (None)."""

    indent: int | None

    def text(self, document: Any, level: int = 0) -> bytes:
        """A document that stands so many levels deep; what JSON cannot write (infinities, NaN) becomes null."""
        compact = _compact(document)
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


class Template:
    """The text of a document in which `VALUE` stands for what differs."""

    def __init__(self, document: Mapping[str, Any], layout: Layout, level: int = 0, leave_out: bytes = b"") -> None:
        """`leave_out` is the end of the text that is not wanted."""
        self._parts = layout.text(document, level).removesuffix(leave_out).split(_MARK)

    @classmethod
    def of_members(cls, document: Mapping[str, Any], layout: Layout, level: int) -> Template:
        """The last members of an object that has others before, with the comma and the last bracket."""
        template = cls(document, layout, level)
        template._parts[0] = b"," + template._parts[0][1:]
        return template

    def filled(self, columns: Sequence[_core.JsonTexts | bytes], count: int) -> _core.JsonTexts:
        """So many documents with values in the gaps: each column has a text for each, or is one text for all."""
        return _core.JsonTexts.filled(self._parts, columns, count)


def json_texts(values: Sequence[Any]) -> _core.JsonTexts:
    """The JSON text of each value."""
    return _core.JsonTexts(values, _compact)


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


def _compact(document: Any) -> bytes:
    try:
        return _ENCODER.encode(document)
    except UnicodeEncodeError:  # a path that is no Unicode keeps its surrogates
        plain = finite(msgspec.to_builtins(document, enc_hook=plain_number))
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")
