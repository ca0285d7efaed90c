"""The house stays easy to survey: rooms with few entries, files of one subject that are not long."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
#: About fifteen entries: what a reader takes in at a glance.
MOST_ENTRIES = 16
#: Entries that every package may have and that do not count.
UNCOUNTED = {"__init__.py", "py.typed"}
#: Packages that may show more, each for a reason.
LARGER = {
    "benchmarks/fresh": "one file a kind of middlebox that captures are made with; not installed",
    "benchmarks/one_ended": "one file a part of the laboratory that networks are made with; not installed",
    "benchmarks/one_ended_simulated": "one file a part of the simulator; not installed",
    "detector/methods": "one file a method",
    "prober/experiments": "one file an experiment",
    "reference_sim/scenarios": "data: one file a scenario",
    "reports/assets": "data: one file a page, a style or a script",
}
#: Modules of crates that may show more, each for a reason.
LARGER_CRATES = {"crates/path/src/hsdpa": "one file a stage of the radio chain"}
MOST_LINES = 400
#: Files that may be longer, each for a reason.
LONGER: dict[str, str] = {}
MEANINGLESS = {"utils", "util", "helpers", "helper", "common", "misc"}
ROOMS = ("benchmarks", "detector", "papers", "pepscope", "prober", "reference_proxy", "reference_sim", "reports")


@cache
def _files() -> tuple[Path, ...]:
    """Files that git tracks, or, in a source distribution, those that are there."""
    git = shutil.which("git")
    listed = subprocess.run([git, "ls-files"], cwd=TOP, capture_output=True, text=True, check=False) if git else None
    if listed is not None and listed.returncode == 0 and listed.stdout:
        return tuple(Path(line) for line in listed.stdout.splitlines() if (TOP / line).is_file())
    parts = {"__pycache__", ".git", ".venv", "target", "build"}
    return tuple(
        found
        for path in sorted(TOP.rglob("*"))
        if path.is_file() and path.suffix != ".so" and not parts & set((found := path.relative_to(TOP)).parts)
    )


def _entries() -> dict[str, set[str]]:
    entries: defaultdict[str, set[str]] = defaultdict(set)
    for path in _files():
        if path.parts[0] in ROOMS:
            for folder in path.parents[:-1]:
                entries[folder.as_posix()].add(path.relative_to(folder).parts[0])
    return {folder: shown - UNCOUNTED for folder, shown in entries.items()}


def test_no_room_or_package_shows_many_entries() -> None:
    entries = _entries()
    assert set(ROOMS) <= set(entries)
    crowded = {folder: len(shown) for folder, shown in entries.items() if len(shown) > MOST_ENTRIES}
    assert not set(crowded) - set(LARGER), crowded
    assert set(LARGER) <= set(entries)


def test_no_crate_or_module_shows_many_entries() -> None:
    shown: defaultdict[str, set[str]] = defaultdict(set)
    for path in _files():
        if path.suffix == ".rs" and path.parts[0] == "crates" and path.parts[2] == "src":
            for folder in path.parents[:-3]:
                shown[folder.as_posix()].add(path.relative_to(folder).parts[0].removesuffix(".rs"))
    assert len(shown) > 20
    crowded = {folder: len(names) for folder, names in shown.items() if len(names - {"lib", "mod"}) > MOST_ENTRIES}
    assert set(crowded) == set(LARGER_CRATES), crowded


def test_no_python_file_is_long() -> None:
    python = [path for path in _files() if path.suffix == ".py"]
    assert len(python) > 100
    lines = {path.as_posix(): len((TOP / path).read_text(encoding="utf-8").splitlines()) for path in python}
    assert {path: count for path, count in lines.items() if count > MOST_LINES and path not in LONGER} == {}
    assert all(lines.get(path, 0) > MOST_LINES for path in LONGER), "an exception that is needed no more"


@pytest.mark.parametrize("suffix", [".py", ".rs"])
def test_every_file_is_named_after_its_subject(suffix: str) -> None:
    named = [path for path in _files() if path.suffix == suffix]
    assert named
    assert [path for path in named if MEANINGLESS & {*path.parent.parts, path.stem}] == []


def test_every_file_of_tests_of_a_crate_is_compiled() -> None:
    """Cargo looks for no tests where one program has them all, so that a file that nothing names would not run."""
    roots = [path for path in _files() if path.match("crates/*/tests/all.rs")]
    assert len(roots) > 5
    for root in roots:
        programs = {test["name"] for test in tomllib.loads((TOP / root.parents[1] / "Cargo.toml").read_text())["test"]}
        modules = {*re.findall(r"^mod (\w+);$", (TOP / root).read_text(encoding="utf-8"), re.M)}
        files = {path.stem for path in _files() if path.suffix == ".rs" and path.parent == root.parent}
        assert files - modules == programs, root


def _modules() -> dict[str, Path]:
    """The Python modules of all rooms by their dotted names; a package by its own."""
    python = [path for path in _files() if path.suffix == ".py" and path.parts[0] in ROOMS]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in python}


def _imports(path: Path) -> Iterator[str]:
    """What a file imports when it runs, wherever in it: modules, and names that may be modules."""
    tree = ast.parse((TOP / path).read_text(encoding="utf-8"))
    for_types_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in for_types_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _arrows() -> set[tuple[str, str]]:
    """Pairs of neighbours (entries of one package, or rooms) of which the first imports the second."""
    modules = _modules()
    arrows = set()
    for importer, path in modules.items():
        for name in _imports(path):
            imported = name if name in modules else name.rpartition(".")[0]
            if imported not in modules:
                continue
            ours, theirs = importer.split("."), imported.split(".")
            shared = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
            if shared is not None:
                arrows.add((".".join(ours[: shared + 1]), ".".join(theirs[: shared + 1])))
    return arrows


def test_no_package_and_its_neighbour_import_each_other() -> None:
    packages = {name for name, path in _modules().items() if path.name == "__init__.py"}
    arrows = _arrows()
    assert ("detector.pairing", "detector.vantage") in arrows
    both_ways = {tuple(sorted(arrow)) for arrow in arrows if arrow[::-1] in arrows and packages & {*arrow}}
    assert both_ways == set()
