"""The matrix on the terminal: a line an application, a column a direction, and below it what each cell rests on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from pepscope.results.verdicts import Mechanism, Verdict
from pepscope.terminal import printable
from reports.audit.gain_chart import read_gains
from reports.quantities import format_bytes, format_count, format_percent, format_seconds
from reports.terminal import COLOURS, FAINT, WARNING, paint, wrapped
from reports.wording import DIRECTION_NAMES, application_name, cell_name, experiment_name, mechanism_name

if TYPE_CHECKING:
    from pepscope.results.audits import AuditCell, AuditResult, AuditRun, NotMeasured

_ROW_WIDTH = 16
_CELL_WIDTH = 24

#: Changes and warnings listed; the rest is counted.
_MOST_LINES = 12


def write_audit_table(result: AuditResult, stream: TextIO, colour: bool, *, width: int = 80) -> None:
    """Write the latest matrix, what changed, and what was not measured; terminal colours only if `colour`."""
    for line in _lines(result, colour, max(width, 60)):
        stream.write(line.rstrip() + "\n")


def when(unix_ns: int) -> str:
    """Day and minute of UTC."""
    try:
        return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def share_text(cell: AuditCell) -> str:
    """How sure a verdict is; of a split apart that it is one, and of which kind."""
    own = cell.probability.get(cell.verdict, 0.0)
    split = 1.0 - cell.probability.get(Verdict.REGULAR, 0.0)
    if cell.verdict is Verdict.REGULAR or own > 0.95 * split:
        return format_percent(own)
    return f"split {format_percent(split)}, of this kind {format_percent(own / split)}"


def how_text(cell: AuditCell) -> str:
    """How a split works and from how many bytes of a connection on; empty where neither is known."""
    known = [mechanism_name(cell.mechanism)] if cell.mechanism not in (None, Mechanism.UNDECIDED) else []
    known += [f"from {format_bytes(cell.from_bytes)} on"] if cell.from_bytes else []
    return ", ".join(known)


def _lines(result: AuditResult, colour: bool, width: int) -> Iterator[str]:
    run = result.latest
    yield from wrapped(_heading(run), width, "", "  ")
    if run.warnings:
        yield paint(f"  {len(run.warnings)} warning{'' if len(run.warnings) == 1 else 's'}, below", WARNING, colour)
    yield ""
    columns = result.columns()
    heading = "".join(f"{DIRECTION_NAMES[direction].upper():<{_CELL_WIDTH}}" for direction in columns)
    yield paint(f"{'APPLICATION':<{_ROW_WIDTH}}{heading}", FAINT, colour)
    for application in result.rows():
        cells = "".join(_cell(run.cell(application, direction), colour) for direction in columns)
        yield f"{application_name(application):<{_ROW_WIDTH}}{cells}"
    for cell in run.cells:
        yield ""
        for line in wrapped(_cell_heading(result, cell), width, "", "  "):
            yield paint(line, FAINT, colour)
        yield from wrapped(printable(cell.reason), width, "  ", "  ")
    yield from _gains(run, colour, width)
    yield from _changes(result, colour, width)
    yield from _warnings(run, colour, width)
    yield from _not_measured(run, colour, width)


def _heading(run: AuditRun) -> str:
    return (
        f"{printable(run.source)}: {printable(run.server) or 'a server'}, {when(run.started_unix_ns)}, took "
        f"{format_seconds(run.duration_s)}, {format_count(run.tasks_done)} of {format_count(run.tasks)} measurements "
        "done"
    )


def _cell(cell: AuditCell | None, colour: bool) -> str:
    if cell is None:
        return f"{'-':<{_CELL_WIDTH}}"
    share = "" if cell.verdict is Verdict.INCONCLUSIVE else f" {format_percent(cell.probability[cell.verdict])}"
    blanks = " " * (_CELL_WIDTH - len(cell.verdict.value) - len(share))
    return f"{paint(cell.verdict.value, COLOURS[cell.verdict], colour)}{share}{blanks}"


def _cell_heading(result: AuditResult, cell: AuditCell) -> str:
    counting = sum(not item.set_aside for item in cell.connections)
    since = result.since_unix_ns(cell.application, cell.direction)
    stood = f", since {when(since)}" if since is not None and since != result.latest.started_unix_ns else ""
    connections = f"{format_count(counting)} connection{'' if counting == 1 else 's'}"
    share = "" if cell.verdict is Verdict.INCONCLUSIVE else f", {share_text(cell)}"
    how = f" ({text})" if (text := how_text(cell)) else ""
    return f"{cell_name(cell.application, cell.direction)}: {cell.verdict.value}{how}{share}, {connections}{stood}"


def _gains(run: AuditRun, colour: bool, width: int) -> Iterator[str]:
    """What the usual port gains over a free one, a line a size (Wei et al., Table II, for this network)."""
    for item in run.metrics:
        gains = read_gains(item.metrics)
        if not gains:
            continue
        yield ""
        yield paint(f"{cell_name(item.application, item.direction)}, the usual port against a free one:", FAINT, colour)
        for gain in gains:
            interval = "" if gain.low is None or gain.high is None else f" ({gain.low:+.0%} to {gain.high:+.0%})"
            pairs = f"{format_count(gain.pairs)} pair{'' if gain.pairs == 1 else 's'}"
            text = f"{format_bytes(gain.size_bytes):>7}  {gain.gain:+.0%}{interval}, {pairs}"
            yield from wrapped(text, width, "  ", "           ")


def _changes(result: AuditResult, colour: bool, width: int) -> Iterator[str]:
    if len(result.runs) < 2:
        return
    changes = result.changes()
    yield ""
    yield f"{len(result.runs)} runs since {when(result.runs[0].started_unix_ns)}: " + (
        "no verdict changed" if not changes else f"{len(changes)} verdict{'' if len(changes) == 1 else 's'} changed"
    )
    for change in changes[-_MOST_LINES:]:
        text = (
            f"{cell_name(change.application, change.direction)}: {change.before.value} until "
            f"{when(change.last_before_unix_ns)}, {change.after.value} from {when(change.first_after_unix_ns)}"
        )
        yield from wrapped(text, width, "  ", "    ")
    yield from _more(len(changes), "changes before these", colour)


def _warnings(run: AuditRun, colour: bool, width: int) -> Iterator[str]:
    if run.warnings:
        yield ""
    for warning in run.warnings[:_MOST_LINES]:
        for line in wrapped(f"warning: {printable(warning)}", width, "  ", "           "):
            yield paint(line, WARNING, colour)
    yield from _more(len(run.warnings), "warnings", colour)


def _not_measured(run: AuditRun, colour: bool, width: int) -> Iterator[str]:
    if not run.not_measured:
        return
    yield ""
    yield paint("Not measured:", FAINT, colour)
    for reason, items in by_reason(run.not_measured).items():
        tasks = sum(item.tasks for item in items)
        names = ", ".join(dict.fromkeys(experiment_name(item.experiment, run.titles) for item in items))
        text = f"{printable(names)} ({format_count(tasks)} measurement{'' if tasks == 1 else 's'}): {printable(reason)}"
        yield from wrapped(text, width, "  ", "    ")


def by_reason(items: tuple[NotMeasured, ...]) -> dict[str, list[NotMeasured]]:
    """What was not measured, by the reason."""
    grouped: dict[str, list[NotMeasured]] = {}
    for item in items:
        grouped.setdefault(item.reason, []).append(item)
    return grouped


def _more(total: int, noun: str, colour: bool) -> Iterator[str]:
    if total > _MOST_LINES:
        yield paint(f"  and {total - _MOST_LINES} more {noun}", FAINT, colour)
