"""Exchanges as a table for the terminal: 80 columns, by connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pepscope.captures.direction import DIRECTIONS, Direction
from pepscope.captures.exchanges import EXCHANGE_KINDS
from pepscope.captures.tables.connection_table import BOLD, DIM, head_lines, painted, time_text
from pepscope.sizes import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pepscope.captures.capture import Capture
    from pepscope.captures.exchanges import Exchanges, RoundTripColumns

_HEAD = (
    f"{'kind':>19} {'asked':<6} {'at':>7} {'answer':>6} {'gap':>6} {'rtt':>6} {'idle':>6} {'asks':>5} {'gets':>5} notes"
)
_ASKERS = ("client", "server")


def exchange_lines(capture: Capture, *, colour: bool = False) -> Iterator[str]:
    """Lines of at most 80 characters, without their ends (longer only where IPv6 end points are).

    `at` is the question's last byte since the connection's first packet; `answer` the time from there to the answer's
    first byte, `gap` that from the acknowledgement of the question to the answer, `rtt` the least plain round trip
    around the question, `idle` the silence before it; `asks` and `gets` are bytes. Notes: `s` strict, `1` the first of
    its direction, `r` repeated (no timing), `x` crossed by data of the other side.
    """
    yield from head_lines(capture, colour)
    found = capture.exchanges()
    starts = capture.connection_columns()["first_time_ns"].tolist()
    rows = _rows(found)
    row = next(rows, None)
    for connection in capture.connections:
        yield painted(f"{connection.id} {connection.client} > {connection.server}", BOLD, colour)
        for direction in DIRECTIONS:
            yield from _round_trips(found.round_trips, 2 * connection.id + direction, direction)
        if row is not None and row[0] == connection.id:
            yield painted(_HEAD, DIM, colour)
        while row is not None and row[0] == connection.id:
            yield _line(row, starts[connection.id])
            row = next(rows, None)


def _rows(found: Exchanges) -> Iterator[tuple[int, ...]]:
    columns = (
        found.connection,
        found.kind,
        found.asked,
        found.question_ns,
        found.exchange_ns,
        found.gap_ns,
        found.round_trip_ns,
        found.idle_ns,
        found.question_bytes,
        found.answer_bytes,
        found.strict,
        found.first,
        found.repeated,
        found.crossed,
    )
    return zip(*(column.tolist() for column in columns), strict=True)


def _line(row: tuple[int, ...], start_ns: int) -> str:
    _, kind, asked, question_ns, exchange_ns, gap_ns, round_trip_ns, idle_ns, asks, gets, *notes = row
    marks = "".join(letter for letter, there in zip("s1rx", notes, strict=True) if there)
    times = " ".join(f"{_time(time_ns):>6}" for time_ns in (exchange_ns, gap_ns, round_trip_ns, idle_ns))
    sizes = f"{format_count(asks):>5} {format_count(gets):>5}"
    at_s = (question_ns - start_ns) / 1e9
    return f"{EXCHANGE_KINDS[kind]:>19} {_ASKERS[asked]:<6} {at_s:>7.3f} {times} {sizes} {marks}".rstrip()


def _round_trips(table: RoundTripColumns, row: int, direction: Direction) -> Iterator[str]:
    count = int(table.plain_count[row])
    if count == 0:
        return
    least, fifth, upper = (
        _time(int(column[row])) for column in (table.least_ns, table.quantile_20_ns, table.quantile_60_ns)
    )
    samples = "sample" if count == 1 else "samples"
    yield f"  rtt {direction.name.lower()}: least {least}, 20% {fifth}, 60% {upper}, {count} plain {samples}"


def _time(time_ns: int) -> str:
    return time_text(None if time_ns < 0 else time_ns)
