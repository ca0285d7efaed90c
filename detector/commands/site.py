"""The command `site`."""

from __future__ import annotations

import json
from contextlib import ExitStack

import click

from pepscope.command_line.reports import ReportingCommand, json_option
from pepscope.command_line.volume import counted

#: Pages of connections that are made where no number is given.
_PAGES = 10

_SHOWN_FAILURES = 5

pages_option = click.option(
    "--pages", type=click.IntRange(0), metavar="N",
    help=f"Judge the N most telling connections again, for pages with figures. [default: {_PAGES}]",
)  # fmt: skip


@click.command(cls=ReportingCommand, short_help="Write a site of pages from the tables of audit-captures.")
@click.argument("result", type=click.Path(exists=True, file_okay=False), metavar="RESULT")
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False), metavar="DIR",
    help="Directory of the site: an empty one, or a site that is written anew.",
)  # fmt: skip
@pages_option
@json_option("Write a summary as JSON.")
def site(result: str, output: str, pages: int | None, as_json: bool) -> None:
    """Write a site of static pages from RESULT, the tables of `pepscope audit-captures`, without judging again.

    Networks by application and week, what changed since last week, where methods disagree, the slowest hidden legs; of
    each network its connections, each with the command that makes its page. Open DIR/index.html in a browser.
    """
    write_site(result, output, pages, as_json=as_json)


def write_site(result: str, directory: str, pages: int | None, *, as_json: bool | None) -> None:
    """Write the site, and say what was written: to standard output, as JSON where asked for; on standard error where
    `as_json` is None, because standard output is another result's."""
    from pepscope.command_line.progress import Progress
    from pepscope.plugins import writer

    with ExitStack() as shown:
        bars: dict[str, Progress] = {}

        def progress(step: str, done: int, total: int) -> None:
            if step not in bars:
                bars[step] = shown.enter_context(Progress(step))
            bars[step](done, total)

        summary = writer("corpus-site")(
            result, directory, pages=_PAGES if pages is None else pages, progress=progress
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps(summary.to_dict(), indent=2, ensure_ascii=False))
    else:
        click.echo(
            f"wrote {summary.page}: {counted(summary.connections, 'connection')} in "
            f"{counted(summary.networks, 'network')}, {summary.connection_pages:,} of them with a page",
            err=as_json is None,
        )
    for reason in summary.not_made[:_SHOWN_FAILURES]:
        click.echo(f"pepscope: no page: {reason}", err=True)
    if len(summary.not_made) > _SHOWN_FAILURES:
        click.echo(f"pepscope: {len(summary.not_made) - _SHOWN_FAILURES:,} more pages were not made", err=True)
