"""Options that say where a report goes: `--json`, `--csv`, `--html`, ..., each to a file or to standard output."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Collection
from contextlib import redirect_stdout
from itertools import pairwise
from typing import Any, TypeVar

import click

from pepscope.command_line.volume import announce
from pepscope.errors import UsageError
from pepscope.processes.signals import EndedBySignal
from pepscope.whole_file import STANDARD_OUTPUT, is_stream, write_output

Command = TypeVar("Command", bound=Callable[..., Any])

#: How files of a format end, so that `--json FILE.json` is told from `--json CAPTURE`.
_SUFFIXES = {
    "--json": (".json",),
    "--jsonl": (".jsonl", ".ndjson"),
    "--csv": (".csv",),
    "--parquet": (".parquet", ".pq"),
}
_REDIRECTED = "pepscope.command_line.reports.redirected"
_DASH_GIVEN = "pepscope.command_line.reports.dash_given"


class Destination(click.Path):
    """A file that can be written, or `-`; what cannot be, or is read, is refused before any work is done."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, allow_dash=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path as it was given. Raises UsageError where its directory does not exist."""
        path = str(super().convert(value, param, ctx))
        if path == STANDARD_OUTPUT:
            return path
        if not path:
            raise UsageError(f"{_named(param)} must name a file, got ''.")
        from pathlib import Path  # which standard output does without

        directory = Path(path).parent
        if not directory.is_dir():
            raise UsageError(f"{path} cannot be written: {os.strerror(errno.ENOENT)}.")
        if not is_stream(path) and not os.access(Path(path).resolve().parent, os.W_OK):
            raise UsageError(f"{path} cannot be written: no file can be made in {directory}.")
        return path


def _named(param: click.Parameter | None) -> str:
    return "a report" if param is None else param.opts[-1]


class ReportOption(click.Option):
    """An option whose value is a `Destination`; without a value, where that may be left out, standard output."""


class ReportingCommand(click.Command):
    """A command with report options. A report option may stand alone, before `-`, before a file that ends as files of
    its format do, or be joined to any file by `=`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; raises UsageError where two reports would mix, or one would take the place of what is read."""
        alone = self._options_alone()
        ctx.meta[_DASH_GIVEN] = any(word in alone and after == "-" for word, after in pairwise(args))
        rest = super().parse_args(ctx, _joined(args, alone))
        destinations = {
            parameter.opts[-1]: str(path)
            for parameter in self.params
            if isinstance(parameter, ReportOption) and (path := _destination(ctx, parameter)) is not None
        }
        standing = [name for name, path in destinations.items() if path == STANDARD_OUTPUT]
        if len(standing) > 1:
            raise UsageError(
                f"{' and '.join(standing)} write to one standard output: give one of them alone, or name a file, as in "
                f"{standing[-1]}=FILE."
            )
        written = {
            parameter.opts[-1]: str(path)
            for parameter in self.params
            if isinstance(parameter.type, Destination) and (path := _destination(ctx, parameter)) is not None
        }
        _check_apart(written, destinations, self._given_files(ctx))
        return rest

    def _given_files(self, ctx: click.Context) -> list[str]:
        """What the arguments name, among it every file that the command reads."""
        names: list[str] = []
        for parameter in self.params:
            if isinstance(parameter, click.Argument):
                value = ctx.params.get(parameter.name or "")
                names += map(str, value if isinstance(value, (tuple, list)) else [value])
        return names

    def _options_alone(self) -> set[str]:
        options = [parameter for parameter in self.params if isinstance(parameter, ReportOption)]
        return {name for option in options if option.flag_value == STANDARD_OUTPUT for name in option.opts}

    def invoke(self, ctx: click.Context) -> Any:
        """Run; what a redirected report has for standard output goes to its file, which appears when it is whole."""
        path = ctx.meta.get(_REDIRECTED)
        if path in (None, STANDARD_OUTPUT):
            return super().invoke(ctx)
        text = io.StringIO()
        try:
            with redirect_stdout(text):
                value = super().invoke(ctx)
        except EndedBySignal:
            raise
        except (SystemExit, click.exceptions.Exit):
            _keep(path, text)
            raise
        _keep(path, text)
        return value


def report_option(name: str, description: str, *, alone: bool = False) -> Callable[[Command], Command]:
    """`--NAME FILE` as a parameter `NAME_to` (`str | None`); with `alone`, `--NAME` by itself is standard output."""
    flag: dict[str, Any] = {"is_flag": False, "flag_value": STANDARD_OUTPUT} if alone else {}
    return click.option(
        f"--{name}", f"{name}_to", cls=ReportOption, type=Destination(), metavar="[FILE]" if alone else "FILE",
        help=description, **flag,
    )  # fmt: skip


def json_option(description: str) -> Callable[[Command], Command]:
    """`--json [FILE]` as a parameter `as_json` (`bool`) of a command that writes JSON to standard output if it is true.

    With FILE, what the command writes to standard output goes there.
    """

    def remember(ctx: click.Context, _: click.Parameter, path: str | None) -> bool:
        ctx.meta[_REDIRECTED] = path
        return path is not None

    return click.option(
        "--json", "as_json", cls=ReportOption, type=Destination(), metavar="[FILE]", help=description,
        is_flag=False, flag_value=STANDARD_OUTPUT, callback=remember,
    )  # fmt: skip


def is_standard_input_meant() -> bool:
    """Whether a `-` stands behind `--json` or the like, which means standard input, too, where no capture is given."""
    return bool(click.get_current_context().meta.get(_DASH_GIVEN))


def _keep(path: str, text: io.StringIO) -> None:
    write_output(path, text.getvalue())
    announce(path)


def _destination(ctx: click.Context, option: click.Parameter) -> Any:
    return ctx.meta.get(_REDIRECTED) if option.name == "as_json" else ctx.params.get(option.name or "")


def _check_apart(written: dict[str, str], reports: Collection[str], given: list[str]) -> None:
    """Raises UsageError where what is written would take the place of a file that was given, or one of the `reports`
    that of another."""
    names: dict[str, str] = {}
    for name, path in written.items():
        if is_stream(path):
            continue
        target = os.path.realpath(path)
        if any(os.path.realpath(file) == target for file in given):
            raise UsageError(f"{name} must name another file than what is read, got {path} for both.")
        if name in reports:
            if target in names:
                raise UsageError(f"{names[target]} and {name} must name different files, got {path} for both.")
            names[target] = name


def _joined(words: list[str], alone: set[str]) -> list[str]:
    """Options that may stand alone, each joined to the file behind it, or to `-`."""
    joined: list[str] = []
    rest = iter(range(len(words)))
    for place in rest:
        word = words[place]
        if word == "--":
            return [*joined, *words[place:]]
        if word in alone:
            following = words[place + 1] if place + 1 < len(words) else ""
            if following == STANDARD_OUTPUT or _is_file_of(word, following):
                word = f"{word}={following}"
                next(rest)
            else:
                word = f"{word}={STANDARD_OUTPUT}"
        joined.append(word)
    return joined


def _is_file_of(option: str, word: str) -> bool:
    """Whether a word names a file of the option's format; a question in SQL has blanks."""
    return word.endswith(_SUFFIXES[option]) and not any(letter.isspace() for letter in word)
