"""Verdicts and their evidence as CSV or Parquet files, written some thousand connections at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from pepscope.results.frames import detection_batches, detection_frames
from pepscope.whole_file import output_file
from reports.errors import ReportError, cannot_write

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from pepscope.results.verdicts import DetectionResult

#: Connections of a row group, with their evidence: some ten megabytes while they are written.
_ROWS = 8192


def evidence_frame(result: DetectionResult) -> pd.DataFrame:
    """One row a piece of evidence; `pair` is the row of `result.to_frame()` that it belongs to.

    `numbers` is the JSON text of the figures behind it, `caveats` the caveats joined by `; `.
    """
    import pandas as pd

    return pd.DataFrame(next(_evidence_columns(result, max(len(result.pairs), 1))))


def _evidence_columns(result: DetectionResult, rows: int) -> Iterator[dict[str, list[Any]]]:
    """The columns of `evidence_frame` for so many connections at a time; at least once, where they may be empty."""
    pairs = enumerate(result.pairs)
    for _ in range(0, max(len(result.pairs), 1), rows):
        items = [(index, item) for index, pair in islice(pairs, rows) for item in pair.evidence]
        yield {
            "pair": [index for index, _ in items],
            "method": [item.method for _, item in items],
            "outcome": [item.outcome.value for _, item in items],
            "finding": [str(item.finding) for _, item in items],
            "strength": [item.strength for _, item in items],
            "summary": [item.summary for _, item in items],
            "numbers": [json.dumps(dict(item.numbers)) for _, item in items],
            "caveats": ["; ".join(item.caveats) for _, item in items],
        }


def evidence_path(path: str | Path) -> Path:
    """Where the evidence goes that belongs to the table at `path`: `verdicts.csv` gets `verdicts.evidence.csv`."""
    target = Path(path)
    return target.with_name(f"{target.stem}.evidence{target.suffix}")


def write_csv(result: DetectionResult, destination: str | Path | TextIO) -> None:
    """Write `to_frame()` as CSV to a stream or a file; next to a file goes `evidence_frame` (see `evidence_path`)."""
    if not isinstance(destination, (str, Path)):
        _write_rows(result, destination)
        return
    import pandas as pd

    try:
        with _both_files(destination) as (table, evidence):
            _write_rows(result, table)
            for number, columns in enumerate(_evidence_columns(result, _ROWS)):
                pd.DataFrame(columns).to_csv(evidence, index=False, header=number == 0)
    except OSError as error:
        raise cannot_write(destination, error) from error


def _write_rows(result: DetectionResult, destination: TextIO | IO[bytes]) -> None:
    for number, frame in enumerate(detection_frames(result, _ROWS)):
        frame.to_csv(destination, header=number == 0)


def write_parquet(result: DetectionResult, path: str | Path) -> None:
    """Write `to_frame()` to `path` and `evidence_frame` next to it, as Parquet in row groups; needs pyarrow."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ReportError(
            "Parquet output needs the package pyarrow, which is not installed: run 'pip install pyarrow' or use --csv."
        ) from error
    try:
        with _both_files(path) as (table, evidence):
            for stream, batches in ((table, _pair_batches(result)), (evidence, _evidence_batches(result))):
                first = next(batches)
                with pq.ParquetWriter(stream, first.schema) as writer:
                    writer.write_batch(first)
                    for batch in batches:
                        writer.write_batch(batch)
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def _both_files(path: str | Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The table's file and its evidence's; they appear together, when both are whole."""
    with output_file(path) as table, output_file(evidence_path(path)) as evidence:
        yield table, evidence


def _pair_batches(result: DetectionResult) -> Iterator[pa.RecordBatch]:
    for batch in detection_batches(result, _ROWS):
        yield batch.replace_schema_metadata(_index_metadata(len(result.pairs)))


def _index_metadata(pairs: int) -> dict[str, str]:
    """What gives the frame that pandas reads back the index of `to_frame`."""
    index = {"kind": "range", "name": "pair", "start": 0, "stop": pairs, "step": 1}
    return {"pandas": json.dumps({"index_columns": [index], "column_indexes": [], "columns": []})}


def _evidence_batches(result: DetectionResult) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    kinds = {"pair": pa.int64(), "strength": pa.float64()}
    for columns in _evidence_columns(result, _ROWS):
        arrays = {name: pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()}
        yield pa.RecordBatch.from_pydict(arrays)
