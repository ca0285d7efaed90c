"""The command `host-times`."""

from __future__ import annotations

import json
import sys

import click

from pepscope.command_line.reports import Destination, ReportingCommand, json_option
from pepscope.command_line.volume import announce, note
from pepscope.errors import UsageError
from pepscope.whole_file import write_output


@click.command("host-times", cls=ReportingCommand, short_help="Measure a host's processing times, for scenarios.")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("-o", "--output", type=Destination(), metavar="FILE", help="File for the table (TOML).")
@click.option(
    "--end",
    "given",
    type=click.Choice(["client", "server"]),
    help="Which end of its connections the machine is.  [default: the one that answers handshakes immediately]",
)
@json_option("Write the table and what it rests on as JSON.")
def host_times(captures: tuple[str, ...], output: str | None, given: str | None, as_json: bool) -> None:
    """Measure how long a machine and its programs take, in captures of one machine that were made at it.

    From the arrival of a packet until the answer leaves, between packets that leave together, and until programs act;
    by quantiles above the least. What has too few samples keeps the default. A scenario takes the file by
    [server] times = { file = "times.toml" }.
    """
    from pepscope.captures.capture import open_capture
    from reference_sim.host_times import End, captured_end, measure_host_times
    from reference_sim.host_times.written import as_document, as_text, as_toml

    read = [open_capture(path) for path in captures]
    for path, capture in zip(captures, read, strict=True):
        for warning in capture.warnings:
            note(warning if warning.startswith(path) else f"{path}: {warning}")
    ends = [End(given) if given else captured_end(capture, path) for path, capture in zip(captures, read, strict=True)]
    measured = measure_host_times(zip(read, ends, strict=True))
    if not measured.table():
        raise UsageError("captures must hold at least 12 answers of the machine and be made at it, which these do not")
    if output is not None:
        write_output(output, as_toml(measured))
        announce(output)
    if as_json:
        document = as_document(measured, list(captures), [end.value for end in ends])
        sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")
    elif output is None:
        sys.stdout.write(as_toml(measured))
    else:
        click.echo(as_text(measured))
