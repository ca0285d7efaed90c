"""What `inspect` does once it is known what is asked: read a capture, and write its connections."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pepscope.captures.capture import open_capture
from pepscope.captures.warnings import temporary_files_note
from pepscope.command_line.progress import Progress
from pepscope.command_line.volume import announce, note
from pepscope.errors import UsageError
from pepscope.terminal import is_coloured
from pepscope.whole_file import STANDARD_OUTPUT, output_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pepscope.captures.capture import Capture

#: Connections that a page draws.
DRAWN_CONNECTIONS = 50


class Listing(NamedTuple):
    """What is asked: the files of a capture, where each format is to go, and what these are to hold."""

    captures: Sequence[str]
    files: Mapping[str, str]
    exchanges: bool = False
    is_digested: bool = False
    html_to: str | None = None
    filter_expression: str | None = None
    memory_bytes: int | None = None
    output: str = STANDARD_OUTPUT
    quiet: bool = False


def list_files(captures: Sequence[str], as_json: bool) -> bool:
    """What `pepscope inspect [--json] FILE...` does, a call without other options. True: it needs no parser."""
    list_connections(Listing(captures, {"json": STANDARD_OUTPUT} if as_json else {}))
    return True


def list_connections(asked: Listing) -> None:
    """Read the capture and write what is asked of it, a table where no format is. Raises CaptureError, FilterError,
    UsageError, OSError."""
    captures, files, output = asked.captures, asked.files, asked.output
    # A series has one for each file, and no one digest.
    digest = None
    if len(captures) == 1 and (asked.html_to or asked.is_digested):
        from pepscope.captures.files.digest import FileDigest

        digest = FileDigest(captures[0])
    with Progress() as progress:
        opened = open_capture(
            captures[0] if len(captures) == 1 else captures,
            filter=asked.filter_expression,
            memory_bytes=asked.memory_bytes,
            payload=asked.exchanges or asked.html_to is not None,
            columns=asked.exchanges or asked.html_to is not None,
            progress=progress,
        )
    if digest is not None:
        opened.sha256 = digest.hexadecimal()
    # Opened only now, so that a capture which cannot be read leaves an older result alone.
    if asked.html_to is not None:
        _write_page(opened, asked.html_to)
    for form, path in files.items():
        with output_file(path) as stream:
            stream.writelines(_chunks(opened, form, asked.exchanges))
        announce(path)
    is_table_asked = output != STANDARD_OUTPUT and output not in files.values()
    if is_table_asked or not (files or asked.html_to or asked.quiet):
        colour = output == STANDARD_OUTPUT and is_coloured(sys.stdout)
        with output_file(output) as stream:
            stream.writelines(f"{line}\n".encode() for line in _lines(opened, asked.exchanges, colour))
    if files:
        for warning in opened.warnings:
            where = "" if warning.startswith(opened.path) else f"{opened.path}: "
            note(f"{where}{warning}")
    if (text := temporary_files_note(*opened.temporary_bytes)) is not None:
        note(text)


def _write_page(capture: Capture, path: str) -> None:
    """Draw the connections with most payload. Raises UsageError where what draws is not installed."""
    from pepscope.plugins import find, writer

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
