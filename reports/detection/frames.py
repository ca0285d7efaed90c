"""Verdicts, their evidence and groups as CSV or Parquet files, written some thousand connections at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from pepscope.extras import needed
from pepscope.results.encoding.pairs import packets_document
from pepscope.results.encoding.pieces import PIECE_COLUMNS, piece_rows
from pepscope.results.evidence.reading import EvidenceReader
from pepscope.results.frames import detection_batches, detection_frames
from pepscope.results.pair_table import PairTable
from pepscope.whole_file import STANDARD_OUTPUT, output_file
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

    return pd.DataFrame(next(_evidence_columns(result, max(len(result.pairs), 1))))


def _evidence_columns(result: DetectionResult, rows: int) -> Iterator[dict[str, list[Any]]]:
    """The columns of `evidence_frame` for so many connections at a time; at least once, where they may be empty."""
    table = PairTable.of(result.pairs)
    reader = EvidenceReader(table.columns.evidence, piece_rows)
    for start in range(0, max(len(table), 1), rows):
        chosen = table.rows[start : start + rows]
        found = [reader.on(row) for row in chosen]
        columns = list(zip(*chain.from_iterable(found), strict=True)) or [()] * len(PIECE_COLUMNS)
        yield {
            "pair": [place for place, each in enumerate(found, start) for _ in each],
            **dict(zip(PIECE_COLUMNS, map(list, columns), strict=True)),
            "packets": [
                text
                for row, each in zip(chosen, found, strict=True)
                for text in _packets(table.packets_of_row(row), len(each))
            ],
        }


def _packets(packets: PairPackets | None, count: int) -> list[str]:
    """The packets that show each finding on a pair as JSON texts, as in `detect-2`: `null` if none were looked for."""
    if packets is None:
        return ["null"] * count
    return [json.dumps(packets_document(shown)["packets"]) for shown in packets.evidence]


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

    Returns what was written beside the file.
    """
    if not isinstance(destination, (str, Path)):
        _write_rows(result, destination)
        return ()
    import pandas as pd

    try:
        if str(destination) == STANDARD_OUTPUT:
            with output_file(destination) as stream:
                _write_rows(result, stream)
            return ()
        with _files(destination) as (table, evidence, groups, hosts):
            _write_rows(result, table)
            result.groups_frame().to_csv(groups)
            result.hosts_frame().to_csv(hosts, index=False)
            for number, columns in enumerate(_evidence_columns(result, _ROWS)):
                pd.DataFrame(columns).to_csv(evidence, index=False, header=number == 0)
    except OSError as error:
        raise cannot_write(destination, error) from error
    return _files_beside(destination)


def _write_rows(result: DetectionResult, destination: TextIO | IO[bytes]) -> None:
    for number, frame in enumerate(detection_frames(result, _ROWS)):
        frame.to_csv(destination, header=number == 0)


def write_parquet(result: DetectionResult, path: str | Path) -> tuple[Path, ...]:
    """Write `to_frame()` to `path`, evidence, groups and hosts next to it, as Parquet in row groups; needs pyarrow.

    Returns what was written beside `path`: nothing where it is `-`, standard output.
    """
    with needed("parquet"):
        import pyarrow.parquet as pq
    try:
        if str(path) == STANDARD_OUTPUT:
            with output_file(path) as stream:
                _write_batches(stream, _pair_batches(result))
            return ()
        with _files(path) as (table, evidence, groups, hosts):
            for stream, frame in ((groups, result.groups_frame()), (hosts, result.hosts_frame())):
                pq.write_table(_arrow_table(frame), stream)
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


def _arrow_table(frame: pd.DataFrame) -> pa.Table:
    """A table with the types of its columns, which a column without a value does not show."""
    import pyarrow as pa

    kinds = {"float64": pa.float64(), "int64": pa.int64(), "Int64": pa.int64()}
    schema = pa.schema([(str(name), kinds.get(str(kind), pa.string())) for name, kind in frame.dtypes.items()])
    return pa.Table.from_pandas(frame, schema=schema)


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
