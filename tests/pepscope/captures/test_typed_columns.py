"""Arrow tables made without pandas hold what Arrow makes of the pandas frame, and no command needs pandas for them."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.captures.tables.typed_columns import Column, Nullable, arrow_table, categories, frame
from tests.detector.corpus import CORPUS

CAPTURE = CORPUS / "reg_bidir.srv.pcap.gz"

KINDS = ("fin", "reset", "open")
INTEGERS = st.integers(-(2**63), 2**63 - 1)
ROW = st.tuples(
    INTEGERS, st.booleans(), st.booleans(), st.integers(0, 2**32 - 1), st.floats(), st.integers(0, 2),
    st.ip_addresses().map(str),
)  # fmt: skip


def typed(rows: list[tuple[int, bool, bool, int, float, int, str]]) -> dict[str, Column]:
    """A column of each kind."""
    whole, missing, flags, small, real, codes, texts = zip(*rows, strict=True) if rows else [()] * 7
    return {
        "whole": np.array(whole, np.int64),
        "nullable": Nullable(np.array(whole, np.int64), np.array(missing, np.bool_)),
        "flags": np.array(flags, np.bool_),
        "small": np.array(small, np.uint32),
        "real": np.array(real, np.float64),
        "kind": categories(np.array(codes, np.int64), KINDS),
        "texts": np.array(texts, object),
    }


@given(st.lists(ROW, max_size=70))
def test_tables_equal_what_arrow_makes_of_the_frame(rows: list[tuple[int, bool, bool, int, float, int, str]]) -> None:
    columns = typed(rows)
    made, expected = arrow_table(columns), pa.Table.from_pandas(frame(columns), preserve_index=False)
    made.validate(full=True)
    # Of no texts pandas does not see that they are texts.
    compared = range(len(columns) if rows else len(columns) - 1)
    assert made.schema.remove_metadata().names == expected.schema.names
    for place in compared:
        assert made.field(place).type == expected.field(place).type
        assert made.column(place).to_pylist().__repr__() == expected.column(place).to_pylist().__repr__()
    described, as_expected = (json.loads(each.schema.metadata[b"pandas"]) for each in (made, expected))
    if rows:
        assert described == {key: value for key, value in as_expected.items() if key != "pandas_version"}


def test_pandas_reads_the_same_frame_back() -> None:
    columns = typed([(3, False, True, 7, 0.5, 2, "10.0.0.1"), (-1, True, False, 0, float("nan"), 0, "2001:db8::1")])
    stored = BytesIO()
    pq.write_table(arrow_table(columns), stored)
    pd.testing.assert_frame_equal(pd.read_parquet(stored), frame(columns))


@pytest.mark.parametrize("options", [(), ("--exchanges",)], ids=["connections", "exchanges"])
def test_inspect_writes_parquet_without_pandas(options: tuple[str, ...], tmp_path: Path) -> None:
    program = (
        "import sys; from pepscope.cli import main\nsys.argv[0] = 'pepscope'\ntry: main()\nfinally: print(*sys.modules)"
    )
    command = [sys.executable, "-c", program, "inspect", *options, "--parquet", str(tmp_path / "rows.parquet")]
    done = subprocess.run([*command, str(CAPTURE)], stdout=subprocess.PIPE, check=True, text=True)
    modules = {*done.stdout.split()}
    assert "pyarrow.parquet" in modules
    assert "pandas" not in modules
