"""The command `annotate`: copies of captures in which the packets behind a verdict bear comments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pepscope.command_line.options import filter_option, memory_option
from pepscope.command_line.reports import ReportingCommand, json_option
from pepscope.errors import UsageError
from pepscope.whole_file import is_stream

if TYPE_CHECKING:
    from detector.commands.annotation import Copy

#: Moments of each finding that get comments.
PACKETS = 20


@click.command(
    cls=ReportingCommand, short_help="Copy captures with comments on the packets behind a verdict, for Wireshark."
)
@click.argument("captures", nargs=-1, required=True, metavar="SENDER [RECEIVER]")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    metavar="DIRECTORY",
    help="Where the copies go: a new directory, or an empty one.",
)
@click.option("--force", is_flag=True, help="Write over the copies of an earlier run in the output directory.")
@click.option(
    "--connection",
    "connections",
    multiple=True,
    metavar="CONNECTION",
    help="Only this connection: its number (`pair` in JSON Lines and CSV), or an address or ADDRESS:PORT of one of its "
    "ends. Repeatable. [default: the 1000 that deserve attention most]",
)
@click.option(
    "--packets",
    type=click.IntRange(1),
    default=PACKETS,
    show_default=True,
    metavar="N",
    help="Comment on the packets of N moments for each finding.",
)
@click.option(
    "--one-vantage", is_flag=True, help="All captures were taken at one vantage point; with one capture it is clear."
)
@filter_option
@memory_option
@json_option("Write as JSON what was copied.")
def annotate(
    captures: tuple[str, ...],
    output: str,
    force: bool,
    connections: tuple[str, ...],
    packets: int,
    one_vantage: bool,
    filter_expression: str | None,
    memory_bytes: int | None,
    as_json: bool,
) -> None:
    """Judge connections as `pepscope detect` does, and write pcapng copies of the captures with comments.

    A comment stands on each packet that shows a finding and says what it shows. The comments of file and interface have
    the verdicts. Packets keep their bytes, times and numbers. Wireshark shows the comments (Statistics > Capture File
    Properties, and the display filter frame.comment), and tshark prints them: tshark -r COPY -Y frame.comment -T fields
    -e frame.number -e frame.comment

    With --filter packets that do not match are copied too, without being judged.
    """
    if len(captures) > 2 and not one_vantage:
        raise UsageError(
            f"annotate takes the captures of one or two ends, got {len(captures)}: add --one-vantage if all were taken "
            "at one."
        )
    if directories := [path for path in captures if Path(path).is_dir()]:
        raise UsageError(f"{directories[0]} is a directory: give the files in it, with --one-vantage")
    if streams := [path for path in captures if is_stream(path)]:
        name = "standard input" if streams[0] == "-" else streams[0]
        raise UsageError(f"a capture from {name} has no file to copy: save it and give its name.")
    from detector.commands.annotation import annotate_captures
    from pepscope.command_line.progress import Progress

    with Progress("annotating") as progress:
        copies = annotate_captures(
            captures,
            Path(output),
            connections=connections,
            moments=packets,
            one_vantage=one_vantage or len(captures) == 1,
            filter=filter_expression,
            memory_bytes=memory_bytes,
            replace=force,
            progress=progress,
        )
    for copy in copies:
        for note in copy.notes:
            click.echo(f"pepscope: {note}", err=True)
    if as_json:
        click.echo(json.dumps({"schema": 1, "copies": [copy.document() for copy in copies]}, indent=2))
        return
    for copy in copies:
        click.echo(_line(copy))


def _line(copy: Copy) -> str:
    packets = "packet" if copy.commented == 1 else "packets"
    return f"{copy.path}: comments on {copy.commented:,} {packets} of {copy.frames:,}"
