"""The system's libpcap: one sentence with the remedy where there is none, or one that is too old."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from pepscope.captures.live.one_file import LiveCapture
from pepscope.captures.opening import libpcap
from pepscope.captures.opening.filters import compile_filter
from pepscope.command_line.doctor.checks import all_checks
from pepscope.errors import CaptureError, FilterError


@pytest.fixture
def without_libpcap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    libpcap.library.cache_clear()
    monkeypatch.setattr(libpcap, "_NAMES", ("libpcap.so.none",))
    monkeypatch.setattr(libpcap, "find_library", lambda _name: None)
    yield
    libpcap.library.cache_clear()


@pytest.mark.usefixtures("without_libpcap")
def test_filters_and_captures_say_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(FilterError) as filtered:
        compile_filter("tcp")
    assert str(filtered.value) == f"--filter cannot be used: this system has no libpcap: {libpcap.REMEDY}"
    with pytest.raises(CaptureError, match=r"^lo cannot be captured on: this system has no libpcap: install "):
        LiveCapture("lo", tmp_path / "lo.pcap", 160)
    check = all_checks()["libpcap"]
    assert (check.passed, check.found, check.remedy) == (False, "this system has no libpcap", libpcap.REMEDY)


def test_one_that_lacks_a_function_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    libpcap.library.cache_clear()
    # The C library stands for a libpcap in which nothing is found.
    monkeypatch.setattr(ctypes, "CDLL", lambda _name, real=ctypes.CDLL: real(None))
    with pytest.raises(OSError, match=r"libpcap is older than 1\.5, it has no pcap_"):
        libpcap.library()


def test_a_filter_finds_the_library_where_the_loader_knows_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    libpcap.library.cache_clear()
    monkeypatch.setattr(libpcap, "_NAMES", ())
    try:
        assert compile_filter("tcp port 80")
    finally:
        libpcap.library.cache_clear()
