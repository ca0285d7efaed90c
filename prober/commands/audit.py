"""The command `audit`: run a plan, or take archives of earlier runs, and show which application is split, and how."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    from pepscope.results.audits import AuditResult, AuditRun
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
    if not targets and server is None:
        raise UsageError("an audit must have a plan, archives, or --server HOST[:PORT], got none of them")
    if every == 0:
        raise UsageError("--every must be more than 0 s, got 0")
    is_repeated = repeat is not None or every is not None
    if shared is not None and (is_repeated or len(targets) > 1 or any(Path(each).is_dir() for each in targets)):
        raise UsageError("--anonymise writes one archive: give one plan that runs once, or one archive")
    reports = _Reports(
        {"json": json_to, "csv": csv_to, "html": html_to, "junit": junit_to, "sarif": sarif_to},
        shared,
        fail_on,
        is_repeated,
    )
    reports.check_outputs()
    if not _is_plan(targets):
        _refuse_measuring(server=server, notes=notes, restart=restart, upload=uploads, repeat=repeat, every=every)
        _audit_archives(targets, reports)
        return
    from prober.commands.options import load_plan
    from prober.run.run_metadata import parse_notes

    remembered = parse_notes(notes)
    plan = load_plan(targets[0] if targets else None, server, key)
    runs = _PlanRuns(plan, output, remembered, restart, uploads)
    _audit_runs(runs, _turns(repeat, every), reports)


@dataclass(frozen=True)
class _Reports:
    """Where the reports of an audit go, by format, and the anonymised archive; which verdicts fail the command; and
    whether there is a report for each of several runs."""

    files: Mapping[str, str | None]
    shared: str | None
    fail_on: frozenset[str] | None
    is_repeated: bool

    @property
    def has_page(self) -> bool:
        """Whether a page is written, which draws series."""
        return self.files["html"] is not None

    def check_outputs(self) -> None:
        """Raise UsageError where a file cannot be written: before anything is measured."""
        for path in (*self.files.values(), self.shared):
            if path is not None and path != STANDARD_OUTPUT:
                check_output(path)

    def write(self, result: AuditResult) -> bool:
        """Write every report; whether a verdict fails the command."""
        from pepscope.command_line.audit_output import audit_fails, write_audit

        write_audit(result, self.files, one_line=self.is_repeated)
        return self.fail_on is not None and audit_fails(result, self.fail_on)

    def share(self, archive: str) -> None:
        """Write the anonymised copy of an archive, if the user wants one."""
        if self.shared is not None:
            from prober.commands.anonymise import write_shared

            write_shared(archive, self.shared)


@dataclass(frozen=True)
class _PlanRuns:
    """How a plan is run, once or several times, into the directory `output`."""

    plan: Plan
    output: str
    notes: dict[str, str]
    restart: bool
    uploads: bool

    def measure(self, turn: int) -> RunOutcome:
        """Make one run; only the first may restart an interrupted one."""
        from pepscope.processes.signals import ending_by_signal
        from prober.commands.options import tell_cost

        if turn == 0:
            tell_cost(self.plan)
        with ending_by_signal():
            return _measure(self.plan, self.output, self.notes, restart=self.restart and turn == 0)

    def finish(self, outcome: RunOutcome) -> bool:
        """Upload the archive, if the user wants that; whether this succeeded and every task was measured."""
        is_stored = not self.uploads or outcome.archive is None or upload_archive_of(self.plan, outcome.archive)
        return outcome.is_whole and is_stored


def _audit_runs(runs: _PlanRuns, turns: Iterator[int], reports: _Reports) -> None:
    """Run a plan at each turn, and report it with all earlier runs. One of several runs that measures nothing is left
    out, unless it is the last. Exits with status 1 if a run failed in part, or by the verdicts of `reports`."""
    from pepscope.results.audits import AuditResult
    from prober.audit.history import in_order, with_warnings
    from prober.errors import PlanError

    history = _earlier(runs.plan, runs.output)
    has_failed, failure = False, None
    for turn in turns:
        try:
            outcome = runs.measure(turn)
        except (PepscopeError, OSError) as error:
            if not reports.is_repeated or isinstance(error, PlanError):  # no run of this plan can be
                raise
            click.echo(f"pepscope: this run measured nothing: {error}", err=True)
            failure, has_failed = error, True
            continue
        is_done = runs.finish(outcome)
        run = _judge(outcome, series=reports.has_page)
        reports.share(str(outcome.archive))
        fails = reports.write(AuditResult(with_warnings(in_order((*history, run)))))
        history.append(run)
        has_failed = has_failed or fails or not is_done
        failure = None
    if failure is not None:
        raise failure
    if has_failed:
        raise SystemExit(1)


def _audit_archives(targets: Sequence[str], reports: _Reports) -> None:
    """Judge archives, or those of directories, as they are, and report them."""
    from pepscope.command_line.progress import Progress
    from prober.audit.history import judge_archives

    with Progress("judging") as progress:
        result = judge_archives(targets, series=reports.has_page, progress=progress)
    reports.share(targets[0])
    if reports.write(result):
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
