"""Networks by application and week: the table that most pages have, and the pages that list all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from reports.corpora.applications import port_name
from reports.corpora.parts import HOME, document, network_page, pages_between, share_cell, table
from reports.corpora.questions import Cell
from reports.corpora.shares import Share
from reports.quantities import format_count

#: Weeks that have a column, rows of one page of the list, and those of the site's first page.
WEEKS, ROWS, FIRST_ROWS = 5, 150, 40

#: What a share is of.
DECIDED = (
    "A share is that of the split connections among those that were decided, with the interval that holds it with 95 % "
    "(Wilson), which takes connections for independent. Open ones are in neither number, nor are those that are split "
    "at an end: at the server's own site, or at a proxy that the client asks for."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One network and port over the weeks."""

    network: str
    port: int
    cells: Mapping[str | None, Cell]

    @property
    def share(self) -> Share:
        """Over all weeks."""
        return sum((cell.share for cell in self.cells.values()), Share(0, 0))

    @property
    def connections(self) -> int:
        """Over all weeks."""
        return sum(cell.connections for cell in self.cells.values())

    @property
    def split_at_ends(self) -> int:
        """Over all weeks."""
        return sum(cell.split_at_ends for cell in self.cells.values())


def rows_of(cells: Sequence[Cell]) -> list[Row]:
    """Networks and ports, those with the most splits first, then the largest."""
    found: defaultdict[tuple[str, int], dict[str | None, Cell]] = defaultdict(dict)
    for cell in cells:
        found[cell.network, cell.port][cell.week] = cell
    rows = [Row(network, port, by_week) for (network, port), by_week in found.items()]
    return sorted(rows, key=lambda row: (-row.share.split, -row.connections, row.network, row.port))


def weeks_of(cells: Sequence[Cell]) -> list[str | None]:
    """The latest weeks, the last one first; connections without a time stand in none."""
    known = sorted({cell.week for cell in cells if cell.week is not None}, reverse=True)
    return list(known[:WEEKS])


def network_table(
    rows: Sequence[Row], weeks: Sequence[str | None], linked: Collection[str], *, by_network: bool = True
) -> str:
    """Networks by application and week; `linked` have a page."""
    columns = [("network", False)] if by_network else []
    columns += [("application", False), ("all weeks", False), *((f"week of {week}", False) for week in weeks)]
    body = []
    for row in rows:
        shares = [share_cell(row.share, row.connections, row.split_at_ends)]
        for week in weeks:
            cell = row.cells.get(week)
            counts = (Share(0, 0), 0) if cell is None else (cell.share, cell.connections, cell.split_at_ends)
            shares.append(share_cell(*counts))
        name = [network_link(row.network, linked)] if by_network else []
        body.append([*name, escape(port_name(row.port)), *shares])
    return table("networks by application and week", columns, body)


def network_link(network: str, linked: Collection[str]) -> str:
    """The name of a network, with a link where it has a page."""
    name = escape(network)
    return f'<a href="{escape(network_page(network))}">{name}</a>' if network in linked else name


def list_pages(rows: Sequence[Row], cells: Sequence[Cell], linked: Collection[str]) -> dict[str, str]:
    """All networks and applications, in as many pages as they take; empty where the first page of the site has them."""
    if len(rows) <= FIRST_ROWS:
        return {}
    parts = [rows[start : start + ROWS] for start in range(0, len(rows), ROWS)]
    names = [list_page(number) for number in range(len(parts))]
    weeks = weeks_of(cells)
    return {
        name: document(
            f"All {format_count(len(rows))} applications of networks",
            f'<p class="limits">{DECIDED}</p>{pages_between(names, number, "above")}'
            f"{network_table(part, weeks, linked)}{pages_between(names, number, 'below')}",
            [("overview", HOME)],
        )
        for number, (name, part) in enumerate(zip(names, parts, strict=True))
    }


def list_page(number: int) -> str:
    """The path of a page of the list, counted from 0."""
    return "networks.html" if number == 0 else f"networks-{number + 1}.html"
