"""Detections as pandas frames and as Arrow tables, whole or so many rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pepscope.captures.tables.arrow_bits import flag_array
from pepscope.captures.tables.texts import KnownTexts, SlicedTexts, times
from pepscope.errors import UsageError
from pepscope.extras import needed
from pepscope.results.arrow import number_array, text_array
from pepscope.results.encoding.detections import group_document, host_document
from pepscope.results.evidence.growing import Coded, row_numbers
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED, UNKNOWN_TIME, VantageColumns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from pepscope.results.verdicts import DetectionResult, GroupResult, HostResult

Column: TypeAlias = Sequence[Any] | npt.NDArray[Any]

_WHOLE_NUMBERS = ("packets", "payload_bytes_up", "payload_bytes_down")
_NUMBERS = ("probability_regular", "probability_split_tcp", "probability_tcp_proxy", "duration_s")

_GROUP_COLUMNS = (
    "side",
    "network",
    "port",
    "asks_proxy",
    "hosts",
    "connections",
    "exchanges",
    "verdict",
    "probability_regular",
    "probability_split_tcp",
    "probability_tcp_proxy",
    "mechanism",
    "where",
    "near_round_trip_s",
    "hidden_round_trip_s",
    "hidden_round_trip_low_s",
    "hidden_round_trip_high_s",
    "reason",
)
#: Whole numbers.
_COUNTS = frozenset({"group", "port", "connections", "exchanges"})
_FLAGS = frozenset({"asks_proxy"})

_HOST_COLUMNS = (
    "group",
    "host",
    "connections",
    "exchanges",
    "verdict",
    "probability_regular",
    "probability_split_tcp",
    "probability_tcp_proxy",
    "where",
    "near_round_trip_s",
    "hidden_round_trip_s",
    "hidden_round_trip_low_s",
    "hidden_round_trip_high_s",
    "reference_round_trip_s",
)


def unicode_name(path: str) -> str:
    """The name of a file as tables take it: neither pandas nor Arrow has texts that are no Unicode."""
    return path.encode("utf-8", "replace").decode("utf-8")


def _columns(result: DetectionResult, table: PairTable, places: slice) -> Iterator[tuple[str, Column]]:
    """The columns of `detection_frame` with their names, for some of the pairs; None where there is no vantage."""
    columns, at = table.columns, row_numbers(table.rows[places])
    digests = {capture.path: capture.sha256 for capture in result.captures}
    for letter, vantage in zip("ab", columns.vantages, strict=True):
        yield from _vantage_columns(vantage, letter, at)
        codes, paths = vantage.capture.coded(at)
        yield f"sha256_{letter}", Coded(codes, [digests.get(path) if path else None for path in paths])
    codes, verdicts = columns.verdict.coded(at)
    yield "verdict", Coded(codes, [verdict.value for verdict in verdicts])
    codes, kinds = columns.mechanism.coded(at)
    yield "mechanism", Coded(codes, [None if kind is None else kind.value for kind in kinds])
    for kind, probability in zip(JUDGED, columns.probability, strict=True):
        yield f"probability_{kind.name.lower()}", np.nan_to_num(np.asarray(probability)[at], nan=0.0)
    yield "packets", np.asarray(columns.packets)[at]
    for name, size in zip(("up", "down"), columns.payload_bytes, strict=True):
        yield f"payload_bytes_{name}", np.asarray(size)[at]
    started_ns = np.asarray(columns.started_ns)[at]
    yield "started", _known(times(started_ns), started_ns != UNKNOWN_TIME)
    yield "duration_s", np.asarray(columns.duration_s)[at]
    yield "reason", columns.reasons(at)
    tool, same = result.tool, np.zeros(len(at), np.uint32)
    yield "version", Coded(same, [None if tool is None else tool.version])
    yield "options", Coded(same, [None if tool is None else json.dumps(dict(tool.options))])


def _vantage_columns(vantage: VantageColumns, letter: str, rows: npt.NDArray[np.int64]) -> Iterator[tuple[str, Column]]:
    codes, names = vantage.capture.coded(rows)
    yield f"capture_{letter}", Coded(codes, [name and unicode_name(name) for name in names])
    seen = codes != vantage.capture.code(None)
    for name, column in (("client", vantage.client), ("server", vantage.server)):
        yield f"{name}_{letter}", _known(column.sliced(rows), seen)
    codes, transports = vantage.transport.coded(rows)  # that of no vantage point is an empty text
    yield f"transport_{letter}", Coded(codes, [text or None for text in transports])


def _known(texts: SlicedTexts, is_known: npt.NDArray[np.bool_]) -> Column:
    return texts if is_known.all() else KnownTexts(texts, is_known)


def detection_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a pair; the columns of the second vantage are missing values where only one capture holds it."""
    return next(detection_frames(result, max(len(result.pairs), 1)))


