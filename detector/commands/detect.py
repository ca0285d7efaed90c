"""The commands `detect` and `explain`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from click.core import ParameterSource

from detector.commands.archives import detect_archives, is_archive
from detector.commands.detecting import PACKETS, PACKETS_OF, Detection, check_options, judge_captures
from detector.options import DRIFT_LIMIT_PPM, LEAST_PAIRING_CONFIDENCE, ClockMode
from pepscope.command_line.live import given_or_captured, interface_options
from pepscope.command_line.notes import volume_options
from pepscope.command_line.options import (
    Duration,
    Number,
    OptionType,
    filter_option,
    least_probability_option,
    memory_option,
)
from pepscope.command_line.reports import ReportingCommand, report_option
from pepscope.errors import UsageError
from pepscope.plugins import writer

_FAIL_KINDS = {
    "split": {"split-tcp", "tcp-proxy"},
    "split-tcp": {"split-tcp"},
    "tcp-proxy": {"tcp-proxy"},
    "regular": {"regular"},
    "inconclusive": {"inconclusive"},
}
#: Parameters that archives take as captures do.
_OF_ARCHIVES = frozenset(
    {"captures", "json_to", "csv_to", "junit_to", "sarif_to", "html_to", "fail_on", "quiet", "verbose"}
)


class FailOn(OptionType[frozenset[str]]):
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


@click.command(cls=ReportingCommand, short_help="Judge whether connections are end to end, split, or proxied.")
@click.argument("captures", nargs=-1, metavar="SENDER [RECEIVER] | ARCHIVE...")
@interface_options
@click.option(
    "--clocks",
    type=click.Choice(["general", "offset", "synchronised"]),
    default=ClockMode.GENERAL.value,
    show_default=True,
    help="How the two capture clocks may differ: by offset, drift and steps (general), by a constant offset (offset; "
    "Method 2), or not at all (synchronised).",
)
@click.option(
    "--ack-delay", type=Duration(), metavar="T", help="The delay that the receiver put on every ACK (Method 3)."
)
@click.option(
    "--same-transfers",
    is_flag=True,
    help="Assume that both captures show the same transfers: do not doubt a pair because addresses, requests or clocks "
    "differ, and pair an encrypted leg with a plain one by size and time.",
)
@click.option(
    "--drift-limit",
    type=Number(0, 10_000),
    default=DRIFT_LIMIT_PPM,
    show_default=True,
    metavar="PPM",
    help="Fastest relative drift of the clocks to allow for.",
)
@least_probability_option
@click.option(
    "--least-pairing",
    type=Number(0, 1),
    default=LEAST_PAIRING_CONFIDENCE,
    show_default=True,
    metavar="P",
    help="Give no verdict on a pair below this confidence that both captures show one transfer.",
)
@click.option(
    "--taken-at",
    type=click.Choice(["client", "server"]),
    help="The end at which the first capture was taken, if pepscope infers the wrong one.",
)
@click.option(
    "--one-vantage",
    is_flag=True,
    help="All captures were taken at one vantage point (several days, several interfaces); implied for a single "
    "capture.",
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
    help="List the packets that show each finding, at N moments, in JSON and on the page; 0 lists none.",
)
@click.option(
    "--packets-of",
    type=click.IntRange(0),
    default=PACKETS_OF,
    show_default=True,
    metavar="N",
    help="List packets for at most N connections and groups, those that deserve most attention.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Processes that judge two captures and write JSON; with two or more, both captures are read in parallel. "
    "[default: all usable cores]",
)
@report_option("json", "Write JSON (schema detect-2).", alone=True)
@report_option("jsonl", "Write JSON Lines, one line per connection.", alone=True)
@report_option("csv", "Write CSV, one line per connection; evidence, groups and hosts beside FILE.", alone=True)
@report_option("parquet", "Write Parquet tables: connections to FILE, evidence, groups and hosts beside it.")
@report_option("junit", "Write JUnit XML; inconclusive is skipped.")
@report_option("sarif", "Write SARIF 2.1.0: a result for each group and connection that is split.")
@report_option("html", "Write a page with figures, one file.")
@click.option(
    "--connection",
    nargs=2,
    metavar="CLIENT SERVER",
    help="With --html: write the page of this connection only, which is still judged with all others. Give its ends as "
    "results show them, such as 192.0.2.7:40001 203.0.113.9:443.",
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

    Give the captures from both ends in any order. '-' reads one of them from standard input. A directory stands for one
    capture that a tool divided into files (tcpdump -C or -G). With -i the command captures on an interface and judges
    that capture.

    You may give any number of archives of `pepscope probe run` instead. They get the verdicts of `pepscope audit`: a
    matrix of applications and directions.
    """
    files = {
        "json": json_to, "jsonl": jsonl_to, "csv": csv_to, "parquet": parquet_to, "junit": junit_to,
        "sarif": sarif_to, "html": html_to,
    }  # fmt: skip
    asked = Detection(
        captures,
        files,
        clocks=clocks,
        ack_delay_s=ack_delay,
        same_transfers=same_transfers,
        drift_limit_ppm=drift_limit,
        least_probability=least_probability,
        least_pairing_confidence=least_pairing,
        taken_at=taken_at,
        one_vantage=one_vantage,
        networks=networks,
        filter_expression=filter_expression,
        memory_bytes=memory_bytes,
        packets=packets,
        packets_of=packets_of,
        jobs=jobs,
        connection=connection,
        fail_on=fail_on,
        quiet=quiet,
    )
    if interface is not None:
        check_options(asked._replace(captures=(interface,)))  # before anything is captured
    captures = click.get_current_context().with_resource(
        given_or_captured(captures, "SENDER", interface, duration_s, capture_bytes, kept_as, filter_expression)
    )
    if any(is_archive(path) for path in captures):
        detect_archives(captures, _given_of_captures(), files, fail_on)
        return
    judge_captures(asked._replace(captures=captures))


def _given_of_captures() -> list[str]:
    """The options of the command line that only captures take."""
    context = click.get_current_context()
    return [
        parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name not in _OF_ARCHIVES
        and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]


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
