"""`pepscope detect` and `explain` as a user meets them."""

from __future__ import annotations

import json
import struct
import subprocess
import sysconfig
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import pepscope
from pepscope.errors import CaptureError, UsageError
from tests.captures.containers import LINK_ETHERNET, Frame, read_capture, write_pcap
from tests.captures.conversation import START_NS
from tests.captures.layers import ethernet
from tests.captures.segments import PROTOCOL_UDP, ipv4

PEPSCOPE = Path(sysconfig.get_path("scripts")) / "pepscope"
CORPUS = Path(__file__).parents[1] / "corpus"
ARP_FRAME = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + bytes(46)


def run(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PEPSCOPE, *arguments], capture_output=True, input=stdin, timeout=600, check=False)


def both(name: str) -> tuple[Path, Path]:
    return CORPUS / f"{name}.srv.pcap.gz", CORPUS / f"{name}.mob.pcap.gz"


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("reg_dl_nat", "regular"), ("spl_ha_dl_srcip", "split-tcp"), ("prx_ngx_2M_umts", "tcp-proxy")],
)
def test_order_of_the_captures_does_not_matter(name: str, verdict: str) -> None:
    server, mobile = map(str, both(name))
    forward, backward = pepscope.detect(server, mobile), pepscope.detect(mobile, server)
    assert [pair.verdict.value for pair in forward.pairs] == [verdict]
    assert forward.pairs[0].probability == backward.pairs[0].probability
    assert forward.pairs[0].evidence == backward.pairs[0].evidence
    assert list(forward.to_frame()["verdict"]) == [verdict]


def test_fail_on_turns_a_verdict_into_an_exit_status() -> None:
    split, regular = both("spl_ha_dl_srcip"), both("reg_dl_nat")
    assert run("detect", *split).returncode == 0
    assert run("detect", *split, "--fail-on", "split").returncode == 1
    assert run("detect", *split, "--fail-on", "tcp-proxy,inconclusive").returncode == 0
    assert run("detect", *regular, "--fail-on", "split,inconclusive").returncode == 0


def test_one_capture_is_inconclusive_and_no_success_where_a_verdict_was_asked_for() -> None:
    server, _ = both("spl_ha_dl_srcip")
    (pair,) = pepscope.detect(str(server)).pairs
    assert pair.verdict.value == "inconclusive"
    assert len(pair.vantages) == 1
    assert "capture" in pair.reason
    finished = run("detect", server, "--fail-on", "split")
    assert finished.returncode == 1
    assert b"could be judged" in finished.stderr


ONE_ENDED = Path(__file__).parents[1] / "one_ended"


@pytest.mark.parametrize(("name", "status"), [("lte-split", 1), ("lte-none", 0)])
def test_fail_on_counts_the_groups_of_one_vantage_point(name: str, status: int) -> None:
    finished = run("detect", ONE_ENDED / f"{name}.mobile.pcap.gz", "--fail-on", "split")
    assert finished.returncode == status
    lines = finished.stdout.decode().splitlines()
    start = lines.index("Between this capture and the servers:")
    assert lines[start + 1].split()[:2] == ["NETWORK", "PORT"]


def test_lines_of_one_vantage_point_end_with_its_groups_and_their_hosts() -> None:
    lines = run("detect", ONE_ENDED / "lte-split.mobile.pcap.gz", "--jsonl").stdout.splitlines()
    groups = [record for record in map(json.loads, lines) if record["record"] == "group"]
    assert [group["port"] for group in groups] == [80, 443]
    assert all(len(group["by_host"]) == 4 and "series" not in group for group in groups)


def test_a_capture_may_come_from_standard_input() -> None:
    server, mobile = both("spl_ha_dl_srcip")
    finished = run("detect", server, "-", "--json", stdin=mobile.read_bytes())
    (pair,) = json.loads(finished.stdout)["pairs"]
    assert pair["verdict"] == "split-tcp"
    assert {vantage["capture"] for vantage in pair["vantages"]} == {str(server), "-"}


