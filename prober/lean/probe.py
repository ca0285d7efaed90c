"""`probe plan`, `probe run` and `probe upload` of the client, with the same options as those of `pepscope`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pepscope.processes.signals import ending_by_signal
from prober.commands.default_plan import default_plan
from prober.plan import Plan
from prober.run.archive_uploads import archives_to_upload, outcomes_document, upload_after_run, upload_all
from prober.run.archive_withdrawals import digests_to_withdraw, withdraw_all, withdrawals_document
from prober.run.chosen_plan import choose_plan
from prober.run.dry_run import dry_run
from prober.run.run_metadata import parse_notes
from prober.run.run_report import cost_line, dry_run_lines, outcome_document, outcome_lines
from prober.run.runner import RunEndedError, run_plan
from prober.run.server_address import with_server

KEY_VARIABLE = "PEPSCOPE_PROBE_KEY"


def write_plan(words: Sequence[str]) -> int:
    """Write a commented plan. Raises OSError."""
    parser = argparse.ArgumentParser(prog="pepscope-client probe plan", description="Write a plan of a full audit.")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="a new file, instead of standard output")
    given = parser.parse_args(words)
    if given.output == "-":
        sys.stdout.write(default_plan())
        return 0
    with open(given.output, "x", encoding="utf-8") as stream:  # noqa: PTH123
        stream.write(default_plan())
    return 0


def run(words: Sequence[str]) -> int:
    """Run a plan; exit status 0 where every task was measured or cannot be, else 1. Raises PepscopeError, OSError."""
    given = _run_parser().parse_args(words)
    notes = parse_notes(tuple(given.note))
    plan = _plan(given.plan, given.server, given.key)
    if given.dry_run:
        outlook = dry_run(plan)
        _write(outlook.to_mapping() if given.json else dry_run_lines(outlook))
        return 0
    sys.stderr.write(f"{cost_line(dry_run(plan, must_answer=True))}\n")
    try:
        with ending_by_signal():
            outcome = run_plan(plan, given.output, notes=notes, restart=given.restart)
    except (KeyboardInterrupt, SystemExit):
        sys.stderr.write(f"the measurements are kept in {given.output}; the same command resumes the run\n")
        raise
    if outcome.archive is None:
        raise RunEndedError(f"{outcome.reason}; the measurements are kept in {given.output}")
    _write(outcome_document(outcome) if given.json else outcome_lines(outcome))
    sys.stderr.write(
        "This client measures and does not judge: take the archive to a host with pepscope, and run "
        f"`pepscope audit {outcome.archive.name}` there.\n"
    )
    is_stored = True
    if given.upload:
        uploaded = upload_after_run(plan, outcome.archive)
        is_stored = uploaded.uploaded is not None
        sys.stderr.write(f"{uploaded.sentence()}\n")
    return 0 if outcome.is_whole and is_stored else 1


def upload(words: Sequence[str]) -> int:
    """Upload archives; exit status 1 where some are not at the server. Raises PepscopeError, OSError."""
    parser = argparse.ArgumentParser(
        prog="pepscope-client probe upload", description="Upload archives of runs to the server, which keeps them."
    )
    parser.add_argument("archives", nargs="+", metavar="ARCHIVE", help="archives, or directories that hold some")
    _add_server(parser)
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")
    given = parser.parse_args(words)
    plan = with_server(Plan(), given.server, given.key)
    outcomes = list(upload_all(plan, archives_to_upload(given.archives)))
    _write(outcomes_document(outcomes) if given.json else (outcome.sentence() for outcome in outcomes))
    return int(any(outcome.uploaded is None for outcome in outcomes))


def withdraw(words: Sequence[str]) -> int:
    """Have the server delete archives; exit status 1 where some are not. Raises PepscopeError."""
    parser = argparse.ArgumentParser(
        prog="pepscope-client probe withdraw", description="Have the server delete archives that were uploaded."
    )
    parser.add_argument("archives", nargs="+", metavar="ARCHIVE", help="files that were uploaded, or their SHA-256")
    _add_server(parser)
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")
    given = parser.parse_args(words)
    digests = digests_to_withdraw(given.archives)
    outcomes = list(withdraw_all(with_server(Plan(), given.server, given.key), digests))
    _write(withdrawals_document(outcomes) if given.json else (outcome.sentence() for outcome in outcomes))
    return int(any(outcome.reason for outcome in outcomes))


def _plan(path: str | None, server: str | None, key: str | None) -> Plan:
    if path is not None:
        return with_server(Plan.from_toml(Path(path)), server, key)
    chosen = choose_plan(with_server(Plan(), server, key))
    sys.stderr.write(f"{chosen.why}\n")
    return chosen.plan


def _run_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pepscope-client probe run", description="Run a plan against a probe server, and write one archive."
    )
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="what `probe plan` writes; else what can decide here")
    _add_server(parser)
    parser.add_argument("-o", "--output", default=".", metavar="DIR", help="where the archive goes (default: here)")
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE", help="store this with the run")
    parser.add_argument("--restart", action="store_true", help="begin again instead of going on")
    parser.add_argument("--upload", action="store_true", help="upload the archive to the server, which keeps it")
    parser.add_argument("--dry-run", action="store_true", help="say what it would cost, and end")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")
    return parser


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="HOST[:PORT]", help="the probe server; else the plan's")
    parser.add_argument(
        "--key", default=os.environ.get(KEY_VARIABLE), help=f"what the server printed; better in {KEY_VARIABLE}"
    )


def _write(said: Mapping[str, object] | Iterable[str]) -> None:
    """A document as JSON, or lines."""
    text = json.dumps(said, indent=2, ensure_ascii=False) if isinstance(said, Mapping) else "\n".join(said)
    sys.stdout.write(f"{text}\n")
