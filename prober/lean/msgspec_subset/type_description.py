"""Descriptions of types, as `msgspec.inspect` gives them: what a document must be to fit a type."""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin

from prober.lean.msgspec_subset.struct_class import Struct, UnsetType


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Bounds of a value in `Annotated[...]`."""

    ge: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Type:
    """Base of all descriptions."""


@dataclass(frozen=True, slots=True)
class AnyType(Type):
    """Anything."""


@dataclass(frozen=True, slots=True)
class NoneType(Type):
    """`None`."""


@dataclass(frozen=True, slots=True)
class BoolType(Type):
    """`bool`."""


@dataclass(frozen=True, slots=True)
class IntType(Type):
    """`int`, within bounds that belong to it."""

    ge: Any = None
    le: Any = None


@dataclass(frozen=True, slots=True)
class FloatType(Type):
    """`float`, within bounds that belong to it."""

    ge: Any = None
    le: Any = None


@dataclass(frozen=True, slots=True)
class _Sized(Type):
    min_length: int | None = None
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class StrType(_Sized):
    """`str`."""


@dataclass(frozen=True, slots=True)
class BytesType(_Sized):
    """`bytes`, in documents base64 (RFC 4648)."""


@dataclass(frozen=True, slots=True)
class ListType(_Sized):
    """`list[...]`."""

    item_type: Type = field(default_factory=AnyType)


@dataclass(frozen=True, slots=True)
class VarTupleType(_Sized):
    """`tuple[..., ...]`."""

    item_type: Type = field(default_factory=AnyType)


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """`tuple[...]` of so many entries."""

    item_types: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class DictType(_Sized):
    """`dict[..., ...]`."""

    key_type: Type = field(default_factory=AnyType)
    value_type: Type = field(default_factory=AnyType)


@dataclass(frozen=True, slots=True)
class EnumType(Type):
    """An enumeration, by the values of its members."""

    cls: type[Enum]


@dataclass(frozen=True, slots=True)
class LiteralType(Type):
    """One of some values."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class UnionType(Type):
    """One of some types."""

    types: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct; `encode_name` is its key in documents."""

    name: str
    encode_name: str
    type: Any
    required: bool


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """A struct, whose fields have described types."""

    cls: type[Struct]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Described when they are asked for: a struct may hold itself."""
        return _described_fields(self.cls)


_PLAIN: dict[Any, Type] = {
    Any: AnyType(),
    None: NoneType(),
    types.NoneType: NoneType(),
    bool: BoolType(),
    int: IntType(),
    float: FloatType(),
    str: StrType(),
    bytes: BytesType(),
    list: ListType(),
    tuple: VarTupleType(),
    dict: DictType(),
}


@cache
def type_info(kind: Any) -> Type:
    """The description of a type. Raises TypeError for one that this subset does not know."""
    if hasattr(kind, "__metadata__"):
        return _bounded(type_info(kind.__origin__), kind.__metadata__)
    if get_origin(kind) is not None:
        return _composed(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, Struct):
        return StructType(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return EnumType(kind)
    raise TypeError(f"Type '{kind}' is not supported")


def fields(kind: type[Struct]) -> tuple[Field, ...]:
    """The fields of a struct, with their types as they were declared."""
    hints = typing.get_type_hints(kind, include_extras=True)
    required = set(kind.__struct_fields__) - set(kind.__struct_defaults__)
    return tuple(Field(name, name, hints[name], name in required) for name in kind.__struct_fields__)


@cache
def _described_fields(kind: type[Struct]) -> tuple[Field, ...]:
    return tuple(replace(each, type=type_info(each.type)) for each in fields(kind))


def _composed(kind: Any) -> Type:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is typing.Literal:
        return LiteralType(tuple(sorted(arguments, key=str)))
    if origin is tuple and arguments[1:] == (...,):
        return VarTupleType(item_type=type_info(arguments[0]))
    if origin is tuple:
        return TupleType(tuple(map(type_info, arguments)))
    if origin is list:
        return ListType(item_type=type_info(arguments[0]))
    if origin is dict:
        return DictType(key_type=type_info(arguments[0]), value_type=type_info(arguments[1]))
    raise TypeError(f"Type '{kind}' is not supported")


def _union(arguments: Sequence[Any]) -> Type:
    """What a document may hold of a union: a field that may be unset is left out instead."""
    described = tuple(type_info(item) for item in arguments if item is not UnsetType)
    return described[0] if len(described) == 1 else UnionType(described)


def _bounded(described: Any, metadata: Sequence[Any]) -> Type:
    if isinstance(described, UnionType):
        return UnionType(tuple(_bounded(item, metadata) for item in described.types))
    known = type(described).__dataclass_fields__
    for meta in metadata:
        if isinstance(meta, Meta):
            bounds = {name: getattr(meta, name) for name in Meta.__dataclass_fields__ if name in known}
            described = replace(described, **{name: bound for name, bound in bounds.items() if bound is not None})
    return typing.cast(Type, described)
