"""Reading JSON that anybody may have written: each field by name, type and bounds, each complaint one sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from prober.errors import MalformedMessageError

#: Nothing that our ends say to each other nests deeper; Python's reader would recurse as deep as a message likes.
MOST_DEEP = 20
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def parse_json(data: bytes, what: str) -> Mapping[str, Any]:
    """A JSON object. Raises MalformedMessageError."""
    depth = most = 0
    for byte in data.translate(None, _NO_BRACKETS):
        depth += (byte in b"[{") - (byte in b"]}")
        most = max(most, depth)
    if most > MOST_DEEP:
        raise MalformedMessageError(f"{what} nests deeper than {MOST_DEEP} levels")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise MalformedMessageError(f"{what} is not JSON") from None
    if not isinstance(document, dict):
        raise MalformedMessageError(f"{what} is not a JSON object")
    return document


class Fields:
    """The fields of one message; every method raises MalformedMessageError for what is missing or of another kind."""

    def __init__(self, document: Any, what: str) -> None:
        if not isinstance(document, Mapping):
            raise MalformedMessageError(f"{what} is an object with fields, not {shown(document)}")
        self._document = document
        self._what = what

    def only(self, *names: str) -> None:
        """Refuse fields of other names."""
        for name in self._document:
            if name not in names:
                raise MalformedMessageError(f"{self._what} has no field {shown(name)}, only {', '.join(names)}")

    def integer(self, name: str, low: int = 0, high: int = 1 << 63, default: int | None = None) -> int:
        """A whole number within bounds."""
        value = self._document.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._complaint(name, f"a whole number between {low} and {high}", value)
        return value

    def number(self, name: str, low: float = 0.0, high: float = 1e18, default: float | None = None) -> float:
        """A finite number within bounds."""
        value = self._document.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self._complaint(name, f"a number between {low:g} and {high:g}", value)
        if not math.isfinite(value):
            raise self._complaint(name, "a finite number", value)
        return float(value)

    def text(self, name: str, most: int = 1000, default: str | None = None) -> str:
        """A text of at most so many letters."""
        value = self._document.get(name, default)
        if not isinstance(value, str) or len(value) > most:
            raise self._complaint(name, f"a text of at most {most} letters", value)
        return value

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self._document.get(name)
        if not isinstance(value, bool):
            raise self._complaint(name, "true or false", value)
        return value

    def list(self, name: str, most: int) -> list[Any]:
        """A list of at most so many entries."""
        value = self._document.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise self._complaint(name, f"a list of at most {most} entries", value)
        return value

    def integers(self, name: str, low: int, high: int, most: int = 64) -> tuple[int, ...]:
        """A list of whole numbers within bounds."""
        values = self.list(name, most)
        return tuple(Fields({"entry": value}, f"{self._what}'s {name}").integer("entry", low, high) for value in values)

    def value(self, name: str) -> Any:
        """What stands there, for somebody else to read; `None` where nothing does."""
        return self._document.get(name)

    def numbers_by_name(self, name: str, most: int = 200) -> dict[str, int]:
        """Whole numbers under names that the other end chose."""
        table = self._names(name, most)
        for value in table.values():
            if isinstance(value, bool) or not isinstance(value, int):
                raise self._complaint(name, "whole numbers by name", value)
        return table

    def texts_by_name(self, name: str, most: int = 50) -> dict[str, str]:
        """Short texts under names that the other end chose."""
        table = self._names(name, most)
        for value in table.values():
            if not isinstance(value, str) or len(value) > 1000:
                raise self._complaint(name, "texts by name", value)
        return table

    def _names(self, name: str, most: int) -> dict[str, Any]:
        value = self._document.get(name)
        if not isinstance(value, dict) or len(value) > most or any(len(key) > 100 for key in value):
            raise self._complaint(name, f"an object of at most {most} fields", value)
        return dict(value)

    def _complaint(self, name: str, wanted: str, value: Any) -> MalformedMessageError:
        return MalformedMessageError(f"{self._what}'s {name} is {wanted}, not {shown(value)}")


def shown(value: Any) -> str:
    """A value as one short line, whatever it is."""
    if isinstance(value, list | dict):
        return f"one of {len(value)} entries" if value else "an empty one"
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return "a huge number"
    text = ascii(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."
