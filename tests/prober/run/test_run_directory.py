"""A run on disk: what was committed is there however the process ends, and what was not is taken for no result."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pepscope.errors import UsageError
from pepscope.whole_file import write_whole
from prober.archive.archive_file import open_archive
from prober.measurement.task import Measurement, Status
from prober.run.run_directory import RunDirectory
from prober.run.run_metadata import ClockSample
from tests.prober.runs_made_by_hand import EMPTY_CAPTURE, observation, plan, task


def captured(directory: RunDirectory, key: str, *ends: str) -> None:
    directory.begin(key)
    for end in ends:
        directory.capture_path(key, end).write_bytes(EMPTY_CAPTURE)


def test_what_was_committed_is_there_when_the_run_is_taken_up(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, plan()) as first:
        captured(first, task().key, "mobile", "server")
        kept = first.commit(observation())
        first.keep_clocks([ClockSample(5, -0.25, 0.01, True)])
        first.keep_metadata({"mobile": {"kernel": "6"}})
        run_id = first.run_id
    assert kept.mobile_capture
    assert kept.server_capture
    with RunDirectory(tmp_path, plan()) as second:
        assert second.run_id == run_id
        assert second.observations == {task().key: kept}
        assert second.clocks() == [ClockSample(5, -0.25, 0.01, True)]
        assert second.metadata() == {"mobile": {"kernel": "6"}}
        second.write_archive(tmp_path / "a.zip", {"schema": 1}, complete=True, reason="", keys=[task().key])
    with open_archive(tmp_path / "a.zip") as run:
        assert run.observations == (kept,)
        assert set(run.captures) == {kept.mobile_capture, kept.server_capture}


def test_what_was_under_way_is_no_result(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, plan()) as first:
        captured(first, task().key, "mobile")
    with RunDirectory(tmp_path, plan()) as second:
        assert second.observations == {}
        assert not list((second.path / "partial").iterdir())


@pytest.mark.parametrize("step", range(12))
def test_dying_at_any_step_of_a_commit_leaves_all_or_nothing(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call that changes the disk is made to die in turn; also while a failed try is replaced."""
    earlier = observation(status=Status.FAILED, reason="broke off", measurement=Measurement())
    with RunDirectory(tmp_path, plan()) as first:
        earlier = first.commit(earlier)
        captured(first, task().key, "mobile")
        left = step

        def dying(real):
            def call(*arguments, **options):
                nonlocal left
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
                return real(*arguments, **options)

            return call

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", dying(os.fsync))
            patched.setattr(Path, "rename", dying(Path.rename))
            patched.setattr(Path, "replace", dying(Path.replace))
            patched.setattr("prober.run.run_directory.write_whole", dying(write_whole))
            died = False
            try:
                first.commit(observation())
            except KeyboardInterrupt:
                died = True
    with RunDirectory(tmp_path, plan()) as second:
        found = second.observations.get(task().key)
        assert found in (None, earlier, observation(captured=True))
        if not died:
            assert found == observation(captured=True)
        for item in second.observations.values():
            if item.mobile_capture:
                assert (second.path / "tasks" / item.task.key / "mobile.pcap").read_bytes() == EMPTY_CAPTURE


@pytest.mark.parametrize("damage", ["observation.json", "mobile.pcap"])
def test_what_a_failing_disk_spoiled_is_measured_again(damage: str, tmp_path: Path) -> None:
    with RunDirectory(tmp_path, plan()) as first:
        captured(first, task().key, "mobile")
        first.commit(observation())
        spoiled = first.path / "tasks" / task().key / damage
    if damage.endswith(".json"):
        spoiled.write_bytes(spoiled.read_bytes()[:50])
    else:
        spoiled.unlink()
    with RunDirectory(tmp_path, plan()) as second:
        assert second.observations == {}


def test_another_plan_has_another_directory(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, plan()) as first, RunDirectory(tmp_path, plan(limits={"tries": 3})) as second:
        assert first.path != second.path


def test_two_processes_do_not_run_one_plan(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, plan()), pytest.raises(UsageError, match="another process"):
        RunDirectory(tmp_path, plan())
    with RunDirectory(tmp_path, plan()) as later:
        assert later.observations == {}


def test_restarting_begins_anew(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, plan()) as first:
        first.commit(observation())
        run_id = first.run_id
    with RunDirectory(tmp_path, plan(), restart=True) as second:
        assert second.run_id != run_id
        assert not second.observations


def test_a_run_of_another_version_is_not_mixed(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, plan()) as first:
        beginning = first.path / "run.json"
    beginning.write_text(beginning.read_text().replace('"version": "', '"version": "9.'))
    with pytest.raises(UsageError, match="--restart"):
        RunDirectory(tmp_path, plan())
    with RunDirectory(tmp_path, plan(), restart=True) as again:
        assert not again.observations


def test_a_full_disk_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with RunDirectory(tmp_path, plan()) as directory:
        directory.try_writing()
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            directory.try_writing()
        monkeypatch.undo()
        assert {item.name for item in directory.path.iterdir()} == {"lock", "run.json", "tasks", "partial"}


def test_the_key_is_not_on_the_disk(tmp_path: Path) -> None:
    secret = "pepscope1.mmmmmmmmmmmmmmmmmmmmmmmm." + "0" * 64
    with RunDirectory(tmp_path, plan(server={"host": "h", "key": secret})) as directory:
        directory.commit(observation())
        written = {item.name: item.read_bytes() for item in directory.path.rglob("*") if item.is_file()}
    assert {"run.json", "observation.json"} <= set(written)
    assert [name for name, data in written.items() if b"mmmmmm" in data] == []


def test_measurements_that_json_cannot_hold_are_no_results(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, plan()) as directory:
        with pytest.raises(ValueError, match="JSON"):
            directory.commit(observation(measurement=Measurement({"rate": float("nan")})))
        assert not directory.observations
