"""Groups on the terminal: one line a group of several connections, above the connections."""

from __future__ import annotations

from collections.abc import Iterator

from pepscope.results.verdicts import DetectionResult, GroupResult
from pepscope.terminal import printable
from reports.detection.ranking import groups_by_attention, verdict_probability
from reports.quantities import format_count, format_percent
from reports.terminal import COLOURS, FAINT, PROBABILITY_WIDTH, VERDICT_WIDTH, faint, paint, wrapped
from reports.wording import captured_at, group_details

#: Groups that are listed.
_MOST = 20

_PORT_WIDTH = 5
_COUNT_WIDTH = 11
_GAPS = 4


def group_lines(result: DetectionResult, colour: bool, width: int) -> Iterator[str]:
    """The groups with their reasons, split ones first; nothing where each connection stands alone."""
    groups = groups_by_attention(result.groups)
    if not groups:
        return
    network_width = width - VERDICT_WIDTH - PROBABILITY_WIDTH - _PORT_WIDTH - _COUNT_WIDTH - _GAPS
    heading = (
        f"{'CLIENTS IN':<{network_width}} {'PORT':>{_PORT_WIDTH}} {'CONNECTIONS':>{_COUNT_WIDTH}} "
        f"{'VERDICT':<{VERDICT_WIDTH}} {'PROB.':>{PROBABILITY_WIDTH}}"
    )
    yield paint(heading, FAINT, colour)
    for group in groups[:_MOST]:
        yield _line(group, colour, network_width)
        details = [*captured_at(group, result.captures), *group_details(group)]
        if details:
            yield from faint("; ".join(details), width, colour)
        yield from wrapped(printable(group.reason), width, "  ", "  ")
    if len(groups) > _MOST:
        text = f"{format_count(len(groups) - _MOST)} more groups not listed here; --json writes them all"
        yield from faint(text, width, colour, indent="")
    yield ""


def _line(group: GroupResult, colour: bool, network_width: int) -> str:
    verdict = paint(f"{group.verdict.value:<{VERDICT_WIDTH}}", COLOURS[group.verdict], colour)
    share = verdict_probability(group)
    probability = "-" if share is None else format_percent(share)
    return (
        f"{printable(group.network):<{network_width}} {group.port:>{_PORT_WIDTH}} "
        f"{format_count(len(group.pairs)):>{_COUNT_WIDTH}} {verdict} {probability:>{PROBABILITY_WIDTH}}"
    )
