"""`Struct`: classes whose annotations are fields, as msgspec defines them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

S = TypeVar("S", bound="Struct")


class UnsetType(Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"

    def __bool__(self) -> bool:
        """Always False."""
        return False

    def __repr__(self) -> str:
        """`UNSET`."""
        return "UNSET"


#: The value of an optional field that a document leaves out.
UNSET = UnsetType.UNSET


class _Required(Enum):
    """The default of a field without one."""

    REQUIRED = "required"


REQUIRED = _Required.REQUIRED


@dataclass(frozen=True, slots=True)
class Default:
    """A field's default: one value for all, or a new one each time."""

    factory: Callable[[], Any]


def field(*, default: Any = REQUIRED, default_factory: Callable[[], Any] | None = None) -> Any:
    """A field's default; of `default_factory` each struct gets a value of its own."""
    return Default(default_factory if default_factory is not None else lambda: default)


@dataclass(frozen=True, slots=True)
class StructConfig:
    """How a struct was declared."""

    frozen: bool = False
    kw_only: bool = False
    forbid_unknown_fields: bool = False


class StructMeta(type):
    """Collects fields from annotations, and their defaults from the class body."""

    __struct_fields__: tuple[str, ...]
    __struct_defaults__: dict[str, Default]
    __struct_positional__: tuple[str, ...]
    __struct_config__: StructConfig

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: bool) -> StructMeta:
        """Make the class; `config` is inherited but for `kw_only`, which is about its own fields."""
        parents = [base for base in bases if isinstance(base, StructMeta)]
        made = super().__new__(mcs, name, bases, namespace)
        fields: dict[str, None] = {}
        positional: dict[str, None] = {}
        defaults: dict[str, Default] = {}
        known = StructConfig()
        for parent in reversed(parents):
            fields |= dict.fromkeys(parent.__struct_fields__)
            positional |= dict.fromkeys(parent.__struct_positional__)
            defaults |= parent.__struct_defaults__
            known = parent.__struct_config__
        for each in _own_fields(made):
            fields[each] = None
            positional.pop(each, None)
            if not config.get("kw_only"):
                positional[each] = None
            if each in namespace:
                given = namespace[each]
                defaults[each] = given if isinstance(given, Default) else _default(given)
                type.__delattr__(made, each)
        made.__struct_fields__ = tuple(fields)
        made.__struct_positional__ = tuple(positional)
        made.__struct_defaults__ = defaults
        made.__struct_config__ = StructConfig(
            frozen=config.get("frozen", known.frozen),
            kw_only=config.get("kw_only", False),
            forbid_unknown_fields=config.get("forbid_unknown_fields", known.forbid_unknown_fields),
        )
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: bool) -> None:
        """As `type`, which takes no configuration."""
        del config
        super().__init__(name, bases, namespace)


def _own_fields(made: type) -> Iterator[str]:
    for name, kind in inspect.get_annotations(made).items():
        if not str(kind).startswith(("ClassVar", "typing.ClassVar")):
            yield name


def _default(value: Any) -> Default:
    """Empty lists, tables and sets are made anew, as msgspec does."""
    return Default(type(value)) if isinstance(value, list | dict | set) else Default(lambda: value)


class Struct(metaclass=StructMeta):
    """A base class: annotations in the body of a subclass are its fields."""

    def __init__(self, *args: Any, **given: Any) -> None:
        """By place or by name; what is not given has its default. Raises TypeError."""
        kind = type(self)
        if len(args) > len(kind.__struct_positional__):
            raise TypeError("Extra positional arguments provided")
        values = dict(zip(kind.__struct_positional__, args, strict=False))
        for name, value in given.items():
            if name in values or name not in kind.__struct_fields__:
                raise TypeError(f"Unexpected keyword argument '{name}'")
            values[name] = value
        for name in kind.__struct_fields__:
            if name in values:
                value = values[name]
            elif name in kind.__struct_defaults__:
                value = kind.__struct_defaults__[name].factory()
            else:
                raise TypeError(f"Missing required argument '{name}'")
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refused where the struct is frozen."""
        if type(self).__struct_config__.frozen:
            raise AttributeError(f"immutable type: '{type(self).__name__}'")
        if name not in type(self).__struct_fields__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Equal types and fields."""
        return type(self) is type(other) and _values(self) == _values(other)

    def __hash__(self) -> int:
        """By the fields, of frozen structs."""
        if not type(self).__struct_config__.frozen:
            raise TypeError(f"unhashable type: '{type(self).__name__}'")
        return hash((type(self), *_values(self)))

    def __repr__(self) -> str:
        """As a call that makes it."""
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__struct_fields__)
        return f"{type(self).__name__}({shown})"


def _values(made: Any) -> list[Any]:
    return [getattr(made, name) for name in type(made).__struct_fields__]


def asdict(made: Struct) -> dict[str, Any]:
    """Fields and values, not converted."""
    return dict(zip(type(made).__struct_fields__, _values(made), strict=True))


def replace(made: S, **changes: Any) -> S:
    """A copy with other values of some fields. Raises TypeError for a name that is no field."""
    return type(made)(**(asdict(made) | changes))
