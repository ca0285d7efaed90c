"""Of many cases, those that continuous integration runs show all that all of them show."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from tests.cases import each_pair, each_value

ROOT = Path(__file__).parents[2]


def kept(parameters) -> list[tuple[object, ...]]:
    return [each.values for each in parameters if not each.marks]


def test_every_value_stays_in_some_case_unless_another_test_shows_it() -> None:
    parameters = each_value(["ab", "a", "bc", "cd", "ab"], set)
    assert [each.values for each in parameters] == [("ab",), ("a",), ("bc",), ("cd",), ("ab",)]
    assert kept(parameters) == [("ab",), ("cd",)]
    assert kept(each_value(["ab", "a", "bc", "cd"], set, shown=["ab", "c"])) == [("cd",)]
    assert kept(each_value(["a"], set, shown=["a"])) == []


def test_every_pair_of_values_stays_in_some_case() -> None:
    axes = ["abcd", [True, False], ["down", "up"]]
    combinations = kept(each_pair(*axes))
    assert len(combinations) == 8
    for (first, one), (second, other) in itertools.combinations(enumerate(axes), 2):
        assert {(each[first], each[second]) for each in combinations} == set(itertools.product(one, other))


def test_the_target_that_leaves_out_no_case_finds_the_tests_that_do() -> None:
    (pattern,) = re.findall(r"grep -rlE '(.*?)' tests", (ROOT / "Makefile").read_text(encoding="utf-8"))
    leaving_out = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }
    assert {"tests/prober/anonymise/test_corpus.py", "tests/end_to_end/test_proxies_on_live_paths.py"} <= leaving_out
