"""Pages of single connections: those that are made with the site, and the commands that make all others."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from detector.corpora.judged_units import judge_again
from pepscope.errors import PepscopeError
from pepscope.results.attention import places_between
from pepscope.results.verdicts import DetectionResult
from reports.corpora.parts import HOME
from reports.corpora.questions import JudgedConnection
from reports.detection.page import InSite, page_text

if TYPE_CHECKING:
    from detector.corpora.judged_units import JudgedUnits
    from reports.corpora.site_directory import SiteDirectory

#: The one copy of plotly.js that all pages of the site share.
PLOTLY = "assets/plotly.min.js"


def page_of(connection: JudgedConnection) -> str:
    """The path of a connection's page in the site, whether it is there or not."""
    name = "|".join((connection.unit, connection.client, connection.server, str(connection.started_ns)))
    return f"connections/{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.html"


def make_pages(
    telling: Sequence[JudgedConnection],
    units: JudgedUnits,
    site: SiteDirectory,
    tell: Callable[[int, int], object],
) -> tuple[list[tuple[JudgedConnection, str]], list[str]]:
    """Judge the units of these connections again and write their pages: connections with their paths, and what could
    not be made, a sentence each."""
    by_unit: defaultdict[str, list[JudgedConnection]] = defaultdict(list)
    for each in telling:
        by_unit[each.unit].append(each)
    made, failures = set[JudgedConnection](), list[str]()
    done = 0
    for identity, connections in by_unit.items():
        unit = units[identity]
        try:
            if unit is None:
                raise PepscopeError(f"the tables do not say which captures unit {identity} was judged from")
            result = judge_again(unit, [(each.client, each.server) for each in connections])
        except (PepscopeError, OSError) as error:
            failures.append(str(error))
        else:
            for each in connections:
                site.write(page_of(each), _page(result, each))
                made.add(each)
        done += len(connections)
        tell(done, len(telling))
    return [(each, page_of(each)) for each in telling if each in made], failures


def _page(result: DetectionResult, connection: JudgedConnection) -> str:
    places = places_between(result.pairs, (connection.client, connection.server))
    began = [place for place in places if result.pairs[place].started_ns == connection.started_ns]
    return page_text(result, only=began or places, site=InSite(f"../{PLOTLY}", f"../{HOME}", "overview"))


@dataclass(frozen=True, slots=True)
class WayTo:
    """How a reader of a network's page comes to a connection's: the address of the page, or how to make it, as HTML."""

    page: str | None = None
    how: str = ""


def way_to(connection: JudgedConnection, units: JudgedUnits, site: SiteDirectory) -> WayTo:
    """The page where there is one, otherwise the command that makes it."""
    path = page_of(connection)
    if site.holds(path):
        return WayTo(page=f"../{path}")
    unit = units[connection.unit]
    if unit is None:
        return WayTo()
    if unit.missing is not None:
        return WayTo(how=_remark(f"{unit.missing} is no file here: copy it to a disk to make the page."))
    command = unit.command((connection.client, connection.server), str(site.path / path))
    if command is None:
        return WayTo(
            how=_remark(
                f"Its capture is a series of many files from {unit.series[0][0]} on: join them with mergecap -a to "
                "make the page."
            )
        )
    return WayTo(how=f"<details><summary>command for its page</summary><code>{escape(command)}</code></details>")


def connection_name(connection: JudgedConnection, page: str | None) -> str:
    """The end points of a connection, with a link where it has a page."""
    name = f"{escape(connection.client)} → {escape(connection.server)}"
    return name if page is None else f'<a href="{escape(page)}">{name}</a>'


def _remark(text: str) -> str:
    return f'<p class="limits">{escape(text)}</p>'
