"""What goes wrong around a corpus: one sentence, and nothing that was finished is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from detector.corpora.audit import audit_captures
from detector.detection import detect
from pepscope.errors import UsageError
from pepscope.processes.workers import ClusterLostError
from tests.detector.corpora.test_audit_captures import PAIR, SPLIT, WHOLE, errors, tables
from tests.detector.corpus import CORPUS
from tests.pepscope.processes.clusters import cluster

ROOT = Path(__file__).parents[3]


def command_line(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "pepscope", "audit-captures", *map(str, arguments)]


@contextmanager
def small_disk(place: Path, kibibytes: int) -> Iterator[None]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_one_sentence_and_what_was_judged_stays(tmp_path: Path) -> None:
    sources = [str(path) for path in sorted(CORPUS.glob("reg_*.gz"))[:12]]
    disk = tmp_path / "disk"
    with small_disk(disk, 160):
        result = disk / "out"
        run = subprocess.run(command_line(*sources, "-o", result, "--jobs", "1"), cwd=ROOT, capture_output=True)
        assert run.returncode == 2
        (said,) = run.stderr.decode().strip().splitlines()
        assert "cannot be written" in said
        assert "No space left" in said
        there = len(list(result.glob("units/*.json")))
        assert there
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        again = audit_captures(sources, result, processes=1)
        assert again.resumed == there < again.units
        plain = audit_captures(sources, tmp_path / "plain", processes=1)
        assert again.errors == plain.errors
        pd.testing.assert_frame_equal(tables(result), tables(tmp_path / "plain"))


#: Root without the right to pass over permissions, as any other user who owns the files.
WITHOUT_PRIVILEGE = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    if os.geteuid() == 0
    else []
)


def test_what_may_not_be_read_or_written_is_said(tmp_path: Path) -> None:
    folder, mine = tmp_path / "in", tmp_path / "mine"
    (folder / "deep").mkdir(parents=True)
    shutil.copy(SPLIT, folder)
    shutil.copy(PAIR[0], folder)
    shutil.copy(WHOLE, folder / "deep")
    (folder / "deep" / WHOLE.name).chmod(0)
    mine.mkdir(mode=0o555)

    def run(output: Path) -> subprocess.CompletedProcess[str]:
        command = [*WITHOUT_PRIVILEGE, *command_line(folder, "-o", output, "--jobs", "1")]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    done = run(tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 captures")
    assert f"{WHOLE.name} cannot be read: [Errno 13] Permission denied" in done.stderr
    refused = run(mine)
    assert refused.returncode == 2
    (said,) = refused.stderr.strip().splitlines()
    assert f"{mine} cannot be used: [Errno 13] Permission denied" in said


def test_a_file_that_is_written_all_the_time_is_judged(tmp_path: Path) -> None:
    growing, ended = tmp_path / "growing.pcap.gz", threading.Event()
    growing.write_bytes(SPLIT.read_bytes()[:20_000])

    def write() -> None:
        while not ended.is_set():
            with growing.open("ab") as stream:
                stream.write(SPLIT.read_bytes()[growing.stat().st_size :][:500])
            time.sleep(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        first = audit_captures([str(growing), str(WHOLE)], tmp_path / "out", processes=1)
    finally:
        ended.set()
        writer.join()
    assert (first.captures, first.errors) == (2, ())
    growing.write_bytes(SPLIT.read_bytes())
    audit_captures([str(growing), str(WHOLE)], tmp_path / "out", processes=1)
    frame = tables(tmp_path / "out")
    assert (frame["capture_a"] == str(growing)).sum() == len(detect(str(SPLIT)).pairs)


@pytest.mark.parametrize("damaged_at", [0, 10, 11, 30, 400])
def test_a_damaged_compressed_file_is_a_row_or_is_read_to_the_damage(damaged_at: int, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    content = WHOLE.read_bytes()
    (folder / "damaged.pcap.gz").write_bytes(content[:damaged_at] + b"\x07\xff" * 20 + content[damaged_at + 40 :])
    shutil.copy(SPLIT, folder / "whole.pcap.gz")
    summary = audit_captures([str(folder)], tmp_path / "out", processes=1)
    read = set(pd.read_parquet(tmp_path / "out" / "captures.parquet")["capture"])
    assert str(folder / "whole.pcap.gz") in read
    assert str(folder / "damaged.pcap.gz") in read or set(errors(summary)) == {"damaged.pcap.gz"}


def test_one_capture_twice_is_counted_once_and_a_directory_without_captures_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing to read here")
    with pytest.raises(UsageError, match=f"no capture in {folder}"):
        audit_captures([str(folder)], tmp_path / "none", processes=1)
    for name in ("one.pcap.gz", "two.pcap.gz"):
        shutil.copy(SPLIT, folder / name)
    summary = audit_captures([str(folder)], tmp_path / "out", processes=1)
    assert summary.units == 1
    assert errors(summary) == {"two.pcap.gz": f"it is a copy of {folder / 'one.pcap.gz'}"}
    assert len(tables(tmp_path / "out")) == len(detect(str(SPLIT)).pairs)


def test_ends_whose_clocks_are_years_apart_are_named(tmp_path: Path) -> None:
    mobile, server = sorted((ROOT / "examples" / "split").glob("*.pcap.gz"))
    shutil.copy(server, tmp_path)
    shifted = tmp_path / "mobile.pcap"
    for years in (10, 0):
        seconds = str(-years * 365 * 86_400)
        subprocess.run(["editcap", "-t", seconds, mobile, shifted], check=True)
        summary = audit_captures([str(tmp_path)], tmp_path / f"out{years}", processes=1)
        assert summary.pairs == (years == 0)
        assert len(summary.notes) == (years == 10)
    done = subprocess.run(command_line(tmp_path, "-o", tmp_path / "out0"), cwd=ROOT, capture_output=True, text=True)
    assert "share connections" not in done.stderr
    subprocess.run(["editcap", "-t", "315360000", mobile, shifted], check=True)
    done = subprocess.run(command_line(tmp_path, "-o", tmp_path / "out"), cwd=ROOT, capture_output=True, text=True)
    (said,) = done.stderr.strip().splitlines()
    assert f"{shifted} and {tmp_path / server.name} share connections, but by their clocks" in said


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--networks", "absent", "the table of networks absent cannot be read: No such file or directory"),
        ("--networks", __file__, "a prefix, a comma and a name are needed"),
        ("--least-probability", "nan", "invalid value for '--least-probability': 'nan' is not a finite number"),
    ],
)
def test_options_that_no_capture_could_be_judged_by_are_refused_first(
    option: str, value: str, said: str, tmp_path: Path
) -> None:
    run = subprocess.run(
        command_line(ROOT / PAIR[0], "-o", tmp_path / "out", option, value), cwd=ROOT, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert said in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_unicode_is_judged_as_any_other(tmp_path: Path) -> None:
    shutil.copy(os.fsencode(SPLIT), os.fsencode(tmp_path) + b"/\xff.pcap.gz")
    summary = audit_captures([str(tmp_path)], tmp_path / "out", processes=1)
    assert (summary.captures, summary.errors) == (1, ())
    assert set(tables(tmp_path / "out")["capture_a"]) == {f"{tmp_path}/?.pcap.gz"}


def test_a_killed_scheduler_keeps_what_was_judged_and_a_second_run_repeats_nothing(tmp_path: Path) -> None:
    sources = [str(path) for path in sorted(CORPUS.glob("reg_*.gz"))[:16]]
    result = tmp_path / "out"

    with cluster(1) as running:

        def progress(step: str, done: int, _: int) -> None:
            if step == "judging" and done == 3:
                running.stop()

        with pytest.raises(ClusterLostError) as raised:
            audit_captures(
                sources, result, scheduler=running.address, patience_s=15, progress=progress
            )  # fmt: skip
    assert "did not come back within 15 s; of " in str(raised.value)
    assert "the same command goes on from there" in str(raised.value)
    assert "\n" not in str(raised.value)
    marks = {path: path.stat().st_mtime_ns for path in result.glob("units/*.json")}
    assert len(marks) >= 3
    again = audit_captures(sources, result, processes=2)
    assert again.resumed == len(marks) < again.units
    assert marks == {path: path.stat().st_mtime_ns for path in marks}
    audit_captures(sources, tmp_path / "plain", processes=1)
    pd.testing.assert_frame_equal(tables(result), tables(tmp_path / "plain"))
