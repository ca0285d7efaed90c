"""Formats of traces: mahimahi's, two columns, and CSV files with named columns."""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from pepscope.errors import ScenarioError
from reference_sim.traces.rates import OPPORTUNITY_BYTES, RateTrace

#: A day.
_MOST_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class CsvForm:
    """Where a CSV file has its times and rates, and in which units."""

    time_column: str = "time_s"
    rate_column: str = "rate_bit_s"
    #: Seconds of one unit of time; with `interval_s` rows follow each other at that distance and have no time.
    time_unit_s: float = 1.0
    rate_unit_bit_s: float = 1.0
    interval_s: float | None = None


def read_mahimahi(text: str, *, interval_s: float = 0.1, opportunity_bytes: int = OPPORTUNITY_BYTES) -> RateTrace:
    """The rate of a trace in mahimahi's format, in intervals: one line a delivery opportunity, in whole milliseconds.

    The last time is the trace's length, as in mahimahi, which then begins again. Raises ScenarioError with the line.
    """
    times: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not (line.isascii() and line.isdigit()):
            raise ScenarioError(f"line {number} of the trace must have whole milliseconds, got {line!r}")
        times.append(int(line))
        if len(times) > 1 and times[-1] < times[-2]:
            raise ScenarioError(f"line {number} of the trace has a time before that of the line above")
    if not times or times[-1] == 0:
        raise ScenarioError("the trace must have a last time above 0, got none")
    if times[-1] > _MOST_MS:
        raise ScenarioError(f"times of a trace must be at most {_MOST_MS} ms, got {times[-1]}")
    counts = Counter(times)
    # An opportunity at a millisecond is what came up during the one before.
    steps = [8e3 * opportunity_bytes * counts[millisecond] for millisecond in range(1, times[-1] + 1)]
    steps[0] += 8e3 * opportunity_bytes * counts[0]
    each = RateTrace(tuple(number / 1e3 for number in range(times[-1] + 1)), tuple(steps))
    return each.resampled(interval_s)


def write_mahimahi(trace: RateTrace, *, opportunity_bytes: int = OPPORTUNITY_BYTES) -> str:
    """The trace in mahimahi's format. Raises ScenarioError where it carries less than one opportunity."""
    times = trace.opportunities_ms(opportunity_bytes)
    if not times or times[-1] == 0:
        raise ScenarioError(f"a trace for mahimahi must carry at least {opportunity_bytes} bytes, got fewer")
    return "".join(f"{time}\n" for time in times)


def read_two_columns(text: str) -> RateTrace:
    """Seconds and Mbit/s apart by blanks or a comma.

    Each rate holds to the next line, the last as long as the one before.
    Blank lines and those that begin with `#` are passed over. Raises ScenarioError with the line.
    """
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        fields = content.replace(",", " ").split()
        if len(fields) != 2:
            raise ScenarioError(f"line {number} of the trace must have two columns, got {len(fields)}")
        rows.append((_number(fields[0], number), 1e6 * _number(fields[1], number)))
    return _from_rows(rows)


def read_csv(text: str, form: CsvForm | None = None) -> RateTrace:
    """A CSV file whose first line names its columns; rows without a rate (empty, `-`, `nan`) are passed over.

    Each rate holds to the next row's time. Raises ScenarioError with the line.
    """
    form = form or CsvForm()
    table = csv.reader(text.splitlines())
    head = [name.strip() for name in next(table, [])]
    wanted = [form.rate_column] if form.interval_s is not None else [form.time_column, form.rate_column]
    for name in wanted:
        if name not in head:
            raise ScenarioError(f"the trace must have a column {name!r}, got {', '.join(head) or 'none'}")
    places = [head.index(name) for name in wanted]
    rows: list[tuple[float, float]] = []
    for row in table:
        if not row:
            continue
        if len(row) <= max(places):
            raise ScenarioError(
                f"line {table.line_num} of the trace must have {max(places) + 1} fields, got {len(row)}"
            )
        fields = [row[place].strip() for place in places]
        if fields[-1].lower() in ("", "-", "nan"):
            continue
        rate = form.rate_unit_bit_s * _number(fields[-1], table.line_num)
        if form.interval_s is not None:
            rows.append((len(rows) * form.interval_s, rate))
        else:
            rows.append((form.time_unit_s * _number(fields[0], table.line_num), rate))
    if form.interval_s is not None and rows:
        times = (*(time for time, _ in rows), len(rows) * form.interval_s)
        return RateTrace(times, tuple(rate for _, rate in rows))
    return _from_rows(rows)


def write_csv(trace: RateTrace) -> str:
    """Columns `time_s` and `rate_bit_s`, from time 0, rates in whole bit/s.

    Readers take the last rate to last as long as the one before; where it does not, a row repeats it at its end.
    """
    start_s, times, rates = trace.times_s[0], trace.times_s, [*trace.rates_bit_s, trace.rates_bit_s[-1]]
    last = [later - earlier for earlier, later in pairwise(times[-3:])]
    is_even = len(last) == 2 and math.isclose(last[0], last[1], rel_tol=1e-6, abs_tol=1e-6)
    rows = list(zip(times, rates, strict=True))[: -1 if is_even else None]
    lines = [f"{round(time - start_s, 6):.10g},{round(rate)}" for time, rate in rows]
    return "\n".join(["time_s,rate_bit_s", *lines]) + "\n"


def _from_rows(rows: list[tuple[float, float]]) -> RateTrace:
    if len(rows) < 2:
        raise ScenarioError(f"a trace must have at least two times, got {len(rows)}")
    times = [time for time, _ in rows]
    end_s = times[-1] + (times[-1] - times[-2])
    # Several rows of one time: the last one holds.
    kept = [(time, rate) for (time, rate), later in zip(rows, [*times[1:], end_s], strict=True) if later != time]
    return RateTrace((*(time for time, _ in kept), end_s), tuple(rate for _, rate in kept))


def _number(text: str, line: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ScenarioError(f"line {line} of the trace must have a finite number, got {text!r}")
    return number
