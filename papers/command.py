"""The command `reproduce`."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pepscope.command_line.options import refuse_given
from pepscope.command_line.reports import ReportingCommand, json_option

if TYPE_CHECKING:
    from papers.results import Reproduction

SCHEMA = 1
#: Settings that a search tries unless told otherwise.
TRIALS = 60


@click.command(
    cls=ReportingCommand, short_help="Run the experiments of the seed papers again, and judge each published statement."
)
@click.argument("papers", nargs=-1, metavar="[hu|jersey|ren-lin|wei|all]...")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), metavar="DIR", help="Where all goes.")
@click.option(
    "--quick/--full",
    "is_quick",
    default=True,
    help="Run fewer repeats, which give wider intervals (the default), or all of them.",
)
@click.option(
    "--sensitivity/--no-sensitivity",
    "has_sensitivity",
    default=None,
    help="Also judge each statement with other values of each parameter that the paper leaves open; the default with "
    "--full.",
)
@click.option(
    "--search",
    "is_search",
    is_flag=True,
    help="Instead, search for the values of open parameters under which most statements hold at the same time, and "
    "report which statements fail then.",
)
@click.option(
    "--trials",
    type=click.IntRange(1, 10_000),
    default=TRIALS,
    show_default=True,
    metavar="N",
    help="Number of settings that each search tries.",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    metavar="N",
    help="Processes that share the runs.  [default: one per usable core]",
)
@json_option("Write statements and verdicts as JSON.")
def reproduce(
    papers: tuple[str, ...],
    output: str,
    is_quick: bool,
    has_sensitivity: bool | None,
    is_search: bool,
    trials: int,
    processes: int | None,
    as_json: bool,
) -> None:
    """Run the experiments of published papers in the simulator, and judge each published statement by them.

    hu: split proxy over UMTS dedicated channels. jersey: TCP-Jersey over HSDPA. ren-lin: window adaptation over links
    of variable rate. wei: Split-TCP and TCP proxies in cellular networks. Without a name: all.

    For each paper DIR gets a page (NAME.html) and a directory (NAME/) with tables, figures and runs. Finished runs are
    not repeated. --search writes NAME/search/*.md and *.json; its final scores come from seeds that the search did not
    use.
    """
    from papers.experiment import Effort
    from papers.library import PAPERS, load_paper
    from papers.progress import shown_progress
    from papers.runner import reproduce as run_again
    from papers.search.command import search_papers

    names = PAPERS if not papers or "all" in papers else tuple(dict.fromkeys(papers))
    if is_search:
        refuse_given(("has_sensitivity", "is_quick"), "does nothing with --search")
        search_papers(names, Path(output), trials=trials, processes=processes, as_json=as_json)
        return
    refuse_given(("trials",), "is for --search: give both")
    effort = Effort.QUICK if is_quick else Effort.FULL
    results = []
    for number, paper in enumerate([load_paper(name) for name in names], start=1):
        with shown_progress(f"reproducing {paper.name} ({number} of {len(names)})") as progress:
            directory = Path(output) / paper.name
            result = run_again(
                paper,
                directory,
                effort=effort,
                has_sensitivity=has_sensitivity,
                processes=processes,
                progress=progress,
            )
        _write_pages(result, Path(output))
        results.append(result)
        if not as_json:
            click.echo(_summary(result))
    if as_json:
        sys.stdout.write(json.dumps({"schema": SCHEMA, "papers": [result.to_dict() for result in results]}) + "\n")


def _write_pages(result: Reproduction, output: Path) -> None:
    from pepscope.plugins import writer

    page = output / f"{result.paper}.html"
    writer("reproduction-html")(result, page)
    writer("reproduction-figures")(result, output / result.paper / "figures")
    click.echo(f"wrote {page}", err=True)


def _summary(result: Reproduction) -> str:
    """One paper's outcomes for a terminal."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in result.counts().items())
    lines = [
        f"{result.paper}: {result.title}",
        f"  {result.counts()['reproduced']} of {result.counted} statements reproduced",
        f"  {result.runs:,} runs, {result.timing()}",
        f"  {counts}",
        "",
    ]
    for statement in result.assessment.statements:
        lines.append(f"  {statement.outcome.upper()}: {statement.where}")
        said = [
            ("published", statement.published),
            ("found", statement.found),
            ("accepted", statement.tolerance),
            ("reason", statement.reason),
            *(("depends on", f"{name}: {effect}") for name, effect in statement.sensitivity),
            ("with other values", statement.sensitivity_in_words()),
        ]
        for name, text in said:
            if text:
                lines.append(textwrap.fill(f"{name}: {text}", 110, initial_indent="    ", subsequent_indent="      "))
    return "\n".join([*lines, ""])