def detection_frames(result: DetectionResult, rows: int) -> Iterator[pd.DataFrame]:
    """`detection_frame` in pieces of so many rows; at least one, which may be empty."""
    with needed():
        import pandas as pd

    for start, columns in detection_columns(result, rows):
        frame = pd.DataFrame(listed(columns))
        yield frame.set_axis(pd.RangeIndex(start, start + len(frame), name="pair"))


def listed(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Columns as pandas takes them: arrays, and lists of what else they hold."""
    return {name: values if isinstance(values, np.ndarray) else [*values] for name, values in columns.items()}


def detection_table(result: DetectionResult) -> pa.Table:
    """`detection_frame` as an Arrow table. Raises UsageError where pyarrow is not installed."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise UsageError("Arrow tables need the package pyarrow: pip install 'pepscope[parquet]'") from error
    return pa.Table.from_batches(detection_batches(result, max(len(result.pairs), 1)))


def detection_batches(result: DetectionResult, rows: int) -> Iterator[pa.RecordBatch]:
    """`detection_table` in batches of so many rows; at least one, which may be empty."""
    import pyarrow as pa

    kinds = dict.fromkeys(_WHOLE_NUMBERS, pa.int64()) | dict.fromkeys(_NUMBERS, pa.float64())
    for _, columns in detection_columns(result, rows):
        arrays = [
            number_array(values, kinds[name]) if name in kinds else text_array(values)
            for name, values in columns.items()
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def detection_columns(result: DetectionResult, rows: int) -> Iterator[tuple[int, dict[str, Column]]]:
    """`detection_frame` as columns by name, so many rows at a time (at least once), each time with the first row."""
    table = PairTable.of(result.pairs)
    for start in range(0, max(len(table), 1), rows):
        yield start, dict(_columns(result, table, slice(start, start + rows)))


def groups_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a group; what is not known is missing. `hosts` are addresses with spaces between."""
    return _group_frame(group_columns(result)).rename_axis("group")


def groups_table(result: DetectionResult) -> pa.Table:
    """`groups_frame` as an Arrow table, with the row's number in `group`."""
    columns = group_columns(result)
    return arrow_table({"group": range(len(columns["port"])), **columns})


def hosts_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a far host of a group; `group` is the group's row in `groups_frame`."""
    return _group_frame(host_columns(result)).rename_axis("row")


def group_columns(result: DetectionResult) -> dict[str, list[Any]]:
    """The columns of `groups_frame`; None for what is not known."""
    rows = list(_group_rows(result))
    return {name: [row[name] for row in rows] for name in _GROUP_COLUMNS}


def host_columns(result: DetectionResult) -> dict[str, list[Any]]:
    """The columns of `hosts_frame`; None for what is not known."""
    rows = [
        _group_row(host, host_document(host)) | {"group": number}
        for number, group in enumerate(result.groups)
        for host in group.by_host
    ]
    return {name: [row[name] for row in rows] for name in _HOST_COLUMNS}


def arrow_table(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Columns of groups or hosts as an Arrow table."""
    import pyarrow as pa

    def array(name: str, values: Sequence[Any]) -> pa.Array:
        if name in _COUNTS:
            return number_array(values, pa.int64())
        if name in _FLAGS:
            return flag_array(values)
        return number_array(values, pa.float64()) if _is_real(name) else text_array(values)

    return pa.Table.from_arrays([*map(array, columns, columns.values())], names=list(columns))


def _group_rows(result: DetectionResult) -> Iterator[dict[str, Any]]:
    for group in result.groups:
        yield _group_row(group, group_document(group)) | {"hosts": " ".join(group.hosts)}


def _group_row(judged: GroupResult | HostResult, document: dict[str, Any]) -> dict[str, Any]:
    """The plain values of a document, with probabilities and the interval as columns of their own."""
    low, high = judged.hidden_round_trip_interval_s or (None, None)
    return {
        **document,
        **{f"probability_{kind.name.lower()}": float(judged.probability.get(kind, 0.0)) for kind in JUDGED},
        "hidden_round_trip_low_s": low,
        "hidden_round_trip_high_s": high,
    }


def _group_frame(columns: dict[str, list[Any]]) -> pd.DataFrame:
    with needed():
        import pandas as pd

    def kind(name: str) -> str:
        if _is_real(name):
            return "float64"
        if name in _FLAGS:
            return "bool"
        # Of what two captures show no exchanges are known.
        return ("Int64" if name == "exchanges" and "hosts" in columns else "int64") if name in _COUNTS else "object"

    return pd.DataFrame(columns, columns=list(columns)).astype({name: kind(name) for name in columns})


def _is_real(name: str) -> bool:
    return name.endswith("_s") or name.startswith("probability")
