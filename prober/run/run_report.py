"""What a run says, as text lines and as JSON documents: its outlook before it starts, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator

from pepscope.sizes import format_bytes, format_count, format_span
from prober.measurement.task import Status
from prober.protocol.json_documents import Json
from prober.run.dry_run import DryRun
from prober.run.runner import RunOutcome

SCHEMA = "pepscope-probe-run-1"


def outcome_document(outcome: RunOutcome) -> dict[str, Json]:
    """The contract `pepscope-probe-run-1`."""
    return {
        "schema": SCHEMA,
        "run_id": outcome.run_id,
        "archive": str(outcome.archive),
        "tasks": {**{status.value: count for status, count in outcome.counts.items()}, "missing": outcome.missing},
        "whole": outcome.is_whole,
        "reason": outcome.reason,
        "failures": list(outcome.failures),
    }


def outcome_lines(outcome: RunOutcome) -> Iterator[str]:
    """How many tasks ended in which way, why, and where the archive is, which is the last line."""
    counts = outcome.counts
    total = sum(counts.values()) + outcome.missing
    parts = [f"{counts[Status.DONE]} of {total} tasks measured"]
    parts += [f"{counts[Status.IMPOSSIBLE]} cannot run here"] if counts[Status.IMPOSSIBLE] else []
    parts += [f"{counts[Status.FAILED]} failed"] if counts[Status.FAILED] else []
    parts += [f"{outcome.missing} not reached"] if outcome.missing else []
    yield ", ".join(parts)
    yield from (f"  failed: {failure}" for failure in outcome.failures)
    if outcome.reason:
        yield f"  ended early: {outcome.reason}; the same command resumes the run"
    yield str(outcome.archive)


def cost_line(outlook: DryRun) -> str:
    """What a run is about to cost, in one sentence, before it begins."""
    tasks = sum(item.tasks for item in outlook.experiments)
    text = (
        f"{tasks} measurements with {outlook.server}: about {outlook.connections} connections, "
        f"{format_bytes(outlook.bytes_up)} up, {format_bytes(outlook.bytes_down)} down, "
        f"{format_span(outlook.expected_s)}"
    )
    return text + (f"; {outlook.impossible} cannot run here (--dry-run lists why)" if outlook.impossible else "")


def dry_run_lines(outlook: DryRun) -> Iterator[str]:
    """The cost of each experiment, then what is known of the server and what cannot run here."""
    width = max(len(item.name) for item in outlook.experiments) + 1
    yield f"{'EXPERIMENT':<{width}} {'TASKS':>6} {'BYTES UP':>9} {'BYTES DOWN':>10} {'TIME':>6}"
    for item in outlook.experiments:
        yield _cost_line(item.name, item.tasks, item.bytes_up, item.bytes_down, item.expected_s, width)
    tasks = sum(item.tasks for item in outlook.experiments)
    yield _cost_line("all", tasks, outlook.bytes_up, outlook.bytes_down, outlook.expected_s, width)
    yield ""
    yield f"In all: {cost_line(outlook)}."
    if outlook.asked_server:
        yield f"{outlook.server} answers."
    else:
        yield f"The server was not asked, so what it lacks is not known: {outlook.server_note}."
    for want, reason in outlook.without_captures.items():
        yield f"Without {want}: {reason}."
    for item in outlook.experiments:
        for reason, count in item.impossible.items():
            yield f"{item.name}: {count} of {item.tasks} tasks cannot run: {reason}."


def _cost_line(name: str, tasks: int, bytes_up: int, bytes_down: int, expected_s: float, width: int) -> str:
    minutes, seconds = divmod(round(expected_s), 60)
    up, down, time = format_count(bytes_up), format_count(bytes_down), f"{minutes}:{seconds:02d}"
    return f"{name:<{width}} {tasks:>6} {up:>9} {down:>10} {time:>6}"
