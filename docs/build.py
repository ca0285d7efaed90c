"""Writes docs/commands.md: the help of every command, so that the page cannot differ from the program."""

from __future__ import annotations

from pathlib import Path

import click

from pepscope.cli import pepscope_command

PAGE = Path(__file__).with_name("commands.md")
WIDTH = 80


def page() -> str:
    """The whole page as Markdown."""
    parts = ["# Commands\n", "Written by `make docs` from the commands' own help.\n"]
    context = click.Context(pepscope_command, info_name="pepscope", terminal_width=WIDTH, max_content_width=WIDTH)
    for name in pepscope_command.list_commands(context):
        command = pepscope_command.get_command(context, name)
        if command is None:
            raise SystemExit(f"{name} is no click command")
        inner = click.Context(command, parent=context, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
        parts.append(f"## pepscope {name}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
