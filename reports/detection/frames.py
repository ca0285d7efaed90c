"""Verdicts, their evidence and groups as CSV or Parquet files, written some thousand connections at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

import numpy as np
import numpy.typing as npt

from pepscope.extras import needed
from pepscope.results.arrow import number_array, text_array
from pepscope.results.encoding.comma_separated import write_rows
from pepscope.results.encoding.evidence_rows import evidence_columns
from pepscope.results.encoding.packet_texts import packets_in_ascii
from pepscope.results.evidence.growing import Coded, row_numbers
from pepscope.results.evidence.named import shown_on
from pepscope.results.frames import (
    Column,
    arrow_table,
    detection_batches,
    detection_columns,
    group_columns,
    host_columns,
    listed,
)
from pepscope.results.pair_table import PairTable
from pepscope.whole_file import is_stream, output_file
from reports.errors import cannot_write

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from pepscope.results.evidence.named import PairPackets
    from pepscope.results.verdicts import DetectionResult

#: Connections of a row group, with their evidence: some ten megabytes while they are written.
_ROWS = 8192


def evidence_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a piece of evidence; `pair` is the row of `result.to_frame()` that it belongs to.

    `numbers` is the JSON text of the figures behind it, `caveats` the caveats joined by `; `, `packets` the JSON text
    of the packets that show it.
    """
    import pandas as pd

    return pd.DataFrame(listed(next(_evidence_columns(result, max(len(result.pairs), 1)))))


def _evidence_columns(result: DetectionResult, rows: int) -> Iterator[dict[str, Column]]:
    """The columns of `evidence_frame` for so many connections at a time; at least once, where they may be empty."""
    table = PairTable.of(result.pairs)
    for start in range(0, max(len(table), 1), rows):
        chosen = row_numbers(table.rows[start : start + rows])
        counts, pieces = evidence_columns(table.columns.evidence, chosen)
        shown = _packets(table.packets_of_rows(chosen), counts)
        yield {"pair": np.repeat(start + np.arange(len(chosen)), counts), **pieces, "packets": shown}


def _packets(packets: Mapping[int, PairPackets], counts: npt.NDArray[np.int64]) -> Coded[str]:
    """The packets that show each finding on pairs with so many findings as JSON texts, as in `detect-2`: `null` where
    none were looked for."""
    codes, shown = shown_on(packets, np.cumsum(counts) - counts, int(counts.sum()))
    return Coded(codes, packets_in_ascii(shown))


def evidence_path(path: str | Path) -> Path:
    """Where the evidence goes that belongs to the table at `path`: `verdicts.csv` gets `verdicts.evidence.csv`."""
    return _beside(path, "evidence")


def groups_path(path: str | Path) -> Path:
    """Where the groups go that belong to the table at `path`: `verdicts.csv` gets `verdicts.groups.csv`."""
    return _beside(path, "groups")


def hosts_path(path: str | Path) -> Path:
    """Where the far hosts of the groups go: `verdicts.csv` gets `verdicts.hosts.csv`."""
    return _beside(path, "hosts")


def _beside(path: str | Path, part: str) -> Path:
    target = Path(path)
    return target.with_name(f"{target.stem}.{part}{target.suffix}")


def write_csv(result: DetectionResult, destination: str | Path | TextIO) -> tuple[Path, ...]:
    """Write `to_frame()` as CSV to a stream or a file; next to a file go evidence, groups and hosts (`_beside`).

    Returns what was written beside the file: nothing beside standard output, a device or a pipe.
    """
    if not isinstance(destination, (str, Path)):
        write_rows(destination, _pair_rows(result))
        return ()
    try:
        if is_stream(destination):
            with output_file(destination) as stream:
                write_rows(stream, _pair_rows(result))
            return ()
        with _files(destination) as (table, evidence, groups, hosts):
            write_rows(table, _pair_rows(result))
            of_groups = group_columns(result)
            write_rows(groups, [{"group": range(len(of_groups["port"])), **of_groups}])
            write_rows(hosts, [host_columns(result)])
            write_rows(evidence, _evidence_columns(result, _ROWS))
    except OSError as error:
        raise cannot_write(destination, error) from error
    return _files_beside(destination)


def _pair_rows(result: DetectionResult) -> Iterator[dict[str, Column]]:
    for start, columns in detection_columns(result, _ROWS):
        yield {"pair": range(start, start + len(columns["verdict"])), **columns}


def write_parquet(result: DetectionResult, path: str | Path) -> tuple[Path, ...]:
    """Write `to_frame()` to `path`, evidence, groups and hosts next to it, as Parquet in row groups; needs pyarrow.

    Returns what was written beside `path`: nothing beside standard output (`-`), a device or a pipe.
    """
    with needed("parquet"):
        import pyarrow.parquet as pq
    try:
        if is_stream(path):
            with output_file(path) as stream:
                _write_batches(stream, _pair_batches(result))
            return ()
        with _files(path) as (table, evidence, groups, hosts):
            of_groups, of_hosts = arrow_table(group_columns(result)), arrow_table(host_columns(result))
            pq.write_table(_with_index(of_groups, _NULLABLE), groups)
            pq.write_table(_with_index(of_hosts), hosts)
            _write_batches(table, _pair_batches(result))
            _write_batches(evidence, _evidence_batches(result))
    except OSError as error:
        raise cannot_write(path, error) from error
    return _files_beside(path)


def _write_batches(stream: IO[bytes], batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow.parquet as pq

    first = next(batches)
    with pq.ParquetWriter(stream, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


@contextmanager
def _files(path: str | Path) -> Iterator[tuple[IO[bytes], ...]]:
    """The files of the table, of its evidence, groups and hosts; they appear together, when all are whole."""
    with ExitStack() as whole:
        yield tuple(whole.enter_context(output_file(each)) for each in (path, *_files_beside(path)))


def _files_beside(path: str | Path) -> tuple[Path, ...]:
    return evidence_path(path), groups_path(path), hosts_path(path)


def _with_index(table: pa.Table, columns: Sequence[dict[str, str | None]] = ()) -> pa.Table:
    """A table from which pandas reads a frame back with its rows counted."""
    return table.replace_schema_metadata(_index_metadata(None, len(table), columns))


#: Where exchanges are not known of all groups, pandas is to read whole numbers back all the same.
_NULLABLE = [
    {"name": "exchanges", "field_name": "exchanges", "pandas_type": "int64", "numpy_type": "Int64", "metadata": None}
]


def _pair_batches(result: DetectionResult) -> Iterator[pa.RecordBatch]:
    for batch in detection_batches(result, _ROWS):
        yield batch.replace_schema_metadata(_index_metadata("pair", len(result.pairs)))


def _index_metadata(name: str | None, rows: int, columns: Sequence[dict[str, str | None]] = ()) -> dict[str, str]:
    """What gives the frame that pandas reads back the index of its table, and `columns` their types."""
    index = {"kind": "range", "name": name, "start": 0, "stop": rows, "step": 1}
    return {"pandas": json.dumps({"index_columns": [index], "column_indexes": [], "columns": list(columns)})}


def _evidence_batches(result: DetectionResult) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    kinds = {"pair": pa.int64(), "strength": pa.float64()}
    for columns in _evidence_columns(result, _ROWS):
        arrays = [
            number_array(values, kinds[name]) if name in kinds else text_array(values)
            for name, values in columns.items()
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))
