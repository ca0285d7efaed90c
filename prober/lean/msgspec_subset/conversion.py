"""`convert`: a document, as JSON or TOML reads it, as a value of a type, strictly."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from prober.lean.msgspec_subset import type_description as described
from prober.lean.msgspec_subset.struct_class import Struct


class ValidationError(ValueError):
    """A document does not fit its type."""


def convert(document: Any, kind: Any) -> Any:
    """The document as a value of `kind`. Raises ValidationError."""
    return _convert(document, described.type_info(kind))


def _convert(value: Any, kind: described.Type) -> Any:
    match kind:
        case described.AnyType():
            return value
        case described.NoneType() if value is None:
            return None
        case described.BoolType() if isinstance(value, bool):
            return value
        case described.IntType() if isinstance(value, int) and not isinstance(value, bool):
            return _within(value, kind)
        case described.FloatType() if isinstance(value, int | float) and not isinstance(value, bool):
            return _within(_as_float(value), kind)
        case described.StrType() if isinstance(value, str):
            return _sized(value, kind)
        case described.BytesType() if isinstance(value, str | bytes):
            return _sized(_as_bytes(value), kind)
        case described.EnumType():
            return _member(value, kind)
        case described.LiteralType():
            return _literal(value, kind)
        case described.UnionType():
            return _any_of(value, kind)
        case described.ListType() | described.VarTupleType() if isinstance(value, list | tuple):
            items = [_convert(item, kind.item_type) for item in _sized(value, kind)]
            return items if isinstance(kind, described.ListType) else tuple(items)
        case described.TupleType() if isinstance(value, list | tuple) and len(value) == len(kind.item_types):
            return tuple(_convert(item, each) for item, each in zip(value, kind.item_types, strict=True))
        case described.DictType() if isinstance(value, Mapping):
            return {
                _convert(key, kind.key_type): _convert(item, kind.value_type)
                for key, item in _sized(value, kind).items()
            }
        case described.StructType():
            return _struct(value, kind)
    raise ValidationError(f"Expected `{type(kind).__name__}`, got `{type(value).__name__}`")


def _within(value: Any, kind: described.IntType | described.FloatType) -> Any:
    # Written so that NaN lies within no bounds.
    if (kind.ge is not None and not value >= kind.ge) or (kind.le is not None and not value <= kind.le):
        raise ValidationError(f"Expected a number between {kind.ge} and {kind.le}")
    return value


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValidationError("Number out of range") from None


def _sized(value: Any, kind: Any) -> Any:
    if len(value) < (kind.min_length or 0) or (kind.max_length is not None and len(value) > kind.max_length):
        raise ValidationError(f"Expected a length between {kind.min_length or 0} and {kind.max_length}")
    return value


def _as_bytes(value: str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValidationError("Invalid base64 encoded string") from None


def _member(value: Any, kind: described.EnumType) -> Any:
    if isinstance(value, str | int) and not isinstance(value, bool):
        for member in kind.cls:
            if member.value == value:
                return member
    raise ValidationError(f"Invalid enum value {value!r}")


def _literal(value: Any, kind: described.LiteralType) -> Any:
    for each in kind.values:
        if type(each) is type(value) and each == value:
            return each
    raise ValidationError(f"Invalid value {value!r}")


def _any_of(value: Any, kind: described.UnionType) -> Any:
    # A whole number that may also be a float stays one.
    for each in sorted(kind.types, key=lambda item: isinstance(item, described.FloatType)):
        try:
            return _convert(value, each)
        except ValidationError:
            continue
    raise ValidationError(f"Expected one of {len(kind.types)} types, got `{type(value).__name__}`")


def _struct(value: Any, kind: described.StructType) -> Struct:
    if isinstance(value, kind.cls):
        return value
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValidationError(f"Expected `object`, got `{type(value).__name__}`")
    known = {each.encode_name: each for each in kind.fields}
    if kind.cls.__struct_config__.forbid_unknown_fields and not known.keys() >= value.keys():
        raise ValidationError("Object contains unknown fields")
    missing = [name for name, each in known.items() if each.required and name not in value]
    if missing:
        raise ValidationError(f"Object missing required field `{missing[0]}`")
    return kind.cls(**{name: _convert(item, known[name].type) for name, item in value.items() if name in known})
