"""Each method of the registry is one module or package with a test and a page, and no two of them share a name."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import detector.methods
from detector.method import Method
from detector.methods import METHODS
from detector.methods.handshake import HandshakeFinding
from pepscope.results.finding import Finding, Weight, split, weighted_findings
from prober.experiments.registry import BUILT_IN

ROOT = Path(__file__).parents[3]
MODULES = sorted(module.name for module in pkgutil.iter_modules(detector.methods.__path__))
NAMES = sorted({method.name for method in METHODS})


def parts(module: str) -> list[Method]:
    """The methods that a module or package of `detector/methods` has at its top."""
    members = vars(importlib.import_module(f"detector.methods.{module}")).values()
    return [member for member in members if isinstance(member, Method)]


def modules_imported(test: Path) -> set[str]:
    """The modules of `detector/methods` that a test imports."""
    found = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "detector.methods":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("detector.methods."):
            found.add((node.module or "").split(".")[2])
    return found


def test_each_module_is_one_method_and_all_its_parts_are_registered():
    assert MODULES == NAMES
    assert {id(part) for module in MODULES for part in parts(module)} == {id(method) for method in METHODS}
    assert len({id(method) for method in METHODS}) == len(METHODS)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_has_the_name_of_its_module_a_test_and_a_page(name: str):
    assert parts(name)
    assert {part.name for part in parts(name)} == {name}
    assert any(name in modules_imported(test) for test in Path(__file__).parent.glob("test_*.py"))
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
    kinds = {kind for part in parts(name) for kind in part.findings if name in kind.__module__.split(".")}
    assert kinds, "a method has findings of its own"
    assert not [item.value for kind in kinds for item in kind if item.row.weight and f"`{item.value}`" not in page]


def test_each_name_has_one_title_and_each_title_one_name():
    assert NAMES
    assert len({(method.name, method.title) for method in METHODS}) == len(NAMES)
    assert len({method.title for method in METHODS}) == len(NAMES)


def test_keys_of_findings_are_unique_over_methods_and_experiments():
    kinds = [kind for method in METHODS for kind in method.findings]
    kinds += [kind for experiment in BUILT_IN for kind in experiment.findings]
    assert set(weighted_findings(kinds)) >= {"handshake-made-anew", "dead-port-took-data"}

    class Again(Finding):
        """Declares a key of another method once more."""

        MADE_ANEW = split(HandshakeFinding.HANDSHAKE_MADE_ANEW.value, Weight("x", -1.0, 0.0, 0.0, 0.0, "Test."))

    with pytest.raises(ValueError, match="two findings have the key handshake-made-anew"):
        weighted_findings([*kinds, Again])
