"""Numbers that the commands take: finite ones, by one type of parameter."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points

import click
import pytest

from pepscope.cli import COMMANDS
from pepscope.command_line.options import Number


def _commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for inner in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), inner)
            assert found is not None
            yield from _commands(f"{name} {inner}", found)
    else:
        yield name, command


EVERY = [pair for entry in entry_points(group=COMMANDS) for pair in _commands(entry.name, entry.load())]


def test_all_numbers_are_of_one_type() -> None:
    numbers = [
        (name, parameter.opts[-1], parameter.type)
        for name, command in EVERY
        for parameter in command.params
        if isinstance(parameter.type, (click.FloatRange, click.types.FloatParamType))
    ]
    assert len(numbers) > 20
    assert [each for each in numbers if not isinstance(each[2], Number)] == []


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "-nan", "Infinity"])
def test_a_number_is_finite(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"not a finite number|not in the range"):
        Number(0).convert(text, None, None)
