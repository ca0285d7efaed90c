"""The command `check`: is this network splitting my TCP? One end, no server of one's own."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detector.commands.detect import FailOn
from pepscope.command_line.options import Duration
from pepscope.command_line.reports import ReportingCommand, report_option
from pepscope.command_line.volume import announce
from pepscope.errors import PepscopeError, UsageError
from pepscope.plugins import writer
from pepscope.whole_file import STANDARD_OUTPUT, write_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prober.check.judging import Further, PortVerdict
    from prober.check.measuring import Observations
    from prober.check.targets import Place


@click.command(cls=ReportingCommand, short_help="Say whether this network splits TCP, from this host alone.")
@click.option(
    "--targets", type=click.Path(dir_okay=False), metavar="FILE",
    help="Hosts to contact instead of the public ones, one per line: HOST PORT [tls|plain].",
)  # fmt: skip
@click.option("--ports", default="80,443", show_default=True, metavar="N,...", help="Ports of the public hosts.")
@click.option(
    "--time", "time_s", type=Duration(), default="60s", show_default=True, metavar="T",
    help="Contact no further host after this time.",
)  # fmt: skip
@click.option(
    "--echo", "echo_url", metavar="URL",
    help="A service that returns the head of a request as it arrived: http://HOST[:PORT]/PATH, followed by +tls[:PORT] "
    "if it also answers over TLS.",
)  # fmt: skip
@click.option(
    "--slow-reader", "slow_reader_at", metavar="HOST:PORT:RATE:BUFFER",
    help="A host that reads an upload of 1 MB at RATE bytes per second, with a receive buffer of BUFFER bytes.",
)  # fmt: skip
@click.option(
    "--capture/--no-capture", default=None,
    help="Also capture and judge the check's own connections.  [default: if this user may capture]",
)  # fmt: skip
@click.option(
    "-w", "--write", "keep_at", type=click.Path(dir_okay=False), metavar="FILE", help="Keep that capture in FILE."
)
@click.option("--dry-run", is_flag=True, help="Show what the check would contact, and exit.")
@report_option("json", "Write JSON (schema check-1).", alone=True)
@report_option("html", "Write a page with a figure of each port, one file.")
@click.option("--fail-on", type=FailOn(), metavar="VERDICTS", help="Exit 1 on these verdicts: split,inconclusive,...")
def check(
    targets: str | None,
    ports: str,
    time_s: float,
    echo_url: str | None,
    slow_reader_at: str | None,
    capture: bool | None,
    keep_at: str | None,
    dry_run: bool,
    json_to: str | None,
    html_to: str | None,
    fail_on: frozenset[str] | None,
) -> None:
    """Say port by port whether this network splits TCP connections, from this host alone.

    The check makes ordinary connections to public hosts, and gives their first data a hop limit too low to reach the
    host. A middlebox that terminates the connection acknowledges these data all the same. Needs Linux, and no
    privilege.
    """
    from pepscope.command_line.progress import Progress
    from prober.check.given import Given, read_echo, read_slow_reader
    from prober.check.report import document, json_text, plan_lines, text_lines
    from prober.check.session import chosen_targets, places_of, run
    from prober.check.targets import read_ports

    results = {"--json": json_to, "--html": html_to, "--write": keep_at, "--fail-on": fail_on}
    if dry_run and (useless := [name for name, value in results.items() if value]):
        raise UsageError(f"--dry-run measures nothing: give it without {useless[0]}")
    if keep_at is not None and capture is False:
        raise UsageError("--write must come without --no-capture")
    given = Given(
        None if echo_url is None else read_echo(echo_url),
        None if slow_reader_at is None else read_slow_reader(slow_reader_at),
    )
    places, unresolved = places_of(chosen_targets(targets, read_ports(ports)))
    for line in plan_lines(places, time_s, given, unresolved):
        click.echo(line, err=True)
    if dry_run:
        return
    write_page = None if html_to is None else writer("check-html")
    with _captured(places, capture, keep_at) as further, Progress("checking") as progress:
        verdicts, observations = run(places, unresolved, time_s, given, progress, further)
    found = document(verdicts, observations)
    if json_to is not None:
        write_output(json_to, json_text(found) + "\n")
        announce(json_to)
    if html_to is not None and write_page is not None:
        write_page(found, html_to)
        announce(html_to)
    if STANDARD_OUTPUT not in (json_to, html_to):
        click.echo("\n".join(text_lines(verdicts, observations, shutil.get_terminal_size().columns)))
    if fail_on and any(_is_named(each, fail_on) for each in verdicts):
        raise click.exceptions.Exit(1)


@contextlib.contextmanager
def _captured(
    places: Sequence[Place], capture: bool | None, keep_at: str | None
) -> Iterator[Callable[[Observations], Further] | None]:
    """What reads findings off a capture that runs meanwhile; None where none is wanted or allowed."""
    from prober.audit.check_capture import CheckCapture

    if capture is False:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pepscope-check-") as directory:
        try:
            begun = CheckCapture.begin(places, Path(keep_at or Path(directory, "check.pcap")))
        except (PepscopeError, OSError):
            if capture or keep_at is not None:
                raise
            yield None
            return
        with contextlib.ExitStack() as stack:
            stack.callback(begun.abandon)
            yield begun.finish


def _is_named(each: PortVerdict, fail_on: frozenset[str]) -> bool:
    return each.verdict.value in fail_on
