"""The option `-i INTERFACE` of commands that read captures: they capture first, and then read what they captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from pepscope.command_line.options import Duration, SizeType
from pepscope.command_line.reports import is_standard_input_meant
from pepscope.errors import UsageError
from pepscope.processes.signals import stopped_by_signals

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "-i", "--interface", metavar="INTERFACE",
        help="Capture 160 bytes of each packet on this network interface (or `any`) until Ctrl-C, and read that "
        "capture. Needs Linux, and root or CAP_NET_RAW.",
    ),
    click.option("--duration", "duration_s", type=Duration(), metavar="T", help="With -i: stop capturing after T."),
    click.option(
        "--capture-size", "capture_bytes", type=SizeType(), metavar="SIZE",
        help="With -i: stop capturing at this size.  [default: 1GiB]",
    ),
    click.option(
        "-w", "--write-capture", "kept_as", metavar="FILE",
        help="With -i: keep the capture in FILE (pcap); otherwise it is deleted at the end.",
    ),
)  # fmt: skip


def interface_options(command: Command) -> Command:
    """Add the options `interface`, `duration_s`, `capture_bytes` and `kept_as`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def given_or_captured(
    paths: Sequence[str],
    argument: str,
    interface: str | None,
    duration_s: float | None,
    capture_bytes: int | None,
    kept_as: str | None,
    filter_expression: str | None,
) -> Iterator[tuple[str, ...]]:
    """The paths that the user gave as `argument`, or that of a capture of the interface.

    The capture is removed when the block ends, unless it is `kept_as` a file. Raises UsageError where both or none
    are given, CaptureError, FilterError.
    """
    if interface is None:
        of_interfaces = {"--duration": duration_s, "--capture-size": capture_bytes, "--write-capture": kept_as}
        for name, value in of_interfaces.items():
            if value is not None:
                raise UsageError(f"{name} is for captures of an interface: give one with -i")
        if not paths and is_standard_input_meant():
            paths = ("-",)
        if not paths:
            raise UsageError(f"{argument} or an interface (-i) is needed")
        yield tuple(paths)
        return
    if paths:
        raise UsageError(f"-i captures what is judged: give no {argument} with it, got {paths[0]}")
    from pathlib import Path

    from pepscope.captures.live.bounded import MOST_BYTES, captured

    ends = "Ctrl-C ends it" if duration_s is None else f"for {duration_s:g} s"
    end = (
        "the capture is removed at the end: -w FILE keeps it"
        if kept_as is None
        else f"the capture is kept as {kept_as}"
    )
    click.echo(f"capturing on {interface}, {ends}; {end}", err=True)
    with captured(
        interface, stopped_by_signals, duration_s=duration_s, most_bytes=capture_bytes or MOST_BYTES,
        filter_expression=filter_expression or "", kept_as=None if kept_as is None else Path(kept_as),
    ) as capture:  # fmt: skip
        for note in capture.notes:
            click.echo(f"pepscope: {note}", err=True)
        yield (str(capture.path),)
