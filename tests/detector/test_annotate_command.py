"""`pepscope annotate` as a user meets it: copies that tshark reads, and one sentence for what cannot be copied."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from pepscope.results.schema import load_schema
from tests.oracles.tshark import tshark_fields

CORPUS = Path(__file__).parents[1] / "corpus"
SENDER, RECEIVER = (CORPUS / f"prx_ngx_par6.{side}.pcap.gz" for side in ("srv", "mob"))


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pepscope", *arguments], capture_output=True, text=True, timeout=600, check=False
    )


def _sentence(*arguments: str | Path) -> str:
    done = run("annotate", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_comments_stand_on_the_packets_of_the_verdict(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("annotate", SENDER, RECEIVER, "-o", out, "--packets", "3", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, load_schema("annotate-1"))
    verdict = json.loads(run("detect", SENDER, RECEIVER, "--json", "--packets", "3").stdout)
    for copy, source in zip(document["copies"], (SENDER, RECEIVER), strict=True):
        rows = tshark_fields(f"tshark -r {copy['copy']} -Y frame.comment", "frame.number", "frame.comment")
        assert len(rows) == copy["commented"] > 10
        comments = {int(number): text for number, text in rows}
        told = {
            (packet["frame"], packet["shows"])
            for pair in verdict["pairs"]
            for item in pair["evidence"]
            if item["outcome"] != "inapplicable"
            for packet in item["packets"]
            if packet["capture"] == str(source)
        }
        assert {frame for frame, _ in told} == set(comments)
        assert all(shows in comments[frame] for frame, shows in told)
        fields = ("frame.time_epoch", "frame.len", "frame.cap_len", "tcp.seq_raw", "tcp.checksum")
        assert tshark_fields(f"tshark -r {copy['copy']}", *fields) == tshark_fields(f"tshark -r {source}", *fields)


def test_what_is_there_is_replaced_on_demand_only(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    mine = out / f"{RECEIVER.name.removesuffix('.pcap.gz')}.pcapng"
    mine.write_text("comments of my own")
    assert f"{mine} is there already: give another output directory, or --force" in _sentence(RECEIVER, "-o", out)
    assert mine.read_text() == "comments of my own"
    assert run("annotate", RECEIVER, "-o", out, "--force").returncode == 0
    assert tshark_fields(f"tshark -r {mine} -Y frame.comment", "frame.number")
    before = mine.read_bytes()
    assert "must be another directory than that of" in _sentence(mine, "-o", out, "--force")
    assert mine.read_bytes() == before
    (out / "notes.txt").write_text("mine")
    assert "holds notes.txt" in _sentence(RECEIVER, "-o", out, "--force")


def test_only_the_connections_asked_for(tmp_path: Path) -> None:
    verdict = json.loads(run("detect", SENDER, RECEIVER, "--json").stdout)
    client = verdict["pairs"][4]["vantages"][0]["client"]
    for name, asked in (("number", "4"), ("end", client)):
        done = run("annotate", RECEIVER, SENDER, "-o", tmp_path / name, "--connection", asked)
        assert done.returncode == 0, done.stderr
    copies = [tmp_path / name / "prx_ngx_par6.mob.pcapng" for name in ("number", "end")]
    ports = {row for copy in copies for row in tshark_fields(f"tshark -r {copy} -Y frame.comment", "tcp.srcport")}
    assert ports == {("80",), (client.rpartition(":")[2],)}
    port = client.rpartition(":")[2]
    done = run("annotate", RECEIVER, "-o", tmp_path / "filter", "--filter", f"port {port}")
    assert done.returncode == 0, done.stderr
    copy = tmp_path / "filter" / "prx_ngx_par6.mob.pcapng"
    assert set(tshark_fields(f"tshark -r {copy} -Y frame.comment", "tcp.srcport")) == {("80",), (port,)}
    assert len(tshark_fields(f"tshark -r {copy}", "frame.number")) == 3097


def test_what_cannot_be_copied_gets_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "standard input has no file to copy" in _sentence("-", "-o", out)
    os.mkfifo(tmp_path / "pipe")
    assert f"{tmp_path / 'pipe'} has no file to copy" in _sentence(tmp_path / "pipe", SENDER, "-o", out)
    assert "both captures are the same file" in _sentence(SENDER, SENDER, "-o", out)
    assert "annotate takes the captures of one or two ends, got 3" in _sentence(SENDER, RECEIVER, SENDER, "-o", out)
    assert "no connection has the end 192.0.2.77" in _sentence(SENDER, "-o", out, "--connection", "192.0.2.77")
    assert "must be below 6" in _sentence(SENDER, "-o", out, "--connection", "6")
    assert not out.exists()
    held = tmp_path / "held"
    held.mkdir()
    (held / "notes.txt").write_text("mine")
    assert f"must be new or empty, and {held} holds notes.txt" in _sentence(SENDER, "-o", held)
    assert "is a file" in _sentence(SENDER, "-o", held / "notes.txt")
    assert "cannot open" in _sentence(tmp_path / "nothing.pcap", "-o", out)


def test_a_name_that_is_no_unicode_is_copied(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff.pcap.gz"
    Path(os.fsdecode(odd)).write_bytes(RECEIVER.read_bytes())
    command: list[str | bytes] = [sys.executable, "-m", "pepscope", "annotate", odd, "-o", str(tmp_path / "out")]
    subprocess.run(command, capture_output=True, check=True)
    assert [os.fsencode(path.name) for path in (tmp_path / "out").iterdir()] == [b"\xff.pcapng"]


def test_captures_of_one_name_get_two_copies(tmp_path: Path) -> None:
    paths = []
    for side, source in (("server", SENDER), ("mobile", RECEIVER)):
        (tmp_path / side).mkdir()
        paths.append(tmp_path / side / "capture.pcap.gz")
        paths[-1].write_bytes(source.read_bytes())
    done = run("annotate", *paths, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["capture-2.pcapng", "capture.pcapng"]


@pytest.mark.parametrize("name", ["reg_dl_mtu1400_pcapng.mob.pcapng.gz", "spl_ha_dl_sll2.mob.pcap.gz"])
def test_one_capture_of_any_kind(name: str, tmp_path: Path) -> None:
    done = run("annotate", CORPUS / name, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (copy,) = (tmp_path / "out").iterdir()
    assert tshark_fields(f"tshark -r {copy} -Y frame.comment", "frame.number")
