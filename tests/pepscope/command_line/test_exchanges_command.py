"""`pepscope inspect --exchanges` as table, JSON, CSV and Parquet."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from pepscope import _core
from pepscope.captures.capture import open_capture
from pepscope.captures.exchanges import EXCHANGE_COLUMNS, EXCHANGE_KINDS, ROUND_TRIP_COLUMNS, ExchangeKind
from pepscope.command_line.inspect import inspect
from pepscope.results.schema import load_schema

CORPUS = Path(__file__).parents[2] / "corpus"
CHAT = CORPUS / "reg_dl_par20.srv.pcap.gz"


def run(*arguments: object) -> bytes:
    done = CliRunner().invoke(inspect, ["--exchanges", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout_bytes


def test_kinds_have_one_table() -> None:
    assert tuple(kind.label for kind in ExchangeKind) == EXCHANGE_KINDS == _core.exchange_kinds()
    assert set(load_schema("inspect-1")["$defs"]["exchange"]["properties"]["kind"]["enum"]) == set(EXCHANGE_KINDS)


def test_the_table_fits_80_columns_and_has_a_line_for_each_exchange() -> None:
    lines = run(CHAT).decode().splitlines()
    assert max(map(len, lines[1:])) <= 80
    found = open_capture(str(CHAT)).exchanges()
    kinds = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in EXCHANGE_KINDS]
    assert kinds == [EXCHANGE_KINDS[code] for code in found.kind]
    assert len(kinds) >= 20


def test_json_has_a_row_for_each_exchange_and_for_each_connection_and_direction() -> None:
    document = json.loads(run("--json", CHAT))
    jsonschema.validate(document, load_schema("inspect-1"))
    found = open_capture(str(CHAT)).exchanges()
    assert [row["question_ns"] for row in document["exchanges"]] == found.question_ns.tolist()
    assert len(document["round_trips"]) == 2 * len(document["connections"])
    assert set(document["exchanges"][0]) == set(EXCHANGE_COLUMNS)
    assert set(document["round_trips"][0]) == set(ROUND_TRIP_COLUMNS)
    without = json.loads(CliRunner().invoke(inspect, ["--json", str(CHAT)]).stdout_bytes)
    assert without == {key: value for key, value in document.items() if key not in {"exchanges", "round_trips"}}


def test_csv_and_parquet_hold_the_same_rows(tmp_path: Path) -> None:
    text = pd.read_csv(io.BytesIO(run("--csv", CHAT)))
    run("--parquet", "-o", tmp_path / "exchanges.parquet", CHAT)
    table = pd.read_parquet(tmp_path / "exchanges.parquet")
    assert list(text) == list(table)
    found = open_capture(str(CHAT)).exchanges()
    for frame in (text, table):
        assert frame["answered_ns"].tolist() == found.answered_ns.tolist()
        assert frame["kind"].tolist() == [EXCHANGE_KINDS[code] for code in found.kind]
        assert frame["round_trip_ns"].isna().tolist() == (found.round_trip_ns < 0).tolist()


def test_exchanges_do_not_depend_on_the_memory_that_is_allowed() -> None:
    whole, parts = open_capture(str(CHAT)), open_capture(str(CHAT), memory_bytes=1 << 14)
    assert len({parts.partition_of(one.id) for one in parts.connections}) > 1
    one, other = whole.exchanges(), parts.exchanges()
    for name in EXCHANGE_COLUMNS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ROUND_TRIP_COLUMNS:
        assert np.array_equal(getattr(one.round_trips, name), getattr(other.round_trips, name)), name


def test_exchanges_need_packets_and_payload() -> None:
    with pytest.raises(ValueError, match="payload=True"):
        open_capture(str(CHAT), payload=False).exchanges()
    with pytest.raises(ValueError, match="columns=True"):
        open_capture(str(CHAT), columns=False).exchanges()
