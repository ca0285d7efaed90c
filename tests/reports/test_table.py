from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from pepscope.results import pair_table
from pepscope.results.verdicts import DetectionResult, PairResult, Verdict
from reports.detection.table import shorten_endpoint, write_table
from tests.reports.results_made_by_hand import make_pair, make_result


def written(result: DetectionResult, colour: bool = False) -> str:
    stream = io.StringIO()
    write_table(result, stream, colour)
    return stream.getvalue()


def test_one_line_a_connection_within_80_columns() -> None:
    long = "[2001:db8:1234:5678:9abc:def0:1234:5678]:40001"
    text = written(make_result(make_pair(Verdict.SPLIT_TCP), make_pair(Verdict.REGULAR, client=long, server=long)))
    assert max(len(line) for line in text.splitlines()) <= 80
    line = next(line for line in text.splitlines() if "192.0.2.7:40001" in line)
    assert line.split() == ["192.0.2.7:40001", "203.0.113.9:443", "split-tcp", "96", "%", "2.5", "MB"]
    assert ":40001" in next(line for line in text.splitlines() if "2001" in line)
    assert text.isascii()


def test_split_connections_come_first_and_the_rest_is_counted() -> None:
    pairs = [make_pair(Verdict.REGULAR) for _ in range(500)]
    pairs.append(make_pair(Verdict.INCONCLUSIVE, client="192.0.2.8:1"))
    pairs.append(make_pair(Verdict.SPLIT_TCP, client="192.0.2.9:1"))
    lines = written(make_result(*pairs)).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("CLIENT"))
    assert lines[start + 1].startswith("192.0.2.9:1")
    assert lines[start + 2].startswith("192.0.2.8:1")
    assert "502 connections: 1 split-tcp, 1 inconclusive, 500 regular" in lines
    assert any(line.startswith("462 more not listed") for line in lines)


def test_lines_of_many_connections_are_made_without_views(monkeypatch: pytest.MonkeyPatch) -> None:
    result = replace(make_result(), pairs=pair_table.PairTable([make_pair(Verdict.REGULAR)] * 20_000))
    made: list[PairResult] = []

    def make(*fields: Any, **named: Any) -> PairResult:
        made.append(PairResult(*fields, **named))
        return made[-1]

    monkeypatch.setattr(pair_table, "PairResult", make)
    assert len(written(result).splitlines()) < 60
    assert not made
    assert list(result.pairs)[:1] == made[:1]  # as reading one makes it


def test_colours_only_when_asked_for() -> None:
    result = make_result(make_pair(Verdict.SPLIT_TCP), warnings=("The file is cut.",))
    plain, coloured = written(result), written(result, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31msplit-tcp" in coloured
    assert "warning: The file is cut." in plain


def test_a_hostile_name_cannot_steer_the_terminal() -> None:
    pair = make_pair(Verdict.SPLIT_TCP, captures=("a\x1b[2J\n.pcap",), reason="bad \x1b]0;title\x07 reason")
    text = written(make_result(pair))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "seen in a?[2J?.pcap only" in text


def test_no_connection_is_reported() -> None:
    assert "No TCP connection found." in written(make_result())


def test_an_endpoint_keeps_its_port() -> None:
    assert shorten_endpoint("192.0.2.1:80", 20) == "192.0.2.1:80"
    short = shorten_endpoint("[2001:db8:1234:5678:9abc:def0:1234:5678]:40001", 21)
    assert len(short) == 21
    assert short.startswith("[2001:")
    assert short.endswith("]:40001")
