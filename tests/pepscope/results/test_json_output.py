"""JSON and JSON Lines: one content in two shapes, written piece by piece."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given

from pepscope.captures.provenance import Tool
from pepscope.results.encoding import detections as encode
from pepscope.results.encoding import pairs as pair_documents
from pepscope.results.encoding.output import write_json, write_json_lines
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED
from pepscope.results.schema import load_schema
from pepscope.results.verdicts import CaptureSummary, DetectionResult, PairResult, VantageName, Verdict
from pepscope.whole_file import output_file
from tests.pepscope.results.detections import DETECTIONS, PAIRS

LINES = jsonschema.Draft202012Validator(load_schema("detect-lines-2"))


@given(DETECTIONS)
def test_pieces_are_the_text_of_the_document(result: DetectionResult) -> None:
    for indent in (1, 2, 4):
        expected = json.dumps(result.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)
        written = result.to_json(indent=indent)
        # Both write a float in the fewest digits that give it back, but not all exponents alike (1e-06, 1e-6).
        assert json.dumps(json.loads(written), indent=indent, ensure_ascii=False) == expected
        for line, wanted in zip(written.split("\n"), expected.split("\n"), strict=True):
            assert len(line) - len(line.lstrip()) == len(wanted) - len(wanted.lstrip())
    assert json.loads(result.to_json(indent=None)) == json.loads(result.to_json(indent=0)) == result.to_dict()
    packed = replace(result, pairs=PairTable(result.pairs))
    assert packed.to_json() == result.to_json()


@given(PAIRS)
def test_a_document_holds_what_the_pair_holds(pair: PairResult) -> None:
    probability = {kind.value: pair.probability.get(kind, 0.0) for kind in JUDGED}
    expected = {
        **{name: getattr(pair, name) for name in ("reason", "packets", "duration_s")},
        "vantages": [{**asdict(each), "display_filter": each.display_filter} for each in pair.vantages],
        "verdict": pair.verdict.value,
        "mechanism": pair.mechanism and pair.mechanism.value,
        "started": None if pair.started_ns is None else f"{np.datetime64(pair.started_ns, 'ns')}Z",
        "probability": probability,
        "pairing": {"confidence": pair.pairing_confidence, "ground": pair.pairing_ground or None},
        "stretch": pair.stretch and asdict(pair.stretch),
        "payload_bytes": {"up": pair.payload_bytes_up, "down": pair.payload_bytes_down},
        "evidence": [encode.evidence_document(item) for item in pair.evidence],
    }
    document = encode.pair_document(pair)
    assert document == expected
    assert json.loads(json.dumps(document, allow_nan=False)) == expected


@given(DETECTIONS)
def test_lines_hold_what_the_document_holds(result: DetectionResult) -> None:
    first, *others = [json.loads(line) for line in result.to_json_lines().removesuffix("\n").split("\n")]
    for record in (first, *others):
        LINES.validate(record)
    assert (first.pop("record"), first.pop("pairs"), first.pop("groups")) == (
        "captures", len(result.pairs), len(result.groups),
    )  # fmt: skip
    document = {**first, "pairs": [], "groups": []}
    for record in others:
        kind = record.pop("record")
        assert record.pop(kind) == len(document[f"{kind}s"])
        document[f"{kind}s"].append(record)
    assert document == json.loads(result.to_json())


@pytest.mark.parametrize(
    "change", [{"record": "other"}, {"pair": -1}, {"verdict": "maybe"}], ids=lambda change: next(iter(change))
)
def test_the_schema_of_lines_refuses_what_is_no_line(change: dict[str, object]) -> None:
    pair = json.loads(many(1).to_json_lines().splitlines()[1])
    LINES.validate(pair)
    with pytest.raises(jsonschema.ValidationError):
        LINES.validate(pair | change)


def many(count: int) -> DetectionResult:
    probability = {Verdict.REGULAR: 1.0, Verdict.SPLIT_TCP: 0.0, Verdict.TCP_PROXY: 0.0}
    pairs = PairTable(
        PairResult(
            (VantageName("a.pcap", "192.0.2.1:1", "192.0.2.2:2"),), Verdict.REGULAR, probability, f"Number {place}.",
            (), place, 0, 0, 0.0,
        )
        for place in range(count)
    )  # fmt: skip
    return DetectionResult((CaptureSummary("a.pcap", 1, count),), pairs)


@pytest.mark.parametrize("write", [write_json, write_json_lines])
def test_a_path_that_is_no_unicode_leaves_the_text_unicode(write: Any, tmp_path: Path) -> None:
    path, name = tmp_path / "verdicts", os.fsdecode(b"\xff\xed.pcap")
    result = replace(many(2), captures=(CaptureSummary(name, 1, 2),))
    write(result, path)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text if write is write_json else text.splitlines()[0])["captures"][0]["path"] == name
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    write(result, stream)
    stream.seek(0)
    assert stream.read() == text


@pytest.mark.parametrize("write", [write_json, write_json_lines])
def test_an_option_that_is_no_unicode_leaves_the_text_unicode(write: Any, tmp_path: Path) -> None:
    path, name = tmp_path / "verdicts", os.fsdecode(b"\xff.csv")
    write(replace(many(2), tool=Tool("1", {"networks": name, "filter": None})), path)
    text = path.read_text(encoding="utf-8")
    document = json.loads(text if write is write_json else text.splitlines()[0])
    assert document["tool"]["options"]["networks"] == name


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_batches_leave_no_trace(count: int) -> None:
    result = many(count)
    stream = io.StringIO()
    write_json(result, stream)
    assert stream.getvalue() == json.dumps(result.to_dict(), indent=2) + "\n"
    assert len(result.to_json_lines().splitlines()) == count + 1


def test_pairs_are_made_one_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    columns = pair_documents._columns
    monkeypatch.setattr(pair_documents, "_columns", lambda *pairs: made.extend(pairs[1]) or columns(*pairs))  # type: ignore[func-returns-value]
    chunks = encode.json_chunks(many(1000))
    for _ in range(4):
        next(chunks)
    assert 0 < len(made) <= 256


@pytest.mark.parametrize("write", [write_json, write_json_lines])
def test_a_file_appears_when_it_is_whole(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "verdicts"
    path.write_text("earlier")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pair_documents, "_columns", broken)
        with pytest.raises(OSError, match="No space"):
            write(many(3), path)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("verdicts", "earlier")]
    write(many(3), path)
    lines: Iterator[str] = iter(path.read_text().splitlines())
    assert next(lines).startswith("{")


def test_output_follows_links_and_writes_devices_as_they_are(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("earlier")
    link.symlink_to(target)
    with output_file(link) as stream:
        stream.write(b"later")
    assert (link.is_symlink(), target.read_text()) == (True, "later")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with output_file(pipe) as stream:
            stream.write(b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
