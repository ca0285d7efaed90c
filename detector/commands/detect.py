"""The commands `detect` and `explain`."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detector.commands.archives import detect_archives, is_archive
from pepscope.command_line.colour import is_coloured
from pepscope.command_line.live import given_or_captured, interface_options
from pepscope.command_line.notes import volume_options
from pepscope.command_line.options import (
    LEAST_PROBABILITY,
    Duration,
    filter_option,
    least_probability_option,
    memory_option,
)
from pepscope.command_line.reports import ReportingCommand, report_option
from pepscope.command_line.volume import announce, note
from pepscope.errors import UsageError
from pepscope.whole_file import STANDARD_OUTPUT
from pepscope.writers import writer

if TYPE_CHECKING:
    from pepscope.results.attention import EndPoints
    from pepscope.results.verdicts import DetectionResult

DRIFT_LIMIT_PPM = 500.0
LEAST_PAIRING_CONFIDENCE = 0.7
PACKETS = 3
PACKETS_OF = 1000

_FAIL_KINDS = {
    "split": {"split-tcp", "tcp-proxy"},
    "split-tcp": {"split-tcp"},
    "tcp-proxy": {"tcp-proxy"},
    "regular": {"regular"},
    "inconclusive": {"inconclusive"},
}


class FailOn(click.ParamType[frozenset[str]]):
    """A comma-separated list of verdicts; `split` stands for split-tcp and tcp-proxy."""

    name = "verdicts"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        """Verdicts as they stand in results."""
        if isinstance(value, frozenset):
            return value
        kinds: set[str] = set()
        for word in str(value).split(","):
            if word.strip() not in _FAIL_KINDS:
                self.fail(f"{word.strip()!r} is none of {', '.join(_FAIL_KINDS)}.", param, ctx)
            kinds |= _FAIL_KINDS[word.strip()]
        return frozenset(kinds)


#: Objects that are made before Python looks for cycles among them: the objects of a connection hold none, and looking
#: for some after each 700 takes a fifth of the time.
_GARBAGE_THRESHOLD = 100_000


@click.command(cls=ReportingCommand, short_help="Say whether connections are end to end, split, or proxied.")
@click.argument("captures", nargs=-1, metavar="SENDER [RECEIVER] | ARCHIVE...")
@interface_options
@click.option(
    "--clocks",
    type=click.Choice(["general", "offset", "synchronised"]),
    default="general",
    show_default=True,
    help="What to assume of the two capture clocks: offset, drift and steps; a constant offset (Method 2); none.",
)
@click.option(
    "--ack-delay", type=Duration(), metavar="T", help="The delay that the receiver put on every ACK (Method 3)."
)
@click.option(
    "--same-transfers",
    is_flag=True,
    help="Both captures show the same transfers: a pair is not doubted because addresses and requests differ, and legs "
    "of which one is encrypted are paired by size and time.",
)
@click.option(
    "--drift-limit",
    type=click.FloatRange(0, 10_000),
    default=DRIFT_LIMIT_PPM,
    show_default=True,
    metavar="PPM",
    help="Fastest drift between the clocks to allow for.",
)
@least_probability_option
@click.option(
    "--least-pairing",
    type=click.FloatRange(0, 1),
    default=LEAST_PAIRING_CONFIDENCE,
    show_default=True,
    metavar="P",
    help="No verdict below this confidence that both captures show one transfer.",
)
@click.option(
    "--taken-at",
    type=click.Choice(["client", "server"]),
    help="Where the first capture was taken, if pepscope finds it out wrongly.",
)
@click.option(
    "--one-vantage",
    is_flag=True,
    help="All captures were taken at one vantage point (several days, several interfaces); with one capture it is "
    "clear.",
)
@click.option(
    "--networks",
    metavar="FILE",
    help="With one vantage point: lines `prefix,name` that say which client addresses belong together "
    "(default: /24, and /48 of IPv6).",
)
@filter_option
@memory_option
@click.option(
    "--packets",
    type=click.IntRange(0),
    default=PACKETS,
    show_default=True,
    metavar="N",
    help="Name the packets that show each finding, of N moments, in JSON and on the page; 0 names none.",
)
@click.option(
    "--packets-of",
    type=click.IntRange(0),
    default=PACKETS_OF,
    show_default=True,
    metavar="N",
    help="Name packets of so many connections and groups, of those first that deserve attention.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Processes that judge; from two on, both captures are read at once. [default: all cores]",
)
@report_option("json", "Write JSON (schema detect-2).", alone=True)
@report_option("jsonl", "Write JSON Lines, one line a connection.", alone=True)
@report_option("csv", "Write CSV, one line a connection; evidence, groups and hosts beside FILE.", alone=True)
@report_option("parquet", "Write Parquet tables: connections to FILE, evidence, groups and hosts beside it.")
@report_option("junit", "Write JUnit XML; inconclusive is skipped.")
@report_option("sarif", "Write SARIF 2.1.0: a result for each group and connection that is split.")
@report_option("html", "Write a page with figures, one file.")
@click.option(
    "--connection",
    nargs=2,
    metavar="CLIENT SERVER",
    help="With --html: the page of this connection alone, judged with all others; ends as results write them, such as "
    "192.0.2.7:40001 203.0.113.9:443.",
)
@click.option(
    "--fail-on",
    type=FailOn(),
    metavar="VERDICTS",
    help="Exit 1 on these verdicts of connections or groups: split,inconclusive,...",
)
@volume_options
def detect(
    captures: tuple[str, ...],
    interface: str | None,
    duration_s: float | None,
    capture_bytes: int | None,
    kept_as: str | None,
    clocks: str,
    ack_delay: float | None,
    same_transfers: bool,
    drift_limit: float,
    least_probability: float,
    least_pairing: float,
    taken_at: str | None,
    one_vantage: bool,
    networks: str | None,
    filter_expression: str | None,
    memory_bytes: int | None,
    packets: int,
    packets_of: int,
    jobs: int | None,
    json_to: str | None,
    jsonl_to: str | None,
    csv_to: str | None,
    parquet_to: str | None,
    junit_to: str | None,
    sarif_to: str | None,
    html_to: str | None,
    connection: tuple[str, str] | None,
    fail_on: frozenset[str] | None,
    quiet: bool,
) -> None:
    """Decide from one or two captures whether TCP connections are end to end, split, or served by a TCP proxy.

    Give the captures of both ends in any order. '-' reads one of them from standard input. A directory stands for the
    parts of one capture that a tool divided into files (tcpdump -C or -G). With -i it captures on an interface and
    judges that.

    Archives of `pepscope probe run` may be given instead, as many as there are: they get the verdicts that `pepscope
    audit` gives them, a matrix of applications and directions.
    """
    files = {
        "json": json_to, "jsonl": jsonl_to, "csv": csv_to, "parquet": parquet_to, "junit": junit_to,
        "sarif": sarif_to, "html": html_to,
    }  # fmt: skip
    captures = click.get_current_context().with_resource(
        given_or_captured(captures, "SENDER", interface, duration_s, capture_bytes, kept_as, filter_expression)
    )
    if any(is_archive(path) for path in captures):
        of_captures = {
            "--clocks": clocks != "general",
            "--ack-delay": ack_delay is not None,
            "--same-transfers": same_transfers,
            "--drift-limit": drift_limit != DRIFT_LIMIT_PPM,
            "--least-probability": least_probability != LEAST_PROBABILITY,
            "--least-pairing": least_pairing != LEAST_PAIRING_CONFIDENCE,
            "--taken-at": taken_at is not None,
            "--one-vantage": one_vantage,
            "--networks": networks is not None,
            "--filter": filter_expression is not None,
            "--memory": memory_bytes is not None,
            "--packets": packets != PACKETS,
            "--packets-of": packets_of != PACKETS_OF,
            "--jobs": jobs is not None,
            "--jsonl": jsonl_to is not None,
            "--parquet": parquet_to is not None,
            "--connection": connection is not None,
        }
        detect_archives(captures, of_captures, files, fail_on)
        return
    if connection is not None and html_to is None:
        raise UsageError("--connection chooses what the page shows: give --html, too.")
    if len(captures) > 2 and not one_vantage:
        raise UsageError(
            f"detect takes the captures of one or two ends, got {len(captures)}: add --one-vantage if all were taken "
            "at one."
        )
    if one_vantage and len(captures) > 1:
        of_two_ends = {
            "--clocks": clocks != "general",
            "--same-transfers": same_transfers,
            "--drift-limit": drift_limit != DRIFT_LIMIT_PPM,
            "--least-pairing": least_pairing != LEAST_PAIRING_CONFIDENCE,
        }
        for name, is_given in of_two_ends.items():
            if is_given:
                raise UsageError(f"{name} is for the captures of two ends, not for those of --one-vantage.")
    gc.set_threshold(_GARBAGE_THRESHOLD)
    # Judging multiplies no matrices, but OpenBLAS starts a thread for each processor, which looks for work for 25 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from detector.detection import detect as run
    from detector.detection import detect_vantage
    from detector.shown.asked import AskedPackets
    from pepscope.captures.warnings import temporary_files_note
    from pepscope.command_line.progress import Progress

    gc.freeze()  # these modules stay, too

    if jobs is None and len(captures) == 2 and not one_vantage:
        from detector.verdict.parts import usable_processors

        jobs = usable_processors()
    connections = () if connection is None else (connection,)
    are_shown = any((json_to, jsonl_to, html_to, parquet_to, sarif_to))
    are_digested = any(files.values())  # the table alone states none
    asked_packets = AskedPackets(packets if are_shown else 0, packets_of)
    with Progress("detecting") as progress:
        if one_vantage and len(captures) > 1:
            result = detect_vantage(
                captures,
                taken_at=taken_at,
                networks=networks,
                ack_delay_s=ack_delay,
                least_probability=least_probability,
                filter=filter_expression,
                memory_bytes=memory_bytes,
                series=html_to is not None,
                connections=connections,
                packets=asked_packets,
                digests=are_digested,
                progress=progress,
            )
        else:
            result = run(
                *captures,
                clocks=clocks,
                ack_delay_s=ack_delay,
                drift_limit_ppm=drift_limit,
                same_transfers=same_transfers,
                least_probability=least_probability,
                least_pairing_confidence=least_pairing,
                taken_at=taken_at,
                networks=networks,
                filter=filter_expression,
                memory_bytes=memory_bytes,
                series=html_to is not None,
                connections=connections,
                packets=asked_packets,
                digests=are_digested,
                jobs=jobs or 1,
                progress=progress,
            )
    traffic = result.temporary_bytes
    if (text := temporary_files_note(traffic.written, traffic.read)) is not None:
        note(text)
    _write(result, files, connection)
    if not quiet and STANDARD_OUTPUT not in files.values():
        writer("table")(result, sys.stdout, is_coloured(sys.stdout))
    if fail_on is not None and _fails(result, fail_on):
        raise SystemExit(1)


def _write(result: DetectionResult, files: Mapping[str, str | None], connection: EndPoints | None) -> None:
    """The reports of `files`, by format; the page of one connection, if that is asked for."""
    for name, path in files.items():
        if path is None:
            continue
        if name == "html" and connection is not None:
            writer("connection-html")(result, path, connection)
        else:
            written = writer(name)(result, path)
            announce(path, *(written or ()))


def _fails(result: DetectionResult, kinds: frozenset[str]) -> bool:
    """Whether a verdict is among `kinds`, or the user asked for one and there is none at all.

    A group's verdict counts like a connection's. That a group is inconclusive does not: its connections say it.
    """
    verdicts = {verdict.value for verdict in result.verdicts}
    verdicts |= {group.verdict.value for group in result.groups} - {"inconclusive"}
    if verdicts <= {"inconclusive"}:
        click.echo("pepscope: no connection could be judged, which --fail-on does not take for success.", err=True)
        return True
    return bool(verdicts & kinds)


@click.command(short_help="Put a verdict's evidence into prose.")
@click.argument("verdict", type=click.Path(allow_dash=True), metavar="VERDICT.json")
def explain(verdict: str) -> None:
    """Put the evidence of a verdict (the output of `pepscope detect --json`) into prose."""
    try:
        text = sys.stdin.read() if verdict == "-" else Path(verdict).read_text(encoding="utf-8")
        document = json.loads(text)
    except OSError as error:
        raise UsageError(f"{verdict} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise UsageError(f"{verdict} must be JSON, the output of 'pepscope detect --json'.") from None
    click.echo(writer("prose")(document))
