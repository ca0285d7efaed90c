"""A directory that grows: every capture once, whole, in whatever runs, and verdicts as `detect` gives them."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from detector.commands.watch import watch
from detector.corpora.watch.directory_source import DirectorySource
from detector.detection import detect
from pepscope.errors import PepscopeError, UsageError
from tests.detector.corpora.watch.cut_captures import SPLIT, WHOLE, frames_of, settle, write_slices

FRAMES, LINK_TYPE = frames_of(SPLIT)
PATIENCE_S = 300


def run(*arguments: object) -> Result:
    return CliRunner().invoke(watch, [str(each) for each in arguments])


def summary(*arguments: object) -> dict[str, Any]:
    outcome = run(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def sentence(*arguments: object) -> str:
    """The one that an option or a directory that cannot be used ends in."""
    outcome = run(*arguments)
    assert isinstance(outcome.exception, PepscopeError), outcome.output
    return str(outcome.exception)


def test_slices_get_the_verdicts_that_detect_gives_the_whole(tmp_path: Path) -> None:
    write_slices(FRAMES, LINK_TYPE, [200, 450, 700, 1100], tmp_path)
    found = summary(tmp_path, "--once")
    expected = {(each.network, each.port): each for each in detect(str(SPLIT)).groups}
    assert {(each["network"], each["port"]) for each in found["groups"]} == set(expected)
    for group in found["groups"]:
        same = expected[group["network"], group["port"]]
        assert (group["verdict"], group["exchanges"]) == (same.verdict, same.exchanges)
        assert group["near_round_trip_s"] == pytest.approx(same.near_round_trip_s)
    assert found["connections"] == 20
    assert found["slices"] == {"judged": 5, "failed": 0, "lost": 0}


def test_changes_are_lines_and_exit_status(tmp_path: Path) -> None:
    directory, log = tmp_path / "captures", tmp_path / "log"
    directory.mkdir()
    shutil.copy(SPLIT, directory)
    outcome = run(directory, "--once", "--fail-on", "split", "--log", log)
    assert outcome.exit_code == 1
    told = events(outcome.stdout)
    assert [(each["event"], each["port"], each["verdict"]) for each in told] == [
        ("appeared", 80, "split-tcp"),
        ("appeared", 443, "split-tcp"),
    ]
    assert events(log.read_text()) == told
    assert "20 connections; slices: 1 judged" in outcome.stderr
    assert run(directory, "--once", "--fail-on", "regular").exit_code == 0
    shutil.copy(WHOLE, directory / SPLIT.name)
    outcome = run(directory, "--once", "--fail-on", "split", "--log", log)
    assert outcome.exit_code == 0, outcome.output
    assert len(log.read_text().splitlines()) == 2 + len(events(outcome.stdout))


def test_nothing_judged_is_no_success(tmp_path: Path) -> None:
    outcome = run(tmp_path, "--once", "--fail-on", "split")
    assert outcome.exit_code == 1
    assert "nothing could be judged" in outcome.stderr


def test_a_run_after_the_other_judges_nothing_twice(tmp_path: Path) -> None:
    directory, state = tmp_path / "captures", tmp_path / "state"
    directory.mkdir()
    paths = write_slices(FRAMES, LINK_TYPE, [700], directory)
    later = paths[1].rename(tmp_path / paths[1].name)
    first = summary(directory, "--once", "--state", state)
    again = summary(directory, "--once", "--state", state)
    assert first["connections"] > 0 == again["connections"]
    assert again["slices"]["judged"] == 0
    # What was judged is not forgotten, whatever the files are called since.
    strip = [{**each, "since": None} for each in first["groups"]]
    assert [{**each, "since": None} for each in again["groups"]] == strip
    packed = directory / "old.pcap.gz"
    packed.write_bytes(gzip.compress(paths[0].read_bytes()))
    paths[0].unlink()
    assert summary(directory, "--once", "--state", state)["slices"]["judged"] == 0
    later.rename(directory / later.name)
    last = summary(directory, "--once", "--state", state)
    assert last["slices"]["judged"] == 1
    assert last["evidence_connections"] == first["connections"] + last["connections"]


def test_a_name_that_is_used_again_is_a_new_capture(tmp_path: Path) -> None:
    state = tmp_path / "state"
    directory = tmp_path / "ring"
    directory.mkdir()
    one, other = write_slices(FRAMES, LINK_TYPE, [700], directory)
    content = other.read_bytes()
    other.unlink()
    assert summary(directory, "--once", "--state", state)["slices"]["judged"] == 1
    one.write_bytes(content)
    assert summary(directory, "--once", "--state", state)["slices"]["judged"] == 1


def test_what_a_file_grew_by_is_judged_alone(tmp_path: Path) -> None:
    directory, state = tmp_path / "captures", tmp_path / "state"
    directory.mkdir()
    whole, _ = write_slices(FRAMES, LINK_TYPE, [len(FRAMES) - 1], tmp_path)
    path = directory / "growing.pcap"
    content = whole.read_bytes()
    path.write_bytes(content[: len(content) // 10])
    settle(path)
    first = summary(directory, "--once", "--state", state)["connections"]
    path.write_bytes(content)
    settle(path, 1)
    second = summary(directory, "--once", "--state", state)["connections"]
    assert 0 < first < 20
    assert first + second == 20


def test_a_broken_capture_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"no capture at all")
    (tmp_path / "b.pcap").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("nor is this")
    shutil.copy(SPLIT, tmp_path / "c.pcap.gz")
    os.truncate(tmp_path / "c.pcap.gz", SPLIT.stat().st_size // 2)
    shutil.copy(SPLIT, tmp_path / "d.pcap.gz")
    outcome = run(tmp_path, "--once", "--json")
    found = json.loads(outcome.stdout)
    assert found["slices"] == {"judged": 2, "failed": 1, "lost": 0}
    assert outcome.stderr.count("a.pcap") == 1


def test_only_files_that_are_whole_are_taken(tmp_path: Path) -> None:
    now_s = time.time()
    names = {"old-1.pcap": 100, "fresh-1.pcap": 0, "rotated-1.pcap": 10, "rotated-2.pcap": 5}
    for name, age_s in names.items():
        path = tmp_path / name
        path.write_bytes(gzip.decompress(SPLIT.read_bytes()) + name.encode())  # contents differ
        os.utime(path, (now_s - age_s, now_s - age_s))
    # One capture under several names would be one: the beginnings must differ, too.
    for number, name in enumerate(names):
        content = bytearray((tmp_path / name).read_bytes())
        content[40 + number] ^= 0xFF
        age_s = names[name]
        (tmp_path / name).write_bytes(content)
        os.utime(tmp_path / name, (now_s - age_s, now_s - age_s))
    source = DirectorySource(str(tmp_path))
    taken = []
    while (found := source.take(0)) is not None:
        taken.append(found.path.name)
    assert taken == ["old-1.pcap", "rotated-1.pcap"]


def test_the_directory_is_watched_until_a_signal(tmp_path: Path) -> None:
    directory, state = tmp_path / "captures", tmp_path / "state"
    directory.mkdir()
    command = [sys.executable, "-m", "pepscope", "watch", str(directory), "--state", str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        part = tmp_path / "capture.pcap.gz"
        shutil.copy(SPLIT, part)
        settle(part)
        part.rename(directory / part.name)
        assert json.loads(running.stdout.readline())["verdict"] == "split-tcp"
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE_S) == 0
        assert "20 connections; slices: 1 judged" in running.stderr.read()
    assert summary(directory, "--once", "--state", state)["slices"]["judged"] == 0


def test_a_directory_that_goes_away_ends_the_watch(tmp_path: Path) -> None:
    directory = tmp_path / "captures"
    directory.mkdir()
    shutil.copy(SPLIT, directory)
    settle(directory / SPLIT.name)
    command = [sys.executable, "-m", "pepscope", "watch", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stdout is not None
        assert json.loads(running.stdout.readline())["verdict"] == "split-tcp"
        shutil.rmtree(directory)
        assert running.wait(PATIENCE_S) == 2
        *_, seen, said = running.stderr.read().splitlines()
        assert seen.startswith("pepscope: 20 connections; slices: 1 judged")
        assert said == f"pepscope: the directory {directory} cannot be read: No such file or directory"


def test_what_cannot_be_used_ends_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert sentence(tmp_path / "none") == f"{tmp_path / 'none'} must be a directory of captures, and is none"
    assert sentence(tmp_path / "file") == f"{tmp_path / 'file'} must be a directory of captures, and is none"
    assert sentence() == "watch needs a directory or an interface (-i), one of the two"
    assert sentence(tmp_path, "-i", "lo") == "watch needs a directory or an interface (-i), one of the two"
    assert sentence("-i", "lo", "--once") == "--once is for a directory: give --duration with an interface"
    for option in (("--slice", "5s"), ("--spool", tmp_path), ("--keep", "3"), ("--snap-length", "96")):
        assert sentence(tmp_path, "--once", *option) == f"{option[0]} is for an interface (-i), got DIRECTORY"
    assert "at least as long as a slice" in sentence(tmp_path, "--window", "10s")
    assert sentence(tmp_path, "--once", "--webhook", "ftp://x") == (
        "the webhook must be an address such as https://host/path, got 'ftp://x'"
    )
    assert "does not compile" in sentence(tmp_path, "--once", "--filter", "no filter")
    assert "cannot be read" in sentence(tmp_path, "--once", "--networks", tmp_path / "none")
    assert sentence(tmp_path, "--once", "--log", tmp_path / "none" / "log") == (
        f"the log {tmp_path / 'none' / 'log'} cannot be written: No such file or directory"
    )
    assert sentence(tmp_path, "--once", "--state", tmp_path / "none" / "state") == (
        f"the state {tmp_path / 'none' / 'state'} cannot be written: No such file or directory"
    )


def test_a_directory_that_may_not_be_read(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:

        def refuse(_: Path) -> None:
            raise PermissionError(13, "Permission denied")

        patch.setattr(Path, "iterdir", refuse)
        with pytest.raises(UsageError, match=r"the directory .* cannot be read: Permission denied"):
            DirectorySource(str(tmp_path))
