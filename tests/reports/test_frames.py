from __future__ import annotations

import io
import json
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from pyarrow import parquet

from pepscope.errors import MissingPackageError
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import DetectionResult, Verdict
from reports.detection import frames
from reports.detection.frames import evidence_frame, evidence_path, write_csv, write_parquet
from reports.detection.junit import write_junit
from reports.errors import ReportError
from tests.reports.results_made_by_hand import make_pair, make_result

RESULT = make_result(
    make_pair(Verdict.SPLIT_TCP), make_pair(Verdict.REGULAR, captures=("a,b.pcap",)), make_pair(Verdict.INCONCLUSIVE)
)


def test_evidence_belongs_to_its_row() -> None:
    frame = evidence_frame(RESULT)
    assert list(frame["pair"]) == [0, 0, 1, 1, 2, 2]
    assert json.loads(frame["numbers"][0])["segments"] == 1998
    assert frame["outcome"][2] == "intact"


def test_csv_goes_to_a_stream_or_to_two_files(tmp_path: Path) -> None:
    stream = io.StringIO()
    write_csv(RESULT, stream)
    rows = pd.read_csv(io.StringIO(stream.getvalue()))
    assert list(rows["verdict"]) == ["split-tcp", "regular", "inconclusive"]
    assert rows["capture_a"][1] == "a,b.pcap"
    write_csv(RESULT, tmp_path / "verdicts.csv")
    assert (tmp_path / "verdicts.csv").read_text() == stream.getvalue()
    assert len(pd.read_csv(tmp_path / "verdicts.evidence.csv")) == 6


def test_csv_is_what_pandas_writes_of_the_frames(tmp_path: Path) -> None:
    odd = make_pair(Verdict.INCONCLUSIVE, reason='Says "no", twice;\nand nothing, else.')
    result = make_result(*RESULT.pairs, replace(odd, duration_s=1e-7, started_ns=None))
    write_csv(result, tmp_path / "verdicts.csv")
    assert (tmp_path / "verdicts.csv").read_bytes() == result.to_frame().to_csv().encode()
    evidence = evidence_path(tmp_path / "verdicts.csv")
    assert evidence.read_bytes() == evidence_frame(result).to_csv(index=False).encode()


def test_pairs_in_another_order_have_their_own_evidence() -> None:
    table = PairTable.of(RESULT.pairs).in_order([2, 0, 1])
    frame = evidence_frame(replace(RESULT, pairs=table))
    told = [[item.summary for item in pair.evidence] for pair in table]
    assert frame.groupby("pair")["summary"].apply(list).tolist() == told


def test_parquet_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.parquet"
    write_parquet(RESULT, path)
    assert list(pd.read_parquet(path)["verdict"]) == ["split-tcp", "regular", "inconclusive"]
    assert len(pd.read_parquet(evidence_path(path))) == 6


def test_parquet_has_row_groups_and_the_index_of_the_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_ROWS", 2)
    path = tmp_path / "verdicts.parquet"
    write_parquet(RESULT, path)
    assert [parquet.ParquetFile(path).metadata.row_group(number).num_rows for number in (0, 1)] == [2, 1]
    assert parquet.ParquetFile(evidence_path(path)).metadata.num_row_groups == 2
    read, frame = pd.read_parquet(path), RESULT.to_frame()
    assert (read.index.name, list(read.columns)) == ("pair", list(frame.columns))
    assert read.index.equals(frame.index)
    assert read.fillna("").to_dict() == frame.fillna("").to_dict()
    pd.testing.assert_frame_equal(pd.read_parquet(evidence_path(path)), evidence_frame(RESULT), check_dtype=False)


def test_csv_in_pieces_is_csv_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "verdicts.csv"
    write_csv(RESULT, path)
    at_once = path.read_bytes(), evidence_path(path).read_bytes()
    monkeypatch.setattr(frames, "_ROWS", 1)
    write_csv(RESULT, path)
    assert (path.read_bytes(), evidence_path(path).read_bytes()) == at_once


def test_parquet_of_nothing_has_the_columns(tmp_path: Path) -> None:
    write_parquet(make_result(), tmp_path / "verdicts.parquet")
    assert list(pd.read_parquet(tmp_path / "verdicts.parquet").columns) == list(RESULT.to_frame().columns)


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_table_and_evidence_appear_together_or_not_at_all(
    write: Callable[[DetectionResult, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Iterator[pd.DataFrame]:
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(frames, "_evidence_columns", broken)
    with pytest.raises(ReportError, match="No space left on device"):
        write(RESULT, tmp_path / "verdicts")
    assert list(tmp_path.iterdir()) == []


def test_missing_pyarrow_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'pepscope\[parquet\]'"):
        write_parquet(RESULT, tmp_path / "verdicts.parquet")


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    for write in (write_csv, write_junit):
        with pytest.raises(ReportError, match=r"^\S+ cannot be written: .*\.$"):
            write(RESULT, tmp_path / "missing" / "file")


def test_junit_fails_splits_and_skips_what_is_open(tmp_path: Path) -> None:
    result = make_result(*RESULT.pairs, make_pair(Verdict.TCP_PROXY, reason='<&"\x1b'), warnings=("Cut.",))
    write_junit(result, tmp_path / "junit.xml")
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("skipped")) == ("4", "2", "1")
    cases = suites.findall("testsuite/testcase")
    assert [[child.tag for child in case] for case in cases] == [["failure"], [], ["skipped"], ["failure"]]
    assert cases[3][0].get("message") == '<&"?'
    assert suites.findtext("testsuite/system-err") == "mobile.pcap: Cut."
