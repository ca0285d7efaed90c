"""The command `audit`: run a plan, or take archives of earlier runs, and show which application is split, and how."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detector.commands.detect import FailOn
from pepscope.command_line.options import Duration
from pepscope.command_line.reports import ReportingCommand, report_option
from pepscope.errors import PepscopeError, UsageError
from pepscope.whole_file import STANDARD_OUTPUT, check_output
from prober.commands.options import (
    key_option,
    note_option,
    restart_option,
    runs_option,
    server_option,
    upload_archive_of,
    upload_option,
)

if TYPE_CHECKING:
    from pepscope.results.audits import AuditRun
    from prober.plan import Plan
    from prober.run.runner import RunOutcome


@click.command(cls=ReportingCommand, short_help="Say which applications are split, from a plan or from archives.")
@click.argument("targets", nargs=-1, metavar="[PLAN | ARCHIVE...]")
@server_option
@key_option
@runs_option
@note_option
@restart_option
@upload_option
@click.option("--repeat", type=click.IntRange(1), metavar="N", help="Run the plan N times.")
@click.option("--every", type=Duration(), metavar="T", help="Begin a run every T, such as 30min or 6h.")
@report_option("json", "Write JSON; with --repeat one line per run.", alone=True)
@report_option("csv", "Write CSV, one line per run and cell of the matrix.", alone=True)
@report_option("html", "Write a page with figures, one file.")
@report_option("junit", "Write JUnit XML; inconclusive is skipped.")
@report_option("sarif", "Write SARIF 2.1.0: a result for each cell that is split.")
@click.option(
    "--anonymise",
    "shared",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write an anonymised archive, which can be shared; see `probe anonymise`.",
)
@click.option("--fail-on", type=FailOn(), metavar="VERDICTS", help="Exit 1 on these verdicts: split,inconclusive,...")
def audit(
    targets: tuple[str, ...],
    server: str | None,
    key: str | None,
    output: str,
    notes: tuple[str, ...],
    restart: bool,
    uploads: bool,
    repeat: int | None,
    every: float | None,
    json_to: str | None,
    csv_to: str | None,
    html_to: str | None,
    junit_to: str | None,
    sarif_to: str | None,
    shared: str | None,
    fail_on: frozenset[str] | None,
) -> None:
    """Show which application is split in which direction, and how.

    Given a PLAN (`pepscope probe plan` writes one), the audit runs it against a server and judges the run; earlier
    archives of the same plan in DIR are its history. Given --server without a PLAN, it runs every experiment that can
    decide from this host. Given archives, or directories of archives, it measures nothing: it judges them in order of
    time, and the matrix is that of the latest one.

    Running a plan needs Linux; root adds captures and delayed acknowledgements (`pepscope doctor audit`). --every
    without --repeat continues until you interrupt it. Exit status 1: a verdict of --fail-on, or failed tasks; 2:
    nothing could be measured or read.
    """
    from pepscope.command_line.audit_output import audit_fails, write_audit

    if not targets and server is None:
        raise UsageError("an audit must have a plan, archives, or --server HOST[:PORT], got none of them")
    if shared is not None and (
        len(targets) > 1 or any(Path(each).is_dir() for each in targets) or repeat is not None or every is not None
    ):
        raise UsageError("--anonymise writes one archive: give one plan that runs once, or one archive")
    files = {"json": json_to, "csv": csv_to, "html": html_to, "junit": junit_to, "sarif": sarif_to}
    for path in (*files.values(), shared):
        if path is not None and path != STANDARD_OUTPUT:
            check_output(path)
    if not _is_plan(targets):
        _refuse_measuring(server=server, notes=notes, restart=restart, upload=uploads, repeat=repeat, every=every)
        _audit_archives(targets, files, shared, fail_on)
        return
    from pepscope.processes.signals import ending_by_signal
    from pepscope.results.audits import AuditResult
    from prober.audit.history import in_order, with_warnings
    from prober.commands.options import load_plan, tell_cost
    from prober.errors import PlanError
    from prober.run.run_metadata import parse_notes

    if every == 0:
        raise UsageError("--every must be more than 0 s, got 0")
    remembered = parse_notes(notes)
    plan = load_plan(targets[0] if targets else None, server, key)
    runs = _earlier(plan, output)
    status, failure = 0, None
    for turn in _turns(repeat, every):
        try:
            if turn == 0:
                tell_cost(plan)
            with ending_by_signal():
                outcome = _measure(plan, output, remembered, restart=restart and turn == 0)
        except (PepscopeError, OSError) as error:
            if (repeat is None and every is None) or isinstance(error, PlanError):  # no run of this plan can be
                raise
            click.echo(f"pepscope: this run measured nothing: {error}", err=True)
            failure, status = error, 1
            continue
        is_stored = not uploads or outcome.archive is None or upload_archive_of(plan, outcome.archive)
        run = _judge(outcome, series=html_to is not None)
        _share(str(outcome.archive), shared)
        result = AuditResult(with_warnings(in_order((*runs, run))))
        write_audit(result, files, one_line=repeat is not None or every is not None)
        runs.append(run)
        failed = fail_on is not None and audit_fails(result, fail_on)
        status = 1 if failed or not (outcome.is_whole and is_stored) else status
        failure = None
    if failure is not None:
        raise failure
    if status:
        raise SystemExit(status)


def _audit_archives(
    targets: Sequence[str], files: Mapping[str, str | None], shared: str | None, fail_on: frozenset[str] | None
) -> None:
    """Judge archives, or those of directories, as they are, and write the reports of `files`, by format."""
    from pepscope.command_line.audit_output import audit_fails, write_audit
    from pepscope.command_line.progress import Progress
    from prober.audit.history import judge_archives

    with Progress("judging") as progress:
        result = judge_archives(targets, series=files["html"] is not None, progress=progress)
    _share(targets[0], shared)
    write_audit(result, files)
    if fail_on is not None and audit_fails(result, fail_on):
        raise SystemExit(1)


def _is_plan(targets: tuple[str, ...]) -> bool:
    """Whether a single plan is given, or none, rather than archives. Raises UsageError where nothing is there."""
    from prober.archive.archive_file import is_archive

    if not targets:
        return True
    if len(targets) > 1 or Path(targets[0]).is_dir():
        return False
    if not Path(targets[0]).exists():
        raise UsageError(f"{targets[0]} does not exist")
    return not is_archive(targets[0])


def _share(archive: str, shared: str | None) -> None:
    if shared is not None:
        from prober.commands.anonymise import write_shared

        write_shared(archive, shared)


def _refuse_measuring(**options: object) -> None:
    for name, value in options.items():
        if value:
            raise UsageError(f"--{name.removesuffix('s')} is for a plan that is run, archives are only judged")


def _turns(repeat: int | None, every_s: float | None) -> Iterator[int]:
    """Numbers of runs, each at its time; a run that took longer than the interval is followed at once."""
    most = repeat if repeat is not None else 1 if every_s is None else None
    turn, begun_s = 0, time.monotonic()
    while most is None or turn < most:
        yield turn
        turn += 1
        if every_s is not None and (most is None or turn < most):
            begun_s = max(begun_s + every_s, time.monotonic())
            time.sleep(max(0.0, begun_s - time.monotonic()))


def _earlier(plan: Plan, output: str) -> list[AuditRun]:
    """Runs of the same plan whose archives are in the output directory; an unreadable one is skipped with a warning."""
    from prober.archive.archive_file import SUFFIX, open_archive
    from prober.audit.judging import judge_run

    found = []
    for path in sorted(Path(output).glob(f"*{SUFFIX}")):
        try:
            with open_archive(path) as archive:
                if archive.manifest.plan.digest == plan.digest:
                    found.append(judge_run(archive, str(path)))
        except (PepscopeError, OSError) as error:
            click.echo(f"pepscope: left out of the history: {error}", err=True)
    return found


def _measure(plan: Plan, output: str, notes: dict[str, str], *, restart: bool) -> RunOutcome:
    from prober.run.runner import RunEndedError, run_plan

    outcome = run_plan(plan, output, notes=notes, restart=restart)
    if outcome.archive is None:
        raise RunEndedError(
            f"{outcome.reason}; the measurements are kept in {output}, the same command resumes the run"
        )
    click.echo(f"wrote {outcome.archive}", err=True)
    return outcome


def _judge(outcome: RunOutcome, *, series: bool) -> AuditRun:
    from pepscope.command_line.progress import Progress
    from prober.archive.archive_file import open_archive
    from prober.audit.judging import judge_run

    assert outcome.archive is not None
    with open_archive(outcome.archive) as archive, Progress("judging") as progress:
        return judge_run(archive, str(outcome.archive), series=series, progress=progress)
