"""Exchanges as a pandas frame, and as JSON, CSV and Parquet in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pepscope.captures.exchanges import EXCHANGE_COLUMNS, EXCHANGE_KINDS, ROUND_TRIP_COLUMNS
from pepscope.captures.tables.addresses import address_texts
from pepscope.captures.tables.connection_frame import columns_as_parquet, frames_as_csv
from pepscope.captures.tables.typed_columns import Column, Nullable, categories, frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from pepscope.captures.capture import Capture

#: Exchanges that are put into words at once.
_BATCH = 1 << 16
_SIDES = ("client", "server")
#: Columns in which -1 stands for what is not known.
_MAY_BE_UNKNOWN = frozenset({"idle_ns", "round_trip_ns"})


def exchange_frame(capture: Capture) -> pd.DataFrame:
    """One row an exchange, with the connection's end points; what is not known is missing (nullable integers)."""
    return frame(_columns(capture, slice(None)))


def csv_chunks(capture: Capture) -> Iterator[bytes]:
    """`exchange_frame` as CSV in pieces."""
    return frames_as_csv(map(frame, _pieces(capture)))


def parquet_bytes(capture: Capture) -> bytes:
    """`exchange_frame` as a Parquet file. Raises UsageError where pyarrow is not installed."""
    return columns_as_parquet(_pieces(capture))


def json_chunks(capture: Capture) -> Iterator[bytes]:
    """The keys `exchanges` and `round_trips` of the JSON contract `inspect-1`, without braces, in pieces."""
    import json

    found = capture.exchanges()
    exchanges = {name: getattr(found, name) for name in EXCHANGE_COLUMNS}
    round_trips = {name: getattr(found.round_trips, name) for name in ROUND_TRIP_COLUMNS}
    for key, columns in (("exchanges", exchanges), ("round_trips", round_trips)):
        yield b'%s"%s":[' % (b"," if key == "round_trips" else b"", key.encode())
        for start in range(0, len(columns["connection"]), _BATCH):
            lists = {name: _json_values(name, values[start : start + _BATCH]) for name, values in columns.items()}
            rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
            text = json.dumps(rows, separators=(",", ":"))[1:-1]
            yield (b"," if start else b"") + text.encode()
        yield b"]"


def _json_values(name: str, values: Any) -> list[Any]:
    """Values of a column for JSON: names for codes, null for what is not known."""
    listed: list[Any] = values.tolist()
    if name == "kind":
        return [EXCHANGE_KINDS[code] for code in listed]
    if name == "asked":
        return [_SIDES[code] for code in listed]
    if name.endswith("_ns") and name not in {"question_ns", "acknowledged_ns", "answered_ns"}:
        return [None if value == -1 else value for value in listed]
    return listed


def _pieces(capture: Capture) -> Iterator[dict[str, Column]]:
    for start in range(0, max(len(capture.exchanges()), 1), _BATCH):
        yield _columns(capture, slice(start, start + _BATCH))


def _columns(capture: Capture, rows: slice) -> dict[str, Column]:
    found, connections = capture.exchanges(), capture.connection_columns()
    number = found.connection[rows]
    columns: dict[str, Column] = {"connection": number}
    for side in _SIDES:
        columns[f"{side}_address"] = address_texts(connections[f"{side}_address"][number])
        columns[f"{side}_port"] = connections[f"{side}_port"][number]
    for name in EXCHANGE_COLUMNS[1:]:
        values = getattr(found, name)[rows]
        if name == "kind":
            columns[name] = categories(values, EXCHANGE_KINDS)
        elif name == "asked":
            columns[name] = categories(values, _SIDES)
        else:
            columns[name] = Nullable(values.copy(), values < 0) if name in _MAY_BE_UNKNOWN else values
    return columns
