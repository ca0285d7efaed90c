"""A corpus from sources to tables: found, matched, judged, resumed, and asked."""

from __future__ import annotations

import gzip
import json
import math
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import pandas as pd
import pytest
from click.testing import CliRunner

from detector.commands import corpora as command
from detector.corpora.audit import CorpusSummary, audit_captures
from detector.corpora.query import Answer, query
from detector.detection import detect
from pepscope.errors import UsageError
from pepscope.results.verdicts import Verdict
from tests.captures.containers import Frame, Interface, read_capture, write_pcap, write_pcapng
from tests.detector.corpus import CORPUS
from tests.detector.one_capture.real_networks import named
from tests.pepscope.processes.clusters import local_cluster

SPLIT, WHOLE = named("lte-relay.server").path, named("umts-nat.server").path
PAIR = tuple(CORPUS / f"reg_bidir.{end}.pcap.gz" for end in ("srv", "mob"))
NUMBERS = ["probability_regular", "packets", "duration_s", "port"]


def tables(directory: str | Path) -> pd.DataFrame:
    """All connections, in an order that does not depend on files."""
    found = [pd.read_parquet(path) for path in sorted(Path(directory).glob("connections/**/*.parquet"))]
    frame = pd.concat(found, ignore_index=True)
    return frame.sort_values(["unit", "started", "client_a", "client_b"]).reset_index(drop=True)


def errors(summary: CorpusSummary) -> dict[str, str]:
    return {Path(each.name).name: each.reason for each in summary.errors}


