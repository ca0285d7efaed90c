"""The matrix on the terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest

from pepscope.results.audits import AuditResult
from pepscope.results.verdicts import Mechanism, Verdict
from reports.audit.table import when, write_audit_table
from reports.wording import CELL_SENTENCES, cell_sentence
from tests.reports.audits_made_by_hand import CDMA_I, DOWN, make_audit, make_run


def written(result: AuditResult, *, colour: bool = False, width: int = 80) -> str:
    stream = StringIO()
    write_audit_table(result, stream, colour, width=width)
    return stream.getvalue()


def test_the_matrix_has_a_line_an_application() -> None:
    lines = written(make_audit()).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("APPLICATION"))
    rows = [line.split() for line in lines[start + 1 : start + 6]]
    assert rows[0] == ["FTP", "split-tcp", "96", "%", "split-tcp", "96", "%"]
    assert rows[2] == ["HTTP", "image", "tcp-proxy", "98", "%", "-"]
    assert rows[4][-3:] == ["regular", "98", "%"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_the_width_and_name_what_is_missing(width: int) -> None:
    text = written(make_audit(), width=width)
    assert max(map(len, text.splitlines())) <= max(width, 66)
    assert "delayed acknowledgements (6 measurements)" in text
    assert "\x1b" not in text
    assert "\x1b[" in written(make_audit(), colour=True)


def test_changes_are_listed_with_their_days() -> None:
    before = {**CDMA_I, ("http-data", DOWN): Verdict.TCP_PROXY}
    text = " ".join(written(make_audit(before, CDMA_I, CDMA_I)).split())
    assert "3 runs since 2026-09-21 14:13 UTC: 1 verdict changed" in text
    assert "tcp-proxy until 2026-09-21 14:13 UTC, split-tcp from 2026-09-22 14:13 UTC" in text
    assert "HTTP data, download: split-tcp, 96 %, 2 connections, since 2026-09-22 14:13 UTC" in text
    assert "no verdict changed" in written(make_audit(CDMA_I, CDMA_I))


def test_archives_cannot_steer_the_terminal() -> None:
    run = replace(make_run(), server="\x1b[2J", warnings=("\x1b]0;x\x07",))
    assert "\x1b" not in written(AuditResult((run,)))


def test_warnings_come_after_the_matrix() -> None:
    lines = written(AuditResult((replace(make_run(), warnings=("the path broke",) * 3),))).splitlines()
    matrix = next(place for place, line in enumerate(lines) if line.startswith("APPLICATION"))
    first = next(place for place, line in enumerate(lines) if "warning: the path broke" in line)
    assert first > matrix + 5
    assert "  3 warnings, below" in lines[:matrix]


def test_a_time_beyond_calendars_is_no_error() -> None:
    assert when(1 << 63) != ""
    assert when(0) == "1970-01-01 00:00 UTC"


def test_how_sure_the_split_is_and_how_sure_its_kind():
    run = make_run({("ftp", DOWN): Verdict.SPLIT_TCP})
    unsure = replace(
        run.cells[0], probability={Verdict.REGULAR: 0.001, Verdict.SPLIT_TCP: 0.667, Verdict.TCP_PROXY: 0.332}
    )
    assert "split >99 %, of this kind 67 %" in written(AuditResult((replace(run, cells=(unsure,)),)))


def test_a_split_has_its_mechanism_and_first_byte() -> None:
    (first, *rest) = make_run().cells
    local = replace(first, mechanism=Mechanism.LOCAL_ACKNOWLEDGEMENT, from_bytes=100_000)
    text = " ".join(written(AuditResult((replace(make_run(), cells=(local, *rest)),)), width=200).split())
    assert "FTP, download: split-tcp (local acknowledgement, from 100 kB on), 96 %" in text
    undecided = replace(first, mechanism=Mechanism.UNDECIDED)
    assert "undecided" not in written(AuditResult((replace(make_run(), cells=(undecided, *rest)),)))
    assert "sender's control loop ends there" in cell_sentence(local)
    assert cell_sentence(undecided).endswith("Mechanism: undecided.")
    assert cell_sentence(first) == CELL_SENTENCES[first.verdict]


def test_programs_read_how_a_split_works() -> None:
    (first, *_) = make_run().cells
    cells = (replace(first, mechanism=Mechanism.CACHE, from_bytes=5), first)
    result = AuditResult((replace(make_run(), cells=cells),))
    reported = [(cell["mechanism"], cell["from_bytes"]) for cell in result.to_dict()["runs"][0]["cells"]]
    assert reported == [("cache", 5), (None, None)]
    assert list(result.to_frame()["mechanism"].fillna("")) == ["cache", ""]
