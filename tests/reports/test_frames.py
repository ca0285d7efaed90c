from __future__ import annotations

import io
import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pandas as pd
import pytest

from pepscope.results import Kind
from reports.errors import ReportError
from reports.frames import evidence_frame, evidence_path, write_csv, write_parquet
from reports.junit import write_junit
from tests.reports.results_made_by_hand import make_pair, make_result

RESULT = make_result(
    make_pair(Kind.SPLIT_TCP), make_pair(Kind.REGULAR, captures=("a,b.pcap",)), make_pair(Kind.INCONCLUSIVE)
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


def test_parquet_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.parquet"
    write_parquet(RESULT, path)
    assert list(pd.read_parquet(path)["verdict"]) == ["split-tcp", "regular", "inconclusive"]
    assert len(pd.read_parquet(evidence_path(path))) == 6


def test_missing_pyarrow_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ReportError, match="pip install pyarrow"):
        write_parquet(RESULT, tmp_path / "verdicts.parquet")


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    for write in (write_csv, write_junit):
        with pytest.raises(ReportError, match=r"^\S+ cannot be written: .*\.$"):
            write(RESULT, tmp_path / "missing" / "file")


def test_junit_fails_splits_and_skips_what_is_open(tmp_path: Path) -> None:
    result = make_result(*RESULT.pairs, make_pair(Kind.TCP_PROXY, reason='<&"\x1b'), warnings=("Cut.",))
    write_junit(result, tmp_path / "junit.xml")
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("skipped")) == ("4", "2", "1")
    cases = suites.findall("testsuite/testcase")
    assert [[child.tag for child in case] for case in cases] == [["failure"], [], ["skipped"], ["failure"]]
    assert cases[3][0].get("message") == '<&"?'
    assert suites.findtext("testsuite/system-err") == "mobile.pcap: Cut."
