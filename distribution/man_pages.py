"""Write a man page for each command and subcommand of pepscope into a directory, from click's definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click_man.core import generate_man_page

import pepscope
from pepscope.cli import pepscope_command


def contexts(context: click.Context) -> Iterator[click.Context]:
    """A command's context, and those of all commands below it that are installed."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None:
                yield from contexts(click.Context(command, info_name=name, parent=context))


def write_man_pages(directory: Path) -> list[Path]:
    """The files, one a command: `pepscope-probe-key-add.1`."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for context in contexts(click.Context(pepscope_command, info_name="pepscope")):
        page = directory / f"{context.command_path.replace(' ', '-')}.1"
        page.write_text(generate_man_page(context, version=pepscope.__version__), encoding="utf-8")
        written.append(page)
    return written


if __name__ == "__main__":
    write_man_pages(Path(sys.argv[1]))
