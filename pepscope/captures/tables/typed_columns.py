"""Columns with what their values are, as a pandas frame and as an Arrow table: Parquet is written without pandas, whose
import takes several times as long as reading a small capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pepscope.captures.tables.arrow_bits import flag_array, validity
from pepscope.extras import needed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    import pyarrow as pa


class Categories(NamedTuple):
    """Values of a few kinds: by row the place of one of these names."""

    codes: npt.NDArray[np.int8]
    names: list[str]


class Nullable(NamedTuple):
    """Whole numbers of 64 bits, of which some are missing."""

    values: npt.NDArray[np.int64]
    is_missing: npt.NDArray[np.bool_]


#: Arrays hold numbers (NaN: missing), truths, or texts in ASCII as objects.
Column: TypeAlias = "npt.NDArray[Any] | Categories | Nullable"


def categories(codes: npt.NDArray[Any], names: Sequence[str]) -> Categories:
    """Values of a few kinds by the places of their names."""
    return Categories(codes.astype(np.int8), [str(name) for name in names])


def frame(columns: Mapping[str, Column]) -> pd.DataFrame:
    """The columns in pandas: nullable integers and categories."""
    with needed():
        import pandas as pd

    def series(column: Column) -> Any:
        if isinstance(column, Categories):
            return pd.Categorical.from_codes(column.codes, categories=pd.Index(column.names))
        return pd.arrays.IntegerArray(*column) if isinstance(column, Nullable) else column

    return pd.DataFrame({name: series(column) for name, column in columns.items()})


def arrow_table(columns: Mapping[str, Column]) -> pa.Table:
    """The table that Arrow makes of `frame`: pandas reads the same frame back from it."""
    import json

    import pyarrow as pa

    arrays = {name: _array(column) for name, column in columns.items()}
    described = {
        "index_columns": [],
        "column_indexes": [],
        "columns": [_description(name, column) for name, column in columns.items()],
        "attributes": {},
        "creator": {"library": "pyarrow", "version": pa.__version__},
    }
    table = pa.Table.from_arrays([*arrays.values()], names=[*arrays])
    return table.replace_schema_metadata({"pandas": json.dumps(described)})


def _description(name: str, column: Column) -> dict[str, Any]:
    """What a column is, as pandas reads it from Parquet (its developer guide, "Storing pandas DataFrame objects in
    Apache Parquet format")."""
    metadata: dict[str, Any] | None = None
    if isinstance(column, Categories):
        stored, kind = "categorical", "int8"
        metadata = {"num_categories": len(column.names), "ordered": False}
    elif isinstance(column, Nullable):
        stored, kind = "int64", "Int64"
    elif column.dtype == np.object_:
        stored, kind = "object", "str"
    else:
        stored = kind = column.dtype.name
    return {"name": name, "field_name": name, "pandas_type": stored, "numpy_type": kind, "metadata": metadata}


def _array(column: Column) -> pa.Array:
    """A column as Arrow has it, made of its bytes: Arrow's own conversion of lists and arrays imports pandas."""
    import pyarrow as pa

    if isinstance(column, Categories):
        return pa.DictionaryArray.from_arrays(_numbers(column.codes, None), _texts(column.names))
    if isinstance(column, Nullable):
        return _numbers(column.values, ~column.is_missing)
    if column.dtype == np.object_:
        return _texts(column.tolist())
    if column.dtype == np.bool_:
        return flag_array(column)
    return _numbers(column, ~np.isnan(column) if column.dtype.kind == "f" else None)


def _numbers(values: npt.NDArray[Any], is_known: npt.NDArray[np.bool_] | None) -> pa.Array:
    import pyarrow as pa

    buffers = [None if is_known is None else validity(is_known), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def _texts(texts: Sequence[str]) -> pa.Array:
    """Texts in ASCII, with offsets of 64 bits as pandas has them."""
    import pyarrow as pa

    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer("".join(texts).encode("ascii"))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)
