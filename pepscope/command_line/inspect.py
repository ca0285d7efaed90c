"""The command `inspect`: the TCP connections of a capture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pepscope.command_line.colour import is_coloured
from pepscope.command_line.live import given_or_captured, interface_options
from pepscope.command_line.options import filter_option, memory_option, output_option
from pepscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pepscope.captures.capture import Capture

#: Connections that a page draws.
DRAWN_CONNECTIONS = 50


@click.command()
@click.argument("captures", nargs=-1, metavar="[FILE...]")
@interface_options
@click.option("--json", "as_json", is_flag=True, help="Write JSON (schema inspect-1).")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV, one row a connection.")
@click.option("--parquet", "as_parquet", is_flag=True, help="Write Parquet, one row a connection.")
@click.option("--exchanges", is_flag=True, help="List questions and answers: CSV and Parquet have one row for each.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write a page that draws the 50 connections with most payload: time and sequence, round trips, windows, data "
    "in flight, retransmissions.",
)
@filter_option
@memory_option
@output_option
def inspect(
    captures: tuple[str, ...],
    interface: str | None,
    duration_s: float | None,
    capture_bytes: int | None,
    as_json: bool,
    as_csv: bool,
    as_parquet: bool,
    exchanges: bool,
    html: str | None,
    filter_expression: str | None,
    memory_bytes: int | None,
    output: str,
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
    asked = [name for name, is_asked in (("json", as_json), ("csv", as_csv), ("parquet", as_parquet)) if is_asked]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in asked)} all write to one output: give one of them.")
    form = asked[0] if asked else None
    if form == "parquet" and output == "-" and sys.stdout.isatty():
        raise UsageError("Parquet is binary: name a file with --output, or pipe it")
    captures = click.get_current_context().with_resource(
        given_or_captured(captures, "FILE", interface, duration_s, capture_bytes, filter_expression)
    )
    from pepscope.captures.capture import open_capture
    from pepscope.captures.warnings import temporary_files_note
    from pepscope.command_line.progress import Progress

    with Progress() as progress:
        opened = open_capture(
            captures[0] if len(captures) == 1 else captures,
            filter=filter_expression,
            memory_bytes=memory_bytes,
            payload=exchanges or html is not None,
            columns=exchanges or html is not None,
            progress=progress,
        )
    if html is not None:
        _write_page(opened, html)
        if form is None and output == "-":
            return
    # Opened only now, so that a capture which cannot be read leaves an older result alone.
    colour = output == "-" and is_coloured(sys.stdout)
    with click.open_file(output, "wb") as stream:
        for chunk in _chunks(opened, form, exchanges, colour):
            stream.write(chunk)
    if form is not None:
        for warning in opened.warnings:
            where = "" if warning.startswith(opened.path) else f"{opened.path}: "
            click.echo(f"pepscope: {where}{warning}", err=True)
    if (note := temporary_files_note(*opened.temporary_bytes)) is not None:
        click.echo(f"pepscope: {note}", err=True)


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
    click.echo(f"wrote {path}", err=True)


def _chunks(capture: Capture, form: str | None, exchanges: bool, colour: bool) -> Iterator[bytes]:
    if form == "json":
        yield from capture.json_chunks(exchanges=exchanges)
    elif form is None:
        for line in _lines(capture, exchanges, colour):
            yield f"{line}\n".encode()
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
