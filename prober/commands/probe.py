"""The command `probe`: a server on one side, a mobile on the other, a plan between them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from pepscope.command_line.reports import Destination, ReportingCommand, json_option
from pepscope.errors import UsageError
from pepscope.processes.signals import ending_by_signal
from pepscope.whole_file import write_output
from prober.commands.anonymise import anonymise
from prober.commands.options import (
    key_option,
    note_option,
    restart_option,
    runs_option,
    server_option,
    upload_archive_of,
    upload_option,
)
from prober.commands.upload import upload
from prober.commands.withdraw import withdraw

#: Exit status of a run that left something unmeasured which could have been measured.
NOT_WHOLE = 1
#: Parts of the server, and what they are for.
_LOADED_WHEN_RUN = {
    "archives": "Archives of clients: list, delete.",
    "dashboard": "Show the archives of a server's clients as a web page.",
    "key": "Keys of clients: add, list, revoke.",
    "serve": "Run the server at the wired end, against which plans are measured.",
}


class _ProbeGroup(click.Group):
    """A click group whose server part is loaded only when it is run: a mobile has none of what it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all parts."""
        return sorted({*super().list_commands(ctx), *_LOADED_WHEN_RUN})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One part."""
        if cmd_name == "serve":
            from prober.commands.serve import serve

            return serve
        if cmd_name == "archives":
            from prober.commands.archives import archives

            return archives
        if cmd_name == "dashboard":
            from prober.commands.dashboard import dashboard

            return dashboard
        if cmd_name == "key":
            from prober.commands.key import key

            return key
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the parts without loading the server."""
        rows = [(name, command.get_short_help_str(limit=70)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(sorted([*rows, *_LOADED_WHEN_RUN.items()]))


@click.group(cls=_ProbeGroup, short_help="Make measurements that show splits: a server, a mobile, a plan.")
def probe() -> None:
    """Make measurements that show whether, where and how the network splits TCP connections.

    `serve` runs on a host beyond the network in question, `run` on the mobile. `pepscope audit` runs a plan and judges
    it at once.
    """


probe.add_command(anonymise)
probe.add_command(upload)
probe.add_command(withdraw)


@probe.command("plan", short_help="Write a commented plan of a full audit.")
@click.option(
    "-o",
    "--output",
    type=Destination(),
    default="-",
    metavar="FILE",
    help="Write to this file instead of standard output; one that is there is left alone.",
)
def write_plan(output: str) -> None:
    """Write a commented plan of a full audit, to be changed at will.

    Settings left out have their defaults, experiments left out do not run.
    """
    from prober.commands.default_plan import default_plan

    text = default_plan()
    if output == "-":
        click.echo(text, nl=False)
        return
    if Path(output).is_file():
        raise UsageError(f"{output} is there already: name another file for the plan")
    write_output(output, text)


@probe.command("run", cls=ReportingCommand, short_help="Run a plan on the mobile, and write an archive.")
@click.argument("plan", type=click.Path(dir_okay=False, exists=True), required=False, metavar="[PLAN]")
@server_option
@key_option
@runs_option
@note_option
@restart_option
@upload_option
@click.option("--dry-run", is_flag=True, help="Show how much would be sent and how long it takes, without measuring.")
@json_option("Write JSON (schema probe-run-1, with --dry-run dry-run-1).")
def run(
    plan: str | None,
    server: str | None,
    key: str | None,
    output: str,
    notes: tuple[str, ...],
    restart: bool,
    uploads: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run PLAN (`pepscope probe plan` writes one) against a server, and write one archive into DIR.

    Without PLAN the run has every experiment that can decide from this host, with or without root.
    The same command resumes an interrupted run. Exit status 0: every task was measured, or has a reason why it cannot
    be; 1: some failed, the run ended early, as the archive states, or the upload failed; 2: nothing was measured, or no
    archive could be written.
    """
    from prober.commands.options import load_plan, tell_cost
    from prober.run.run_metadata import parse_notes
    from prober.run.run_report import dry_run_lines, outcome_document, outcome_lines

    loaded, remembered = load_plan(plan, server, key), parse_notes(notes)
    if dry_run:
        from prober.run.dry_run import dry_run as look_ahead

        outlook = look_ahead(loaded)
        _write(outlook.to_mapping() if as_json else dry_run_lines(outlook))
        return 0
    from prober.run.runner import RunEndedError, run_plan

    tell_cost(loaded)
    with ending_by_signal(), _hinting(output):
        outcome = run_plan(loaded, output, notes=remembered, restart=restart)
    if outcome.archive is None:
        raise RunEndedError(
            f"{outcome.reason}; the measurements are kept in {output}, the same command resumes the run"
        )
    _write(outcome_document(outcome) if as_json else outcome_lines(outcome))
    is_stored = not uploads or upload_archive_of(loaded, outcome.archive)
    return 0 if outcome.is_whole and is_stored else NOT_WHOLE


@contextlib.contextmanager
def _hinting(output: str) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        click.echo(f"pepscope: the measurements are kept in {output}; the same command resumes the run", err=True)
        raise


def _write(said: Mapping[str, object] | Iterable[str]) -> None:
    """A document as JSON, or lines."""
    click.echo(json.dumps(said, indent=2, ensure_ascii=False) if isinstance(said, Mapping) else "\n".join(said))
