"""Audits in the shapes that others read: the JSON contract `audit-1` and a pandas frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pepscope.captures.packets import Direction
from pepscope.extras import needed
from pepscope.results.audits import AuditCell, AuditConnection, AuditResult, AuditRun
from pepscope.results.encoding.detections import evidence_document, pair_document
from pepscope.results.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
_JUDGED = (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
_FRAME_COLUMNS = (
    "source",
    "started",
    "application",
    "direction",
    "verdict",
    "mechanism",
    "probability_regular",
    "probability_split_tcp",
    "probability_tcp_proxy",
    "tasks_done",
    "tasks",
    "connections",
    "reason",
)


def audit_document(result: AuditResult) -> dict[str, Any]:
    """The JSON contract `audit-1`; numbers that JSON cannot write (infinities, NaN) become null."""
    return {
        "schema": SCHEMA_VERSION,
        "runs": [_run(run) for run in result.runs],
        "since": [
            {
                "application": application,
                "direction": _direction(direction),
                "since_unix_ns": result.since_unix_ns(application, direction),
            }
            for application in result.rows()
            for direction in result.columns()
        ],
        "changes": [
            {
                "application": change.application,
                "direction": _direction(change.direction),
                "before": change.before.value,
                "after": change.after.value,
                "last_before_unix_ns": change.last_before_unix_ns,
                "first_after_unix_ns": change.first_after_unix_ns,
            }
            for change in result.changes()
        ],
    }


def _run(run: AuditRun) -> dict[str, Any]:
    return {
        "source": run.source,
        "started_unix_ns": run.started_unix_ns,
        "duration_s": float(run.duration_s),
        "server": run.server,
        "plan_digest": run.plan_digest,
        "tasks_done": run.tasks_done,
        "tasks": run.tasks,
        "cells": [_cell(cell) for cell in run.cells],
        "not_measured": [
            {
                "experiment": item.experiment,
                "application": item.application,
                "direction": _direction(item.direction),
                "status": item.status,
                "reason": item.reason,
                "tasks": item.tasks,
            }
            for item in run.not_measured
        ],
        "facts": [
            {
                "experiment": item.experiment,
                "application": item.application,
                "direction": _direction(item.direction),
                "facts": writable(item.metrics),
            }
            for item in run.metrics
        ],
        "circumstances": writable(run.circumstances),
        "warnings": list(run.warnings),
    }


def _cell(cell: AuditCell) -> dict[str, Any]:
    return {
        "application": cell.application,
        "direction": _direction(cell.direction),
        "verdict": cell.verdict.value,
        "mechanism": _mechanism(cell),
        "probability": {kind.value: float(cell.probability.get(kind, 0.0)) for kind in _JUDGED},
        "reason": cell.reason,
        "evidence": [evidence_document(item) for item in cell.evidence],
        "connections": [_connection(item) for item in cell.connections],
        "tasks_done": cell.tasks_done,
        "tasks": cell.tasks,
        "from_bytes": cell.from_bytes,
    }


def _mechanism(cell: AuditCell) -> str | None:
    return None if cell.mechanism is None else cell.mechanism.value


def _connection(item: AuditConnection) -> dict[str, Any]:
    return {
        "task": item.task,
        "experiment": item.experiment,
        "role": item.role,
        "set_aside": item.set_aside or None,
        "started_unix_ns": item.started_unix_ns,
        **pair_document(item.pair),
    }


def _direction(direction: Direction | None) -> str | None:
    return None if direction is None else direction.name.lower()


def writable(value: Any) -> Any:
    """The value with nothing in it that JSON cannot write."""
    if isinstance(value, Mapping):
        return {str(name): writable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [writable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def audit_frame(result: AuditResult) -> pd.DataFrame:
    """One row a run and cell; `started` is a time of UTC, `connections` are those that count."""
    with needed():
        import pandas as pd

    rows = []
    for run in result.runs:
        for cell in run.cells:
            rows.append(
                {
                    "source": run.source,
                    "started": pd.Timestamp(run.started_unix_ns, unit="ns", tz="UTC"),
                    "application": cell.application,
                    "direction": _direction(cell.direction),
                    "verdict": cell.verdict.value,
                    "mechanism": _mechanism(cell),
                    **{f"probability_{k.name.lower()}": float(cell.probability.get(k, 0.0)) for k in _JUDGED},
                    "tasks_done": cell.tasks_done,
                    "tasks": cell.tasks,
                    "connections": sum(not item.set_aside for item in cell.connections),
                    "reason": cell.reason,
                }
            )
    return pd.DataFrame(rows, columns=list(_FRAME_COLUMNS)).rename_axis("cell")
