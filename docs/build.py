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
        parts.append(_section(f"pepscope {name}", command, inner))
        if isinstance(command, click.Group):
            for part in command.list_commands(inner):
                deeper = command.get_command(inner, part)
                if deeper is not None:
                    context_of_part = click.Context(
                        deeper, parent=inner, info_name=part, terminal_width=WIDTH, max_content_width=WIDTH
                    )
                    parts.append(_section(f"pepscope {name} {part}", deeper, context_of_part))
    return "\n".join(parts)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    return f"## {title}\n\n```text\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
