"""The command `inspect`: the TCP connections of a capture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pepscope.command_line.colour import is_coloured
from pepscope.command_line.live import given_or_captured, interface_options
from pepscope.command_line.notes import note, volume_options
from pepscope.command_line.options import filter_option, memory_option
from pepscope.command_line.reports import Destination, ReportingCommand, announce, report_option
from pepscope.errors import UsageError
from pepscope.whole_file import STANDARD_OUTPUT, output_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pepscope.captures.capture import Capture

#: Connections that a page draws.
DRAWN_CONNECTIONS = 50


@click.command(cls=ReportingCommand)
@click.argument("captures", nargs=-1, metavar="[FILE...]")
@interface_options
@report_option("json", "Write JSON (schema inspect-1).", alone=True)
@report_option("csv", "Write CSV, one row a connection.", alone=True)
@report_option("parquet", "Write Parquet, one row a connection.", alone=True)
@click.option("--exchanges", is_flag=True, help="List questions and answers: CSV and Parquet have one row for each.")
@click.option("--digest", "is_digested", is_flag=True, help="Write the file's SHA-256 into JSON, which reads it twice.")
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
    from pepscope.captures.capture import open_capture
    from pepscope.captures.files.digest import FileDigest
    from pepscope.captures.warnings import temporary_files_note
    from pepscope.command_line.progress import Progress

    # A series has one for each file, and no one digest.
    digest = FileDigest(captures[0]) if len(captures) == 1 and (html_to or is_digested) else None
    with Progress() as progress:
        opened = open_capture(
            captures[0] if len(captures) == 1 else captures,
            filter=filter_expression,
            memory_bytes=memory_bytes,
            payload=exchanges or html_to is not None,
            columns=exchanges or html_to is not None,
            progress=progress,
        )
    if digest is not None:
        opened.sha256 = digest.hexadecimal()
    # Opened only now, so that a capture which cannot be read leaves an older result alone.
    if html_to is not None:
        _write_page(opened, html_to)
    for form, path in files.items():
        with output_file(path) as stream:
            stream.writelines(_chunks(opened, form, exchanges))
        announce(path)
    is_table_asked = output != STANDARD_OUTPUT and output not in files.values()
    if is_table_asked or not (files or html_to or quiet):
        colour = output == STANDARD_OUTPUT and is_coloured(sys.stdout)
        with output_file(output) as stream:
            stream.writelines(f"{line}\n".encode() for line in _lines(opened, exchanges, colour))
    if files:
        for warning in opened.warnings:
            where = "" if warning.startswith(opened.path) else f"{opened.path}: "
            note(f"{where}{warning}")
    if (text := temporary_files_note(*opened.temporary_bytes)) is not None:
        note(text)


def _write_page(capture: Capture, path: str) -> None:
    """Draw the connections with most payload. Raises UsageError where what draws is not installed."""
    from pepscope.plugins import find
    from pepscope.writers import writer

    entry = find("pepscope.api", "connection_series")
    if entry is None:
        raise UsageError("--html needs the room 'detector', which is not installed")
    columns = capture.connection_columns()
    payload = columns["up_payload_bytes"] + columns["down_payload_bytes"]
    largest = (-payload).argsort(kind="stable")[:DRAWN_CONNECTIONS].tolist()
    writer("inspect-html")(capture, entry.load()(capture, largest), path)
    announce(path)


def _chunks(capture: Capture, form: str, exchanges: bool) -> Iterator[bytes]:
    if form == "json":
        yield from capture.json_chunks(exchanges=exchanges)
    else:
        from pepscope.captures.tables import connection_frame, exchange_frame

        frames = exchange_frame if exchanges else connection_frame
        if form == "csv":
            yield from frames.csv_chunks(capture)
        else:
            yield frames.parquet_bytes(capture)


def _lines(capture: Capture, exchanges: bool, colour: bool) -> Iterator[str]:
    if exchanges:
        from pepscope.captures.tables.exchange_table import exchange_lines

        return exchange_lines(capture, colour=colour)
    from pepscope.captures.tables.connection_table import table_lines

    return table_lines(capture, colour=colour)
