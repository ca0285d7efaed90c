"""Properties draw the same examples in every run of a commit, whatever else was loaded before."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[int]:
    examples: list[int] = []

    @settings(max_examples=500, database=None)
    @given(st.integers())
    def record(number: int) -> None:
        examples.append(number)

    record()
    return examples


def test_examples_do_not_depend_on_the_modules_that_are_loaded(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn()
    # Hypothesis looks at no module below a folder that is named after a test, as `tmp_path` is.
    folder = tmp_path_factory.mktemp("modules")
    (folder / "full_of_numbers.py").write_text(f"NUMBERS = {[7919 * n for n in range(1000, 1400)]}\n")
    monkeypatch.syspath_prepend(folder)
    __import__("full_of_numbers")
    searches = bool(os.environ.get("PEPSCOPE_SEARCH"))
    assert (drawn() == before) is not searches
