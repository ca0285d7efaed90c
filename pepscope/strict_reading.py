"""Documents (TOML, JSON, flags) become typed values by `msgspec`, or one sentence gives the error and its place.

msgspec decides whether a document fits its type. Its message names the bound that was broken but neither the value that
was given nor all that is allowed, so the sentence is made here: by the types, from the place that does not fit.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from pepscope.errors import PepscopeError

T = TypeVar("T")

#: TOML 1.0 and the bounds of msgspec: signed integers of 64 bits.
LARGEST_INTEGER = (1 << 63) - 1
_LONGEST_SHOWN = 60
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all types of documents whose fields are known: it has no others."""


def between(low: float, high: float) -> msgspec.Meta:
    """Bounds of a number, both allowed: `Annotated[int, between(1, 5)]`. NaN lies between none."""
    return msgspec.Meta(ge=low, le=high)


#: Numbers of at least 0 that a machine's integer, or a finite float, can hold.
WholeNumber: TypeAlias = Annotated[int, between(0, LARGEST_INTEGER)]
Amount: TypeAlias = Annotated[float, between(0.0, sys.float_info.max)]


def read_as(kind: type[T], document: Any, error: type[PepscopeError], *, place: str = "") -> T:
    """A document as a value of `kind`, strictly: no text is taken for a number, no number for a boolean.

    `place` is where the document stands in a greater one. Raises `error` with one sentence without full stop: the place
    of what is wrong, what must be there, and what was given (`limits.tries must be ..., got 0`).
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError:
        raise error(_fault(kind, document, place)) from None


def shown(value: Any) -> str:
    """A value as one short line of printable ASCII, whatever it is."""
    if isinstance(value, Mapping | list | tuple):
        kind = "a table" if isinstance(value, Mapping) else "a list"
        return f"{kind} of {len(value)} {'entry' if len(value) == 1 else 'entries'}"
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return "an integer of more than 64 bits"
    text = ascii(value[:_LONGEST_SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _within(place: str, name: Any) -> str:
    """The place of a field in the table at `place`."""
    text = name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else shown(name)
    return f"{place}.{text}" if place else text


def _fault(kind: Any, value: Any, place: str) -> str:
    """What is wrong with a value that does not fit; of several faults the first."""
    kind = _without_none(kind)
    if isinstance(value, Mapping):
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return _fault_of_fields(kind, value, place)
        if get_origin(kind) is dict and all(isinstance(name, str) for name in value):
            inner = get_args(kind)[1]
            for name, item in value.items():
                if not _fits(inner, item):
                    return _fault(inner, item, _within(place, name))
    if isinstance(value, list | tuple):
        for index, (item_kind, item) in enumerate(zip(_item_kinds(kind, len(value)), value, strict=False)):
            if not _fits(item_kind, item):
                return _fault(item_kind, item, f"{place}[{index}]")
    return f"{place or 'the document'} must be {_wanted(inspect.type_info(kind), place)}, got {shown(value)}"


def _fault_of_fields(kind: type[msgspec.Struct], table: Mapping[Any, Any], place: str) -> str:
    known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    if kind.__struct_config__.forbid_unknown_fields:
        for name in table:
            if name not in known:
                where = f"fields of {place}" if place else "fields"
                return f"{_within(place, name)} is not a field; {where} are {', '.join(sorted(known))}"
    for name, field in known.items():
        if name in table and not _fits(field.type, table[name]):
            return _fault(field.type, table[name], _within(place, name))
        if name not in table and field.required:
            wanted = _wanted(inspect.type_info(field.type), name)
            return f"{_within(place, name)} is missing; it must be {wanted}"
    return f"{place or 'the document'} must be {_wanted(inspect.type_info(kind), place)}, got {shown(table)}"


def _fits(kind: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _without_none(kind: Any) -> Any:
    """`X` for `X | None`; every other type as it is."""
    if get_origin(kind) in (types.UnionType, Union):
        others = [item for item in get_args(kind) if item is not types.NoneType]
        return others[0] if len(others) == 1 else kind
    return kind


def _item_kinds(kind: Any, count: int) -> tuple[Any, ...]:
    """The type of each of so many entries; none where the type is no list, or one of another length."""
    if hasattr(kind, "__metadata__"):
        kind = get_args(kind)[0]
    arguments = get_args(kind)
    if get_origin(kind) is list or (get_origin(kind) is tuple and arguments[1:] == (...,)):
        return (arguments[0],) * count
    return arguments if get_origin(kind) is tuple and len(arguments) == count else ()


def _wanted(kind: inspect.Type, place: str) -> str:
    """What a type allows, in words."""
    match kind:
        case inspect.IntType():
            number = f"a whole number{_bounds(kind)}"
            return f"{number}, or a size such as 512KiB" if _is_size(place) else number
        case inspect.FloatType():
            return f"a number{_bounds(kind)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "text" if kind.max_length is None else f"text of at most {kind.max_length} characters"
        case inspect.NoneType():
            return "null"
        case inspect.EnumType():
            return _one_of([member.value for member in kind.cls])
        case inspect.LiteralType():
            return _one_of(kind.values)
        case inspect.VarTupleType() | inspect.ListType():
            return _list_wanted(kind.item_type, kind.min_length or 0, kind.max_length)
        case inspect.TupleType():
            return _list_wanted(kind.item_types[0], len(kind.item_types), len(kind.item_types))
        case inspect.UnionType():
            return " or ".join(_wanted(item, place) for item in kind.types)
        case inspect.StructType():
            return "a table" if issubclass(kind.cls, Table) else "an object"
    return "an object"


def _is_size(place: str) -> bool:
    return place.rpartition(".")[2].partition("[")[0].endswith("_bytes")


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge in (None, -sys.float_info.max):
        return ""
    if kind.le is None or kind.le in (LARGEST_INTEGER, sys.float_info.max):
        return f" of at least {_bound(kind.ge)}"
    return f" between {_bound(kind.ge)} and {_bound(kind.le)}"


def _bound(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _one_of(values: Any) -> str:
    return str(values[0]) if len(values) == 1 else f"one of {', '.join(map(str, values))}"


def _list_wanted(item: inspect.Type, least: int, most: int | None) -> str:
    entry = {0: "", 1: " of at least one entry"}.get(least, f" of at least {least} entries")
    if most is not None:
        entry = f" of {least} entries" if least == most else f" of {least} to {most} entries"
    choices = f", each {_wanted(item, '')}" if isinstance(item, inspect.EnumType | inspect.LiteralType) else ""
    return f"a list{entry}{choices}"
