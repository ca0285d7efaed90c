"""How much a command says beside its results: notes on standard error, none with `--quiet`.

What reads and writes needs this, and must not import click for it (`pepscope.command_line.direct`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pepscope.terminal import printable
from pepscope.whole_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from pathlib import Path

#: Where the context of a command has the volume that was asked for: `QUIET` or another.
VOLUME = "pepscope.command_line.volume"
QUIET = "quiet"


def is_quiet() -> bool:
    """Whether the command that runs was asked to say nothing beside its results."""
    click = sys.modules.get("click")
    if click is None:
        return False  # no option was read
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(VOLUME) == QUIET


def say(text: str) -> None:
    """A line on standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()


def counted(number: int, noun: str) -> str:
    """`1 capture`, `2 captures`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def note(sentence: str) -> None:
    """A sentence on standard error that is no failure."""
    if not is_quiet():
        say(f"pepscope: {sentence}")


def announce(*paths: str | Path) -> None:
    """Say on standard error which files were written."""
    for path in paths:
        if str(path) != STANDARD_OUTPUT and not is_quiet():
            say(f"wrote {path}")
