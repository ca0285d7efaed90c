"""What the client uses of msgspec, in Python: for devices on which nothing can be installed.

msgspec is compiled for each platform, and a device may be one for which there is no wheel. The client declares its
documents by msgspec's types (`Struct`, `Meta`) and uses few of its functions; these are here, with the same results
for every document that JSON or TOML can say. The tests compare both (tests/prober/lean/test_msgspec_subset.py).
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

from prober.lean.msgspec_subset import conversion, encoding, struct_class, type_description

_NAMES: dict[str, dict[str, Any]] = {
    "msgspec": {
        "Meta": type_description.Meta,
        "Struct": struct_class.Struct,
        "UNSET": struct_class.UNSET,
        "UnsetType": struct_class.UnsetType,
        "ValidationError": conversion.ValidationError,
        "convert": conversion.convert,
        "field": struct_class.field,
        "to_builtins": encoding.to_builtins,
    },
    "msgspec.inspect": {
        name: getattr(type_description, name)
        for name in (
            "AnyType", "BoolType", "BytesType", "DictType", "EnumType", "FloatType", "IntType", "ListType",
            "LiteralType", "NoneType", "StrType", "StructType", "TupleType", "Type", "UnionType", "VarTupleType",
            "type_info",
        )
    },
    "msgspec.json": {"decode": encoding.json_decode, "encode": encoding.json_encode},
    "msgspec.structs": {
        "asdict": struct_class.asdict, "fields": type_description.fields, "replace": struct_class.replace
    },
}  # fmt: skip


def stand_in() -> None:
    """Answer `import msgspec` with this subset where there is none; to be called before anything imports it."""
    if "msgspec" not in sys.modules and importlib.util.find_spec("msgspec") is None:
        sys.modules.update(modules())


def modules() -> dict[str, ModuleType]:
    """The subset as modules under msgspec's names."""
    made = {name: ModuleType(name, __doc__) for name in _NAMES}
    for name, module in made.items():
        vars(module).update(_NAMES[name])
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(made[parent], own, module)
    return made
