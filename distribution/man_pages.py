"""Write a man page for each command and subcommand of pepscope into a directory, from click's definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click_man.core import generate_man_page

import pepscope
from pepscope.cli import SUMMARIES, pepscope_command


def contexts() -> Iterator[click.Context]:
    """The command, what is installed with it, and their subcommands."""
    top = click.Context(pepscope_command, info_name="pepscope")
    yield top
    for name in SUMMARIES:
        command = pepscope_command.get_command(top, name)
        if command is None:
            continue
        below = click.Context(command, info_name=name, parent=top)
        yield below
        for inner in command.commands.values() if isinstance(command, click.Group) else ():
            yield click.Context(inner, info_name=inner.name, parent=below)


def write_man_pages(directory: Path) -> list[Path]:
    """The files, one a command: `pepscope-probe-serve.1`."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for context in contexts():
        page = directory / f"{context.command_path.replace(' ', '-')}.1"
        page.write_text(generate_man_page(context, version=pepscope.__version__), encoding="utf-8")
        written.append(page)
    return written


if __name__ == "__main__":
    write_man_pages(Path(sys.argv[1]))
