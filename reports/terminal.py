"""Text on a terminal: wrapped, coloured where asked for, and unable to steer it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pepscope.results.verdicts import Verdict

_RESET = "\x1b[0m"
COLOURS = {
    Verdict.REGULAR: "\x1b[32m",
    Verdict.SPLIT_TCP: "\x1b[1;31m",
    Verdict.TCP_PROXY: "\x1b[1;35m",
    Verdict.INCONCLUSIVE: "\x1b[33m",
}
FAINT = "\x1b[2m"
WARNING = "\x1b[33m"

#: Widths of columns that tables share.
VERDICT_WIDTH = 12
PROBABILITY_WIDTH = 5


def wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    """The text in lines of `width`, the first one after `first`, the others after `rest`."""
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def faint(text: str, width: int, colour: bool, indent: str = "  ") -> Iterator[str]:
    """The text in faint lines of `width`."""
    for line in wrapped(text, width, indent, indent):
        yield paint(line, FAINT, colour)


def paint(text: str, code: str, colour: bool) -> str:
    """The text in a terminal's colour, or as it is."""
    return f"{code}{text}{_RESET}" if colour else text
