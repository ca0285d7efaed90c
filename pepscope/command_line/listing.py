"""What `inspect` does once its options are parsed: read a capture, and write its connections."""

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
    """The options of `inspect`: the files of a capture, where each format goes (`files`), and what it holds."""

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
    capture = _read(asked)
    # Files are opened only now, so that a capture which cannot be read leaves an older result alone.
    if asked.html_to is not None:
        _write_page(capture, asked.html_to)
    for form, path in asked.files.items():
        with output_file(path) as stream:
            stream.writelines(_chunks(capture, form, asked.exchanges))
        announce(path)
    if _has_table(asked):
        colour = asked.output == STANDARD_OUTPUT and is_coloured(sys.stdout)
        with output_file(asked.output) as stream:
            stream.writelines(f"{line}\n".encode() for line in _lines(capture, asked.exchanges, colour))
    if asked.files:
        _note_warnings(capture)
    if (text := temporary_files_note(*capture.temporary_bytes)) is not None:
        note(text)


def _read(asked: Listing) -> Capture:
    captures, is_one = asked.captures, len(asked.captures) == 1
    digest = None
    # A series has one for each file, and no one digest.
    if is_one and (asked.html_to or asked.is_digested):
        from pepscope.captures.files.digest import FileDigest

        digest = FileDigest(captures[0])
    needs_payload = asked.exchanges or asked.html_to is not None
    with Progress() as progress:
        capture = open_capture(
            captures[0] if is_one else captures,
            filter=asked.filter_expression,
            memory_bytes=asked.memory_bytes,
            payload=needs_payload,
            columns=needs_payload,
            progress=progress,
        )
    if digest is not None:
        capture.sha256 = digest.hexadecimal()
    return capture


def _has_table(asked: Listing) -> bool:
    """Whether a table is written: to a file of its own, or where nothing else is written."""
    has_own_file = asked.output != STANDARD_OUTPUT and asked.output not in asked.files.values()
    return has_own_file or not (asked.files or asked.html_to or asked.quiet)


def _note_warnings(capture: Capture) -> None:
    """Say on standard error what the table would say below it."""
    for warning in capture.warnings:
        where = "" if warning.startswith(capture.path) else f"{capture.path}: "
        note(f"{where}{warning}")


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
