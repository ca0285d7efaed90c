"""A plug-in of mypy: functions of `dataclasses` are given no msgspec Struct.

Structs are dataclasses to type checkers (`dataclass_transform`), but not to `dataclasses` when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mypy.plugin import FunctionContext, Plugin
from mypy.types import FunctionLike, Instance, Type, TypeType, TypeVarType, UnionType, get_proper_type

#: What msgspec has instead.
INSTEAD = {
    "dataclasses.replace": "msgspec.structs.replace",
    "dataclasses.asdict": "msgspec.structs.asdict",
    "dataclasses.astuple": "msgspec.structs.astuple",
    "dataclasses.fields": "msgspec.structs.fields",
}
_STRUCT = "msgspec.Struct"


class StructCalls(Plugin):
    """Looks at the first argument of each such call."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        if fullname not in INSTEAD:
            return None

        def refuse(context: FunctionContext) -> Type:
            for given in context.arg_types[0] if context.arg_types else ():
                for name in _structs(given):
                    context.api.fail(
                        f"{fullname} must be given a dataclass, got the Struct {name}: use {INSTEAD[fullname]}",
                        context.context,
                    )
            return context.default_return_type

        return refuse


def _structs(given: Type) -> Iterator[str]:
    """Names of the Structs among what a value of this type may be, or be a class of."""
    kind = get_proper_type(given)
    if isinstance(kind, UnionType):
        for item in kind.items:
            yield from _structs(item)
    elif isinstance(kind, TypeType):
        yield from _structs(kind.item)
    elif isinstance(kind, TypeVarType):
        yield from _structs(kind.upper_bound)
    elif isinstance(kind, FunctionLike) and kind.is_type_obj():
        yield from _structs(kind.items[0].ret_type)
    elif isinstance(kind, Instance) and any(base.fullname == _STRUCT for base in kind.type.mro):
        yield kind.type.name


def plugin(_: str) -> type[Plugin]:
    """What mypy calls."""
    return StructCalls
