"""Of many cases, those that continuous integration runs show all that all of them show."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cases import each_pair, each_value, left_out

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Case:
    """What is asked of one of pytest's."""

    name: str
    repeats: bool

    @property
    def nodeid(self) -> str:
        return f"tests/x.py::TestOf::test_it[{self.name}]"

    def get_closest_marker(self, name: str) -> bool:
        return self.repeats and name == "repeats"


def kept(parameters) -> list[tuple[object, ...]]:
    return [each.values for each in parameters if not each.marks]


def test_every_value_stays_in_some_case_unless_another_test_shows_it() -> None:
    parameters = each_value(["ab", "a", "bc", "cd", "ab"], set)
    assert [each.values for each in parameters] == [("ab",), ("a",), ("bc",), ("cd",), ("ab",)]
    assert kept(parameters) == [("ab",), ("cd",)]
    assert kept(each_value(["ab", "a", "bc", "cd"], set, shown=["ab", "c"])) == [("cd",)]
    assert kept(each_value(["a", "b"], set, shown=["ab"])) == [("a",)], "a test runs, whatever others show"


def test_every_pair_of_values_stays_in_some_case() -> None:
    axes = ["abcd", [True, False], ["down", "up"]]
    combinations = kept(each_pair(*axes))
    assert len(combinations) == 8
    for (first, one), (second, other) in itertools.combinations(enumerate(axes), 2):
        assert {(each[first], each[second]) for each in combinations} == set(itertools.product(one, other))


@pytest.mark.parametrize(
    ("arguments", "every_case", "remain"),
    [
        (["tests"], "", ["first"]),
        (["tests", "tests/x.py::TestOf::test_it[second]"], "", ["first", "second"]),
        (["tests/x.py::TestOf::test_it"], "", ["first"]),
        (["tests"], "1", ["first", "second", "third"]),
    ],
)
def test_repeated_cases_run_where_they_are_asked_for(
    arguments: list[str], every_case: str, remain: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEPSCOPE_EVERY_CASE", every_case)
    items = [Case(name, repeats) for name, repeats in (("first", False), ("second", True), ("third", True))]
    left: set[object] = {*left_out(items, arguments)}  # type: ignore[arg-type]
    assert [item.name for item in items if item not in left] == remain


def test_the_target_that_leaves_out_no_case_finds_the_tests_that_do() -> None:
    (pattern,) = re.findall(r"grep -rlE '(.*?)' tests", (ROOT / "Makefile").read_text(encoding="utf-8"))
    leaving_out = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }
    assert {"tests/prober/anonymise/test_corpus.py", "tests/end_to_end/test_proxies_on_live_paths.py"} <= leaving_out
