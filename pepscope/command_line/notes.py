"""The options `--quiet` and `--verbose`: what a command says beside its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pepscope.command_line.volume import QUIET, VOLUME
from pepscope.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])


def volume_options(command: Command) -> Command:
    """Add `-q/--quiet` as the parameter `quiet`, and `-v/--verbose`, which logs steps to standard error."""
    for option in (
        click.option(
            "-v", "--verbose", is_flag=True, expose_value=False, callback=_log_steps,
            help="Log each step to standard error, with its time.",
        ),
        click.option(
            "-q", "--quiet", is_flag=True, callback=_remember_quiet,
            help="Show errors only: no table, notes or progress. Requested reports are still written.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def _remember_quiet(ctx: click.Context, _: click.Parameter, asked: bool) -> bool:
    if asked:
        _choose(ctx, QUIET)
    return asked


def _log_steps(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        _choose(ctx, "verbose")
        from pepscope.command_line.logs import configure

        configure("pepscope", "text", "info")


def _choose(ctx: click.Context, volume: str) -> None:
    if ctx.meta.setdefault(VOLUME, volume) != volume:
        raise UsageError("--quiet and --verbose exclude each other: give one of them.")
