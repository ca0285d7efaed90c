"""The table on the terminal: one line a connection, what matters first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from pepscope.results import CaptureSummary, Kind, PairResult
from reports.quantities import format_bytes, format_count, format_percent
from reports.ranking import by_attention, count_by_verdict, verdict_probability

if TYPE_CHECKING:
    from pepscope.results import DetectionResult

_RESET = "\x1b[0m"
COLOURS = {
    Kind.REGULAR: "\x1b[32m",
    Kind.SPLIT_TCP: "\x1b[1;31m",
    Kind.TCP_PROXY: "\x1b[1;35m",
    Kind.INCONCLUSIVE: "\x1b[33m",
}
FAINT = "\x1b[2m"
WARNING = "\x1b[33m"

#: Up to here every connection gets its reason on lines of its own; beyond it a table of single lines reads better.
_PAIRS_WITH_REASON = 12

_VERDICT_WIDTH = 12
_PROBABILITY_WIDTH = 5
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


def printable(text: str) -> str:
    """Replace control characters, which a path or a capture may hold, so that they cannot steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _lines(result: DetectionResult, colour: bool, width: int, max_connections: int) -> Iterator[str]:
    for capture in result.captures:
        yield from _capture_lines(capture, colour, width)
    if result.captures:
        yield ""
    if not result.pairs:
        yield "No TCP connection found."
        return
    shown = by_attention(result.pairs)[:max_connections]
    detailed = len(result.pairs) <= _PAIRS_WITH_REASON
    endpoint_width = (width - _VERDICT_WIDTH - _PROBABILITY_WIDTH - _BYTES_WIDTH - _GAPS) // 2
    heading = (
        f"{'CLIENT':<{endpoint_width}} {'SERVER':<{endpoint_width}} {'VERDICT':<{_VERDICT_WIDTH}} "
        f"{'PROB.':>{_PROBABILITY_WIDTH}} {'BYTES':>{_BYTES_WIDTH}}"
    )
    yield paint(heading, FAINT, colour)
    for index in shown:
        pair = result.pairs[index]
        yield _connection_line(pair, colour, endpoint_width)
        if detailed:
            yield from _reason_lines(pair, colour, width)
    yield ""
    yield from _closing_lines(result, len(shown), colour, width)


def _capture_lines(capture: CaptureSummary, colour: bool, width: int) -> Iterator[str]:
    packets = f"{format_count(capture.packets)} packet{'' if capture.packets == 1 else 's'}"
    connections = f"{format_count(capture.connections)} connection{'' if capture.connections == 1 else 's'}"
    yield from wrapped(f"{printable(capture.path)}: {packets}, {connections}", width, "", "  ")
    for warning in capture.warnings:
        for line in wrapped(f"warning: {printable(warning)}", width, "  ", "           "):
            yield paint(line, WARNING, colour)


def _connection_line(pair: PairResult, colour: bool, endpoint_width: int) -> str:
    vantage = pair.vantages[0]
    verdict = paint(f"{pair.verdict.value:<{_VERDICT_WIDTH}}", COLOURS[pair.verdict], colour)
    share = verdict_probability(pair)
    probability = "-" if share is None else format_percent(share)
    return (
        f"{shorten_endpoint(vantage.client, endpoint_width):<{endpoint_width}} "
        f"{shorten_endpoint(vantage.server, endpoint_width):<{endpoint_width}} {verdict} "
        f"{probability:>{_PROBABILITY_WIDTH}} "
        f"{format_bytes(pair.payload_bytes_up + pair.payload_bytes_down):>{_BYTES_WIDTH}}"
    )


def _reason_lines(pair: PairResult, colour: bool, width: int) -> Iterator[str]:
    first, last = pair.vantages[0], pair.vantages[-1]
    if len(pair.vantages) == 1:
        yield from _faint(f"seen in {printable(first.capture)} only", width, colour)
    elif first.transport != last.transport:
        for vantage in pair.vantages:
            ends = f"{printable(vantage.client)} > {printable(vantage.server)}"
            yield from _faint(f"{vantage.transport.upper()} {ends} in {printable(vantage.capture)}", width, colour)
    elif (first.client, first.server) != (last.client, last.server):
        yield from _faint(
            f"{printable(last.client)} > {printable(last.server)} in {printable(last.capture)}", width, colour
        )
    yield from wrapped(printable(pair.reason), width, "  ", "  ")


def _closing_lines(result: DetectionResult, shown: int, colour: bool, width: int) -> Iterator[str]:
    counts = count_by_verdict(result.pairs)
    total = len(result.pairs)
    told = ", ".join(f"{format_count(count)} {kind.value}" for kind, count in counts.items())
    yield f"{format_count(total)} connection{'' if total == 1 else 's'}: {told}"
    if shown < total:
        text = (
            f"{format_count(total - shown)} more not listed here (split ones come first, then inconclusive ones, then "
            "the largest); --csv, --parquet or --json writes them all"
        )
        yield from _faint(text, width, colour, indent="")


def _faint(text: str, width: int, colour: bool, indent: str = "  ") -> Iterator[str]:
    for line in wrapped(text, width, indent, indent):
        yield paint(line, FAINT, colour)


def wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    """The text in lines of `width`, the first one after `first`, the others after `rest`."""
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def paint(text: str, code: str, colour: bool) -> str:
    """The text in a terminal's colour, or as it is."""
    return f"{code}{text}{_RESET}" if colour else text
