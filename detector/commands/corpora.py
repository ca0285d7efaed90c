"""The commands `audit-captures` and `query`."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import textwrap
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from detector.commands.site import pages_option, write_site
from pepscope.command_line.options import Number, least_probability_option, memory_option
from pepscope.command_line.reports import ReportingCommand, json_option, report_option
from pepscope.command_line.volume import announce, counted
from pepscope.errors import UsageError
from pepscope.terminal import printable
from pepscope.whole_file import write_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detector.corpora.audit import CorpusSummary
    from detector.corpora.query import Answer

_SHOWN_ERRORS = 10


@click.command(
    "audit-captures", cls=ReportingCommand, short_help="Judge every connection of many captures, and write tables."
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False), metavar="RESULT",
    help="Directory for the tables; captures that it already has are not judged again.",
)  # fmt: skip
@click.option(
    "--manifest", metavar="FILE", help="CSV with the columns path (required), vantage, network, operator and notes."
)
@click.option(
    "--networks", metavar="FILE", help="Lines `prefix,name` that say which client addresses belong together."
)  # fmt: skip
@least_probability_option
@memory_option
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Processes that share the work. [default: all usable cores]"
)
@click.option("--scheduler", metavar="ADDRESS", help="Do the work on the Dask cluster of this scheduler.")
@click.option(
    "--patience", "patience_s", type=Number(0), default=60, show_default=True, metavar="SECONDS",
    help="How long to wait for a scheduler or workers that disappeared.",
)  # fmt: skip
@click.option(
    "--site", type=click.Path(file_okay=False), metavar="DIR", help="Also write a site of pages; see `pepscope site`."
)
@pages_option
@json_option("Write the summary as JSON.")
def audit_captures(
    sources: tuple[str, ...],
    output: str,
    manifest: str | None,
    networks: str | None,
    least_probability: float,
    memory_bytes: int | None,
    jobs: int | None,
    scheduler: str | None,
    patience_s: float,
    site: str | None,
    pages: int | None,
    as_json: bool,
) -> None:
    """Judge the TCP connections of many captures: files, directories, patterns, zip and tar archives, and addresses
    such as s3://bucket/day/*.pcap.

    Parts of rotated series are read as one; captures of two ends that share connections are judged together. RESULT
    gets connections (Parquet, by day and network), groups, captures and errors. Captures that are broken are rows of
    errors.parquet, and stop nothing.
    """
    if pages is not None and site is None:
        raise UsageError("--pages is for the pages of a site: give --site, too.")
    if scheduler is None:
        from detector.corpora.imported import IMPORTED
        from pepscope.processes.workers import start_server

        start_server(IMPORTED)
    from detector.corpora.audit import audit_captures as run
    from pepscope.command_line.progress import Progress

    bars: dict[str, Progress] = {}

    with ExitStack() as shown:

        def progress(step: str, done: int, total: int) -> None:
            if step not in bars:
                bars[step] = shown.enter_context(Progress(step))
            bars[step](done, total)

        summary = run(
            sources, output, manifest=manifest, networks=networks, least_probability=least_probability,
            memory_bytes=memory_bytes, processes=jobs, scheduler=scheduler, patience_s=patience_s,
            progress=progress,
        )  # fmt: skip
    _say(summary, as_json=as_json)
    if site is not None:
        write_site(output, site, pages, as_json=None)


def _say(summary: CorpusSummary, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary.to_dict(), indent=2, ensure_ascii=False))
        return
    verdicts = ", ".join(f"{count:,} {name}" for name, count in summary.verdicts.items() if count)
    click.echo(
        f"{counted(summary.captures, 'capture')}, judged as {summary.units:,} ({summary.pairs:,} of two vantage "
        f"points, {summary.resumed:,} there before): {counted(summary.connections, 'connection')}"
        + (f", {verdicts}" if verdicts else "")
    )
    click.echo(f"tables in {summary.directory}: connections, groups, captures.parquet, errors.parquet")
    for sentence in summary.notes:
        click.echo(f"pepscope: {sentence}", err=True)
    for failure in summary.errors[:_SHOWN_ERRORS]:
        click.echo(f"pepscope: {failure.sentence}", err=True)
    if len(summary.errors) > _SHOWN_ERRORS:
        click.echo(f"pepscope: {len(summary.errors) - _SHOWN_ERRORS:,} more in errors.parquet", err=True)


@click.command(cls=ReportingCommand, short_help="Query the tables of audit-captures in SQL.")
@click.argument("result", type=click.Path(exists=True, file_okay=False), metavar="RESULT")
@click.argument("sql", metavar="SQL")
@report_option("json", "Write JSON.", alone=True)
@report_option("csv", "Write CSV.", alone=True)
def query(result: str, sql: str, json_to: str | None, csv_to: str | None) -> None:
    """Query the tables connections, groups, captures and errors of RESULT in DuckDB's SQL.

    docs/guide/many-captures.md has eleven queries to start from.
    """
    from detector.corpora.query import query as ask

    answer = ask(result, sql)
    if json_to is not None:
        write_output(json_to, json.dumps(answer.to_dict(), indent=2, ensure_ascii=False, default=str) + "\n")
        announce(json_to)
    if csv_to is not None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
        write_output(csv_to, text.getvalue())
        announce(csv_to)
    if json_to is None and csv_to is None:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo("\n".join(_shown(answer, columns)))


def _shown(answer: Answer, terminal_columns: int | None) -> Iterator[str]:
    """A table whose columns are as wide as their widest cell; on a terminal that is narrower, a paragraph a row."""
    rows = [[_cell(value) for value in row] for row in answer.rows]
    widths = [max(map(len, cells)) for cells in zip(answer.columns, *rows, strict=True)]
    if not rows or terminal_columns is None or sum(widths) + 2 * (len(widths) - 1) <= terminal_columns:
        for cells in (answer.columns, *rows):
            yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        return
    name_width = max(map(len, answer.columns))
    for number, cells in enumerate(rows):
        if number:
            yield ""
        for name, cell in zip(answer.columns, cells, strict=True):
            yield from textwrap.wrap(
                f"{name:<{name_width}}  {cell}", terminal_columns, subsequent_indent=" " * (name_width + 2)
            )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))
