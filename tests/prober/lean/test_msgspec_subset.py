"""The client's stand-in for msgspec beside msgspec itself, for the client's own documents and hostile ones."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from prober.commands.default_plan import default_plan
from prober.experiments.registry import BUILT_IN
from tests.prober.lean.reading import answer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
MESSAGES = "prober.protocol.control_messages"
KINDS = sorted(
    {
        "prober.plan:_PlanDocument",
        "prober.archive.archive_file:_ManifestDocument",
        "prober.archive.observation_json:_ObservationDocument",
        "prober.run.run_metadata:ClockSample",
        "prober.run.run_directory:_Beginning",
        *(f"{MESSAGES}:{name}" for name, kind in vars(importlib.import_module(MESSAGES)).items()
          if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == MESSAGES
          and "between" not in name),
        *(f"{kind.__module__}:{kind.__name__}" for each in BUILT_IN for kind in (each.options, each.measured)),
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def subset() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.prober.lean.subset_answers"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.communicate()


def asked(subset: subprocess.Popen[str], name: str, document: Any) -> list[Any]:
    subset.stdin.write(json.dumps([name, document]) + "\n")
    subset.stdin.flush()
    return list(json.loads(subset.stdout.readline()))


def kind_of(name: str) -> Any:
    module, _, kind = name.partition(":")
    return getattr(importlib.import_module(module), kind)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 100), st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**30]),
    st.floats(-5, 1e6), st.text(max_size=5), st.sampled_from(["up", "http-data", "aGk=", "aGk", "5MB", "1e3"]),
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def near(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Documents that fit a type, or nearly."""
    likely: st.SearchStrategy[Any]
    match kind:
        case inspect.IntType() | inspect.FloatType():
            bounds = [bound for bound in (kind.ge, kind.le) if bound is not None]
            likely = st.sampled_from([1, 2.0, 0.5, *bounds, *(bound + 1 for bound in bounds)])
        case inspect.BoolType():
            likely = st.booleans()
        case inspect.EnumType():
            likely = st.sampled_from([member.value for member in kind.cls])
        case inspect.LiteralType():
            likely = st.sampled_from(kind.values)
        case inspect.VarTupleType() | inspect.ListType():
            likely = st.lists(near(kind.item_type), max_size=3)
        case inspect.TupleType():
            likely = st.tuples(*map(near, kind.item_types)).map(list)
        case inspect.DictType():
            likely = st.dictionaries(st.text(max_size=3), near(kind.value_type), max_size=2)
        case inspect.UnionType():
            likely = st.one_of([near(each) for each in kind.types])
        case inspect.StructType():
            needed = {each.encode_name: near(each.type) for each in kind.fields if each.required}
            others = {each.encode_name: near(each.type) for each in kind.fields if not each.required}
            likely = st.fixed_dictionaries(needed, optional={**others, "unknown": SCALARS})
        case _:
            likely = st.text(max_size=4)
    return st.integers(0, 14).flatmap(lambda chance: likely if chance else ANYTHING)


@pytest.mark.parametrize("name", KINDS)
def test_both_read_refuse_and_write_alike(name: str, subset: subprocess.Popen[str]) -> None:
    kind = kind_of(name)

    @settings(max_examples=40, deadline=None)
    @given(near(inspect.type_info(kind)))
    def alike(document: Any) -> None:
        assert asked(subset, name, document) == json.loads(json.dumps(answer(kind, document)))

    alike()


def test_the_subset_reads_the_default_plan(subset: subprocess.Popen[str]) -> None:
    import tomllib

    document = tomllib.loads(default_plan())
    found = asked(subset, "prober.plan:_PlanDocument", document)
    assert found[0] == "read"
    assert found == answer(kind_of("prober.plan:_PlanDocument"), document)


def test_structs_behave_alike() -> None:
    from prober.lean.msgspec_subset import struct_class

    for base, field in ((msgspec.Struct, msgspec.field), (struct_class.Struct, struct_class.field)):
        make: Any = type(base)
        body: dict[str, Any] = {
            "__annotations__": {"count": int, "names": list[str]},
            "names": field(default_factory=list),
        }
        first = make("First", (base,), body, frozen=True)
        body = {"__annotations__": {"last": str}, "last": "x"}
        second = make("Second", (first,), body, frozen=True, kw_only=True)
        made = second(1, last="y")
        assert repr(made) == "Second(count=1, names=[], last='y')"
        assert made == second(count=1, last="y") != second(2, last="y")
        assert second(1).names is not second(1).names
        for args, given_by_name in (((), {}), ((1, [], "y"), {}), ((1,), {"other": 2})):
            with pytest.raises(TypeError):
                second(*args, **given_by_name)
        for name in ("count", "other"):
            with pytest.raises(AttributeError):
                setattr(made, name, 2)
