"""The command `inspect`: the TCP connections of a capture."""

from __future__ import annotations

import sys

import click

from pepscope.command_line.listing import Listing, list_connections
from pepscope.command_line.live import given_or_captured, interface_options
from pepscope.command_line.notes import volume_options
from pepscope.command_line.options import filter_option, memory_option
from pepscope.command_line.reports import Destination, ReportingCommand, report_option
from pepscope.errors import UsageError
from pepscope.whole_file import STANDARD_OUTPUT


@click.command(cls=ReportingCommand)
@click.argument("captures", nargs=-1, metavar="[FILE...]")
@interface_options
@report_option("json", "Write JSON (schema inspect-1).", alone=True)
@report_option("csv", "Write CSV, one row per connection.", alone=True)
@report_option("parquet", "Write Parquet, one row per connection.", alone=True)
@click.option(
    "--exchanges",
    is_flag=True,
    help="List exchanges (a question and its answer); CSV and Parquet have one row for each.",
)
@click.option(
    "--digest", "is_digested", is_flag=True, help="Write the SHA-256 of the file into JSON; this reads the file twice."
)
@report_option(
    "html",
    "Write a page that draws the 50 connections with most payload: time and sequence, round trips, windows, data in "
    "flight, retransmissions.",
)
@filter_option
@memory_option
@click.option(
    "-o",
    "--output",
    type=Destination(),
    default=STANDARD_OUTPUT,
    metavar="FILE",
    help="Write to this file instead of standard output.",
)
@volume_options
def inspect(
    captures: tuple[str, ...],
    interface: str | None,
    duration_s: float | None,
    capture_bytes: int | None,
    kept_as: str | None,
    json_to: str | None,
    csv_to: str | None,
    parquet_to: str | None,
    exchanges: bool,
    is_digested: bool,
    html_to: str | None,
    filter_expression: str | None,
    memory_bytes: int | None,
    output: str,
    quiet: bool,
) -> None:
    """List the TCP connections of a capture.

    With --exchanges also what one side asked and the other answered: kind, time
    from the question to the answer, gap between acknowledgement and answer,
    and the transport's round trips. Notes in the table: s strict (cannot wait
    for a person), 1 first of its direction, r repeated (cannot be timed), x
    crossed by data of the other side.

    FILE is a pcap, pcapng or snoop file, plain or compressed (gzip, zstd, xz,
    bzip2, lz4), or - for standard input. Several files, or the captures in a
    directory, are the parts of one capture that a tool divided into files
    (tcpdump -C or -G): connections that cross files are whole. With -i it
    captures on an interface and lists that.
    """
    files = {name: path for name, path in (("json", json_to), ("csv", csv_to), ("parquet", parquet_to)) if path}
    files = {name: output if path == STANDARD_OUTPUT else path for name, path in files.items()}
    if files.get("parquet") == STANDARD_OUTPUT and sys.stdout.isatty():
        raise UsageError("Parquet is binary: name a file, as in --parquet=FILE, or pipe it")
    captures = click.get_current_context().with_resource(
        given_or_captured(captures, "FILE", interface, duration_s, capture_bytes, kept_as, filter_expression)
    )
    list_connections(
        Listing(captures, files, exchanges, is_digested, html_to, filter_expression, memory_bytes, output, quiet)
    )
