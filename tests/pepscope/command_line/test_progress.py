"""Progress appears on terminals only, and only for long work."""

from __future__ import annotations

import io

import pytest

from pepscope.command_line.progress import QUIET_S, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_long_work_is_shown_and_wiped() -> None:
    stream, clock = Terminal(), Clock()
    with Progress("reading", stream, clock) as progress:
        progress(1, 10)
        assert stream.getvalue() == ""
        clock.now_s += QUIET_S + 0.1
        progress(5, 10)
        assert "50%" in stream.getvalue()
        clock.now_s += 1
        progress(12_000_000)
        assert "12 MB" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_short_work_or_no_terminal_prints_nothing(stream: io.StringIO) -> None:
    clock = Clock()
    with Progress("reading", stream, clock) as progress:
        if not stream.isatty():
            clock.now_s += 60
        progress(5, 10)
    assert stream.getvalue() == ""