def test_every_output_is_written(tmp_path: Path) -> None:
    files = {name: tmp_path / f"out.{name}" for name in ("html", "parquet", "junit")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    finished = run("detect", *both("spl_ha_dl_srcip"), "--csv", *options)
    assert finished.returncode == 0, finished.stderr
    assert b"split-tcp" in finished.stdout
    assert all(path.stat().st_size > 100 for path in files.values())


def test_lines_hold_what_the_document_holds() -> None:
    lines = [json.loads(line) for line in run("detect", *both("spl_ha_dl_srcip"), "--jsonl").stdout.splitlines()]
    document = json.loads(run("detect", *both("spl_ha_dl_srcip"), "--json").stdout)
    assert [record["record"] for record in lines] == ["captures", "pair", "group"]
    assert lines[0]["captures"] == document["captures"]
    assert lines[1] == {"record": "pair", "pair": 0, **document["pairs"][0]}
    assert lines[2] == {"record": "group", "group": 0, **document["groups"][0]}


def test_explain_writes_the_evidence_in_prose(tmp_path: Path) -> None:
    verdict = tmp_path / "verdict.json"
    verdict.write_bytes(run("detect", *both("spl_ha_dl_srcip"), "--json").stdout)
    reported = run("explain", verdict)
    assert reported.returncode == 0
    assert b"split" in reported.stdout
    assert run("explain", "-", stdin=verdict.read_bytes()).stdout == reported.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("detect", "missing.pcap"),
        ("detect", "a", "b", "c"),
        ("detect", "-", "-"),
        ("detect", "a", "--json", "--csv"),
        ("detect", "a", "--json", "--jsonl"),
        ("detect", "a", "--ack-delay", "soon"),
        ("detect", "a", "--ack-delay", "0"),
        ("detect", "a", "--fail-on", "weather"),
        ("detect", "a", "--memory", "much"),
        ("explain", "missing.json"),
        ("explain", str(CORPUS / "manifest.json")),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(arguments: tuple[str, ...]) -> None:
    finished = run(*arguments)
    assert finished.returncode == 2
    assert finished.stdout == b""
    assert finished.stderr.startswith(b"pepscope: ")
    assert finished.stderr.count(b"\n") == 1
    assert b"Traceback" not in finished.stderr


def test_one_capture_given_twice_is_no_two_ends(tmp_path: Path) -> None:
    _, server = both("reg_dl_nat")
    link, copy = tmp_path / "link.pcap.gz", tmp_path / "copy.pcap.gz"
    link.symlink_to(server)
    copy.write_bytes(server.read_bytes())
    for second, words in ((server, b"the same file"), (link, b"the same file"), (copy, b"they are one capture")):
        done = run("detect", server, second)
        assert (done.returncode, done.stdout) == (2, b"")
        assert words in done.stderr
        assert done.stderr.count(b"\n") == 1


def test_a_capture_and_an_edited_copy_of_it_are_judged_as_one(tmp_path: Path) -> None:
    source, _ = both("spl_ha_dl_srcip")
    capture, copy = read_capture(source), tmp_path / "copy.pcap"
    copy.write_bytes(write_pcap(capture.frames[1:], capture.link_type))
    for captures in ((source, copy), (copy, source)):
        done = run("detect", *captures)
        assert (done.returncode, done.stderr) == (0, b"")
        reported = b" ".join(done.stdout.split())
        assert b"were taken at one place by 1 of 1 connections" in reported
        assert b"1 connection: 1 inconclusive" in reported
        assert run("detect", *captures, "--fail-on", "split").returncode == 1
    document = json.loads(run("detect", source, copy, "--json").stdout)
    assert document["pairs"][0]["stretch"]["one_place"] is True


def test_nothing_in_common_is_an_answer_but_no_success_where_a_verdict_was_asked_for() -> None:
    one, _ = both("reg_dl_nat")
    _, two = both("spl_ha_dl_v6")
    done = run("detect", one, two, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    document = json.loads(done.stdout)
    assert [len(pair["vantages"]) for pair in document["pairs"]] == [1, 1]
    assert {pair["verdict"] for pair in document["pairs"]} == {"inconclusive"}
    assert [pair["stretch"] for pair in document["pairs"]] == [None, None]
    (sentence,) = document["captures"][1]["warnings"]
    assert "have no connection in common" in sentence
    assert "one begins 273 s after the other ends" in sentence
    assert b"have no connection in common" in b" ".join(run("detect", one, two).stdout.split())
    for kinds in ("split", "inconclusive"):
        assert run("detect", one, two, "--fail-on", kinds).returncode == 1


@pytest.mark.parametrize(
    ("frames", "words"), [("udp", "holds no TCP but 3 UDP datagrams in 1 flow"), ("arp", "2 of EtherType 0x0806 (ARP)")]
)
def test_a_capture_without_tcp_beside_one_with_is_an_answer(tmp_path: Path, frames: str, words: str) -> None:
    without = tmp_path / "without.pcap"
    datagrams = [udp_frame(number) for number in range(3)] if frames == "udp" else [ARP_FRAME, ARP_FRAME]
    without.write_bytes(write_pcap([Frame(START_NS + i, data) for i, data in enumerate(datagrams)], LINK_ETHERNET))
    server, _ = both("spl_ha_dl_srcip")
    for captures in ((server, without), (without, server)):
        done = run("detect", *captures, "--json")
        assert (done.returncode, done.stderr) == (0, b"")
        (pair,) = json.loads(done.stdout)["pairs"]
        assert pair["verdict"] == "inconclusive"
        assert words in pair["reason"]
    copy = without.with_name("copy.pcap")
    copy.write_bytes(without.read_bytes())
    neither = run("detect", without, copy)
    assert (neither.returncode, neither.stdout) == (2, b"")
    assert b"nothing to analyse in" in neither.stderr


def udp_frame(number: int) -> bytes:
    """A datagram with payload on Ethernet."""
    payload = bytes([number]) * 100
    header = struct.pack(">HHHH", 40_000, 443, 8 + len(payload), 0)
    return ethernet(ipv4("192.0.2.1", "198.51.100.7", PROTOCOL_UDP, header + payload))


@pytest.mark.parametrize("option", ["--html", "--parquet", "--junit"])
def test_output_that_cannot_be_written_is_one_sentence(option: str) -> None:
    done = run("detect", *both("reg_dl_short10k"), option, "/nonexistent/x")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"pepscope: /nonexistent/x cannot be written: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--drift-limit", "nan"),
        ("--drift-limit", "-1"),
        ("--ack-delay", "nan"),
        ("--ack-delay", "-5s"),
        ("--ack-delay", "0"),
        ("--memory", "nan"),
        ("--memory", "-1"),
        ("--filter", "foo bar baz"),
    ],
)
def test_numbers_and_filters_that_make_no_sense_are_refused(arguments: tuple[str, ...]) -> None:
    done = run("detect", *both("reg_dl_short10k"), *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"pepscope: ")
    assert done.stderr.count(b"\n") == 1


