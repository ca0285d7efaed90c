"""What becomes of a document by whichever msgspec is imported: its value as plain objects, or the sentence."""

from __future__ import annotations

from typing import Any

import msgspec

from pepscope.errors import PepscopeError
from pepscope.settings import read_settings
from pepscope.strict_reading import Table, read_as


def answer(kind: Any, document: Any) -> list[Any]:
    read = read_settings if issubclass(kind, Table) else read_as
    try:
        value = read(kind, document, PepscopeError)
    except PepscopeError as error:
        return ["refused", str(error)]
    again = msgspec.convert(msgspec.to_builtins(value), kind)
    assert again == value, "equal fields make equal structs"
    packed = msgspec.json.decode(msgspec.json.encode(value))
    return ["read", repr(value), packed, repr(msgspec.structs.asdict(msgspec.structs.replace(value)))]
