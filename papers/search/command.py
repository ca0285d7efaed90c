"""`reproduce --search`: searches of papers on the command line."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

from papers.library import load_paper
from papers.progress import shown_progress
from papers.search.outcome import SearchResult, in_words, search_text
from papers.search.searching import run_search
from pepscope.whole_file import write_whole

SCHEMA = 1


def search_papers(names: Sequence[str], output: Path, *, trials: int, processes: int | None, as_json: bool) -> None:
    """Run the searches of papers, write SEARCH.md and SEARCH.json beside their trials, and report on standard output.

    Raises what `run_search` raises.
    """
    results = []
    for paper in map(load_paper, names):
        for search in paper.searches:
            directory = output / paper.name / "search"
            with shown_progress(f"searching {search.name}") as progress:
                result = run_search(
                    search, directory / search.name, trials=trials, processes=processes, progress=progress
                )
            write_whole(directory / f"{search.name}.md", search_text(result))
            write_whole(directory / f"{search.name}.json", json.dumps(result.to_dict(), indent=1) + "\n")
            click.echo(f"wrote {directory / search.name}.md", err=True)
            results.append(result)
            if not as_json:
                click.echo(_summary(result))
    if as_json:
        searches = [result.to_dict() for result in results]
        sys.stdout.write(json.dumps({"schema": SCHEMA, "searches": searches}) + "\n")


def _summary(result: SearchResult) -> str:
    """One search for a terminal: counts, the best settings, the price."""
    search, best = result.search, result.best
    lines = [f"{search.name}: {search.title}"]
    lines += [f"  {one.held} of {len(one.statements)} statements: {one.origin}" for one in result.candidates]
    lines.append(f"  settings of '{best.origin}':")
    for parameter in search.parameters:
        value = best.settings[parameter.name]
        note = "" if value == parameter.chosen else f" (as chosen: {parameter.chosen})"
        lines.append(f"    {parameter.name}: {value}{note}")
    for one in result.different()[1:]:
        for words, statements in (("gained with", result.gained(one)), ("price of", result.price(one))):
            text = f"{words} '{one.origin}': {in_words(statements)}"
            lines.append(textwrap.fill(text, 110, initial_indent="  ", subsequent_indent="    "))
    return "\n".join([*lines, ""])
