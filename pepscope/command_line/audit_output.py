"""An audit to standard output and to files, and what of it fails a build; for every command that ends in a matrix."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import click

from pepscope.command_line.volume import announce
from pepscope.plugins import writer
from pepscope.terminal import is_coloured
from pepscope.whole_file import STANDARD_OUTPUT, write_output

if TYPE_CHECKING:
    from pepscope.results.audits import AuditResult


def write_audit(result: AuditResult, files: Mapping[str, str | None], *, one_line: bool = False) -> None:
    """Write the reports of `files`, by format, and the matrix to standard output where none of them goes there.

    JSON stands in one line where there are many in a row (`one_line`).
    """
    for name, path in files.items():
        if path is None:
            continue
        if name == "json":
            write_output(path, result.to_json(indent=None if one_line else 2) + "\n")
        elif name == "csv":
            write_output(path, result.to_frame().to_csv())
        else:
            writer(f"audit-{name}")(result, path)
        announce(path)
    if STANDARD_OUTPUT not in files.values():
        writer("audit-table")(result, sys.stdout, is_coloured(sys.stdout))
    sys.stdout.flush()


def audit_fails(result: AuditResult, verdicts: Collection[str]) -> bool:
    """Whether a cell of the latest run has one of these verdicts, or none could be judged at all."""
    found = {cell.verdict.value for cell in result.latest.cells}
    if found <= {"inconclusive"}:
        click.echo("pepscope: no application could be judged, which --fail-on does not take for success", err=True)
        return True
    return not found.isdisjoint(verdicts)
