"""Connections as a pandas frame and as Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pepscope.captures.connections import CLOSES, MISSING_PACKETS, TUNNELS
from pepscope.captures.tables.addresses import address_texts
from pepscope.captures.tables.typed_columns import Column, Nullable, arrow_table, categories, frame
from pepscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pandas as pd

    from pepscope.captures.capture import Capture

#: Columns in which -1 stands for what was not seen (of a flow, behind `up_` and `down_`).
_ABSENT_WHERE_NEGATIVE = frozenset(
    {
        "handshake_syn_ack_ns",
        "handshake_ack_ns",
        "round_trip_time_min_ns",
        "round_trip_time_max_ns",
        "first_time_ns",
        "first_data_time_ns",
        "last_data_time_ns",
        "initial_sequence_number",
        "maximum_segment_size",
        "window_scale",
        "window_shift",
        "fin_time_ns",
        "reset_time_ns",
    }
)


def connection_frame(capture: Capture) -> pd.DataFrame:
    """One row a connection; what was not seen is missing (nullable integers), close and tunnel are categories."""
    return frame(_columns(capture.connection_columns()))


def csv_chunks(capture: Capture) -> Iterator[bytes]:
    """The frame as CSV in pieces, so that no capture is too large for it."""
    return frames_as_csv(frame(_columns(arrays)) for arrays in capture.connection_batches())


def frames_as_csv(frames: Iterable[pd.DataFrame]) -> Iterator[bytes]:
    """One CSV table from its pieces."""
    for number, piece in enumerate(frames):
        yield piece.to_csv(index=False, header=number == 0).encode()


def _columns(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for name, values in arrays.items():
        plain = name.removeprefix("up_").removeprefix("down_")
        if name in ("client_address", "server_address"):
            columns[name] = address_texts(values)
        elif name == "close":
            columns[name] = categories(values, CLOSES)
        elif plain == "missing_packets":
            columns[name] = categories(values, MISSING_PACKETS)
        elif name == "tunnel":
            columns[name] = categories(values, TUNNELS)
        elif plain in _ABSENT_WHERE_NEGATIVE and not (plain == name and name == "first_time_ns"):
            columns[name] = Nullable(values.astype(np.int64), values < 0)
        else:
            columns[name] = values
    return columns


def parquet_bytes(capture: Capture) -> bytes:
    """The frame as a Parquet file. Raises UsageError where pyarrow is not installed."""
    return columns_as_parquet(_columns(arrays) for arrays in capture.connection_batches())


def columns_as_parquet(pieces: Iterable[Mapping[str, Column]]) -> bytes:
    """One Parquet file from the pieces of its table. Raises UsageError where pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError("Parquet needs the package pyarrow: pip install 'pepscope[parquet]'") from error
    sink = pa.BufferOutputStream()
    writer = None
    for columns in pieces:
        table = arrow_table(columns)
        if writer is None:
            writer = pq.ParquetWriter(sink, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    content: bytes = sink.getvalue().to_pybytes()
    return content