def test_errors_are_types_of_ours(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture at all, but long enough to look for a magic number")
    with pytest.raises(CaptureError):
        pepscope.detect(str(text))
    with pytest.raises(UsageError):
        pepscope.detect("-", "-")
    with pytest.raises(UsageError):
        pepscope.detect(str(text), clocks="atomic")


def test_a_clock_that_is_hours_off_is_named_and_may_be_said_to_be_wrong(tmp_path: Path) -> None:
    server, mobile = both("spl_ha_dl_srcip")
    capture = read_capture(mobile)
    late = tmp_path / "late.pcap"
    frames = [replace(frame, time_ns=frame.time_ns + 7_200_000_000_000) for frame in capture.frames]
    late.write_bytes(write_pcap(frames, capture.link_type))
    (doubted,) = pepscope.detect(str(server), str(late)).pairs
    assert doubted.verdict.value == "inconclusive"
    assert "at another time by the capture clocks: they begin 7,200 s apart" in doubted.reason
    assert "--same-transfers" in doubted.reason
    (sure,) = pepscope.detect(str(server), str(late), same_transfers=True).pairs
    assert sure.verdict.value == "split-tcp"


def test_a_zip_of_captures_is_no_archive_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "captures.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("day/server.pcap", b"")
    done = run("detect", path)
    assert done.returncode == 2
    assert b"captures.zip is a zip archive, but not one of `pepscope probe run`: unpack it" in done.stderr


def test_what_is_missing_is_named_once() -> None:
    """Methods that compare have nothing to say of a connection that one of two captures holds."""
    one, _ = both("reg_dl_nat")
    _, two = both("spl_ha_dl_v6")
    for pair in pepscope.detect(str(one), str(two)).pairs:
        assert "to compare" not in pair.reason
        assert "captures at both ends" not in pair.reason
        assert pair.reason.count("would decide") == 1


def test_a_side_that_round_trips_contradict_is_a_warning() -> None:
    mobile = Path(__file__).parents[1] / "one_ended" / "lte-split.mobile.pcap.gz"
    (wrong,) = pepscope.detect(str(mobile), taken_at="server").captures
    assert "it looks taken at the client" in wrong.warnings[-1]
    (right,) = pepscope.detect(str(mobile), taken_at="client").captures
    assert not any("taken_at" in each for each in right.warnings)


def test_a_stricter_probability_leaves_the_verdict_open() -> None:
    captures = both("spl_ha_dl_srcip")
    judged = json.loads(run("detect", *captures, "--json", "--least-probability", "1").stdout)
    assert {pair["verdict"] for pair in judged["pairs"]} == {"inconclusive"}
    doubted = json.loads(run("detect", *captures, "--json", "--least-pairing", "1").stdout)
    assert {pair["verdict"] for pair in doubted["pairs"]} == {"inconclusive"}
    assert "may show two different transfers" in doubted["pairs"][0]["reason"]


def test_packets_in_common_need_no_other_ground_for_the_pairing() -> None:
    judged = json.loads(run("detect", *both("reg_dl_nat"), "--json", "--least-pairing", "1").stdout)
    assert {pair["verdict"] for pair in judged["pairs"]} == {"regular"}


def test_thresholds_are_probabilities() -> None:
    captures = tuple(map(str, both("reg_dl_nat")))
    with pytest.raises(UsageError, match=r"must be between 0\.5 and 1, got 1\.5"):
        pepscope.detect(*captures, least_probability=1.5)
    with pytest.raises(UsageError, match=r"must be between 0 and 1, got -1"):
        pepscope.detect(*captures, least_pairing_confidence=-1.0)


def test_the_command_and_python_have_the_same_threshold() -> None:
    from detector.options import DECISION_PROBABILITY
    from pepscope.command_line.options import LEAST_PROBABILITY

    assert DECISION_PROBABILITY == LEAST_PROBABILITY


def test_the_page_of_one_connection_shows_it_alone_judged_with_all_others(tmp_path: Path) -> None:
    captures, page = both("reg_dl_par20"), tmp_path / "page.html"
    pairs = pepscope.detect(*map(str, captures)).pairs
    least = min(range(len(pairs)), key=lambda place: pairs[place].payload_bytes_down)
    ends = (pairs[least].vantages[0].client, pairs[least].vantages[0].server)
    assert run("detect", *captures, "--connection", *ends, "--html", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert text.count('<details class="connection" id="connection-') == 1
    assert f'id="connection-{least}"' in text
    assert f'id="figures-{least}"' in text
    assert "group of 20" in text
    wrong = run("detect", *captures, "--connection", "192.0.2.1:1", ends[1], "--html", page)
    assert (wrong.returncode, wrong.stderr.decode().count("\n")) == (2, 1)
    assert b"got 192.0.2.1:1 and" in wrong.stderr
    assert b"--html" in run("detect", *captures, "--connection", *ends).stderr
