"""Sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.errors import UsageError
from pepscope.sizes import format_bytes, format_count, format_size, format_span, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1GiB", 1 << 30),
        ("512 MiB", 512 << 20),
        ("4k", 4096),
        ("1.5GB", 1_500_000_000),
        ("65536", 65536),
        ("2mb", 2_000_000),
    ],
)
def test_a_size_is_read_by_its_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "1e9", "1 PiBs", "nan"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must be bytes with a unit"):
        parse_size(text)


@pytest.mark.parametrize("text", ["8388608TiB", "9" * 23, "9" * 400])
def test_more_than_a_file_system_holds_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must be less than 8388608TiB, got '"):
        parse_size(text)


@pytest.mark.parametrize(("size", "text"), [(20 << 30, "20GiB"), (1500, "1500B"), (0, "0B"), (3 << 50, "3072TiB")])
def test_sizes_are_written_in_the_unit_that_divides_them(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(0, 10**15))
def test_a_size_that_is_written_is_read_as_it_was(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(0, 10**15))
def test_counts_fit_their_column(value: int) -> None:
    text = format_count(value)
    assert len(text) <= 5
    factor = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1], 1.0)
    assert float(text.rstrip("kMGT")) * factor == pytest.approx(value, rel=0.006, abs=0.5)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (38_700_000, "38.7 MB"), (999_600, "1.00 MB"), (3e12, "3.00 TB")],
)
def test_bytes_have_a_unit(count: float, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "1 s"), (89, "89 s"), (91, "2 min"), (821, "14 min"), (3600, "1 h 0 min")]
)
def test_spans_are_as_one_plans_them(seconds: float, text: str) -> None:
    assert format_span(seconds) == text
