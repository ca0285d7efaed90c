"""Where a watch is shown: a terminal, standard output, a log in a file."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from detector.corpora.watch.standing import Change, time_text
from detector.corpora.watch.table import LiveTable, summary_line, table_lines
from pepscope.command_line.logs import configure
from pepscope.errors import UsageError

if TYPE_CHECKING:
    from detector.corpora.watch.watching import Watch

_LOG = logging.getLogger("pepscope.watch")


class WatchOutputs:
    """Where a watch is shown: on a terminal as a table, else as JSON lines; and in a file of JSON lines."""

    def __init__(self, running: ExitStack, *, as_json: bool, title: str, log_path: str | None) -> None:
        configure("pepscope.watch", "text", "warning")
        self._as_json = as_json
        self._on_terminal = sys.stdout.isatty() and not as_json
        self._table = LiveTable(sys.stdout, title) if self._on_terminal else None
        self._log_path = log_path
        self._log: IO[str] | None = None
        if log_path is not None:
            try:
                self._log = running.enter_context(Path(log_path).open("a", encoding="utf-8"))  # noqa: SIM115
            except OSError as error:
                raise UsageError(f"the log {log_path} cannot be written: {error.strerror}") from None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The table is on the terminal until the block ends, and messages are in it."""
        if self._table is None:
            yield
            return
        others = list(_LOG.handlers)
        _LOG.handlers[:] = [self._table]
        try:
            with self._table:
                yield
        finally:
            _LOG.handlers[:] = others

    def tick(self, watching: Watch) -> None:
        """Draw the table."""
        if self._table is not None:
            self._table.draw(watching.snapshot())

    def tell(self, changes: Sequence[Change]) -> None:
        """Write what changed."""
        lines = "".join(json.dumps(change.to_dict(), ensure_ascii=False) + "\n" for change in changes)
        if not self._on_terminal and not self._as_json:
            sys.stdout.write(lines)
            sys.stdout.flush()
        if self._log is not None:
            try:
                self._log.write(lines)
                self._log.flush()
            except OSError as error:  # judging goes on
                _LOG.warning("the log %s cannot be written: %s", self._log_path, error.strerror)

    def summarise(self, watching: Watch) -> None:
        """How things stand at the end."""
        snapshot = watching.snapshot()
        if self._as_json:
            click.echo(json.dumps(_summary(watching), indent=2, ensure_ascii=False))
        elif self._on_terminal:
            for line in table_lines(snapshot.groups, colour=True):
                click.echo(line)
        click.echo(f"pepscope: {summary_line(snapshot)}", err=True)


def _summary(watching: Watch) -> dict[str, Any]:
    snapshot = watching.snapshot()
    return {
        "schema": 1,
        "groups": [group.to_dict() for group in snapshot.groups],
        "verdicts_seen": sorted(verdict.value for verdict in watching.verdicts_seen),
        "connections": snapshot.connections,
        "evidence_connections": snapshot.evidence_connections,
        "changes": snapshot.changes,
        "slices": dict(snapshot.slices),
        "packets": None if snapshot.packets is None else asdict(snapshot.packets),
        "judged_until": time_text(snapshot.judged_until_ns) if snapshot.judged_until_ns else None,
        "alerts": dict(snapshot.alerts),
    }
