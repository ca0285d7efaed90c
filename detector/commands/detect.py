"""The commands `detect` and `explain`."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detector.commands.archives import detect_archives, is_archive
from pepscope.command_line.colour import is_coloured
from pepscope.command_line.live import given_or_captured, interface_options
from pepscope.command_line.options import Duration, filter_option, memory_option
from pepscope.errors import UsageError

if TYPE_CHECKING:
    from pepscope.results.attention import EndPoints
    from pepscope.results.verdicts import DetectionResult

DRIFT_LIMIT_PPM = 500.0
LEAST_PROBABILITY = 0.95
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


@click.command(short_help="Say whether connections are end to end, split, or proxied.")
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
@click.option(
    "--least-probability",
    type=click.FloatRange(0.5, 1),
    default=LEAST_PROBABILITY,
    show_default=True,
    metavar="P",
    help="No verdict below this probability of end to end or split.",
)
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
@click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output.")
@click.option("--jsonl", "as_jsonl", is_flag=True, help="Write JSON Lines to standard output, one line a connection.")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV to standard output, one line a connection.")
@click.option(
    "--parquet",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write Parquet tables: connections to FILE, evidence, groups and hosts beside it.",
)
@click.option(
    "--junit", type=click.Path(dir_okay=False), metavar="FILE", help="Write JUnit XML; inconclusive is skipped."
)
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Write a page with figures, one file.")
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
def detect(
    captures: tuple[str, ...],
    interface: str | None,
    duration_s: float | None,
    capture_bytes: int | None,
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
    as_json: bool,
    as_jsonl: bool,
    as_csv: bool,
    parquet: str | None,
    junit: str | None,
    html: str | None,
    connection: tuple[str, str] | None,
    fail_on: frozenset[str] | None,
) -> None:
    """Decide from one or two captures whether TCP connections are end to end, split, or served by a TCP proxy.

    Give the captures of both ends in any order. '-' reads one of them from standard input. A directory stands for the
    parts of one capture that a tool divided into files (tcpdump -C or -G). With -i it captures on an interface and
    judges that.

    Archives of `pepscope probe run` may be given instead, as many as there are: they get the verdicts that `pepscope
    audit` gives them, a matrix of applications and directions.
    """
    asked = [name for name, is_asked in (("--json", as_json), ("--jsonl", as_jsonl), ("--csv", as_csv)) if is_asked]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} all write to standard output: give one of them.")
    captures = click.get_current_context().with_resource(
        given_or_captured(captures, "SENDER", interface, duration_s, capture_bytes, filter_expression)
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
            "--jsonl": as_jsonl,
            "--parquet": parquet is not None,
            "--connection": connection is not None,
        }
        detect_archives(captures, of_captures, as_json, as_csv, {"html": html, "junit": junit}, fail_on)
        return
    if connection is not None and html is None:
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
    from detector.detection import detect as run
    from detector.detection import detect_vantage
    from detector.shown.telling_packets.results import AskedPackets
    from detector.verdict.parts import usable_processors
    from pepscope.captures.warnings import temporary_files_note
    from pepscope.command_line.progress import Progress

    connections = () if connection is None else (connection,)
    gc.set_threshold(_GARBAGE_THRESHOLD)
    are_shown = as_json or as_jsonl or html is not None or parquet is not None
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
                series=html is not None,
                connections=connections,
                packets=asked_packets,
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
                series=html is not None,
                connections=connections,
                packets=asked_packets,
                jobs=jobs or usable_processors(),
                progress=progress,
            )
    traffic = result.temporary_bytes
    if (note := temporary_files_note(traffic.written, traffic.read)) is not None:
        click.echo(f"pepscope: {note}", err=True)
    _write(result, asked, {"parquet": parquet, "junit": junit, "html": html}, connection)
    if fail_on is not None and _fails(result, fail_on):
        raise SystemExit(1)


def _write(
    result: DetectionResult, asked: Sequence[str], files: dict[str, str | None], connection: EndPoints | None
) -> None:
    """Results to standard output, pages and tables to their files; the page of one connection, if that is asked for."""
    from pepscope.results.json_output import write_json, write_json_lines
    from pepscope.writers import writer

    for name, path in files.items():
        if path is not None:
            if name == "html" and connection is not None:
                writer("connection-html")(result, path, connection)
            else:
                writer(name)(result, path)
            click.echo(f"wrote {path}", err=True)
    if "--json" in asked:
        write_json(result, sys.stdout)
    elif "--jsonl" in asked:
        write_json_lines(result, sys.stdout)
    elif "--csv" in asked:
        writer("csv")(result, sys.stdout)
    else:
        writer("table")(result, sys.stdout, is_coloured(sys.stdout))


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
    from pepscope.writers import writer

    try:
        text = sys.stdin.read() if verdict == "-" else Path(verdict).read_text(encoding="utf-8")
        document = json.loads(text)
    except OSError as error:
        raise UsageError(f"{verdict} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise UsageError(f"{verdict} must be JSON, the output of 'pepscope detect --json'.") from None
    click.echo(writer("prose")(document))
