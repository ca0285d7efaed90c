"""The command `trace`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pepscope.command_line.options import Number, refuse_given
from pepscope.command_line.reports import Destination, ReportingCommand, json_option
from pepscope.command_line.volume import announce
from pepscope.errors import UsageError
from pepscope.whole_file import write_output

if TYPE_CHECKING:
    from reference_sim.traces.rates import RateTrace

SCHEMA = 1
_UNIT = Number(0, min_open=True)
_FORMATS = ("mahimahi", "two-columns", "csv", "capture")
#: Options that are about one form of file.
_OPTIONS_OF = {"csv": ("time_column", "rate_column", "time_unit", "rate_unit", "every_s"), "capture": ("skip_s",)}


@click.command(cls=ReportingCommand, short_help="Convert a trace of a carrier's rate, or make one from a capture.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=Destination(), metavar="FILE", help="File for the new trace.")
@click.option("--from", "given", type=click.Choice(_FORMATS), required=True, help="Format of FILE.")
@click.option("--to", type=click.Choice(["csv", "mahimahi"]), default="csv", show_default=True, help="Format to write.")
@click.option(
    "--interval",
    "interval_s",
    type=Number(0.001, 1e6),
    metavar="S",
    help="Interval between the rates that are written; by default 0.1 s for mahimahi and captures, otherwise that of "
    "FILE.",
)
@click.option(
    "--time-column", default="time_s", show_default=True, metavar="NAME", help="csv: name of the column of times."
)
@click.option(
    "--rate-column", default="rate_bit_s", show_default=True, metavar="NAME", help="csv: name of the column of rates."
)
@click.option(
    "--time-unit",
    type=_UNIT,
    default=1.0,
    show_default=True,
    metavar="S",
    help="csv: unit of times in seconds, such as 0.001 for ms.",
)
@click.option(
    "--rate-unit",
    type=_UNIT,
    default=1.0,
    show_default=True,
    metavar="BIT/S",
    help="csv: unit of rates in bit/s, such as 1000 for kbit/s.",
)
@click.option(
    "--every", "every_s", type=Number(1e-6, 1e6), metavar="S", help="csv: rows have no times; they are S apart."
)
@click.option(
    "--skip", "skip_s", type=Number(0, 1e6), default=0.0, metavar="S", help="capture: skip the first S seconds."
)
@json_option("Write length, rates and steps as JSON.")
def trace(
    file: Path,
    output: str | None,
    given: str,
    to: str,
    interval_s: float | None,
    time_column: str,
    rate_column: str,
    time_unit: float,
    rate_unit: float,
    every_s: float | None,
    skip_s: float,
    as_json: bool,
) -> None:
    """Convert a trace of a carrier's rate over time, for links of variable rate.

    FILE is in mahimahi's format (a delivery opportunity a line, in ms), has two columns (seconds and Mbit/s), is a CSV
    file with named columns, or is a capture beside the mobile of a download that kept the link full: what was delivered
    in each interval is then its rate. Without -o the trace goes to standard output.
    """
    from reference_sim.traces import CsvForm, read_csv, read_mahimahi, read_two_columns, write_csv, write_mahimahi

    if output is None and as_json:
        raise UsageError("--json needs -o FILE for the trace")
    for form, options in _OPTIONS_OF.items():
        if form != given:
            refuse_given(options, f"is for --from {form}, got --from {given}")
    if given == "capture":
        from reference_sim.traces.captures import trace_of_capture

        read = trace_of_capture(file, interval_s or 0.1, skip_s=skip_s)
    else:
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"{file} must be text, with one time or rate in each line") from None
        if given == "mahimahi":
            read = read_mahimahi(text, interval_s=interval_s or 0.1)
        elif given == "two-columns":
            read = read_two_columns(text)
        else:
            read = read_csv(text, CsvForm(time_column, rate_column, time_unit, rate_unit, every_s))
        if interval_s is not None and given != "mahimahi":
            read = read.resampled(interval_s)
    written = write_csv(read) if to == "csv" else write_mahimahi(read)
    if output is None:
        sys.stdout.write(written)
    else:
        write_output(output, written)
        announce(output)
        if as_json:
            sys.stdout.write(json.dumps({"schema": SCHEMA, **_numbers(read)}, allow_nan=False) + "\n")
        else:
            click.echo(_sentence(read))


def _numbers(read: RateTrace) -> dict[str, float | int]:
    return {
        "duration_s": round(read.duration_s, 6),
        "steps": len(read.rates_bit_s),
        "mean_bit_s": round(read.mean_bit_s),
        "least_bit_s": round(min(read.rates_bit_s)),
        "most_bit_s": round(max(read.rates_bit_s)),
    }


def _sentence(read: RateTrace) -> str:
    numbers = _numbers(read)
    mean, least, most = (numbers[name] / 1e6 for name in ("mean_bit_s", "least_bit_s", "most_bit_s"))
    return f"{read.duration_s:g} s, {mean:.3g} Mbit/s on average ({least:.3g} to {most:.3g})"
