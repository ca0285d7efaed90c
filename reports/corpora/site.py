"""Writes the site of an audit of many captures: overview, networks, lists of connections, and pages of some."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from detector.corpora.judged_units import JudgedUnits
from detector.corpora.query import open_tables
from detector.corpora.tables import CONNECTIONS, is_held
from pepscope.errors import UsageError
from reports.corpora.changes import changes
from reports.corpora.connection_pages import PLOTLY, make_pages, way_to
from reports.corpora.network_pages import NetworkTables, network_pages
from reports.corpora.network_table import Row, list_pages, rows_of
from reports.corpora.overview import overview_page
from reports.corpora.parts import HOME
from reports.corpora.questions import Questions
from reports.corpora.site_directory import SiteDirectory
from reports.document import asset, plotly_library

#: Networks that have pages: those with the most splits, then the largest.
MAX_NETWORKS = 1000

Progress = Callable[[str, int, int], object]


@dataclass(frozen=True, slots=True)
class SiteSummary:
    """What was written: the path of the first page, the numbers of connections, networks and pages of connections, and
    the reasons why some of these pages could not be made."""

    page: str
    connections: int
    networks: int
    connection_pages: int
    not_made: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with the version of this form."""
        return {"schema": 1, **asdict(self)}


def write_site(
    result: str | Path, directory: str | Path, *, pages: int = 0, progress: Progress | None = None
) -> SiteSummary:
    """Write a site about the tables in `result` to `directory`, with `pages` pages of single connections.

    Files that an earlier site left there and this one lacks are removed; nothing else is touched. `progress` is called
    with the name of the step, the work done and the work in all. Raises UsageError for tables that are missing, empty
    or of another version and for a directory that holds something else, ReportError if it cannot be written.
    """
    tell = progress or (lambda *_: None)
    _check(Path(result))
    with open_tables(result) as tables:
        questions = Questions(tables)
        cells = questions.cells()
        rows = rows_of(cells)
        by_network = _by_network(rows)
        linked = set(list(by_network)[:MAX_NETWORKS])
        units = JudgedUnits(result)
        with SiteDirectory(directory) as site:
            chosen = questions.telling(pages) if pages else []
            drawn, failures = make_pages(chosen, units, site, lambda done, of: tell("judging again", done, of))
            _write_assets(site, has_figures=bool(drawn))
            first = overview_page(questions, cells, rows, changes(cells), linked, drawn)
            lists = list_pages(rows, cells, linked)
            pages_of = partial(
                network_pages,
                tables=NetworkTables.of(questions),
                result=str(result),
                way_to=lambda connection: way_to(connection, units, site),
            )
            for number, (network, listed) in enumerate(questions.listed(), start=1):
                if network in linked:
                    _write_pages(site, pages_of(network, by_network[network], listed=listed))
                tell("writing", number, len(by_network))
            _write_pages(site, {**lists, HOME: first}.items())
    total = sum(cell.connections for cell in cells)
    return SiteSummary(str(Path(directory) / HOME), total, len(by_network), len(drawn), tuple(dict.fromkeys(failures)))


def _write_assets(site: SiteDirectory, *, has_figures: bool) -> None:
    """Write the style sheets and, if a page has figures, the library that draws them."""
    if has_figures:
        site.write(PLOTLY, plotly_library())
    for name in ("page.css", "site/site.css"):
        site.write(f"assets/{Path(name).name}", asset(name))


def _write_pages(site: SiteDirectory, pages: Iterable[tuple[str, str]]) -> None:
    """Write pages, each given by its path and text, one at a time: those of a site need not fit in memory."""
    for path, text in pages:
        site.write(path, text)


def _check(result: Path) -> None:
    """Refuse what are not tables of this version, or empty ones."""
    try:
        is_held(result)
    except UsageError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"{result} cannot be read: {error}") from None
    if next((result / CONNECTIONS).rglob("*.parquet"), None) is None and (result / "captures.parquet").is_file():
        raise UsageError(f"{result} holds no connection that a site could show")


def _by_network(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Networks in the order of their first rows, then by what they hold: the most splits first."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.network].append(row)

    def rank(network: str) -> tuple[int, int, str]:
        own = found[network]
        return -sum(row.share.split for row in own), -sum(row.connections for row in own), network

    return {network: found[network] for network in sorted(found, key=rank)}
