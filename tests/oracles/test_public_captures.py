"""The script that reads public captures finds them, counts as tshark does, and says what went wrong."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.validation import public_captures
from benchmarks.validation.public_captures import (
    Row,
    _couples,
    captures,
    differences,
    inspected,
    isolated,
    report,
    seen_by_tshark,
)

CORPUS = Path(__file__).parents[1] / "corpus"
FRESH = Path(__file__).parents[1] / "fresh"
SMALL = CORPUS / "spl_ha_chat.mob.pcap.gz"
PCAPNG = CORPUS / "reg_dl_mtu1400_pcapng.srv.pcapng.gz"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with two captures, one of them twice, and a text."""
    root = tmp_path / "repository"
    (root / "deep").mkdir(parents=True)
    (root / "one.pcap").write_bytes(SMALL.read_bytes())
    (root / "deep" / "again.cap").write_bytes(SMALL.read_bytes())
    (root / "deep" / "two.pcapng").write_bytes(PCAPNG.read_bytes())
    (root / "text.pcap").write_text("a text of more than twenty-four bytes")
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "captures"]):
        subprocess.run([*git, *command], check=True)
    return root


@pytest.mark.parametrize("bare", [True, False])
def test_captures_are_found_by_their_first_bytes(repository: Path, tmp_path: Path, bare: bool) -> None:
    directory = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(repository), str(directory)], check=True)
    (tmp_path / "scratch").mkdir()
    found = dict(captures(directory if bare else repository, tmp_path / "scratch"))
    assert set(found) == {"deep/again.cap", "deep/two.pcapng"}  # of two that are equal, the first
    assert found["deep/again.cap"].read_bytes() == SMALL.read_bytes()


def test_a_plain_directory_is_searched_too(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    found = dict(captures(FRESH, tmp_path / "scratch"))
    assert len(found) == len(list(FRESH.glob("*.pcap.gz"))) >= 18
    assert "manifest.json" not in found


@pytest.mark.parametrize("path", [SMALL, PCAPNG, CORPUS / "reg_dl_v6.mob.pcap.gz"], ids=lambda path: path.name)
def test_counts_are_those_of_tshark(path: Path) -> None:
    ours = inspected(str(path))
    assert sum(ours.values()) > 50
    assert differences(ours, seen_by_tshark(str(path))) == []


def test_a_difference_is_named() -> None:
    assert differences({"a <> b": 2, "c <> d": 1}, {"a <> b": 3}) == [
        "a <> b: 2 packets, tshark 3",
        "c <> d: 1 packets, tshark 0",
    ]


def test_refusals_crashes_and_timeouts_are_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    assert isolated("inspect", [str(nothing)], 60)[0] == "refused"
    outcome, rows = isolated("detect", [str(SMALL), str(CORPUS / "spl_ha_chat.srv.pcap.gz")], 60)
    assert (outcome, {verdict for verdict, _ in rows}) == ("ok", {"split-tcp"})  # which it is
    monkeypatch.setattr(public_captures, "_answer", _dies)
    assert isolated("detect", [str(SMALL)], 60) == ("crash", "ended with status 7")
    monkeypatch.setattr(public_captures, "_answer", _sleeps)
    assert isolated("detect", [str(SMALL)], 0.5)[0] == "timeout"


def _dies(*_: object) -> None:
    os._exit(7)


def _sleeps(*_: object) -> None:
    time.sleep(60)


def test_pairs_come_from_everywhere_and_from_one_folder() -> None:
    found = [(origin, name, Path()) for origin in "ab" for name in ("x/1", "x/2", "y/1", "1")]
    couples = list(_couples(found, 50, random.Random(1)))
    assert [kind for kind, _, _ in couples] == ["random pairs"] * 50 + ["pairs from one folder"] * 50
    assert all(one != two for _, one, two in couples)
    assert {(one[0], one[1][0]) for _, one, _ in couples[50:]} == {("a", "x"), ("b", "x")}
    assert all(one[0] == two[0] for _, one, two in couples[50:])


def test_the_report_lists_what_asks_for_an_explanation() -> None:
    inspections = [Row("suite", "a.pcap"), Row("suite", "b.pcap", differences=["x <> y: 1 packets, tshark 2"])]
    detections = [
        Row("suite", "a.pcap", verdicts=[("split-tcp", "sentence")]),
        Row("suite", "b.pcap", state="crash", detail="ended with status -11"),
    ]
    text = report(inspections, detections)
    assert "| suite | 2 | 2 | 1 | 1 | 0 | 0 |" in text
    assert "| suite | 1 | 0 | 0 | 1 | 0 | 1 | 0 |" in text
    assert "- suite/b.pcap: x <> y: 1 packets, tshark 2" in text
    assert "- crash: suite/b.pcap: ended with status -11" in text
    assert "- suite/a.pcap: **split-tcp**: sentence" in text
