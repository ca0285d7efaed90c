"""The tables on the terminal: one line a group, then one line a connection, what matters first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import CaptureSummary, PairResult, SplitPlace
from pepscope.terminal import printable
from reports.detection.group_table import group_lines
from reports.detection.ranking import (
    ListedConnection,
    by_attention,
    count_by_verdict,
    counts_by_verdict,
    judged_alone,
    stated_probability,
)
from reports.detection.vantage_table import vantage_lines
from reports.quantities import format_bytes, format_count, format_percent
from reports.terminal import COLOURS, FAINT, PROBABILITY_WIDTH, VERDICT_WIDTH, WARNING, faint, paint, wrapped

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult

#: Up to here every connection gets its reason on lines of its own; beyond it a table of single lines reads better.
_PAIRS_WITH_REASON = 12

#: Connections that follow the networks and ports of one vantage point, which have said what matters.
_PAIRS_BELOW_NETWORKS = 10

_BYTES_WIDTH = 8
_GAPS = 4


def write_table(
    result: DetectionResult, stream: TextIO, colour: bool, *, width: int = 80, max_connections: int = 40
) -> None:
    """Write the verdicts to `stream`, `width` columns wide; terminal colours only if `colour`.

    At most `max_connections` connections are listed, split ones first and regular ones last; the rest is counted.
    """
    for line in _lines(result, colour, max(width, 60), max_connections):
        stream.write(line.rstrip() + "\n")


def shorten_endpoint(name: str, width: int) -> str:
    """Cut `address:port` to `width` characters in the middle of the address, so that the port stays whole."""
    name = printable(name)
    if len(name) <= width:
        return name
    address, _, port = name.rpartition(":")
    room = width - len(port) - 3
    if room < 4:
        return name[: width - 2] + ".."
    head = (room + 1) // 2
    return f"{address[:head]}..{address[len(address) - (room - head) :]}:{port}"


def _lines(result: DetectionResult, colour: bool, width: int, max_connections: int) -> Iterator[str]:
    for capture in result.captures:
        yield from _capture_lines(capture, colour, width)
    if result.captures:
        yield ""
    if not result.pairs:
        yield "No TCP connection found."
        return
    alone = judged_alone(result)
    yield from vantage_lines(result, colour, width) if alone else group_lines(result, colour, width)
    table = PairTable.of(result.pairs)
    shown = by_attention(table)[: min(max_connections, _PAIRS_BELOW_NETWORKS) if alone else max_connections]
    detailed = len(result.pairs) <= _PAIRS_WITH_REASON and not alone
    endpoint_width = (width - VERDICT_WIDTH - PROBABILITY_WIDTH - _BYTES_WIDTH - _GAPS) // 2
    heading = (
        f"{'CLIENT':<{endpoint_width}} {'SERVER':<{endpoint_width}} {'VERDICT':<{VERDICT_WIDTH}} "
        f"{'PROB.':>{PROBABILITY_WIDTH}} {'BYTES':>{_BYTES_WIDTH}}"
    )
    yield paint(heading, FAINT, colour)
    for index in shown:
        connection = ListedConnection.of(table, index)
        share = stated_probability(connection, one_vantage=alone)
        yield _connection_line(connection, share, colour, endpoint_width)
        if detailed:
            yield from _reason_lines(result.pairs[index], colour, width)
    yield ""
    yield from _closing_lines(result, len(shown), colour, width)


def _capture_lines(capture: CaptureSummary, colour: bool, width: int) -> Iterator[str]:
    packets = f"{format_count(capture.packets)} packet{'' if capture.packets == 1 else 's'}"
    connections = f"{format_count(capture.connections)} connection{'' if capture.connections == 1 else 's'}"
    yield from wrapped(f"{printable(capture.path)}: {packets}, {connections}", width, "", "  ")
    for warning in capture.warnings:
        for line in wrapped(f"warning: {printable(warning)}", width, "  ", "           "):
            yield paint(line, WARNING, colour)


def _connection_line(connection: ListedConnection, share: float | None, colour: bool, endpoint_width: int) -> str:
    vantage, kind = connection.vantage, connection.verdict
    verdict = paint(f"{kind.value:<{VERDICT_WIDTH}}", COLOURS[kind], colour)
    probability = "-" if share is None else format_percent(share)
    return (
        f"{shorten_endpoint(vantage.client, endpoint_width):<{endpoint_width}} "
        f"{shorten_endpoint(vantage.server, endpoint_width):<{endpoint_width}} {verdict} "
        f"{probability:>{PROBABILITY_WIDTH}} "
        f"{format_bytes(connection.payload_bytes):>{_BYTES_WIDTH}}"
    )


def _reason_lines(pair: PairResult, colour: bool, width: int) -> Iterator[str]:
    first, last = pair.vantages[0], pair.vantages[-1]
    if len(pair.vantages) == 1:
        yield from faint(f"seen in {printable(first.capture)} only", width, colour)
    elif first.transport != last.transport:
        for vantage in pair.vantages:
            ends = f"{printable(vantage.client)} > {printable(vantage.server)}"
            yield from faint(f"{vantage.transport.upper()} {ends} in {printable(vantage.capture)}", width, colour)
    elif (first.client, first.server) != (last.client, last.server):
        yield from faint(
            f"{printable(last.client)} > {printable(last.server)} in {printable(last.capture)}", width, colour
        )
    yield from wrapped(printable(pair.reason), width, "  ", "  ")


#: Where a split is none of the network's.
_ELSEWHERE: Mapping[SplitPlace | None, str] = {
    SplitPlace.SERVER: "at the server's own site",
    SplitPlace.PROXY: "at proxies that clients ask for",
}


def _networks(result: DetectionResult) -> str:
    """How many networks and ports have each verdict, those that no network splits by themselves."""
    elsewhere = Counter(group.where for group in result.groups if group.where in _ELSEWHERE)
    groups = [group for group in result.groups if group.where not in _ELSEWHERE]
    parts = [
        f"{format_count(count)} {kind.value}"
        for kind, count in count_by_verdict([group.verdict for group in groups]).items()
    ]
    parts += [
        f"{format_count(elsewhere[place])} split {words}" for place, words in _ELSEWHERE.items() if elsewhere[place]
    ]
    total = len(result.groups)
    return (
        f"{format_count(total)} network{'' if total == 1 else 's'} and port{'' if total == 1 else 's'}: "
        + ", ".join(parts)
    )


def _closing_lines(result: DetectionResult, shown: int, colour: bool, width: int) -> Iterator[str]:
    counts = counts_by_verdict(result.pairs)
    total = len(result.pairs)
    by_verdict = ", ".join(f"{format_count(count)} {kind.value}" for kind, count in counts.items())
    if judged_alone(result):
        yield from wrapped(_networks(result), width, "", "  ")
    yield f"{format_count(total)} connection{'' if total == 1 else 's'}: {by_verdict}"
    if shown < total:
        text = (
            f"{format_count(total - shown)} more not listed here (split ones come first, then inconclusive ones, then "
            "the largest); --csv, --parquet or --json writes them all"
        )
        yield from faint(text, width, colour, indent="")