def test_every_connection_is_a_row_with_the_verdict_that_detect_gives(tmp_path: Path) -> None:
    summary = audit_captures([str(SPLIT), str(WHOLE)], tmp_path, processes=2)
    results = [detect(str(path)) for path in (SPLIT, WHOLE)]
    expected = Counter(pair.verdict.value for result in results for pair in result.pairs)
    assert {name: count for name, count in summary.verdicts.items() if count} == expected
    frame = tables(tmp_path)
    assert Counter(frame["verdict"]) == expected
    assert summary.connections == len(frame) == sum(len(result.pairs) for result in results)
    assert set(frame["capture_a"]) == {str(SPLIT), str(WHOLE)}
    assert frame["started"].dt.tz is not None
    starts = sorted(pair.started_ns for result in results for pair in result.pairs)
    assert sorted(frame["started_ns"]) == starts
    assert sorted(frame["started"].dt.floor("s").astype("int64") // 10**6) == [start // 10**9 for start in starts]
    groups = pd.concat([pd.read_parquet(path) for path in tmp_path.glob("groups/*.parquet")])
    assert len(groups) == sum(len(result.groups) for result in results)
    days = {path.parts[-3] for path in tmp_path.glob("connections/day=*/network=unnamed/*.parquet")}
    assert days == {f"day={day}" for day in frame["started"].dt.strftime("%Y-%m-%d")}


def test_captures_are_found_in_directories_patterns_and_archives(tmp_path: Path) -> None:
    folder, result = tmp_path / "in", tmp_path / "out"
    (folder / "deep" / ".hidden").mkdir(parents=True)
    shutil.copy(SPLIT, folder / "deep" / "one.bin")  # by what it holds, not by its name
    shutil.copy(SPLIT, folder / "deep" / ".hidden" / "two.pcap.gz")
    (folder / "notes.txt").write_text("nothing to read here")
    (folder / "broken.pcap").write_bytes(b"rubbish")
    with zipfile.ZipFile(folder / "set.zip", "w") as archive:
        archive.write(WHOLE, "day/whole.pcap.gz")
        archive.writestr("read.me", "text")
    with tarfile.open(folder / "set.tar.xz", "w:xz") as archive:
        archive.add(PAIR[0], "srv.pcap.gz")
    summary = audit_captures([str(folder), str(folder / "*.zip")], result, processes=1)
    names = set(pd.read_parquet(result / "captures.parquet")["capture"])
    assert names == {
        str(folder / "deep" / "one.bin"), f"{folder / 'set.zip'}/day/whole.pcap.gz",
        f"{folder / 'set.tar.xz'}/srv.pcap.gz",
    }  # fmt: skip
    assert set(errors(summary)) == {"broken.pcap"}
    assert list(pd.read_parquet(result / "errors.parquet")["reason"]) == list(errors(summary).values())


def test_captures_at_an_address_are_copied_and_judged(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/audit/one.pcap.gz", WHOLE.read_bytes())
    store.pipe("/audit/read.me", b"text")
    for number, address in enumerate(["memory://audit", "memory://audit/*.gz", "memory://audit/one.pcap.gz"]):
        summary = audit_captures([address], tmp_path / str(number), processes=1)
        assert (summary.captures, summary.errors) == (1, ())
    with pytest.raises(UsageError, match="address"):
        audit_captures(["nosuch://audit"], tmp_path / "none", processes=1)


@pytest.mark.parametrize("names", ["trace.pcap{}", "day_{:05d}_20260102030405.pcap", "{}.pcapng"])
def test_the_parts_of_a_rotated_series_are_one_capture(names: str, tmp_path: Path) -> None:
    capture = read_capture(SPLIT)
    frames = capture.frames
    third = len(frames) // 3
    for number, part in enumerate((frames[:third], frames[third : 2 * third], frames[2 * third :])):
        name = names.format(number or ("" if names == "trace.pcap{}" else number))
        content = (
            write_pcapng(part, [Interface(capture.link_type, 9)])
            if "pcapng" in names
            else write_pcap(part, capture.link_type)
        )
        (tmp_path / name).write_bytes(content)
    summary = audit_captures([str(tmp_path)], tmp_path / "out", processes=1)
    assert (summary.captures, summary.units) == (3, 1)
    whole = detect(str(SPLIT))
    frame = tables(tmp_path / "out")
    assert len(frame) == len(whole.pairs)
    assert Counter(frame["verdict"]) == Counter(pair.verdict.value for pair in whole.pairs)
    assert set(frame["capture_a"].str.contains(r"\(\+2\)")) == {True}


def test_captures_of_two_ends_that_share_connections_are_judged_together(tmp_path: Path) -> None:
    summary = audit_captures([str(path) for path in PAIR], tmp_path, processes=1)
    assert (summary.units, summary.pairs) == (1, 1)
    expected = detect(*map(str, PAIR))
    frame = tables(tmp_path)
    assert Counter(frame["verdict"]) == Counter(pair.verdict.value for pair in expected.pairs)
    assert set(frame["capture_a"].dropna()) | set(frame["capture_b"].dropna()) == set(map(str, PAIR))


def test_of_three_vantage_points_each_two_are_judged(tmp_path: Path) -> None:
    near, far = (read_capture(path) for path in PAIR)
    between = [replace(frame, time_ns=frame.time_ns + 3_000_000) for frame in near.frames]
    for name, frames, link_type in (
        ("near", near.frames, near.link_type), ("between", between, near.link_type), ("far", far.frames, far.link_type)
    ):  # fmt: skip
        (tmp_path / f"{name}.pcap").write_bytes(write_pcap(frames, link_type))
    summary = audit_captures([str(tmp_path)], tmp_path / "out", processes=1)
    assert (summary.captures, summary.units, summary.pairs) == (3, 3, 3)
    frame = tables(tmp_path / "out")
    captures = zip(frame["capture_a"], frame["capture_b"], strict=True)
    ends = {frozenset(Path(name).stem for name in both) for both in captures}
    assert ends == {frozenset(each) for each in (("near", "between"), ("between", "far"), ("near", "far"))}
    assert set(frame["verdict"]) <= {"regular", "inconclusive"}
    assert frame.groupby("unit").size().nunique() == 1


def test_clocks_that_are_years_apart_do_not_matter_and_ports_that_come_again_do_not_either(tmp_path: Path) -> None:
    near, far = (read_capture(path) for path in PAIR)
    late = [replace(frame, time_ns=frame.time_ns + 10 * 365 * 86_400 * 10**9) for frame in far.frames]
    (tmp_path / "near.pcap").write_bytes(write_pcap(near.frames, near.link_type))
    (tmp_path / "far.pcap").write_bytes(write_pcap(late, far.link_type))
    assert audit_captures([str(tmp_path)], tmp_path / "out", processes=1).pairs == 1
    for name, turn in (("monday", 0), ("tuesday", 1)):
        (tmp_path / name).mkdir()
        frames = [replace(frame, time_ns=frame.time_ns + turn * 86_400 * 10**9) for frame in near.frames]
        if turn:
            frames = [_numbered_anew(frame) for frame in frames]
        (tmp_path / name / "same.pcap").write_bytes(write_pcap(frames, near.link_type))
    days = audit_captures([str(tmp_path / "monday"), str(tmp_path / "tuesday")], tmp_path / "days", processes=1)
    assert (days.units, days.pairs) == (2, 0)


def _numbered_anew(frame: Frame) -> Frame:
    """The packet with another sequence number: IPv4 without options behind Ethernet or raw."""
    data = bytearray(frame.data)
    start = next(place for place in (0, 14, 16, 20) if data[place] == 0x45 and data[place + 9] == 6)
    at = start + 24
    data[at : at + 4] = ((int.from_bytes(data[at : at + 4]) + 123_456_789) % 2**32).to_bytes(4)
    return replace(frame, data=bytes(data))


def test_a_manifest_names_networks_and_vantage_points(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(
        "path,vantage,network,notes\nreg_bidir.srv.pcap.gz,core,Cell/North,\nreg_bidir.mob.pcap.gz,core,Cell/North,x\n"
    )
    summary = audit_captures(
        [str(path) for path in PAIR], tmp_path / "out", manifest=str(manifest), processes=1
    )  # fmt: skip
    assert (summary.units, summary.pairs) == (2, 0)  # one vantage point saw both
    assert {path.parent.name for path in tmp_path.glob("out/connections/*/*/*.parquet")} == {"network=Cell%2FNorth"}
    assert query(tmp_path / "out", "SELECT DISTINCT network FROM connections").rows == [("Cell/North",)]
    manifest.write_text("file,network\n")
    with pytest.raises(UsageError, match="path"):
        audit_captures([str(SPLIT)], tmp_path / "none", manifest=str(manifest), processes=1)


def test_what_is_there_is_not_judged_again_and_what_is_superseded_goes(tmp_path: Path) -> None:
    result = tmp_path / "out"
    first = audit_captures([str(PAIR[0]), str(SPLIT)], result, processes=1)
    again = audit_captures([str(PAIR[0]), str(SPLIT)], result, processes=1)
    assert (first.resumed, again.resumed, again.units) == (0, 2, 2)
    assert again.connections == first.connections
    renamed = tmp_path / "other name.pcap.gz"
    shutil.copy(SPLIT, renamed)
    assert audit_captures([str(renamed)], result, processes=1).resumed == 1
    grown = audit_captures([str(PAIR[0]), str(PAIR[1]), str(SPLIT)], result, processes=1)
    assert (grown.resumed, grown.units) == (1, 2)
    frame = tables(result)
    assert len(frame) == grown.connections
    assert frame["unit"].nunique() == 2
    names = pd.read_parquet(result / "captures.parquet")["capture"]
    assert sorted(names) == sorted(map(str, (*PAIR, SPLIT)))
    other = audit_captures([str(SPLIT)], result, least_probability=0.99, processes=1)
    assert other.resumed == 0
    assert tables(result)["unit"].nunique() == 2


def test_a_file_that_grows_is_judged_anew_and_counted_once(tmp_path: Path) -> None:
    capture, growing = read_capture(SPLIT), tmp_path / "growing.pcap"
    counts = []
    for share in (0.5, 0.75, 1.0):
        growing.write_bytes(write_pcap(capture.frames[: int(share * len(capture.frames))], capture.link_type))
        if share == 0.75:
            growing.write_bytes(growing.read_bytes()[:-7])  # in the middle of a packet
        counts.append(audit_captures([str(growing)], tmp_path / "out", processes=1).connections)
        assert len(tables(tmp_path / "out")) == counts[-1]
    assert counts[0] < counts[-1] == len(detect(str(SPLIT)).pairs)
    later = [replace(frame, time_ns=frame.time_ns + 10**12) for frame in capture.frames]
    growing.write_bytes(write_pcap(later, capture.link_type))  # a ring buffer came round
    audit_captures([str(growing)], tmp_path / "out", processes=1)
    assert len(tables(tmp_path / "out")) == 2 * counts[-1]


def test_a_killed_audit_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    sources = sorted(CORPUS.glob("reg_*.gz"))[:16]
    for path in sources:
        shutil.copy(path, folder)
    plain = audit_captures([str(folder)], tmp_path / "plain", processes=1)
    command_line = [sys.executable, "-m", "pepscope", "audit-captures", str(folder), "-o", str(tmp_path / "killed")]
    markers = tmp_path / "killed" / "units"
    with subprocess.Popen([*command_line, "--jobs", "1"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as run:
        deadline = time.monotonic() + 60
        while run.poll() is None and len(list(markers.glob("*.json"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    there = len(list(markers.glob("*.json")))
    resumed = audit_captures([str(folder)], tmp_path / "killed", processes=2)
    assert resumed.resumed == there >= 2
    assert resumed.verdicts == plain.verdicts
    pd.testing.assert_frame_equal(tables(tmp_path / "killed"), tables(tmp_path / "plain"))


def test_a_dask_scheduler_gives_the_same_tables(tmp_path: Path) -> None:
    plain = audit_captures([str(SPLIT), str(WHOLE)], tmp_path / "plain", processes=1)
    with local_cluster(processes=False) as scheduler:
        over = audit_captures([str(SPLIT), str(WHOLE)], tmp_path / "dask", scheduler=scheduler)
    assert over.verdicts == plain.verdicts
    pd.testing.assert_frame_equal(tables(tmp_path / "dask"), tables(tmp_path / "plain"))
    with pytest.raises(UsageError, match="no Dask scheduler"):
        audit_captures([str(SPLIT)], tmp_path / "none", scheduler="tcp://127.0.0.1:1")


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    other = tmp_path / "other"
    other.mkdir()
    (other / "corpus.json").write_text(json.dumps({"form": 1, "version": "0.0.1"}))
    for sources, output, says in (
        (["nothing-here.pcap"], "out", "does not exist"),
        ([str(tmp_path / "*.none")], "out2", "no file matches"),
        ([str(tmp_path / "empty")], "out3", "no capture"),
        ([str(SPLIT)], "full", "other files"),
        ([str(SPLIT)], "other", f"^{other} holds tables of pepscope 0.0.1, "),
    ):
        with pytest.raises(UsageError, match=says) as raised:
            audit_captures(sources, tmp_path / output, processes=1)
        assert "\n" not in str(raised.value)
    nothing = audit_captures([str(tmp_path / "full" / "mine.txt")], tmp_path / "nothing", processes=1)
    assert (nothing.captures, len(nothing.errors)) == (0, 1)
    assert query(tmp_path / "nothing", "SELECT count(*) FROM captures").rows == [(0,)]
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(WHOLE.read_bytes()[:3000])
    summary = audit_captures([str(cut), str(tmp_path / "full" / "mine.txt")], tmp_path / "broken", processes=1)
    assert summary.captures == 1
    assert set(errors(summary)) == {"mine.txt"}
    assert pd.read_parquet(tmp_path / "broken" / "captures.parquet")["warnings"].str.len().min() > 0


def test_questions_are_answered_and_nothing_else_is_read(tmp_path: Path) -> None:
    summary = audit_captures([str(SPLIT)], tmp_path, processes=1)
    found = query(tmp_path, "SELECT verdict, count(*) AS n FROM connections GROUP BY 1")
    assert found.columns == ("verdict", "n")
    assert dict(found.rows) == {name: count for name, count in summary.verdicts.items() if count}
    assert query(tmp_path, "SELECT count(*) FROM groups WHERE verdict LIKE 'split%'").rows[0][0] > 0
    for bad in (
        "SELECT nothing", "DROP TABLE connections", "SELECT 1; SELECT 2", "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO 'x.csv'", "", "SELECT '\udcff'",
    ):  # fmt: skip
        with pytest.raises(UsageError):
            query(tmp_path, bad)
    with pytest.raises(UsageError, match="no tables"):
        query(tmp_path / "connections", "SELECT 1")
    odd = query(tmp_path, "SELECT 'nan'::DOUBLE, ['inf'::DOUBLE, 1], {'a': '-inf'::DOUBLE}, 1.5::DOUBLE").to_dict()
    assert odd["rows"] == [[None, [None, 1.0], {"a": None}, 1.5]]


@pytest.mark.parametrize(
    ("sources", "options", "sentence"),
    [
        ("a.pcap", {}, "sources must be a list, got the text 'a.pcap'"),
        ([], {}, "sources must name at least one file, directory, pattern or address, got none"),
        (["a"], {"least_probability": math.nan}, "the least probability must be between 0.5 and 1, got nan"),
        (["a"], {"processes": 0}, "processes must be at least 1, got 0"),
    ],
)
def test_what_a_program_cannot_ask_for_leaves_nothing(
    sources: list[str], options: dict[str, float], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        audit_captures(sources, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert str(refused.value) == sentence
    assert list(tmp_path.iterdir()) == []


def test_commands_say_what_they_did(tmp_path: Path) -> None:
    plain = tmp_path / "plain.pcap"
    plain.write_bytes(gzip.decompress(SPLIT.read_bytes()))
    runner, result = CliRunner(), str(tmp_path / "out")
    said = runner.invoke(command.audit_captures, [str(plain), "-o", result, "--jobs", "1"])
    assert said.exit_code == 0, said.output
    assert "1 capture, judged as 1" in said.output
    document = json.loads(runner.invoke(command.audit_captures, [str(plain), "-o", result, "--json"]).output)
    assert (document["schema"], document["resumed"]) == (1, 1)
    assert sum(document["verdicts"].values()) == document["connections"]
    assert set(document["verdicts"]) == {kind.value for kind in Verdict}
    sql = "SELECT port, round(avg(probability_regular), 3) AS p FROM connections GROUP BY 1 ORDER BY 1"
    table = runner.invoke(command.query, [result, sql]).output.splitlines()
    listed = runner.invoke(command.query, [result, sql, "--csv"]).output.splitlines()
    answer = json.loads(runner.invoke(command.query, [result, sql, "--json"]).output)
    assert table[0].split() == listed[0].split(",") == answer["columns"] == ["port", "p"]
    assert len(table) == len(listed) == 1 + len(answer["rows"])


def test_answers_wider_than_the_terminal_are_paragraphs() -> None:
    answer = Answer(("port", "reason"), [(80, "No exchange can be timed."), (443, None)])
    assert list(command._shown(answer, None))[1] == "80    No exchange can be timed."
    assert list(command._shown(answer, 31)) == list(command._shown(answer, None))
    assert list(command._shown(answer, 30)) == [
        "port    80", "reason  No exchange can be", "        timed.", "", "port    443", "reason  -",
    ]  # fmt: skip
    assert list(command._shown(Answer(("port", "reason"), []), 5)) == ["port  reason"]


def test_a_file_that_cannot_be_read_is_named_once_by_the_name_that_its_user_knows(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(b"rubbish")
    archive = tmp_path / "set.zip"
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("day/cut.pcap", bytes.fromhex("d4c3b2a1") + b"cut")
    said = CliRunner().invoke(
        command.audit_captures, [str(broken), str(archive), "-o", str(tmp_path / "out"), "--jobs", "1"]
    )
    lines = [line for line in said.stderr.splitlines() if line.startswith("pepscope: ")]
    assert len(lines) == 2
    for line, name in zip(lines, (str(broken), f"{archive}/day/cut.pcap"), strict=True):
        assert line.startswith(f"pepscope: {name} ")
        assert line.count(Path(name).name) == 1


def test_the_questions_of_the_guide_have_answers(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "guide" / "many-captures.md").read_text(encoding="utf-8")
    questions = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    assert len(questions) >= 10
    audit_captures([str(SPLIT), str(WHOLE), *map(str, PAIR)], tmp_path, processes=2)
    answered = [query(tmp_path, question.strip().rstrip(";")) for question in questions]
    assert sum(bool(answer.rows) for answer in answered) >= 6
