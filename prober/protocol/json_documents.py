"""Untrusted JSON: read within limits, then checked against its type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

from pepscope.strict_reading import read_as
from prober.errors import MalformedMessageError

#: What JSON can say; measurements and parameters consist of it, so that an archive holds them as they are.
Json = Any

#: Nothing that our ends write nests deeper; Python's reader would recurse as deep as a document likes.
MOST_DEEP = 20
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

Read = TypeVar("Read", bound="Message")


class Message(msgspec.Struct, frozen=True):
    """Base of what both ends send to each other. Fields that only later versions have are ignored."""

    #: What complaints call it.
    place: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return document

    @classmethod
    def from_json(cls: type[Read], document: Any) -> Read:
        """As it arrives. Raises MalformedMessageError."""
        return read_as(cls, document, MalformedMessageError, place=cls.place)


def parse_json(data: bytes, what: str) -> Mapping[str, Any]:
    """A JSON object. Raises MalformedMessageError."""
    depth = most = 0
    for byte in data.translate(None, _NO_BRACKETS):
        depth += (byte in b"[{") - (byte in b"]}")
        most = max(most, depth)
    if most > MOST_DEEP:
        raise MalformedMessageError(f"{what} must nest at most {MOST_DEEP} levels deep")
    try:
        document = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError(f"{what} must be JSON: {str(error)[:200]}") from None
    if not isinstance(document, dict):
        raise MalformedMessageError(f"{what} must be a JSON object")
    return document


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} must be a number")
