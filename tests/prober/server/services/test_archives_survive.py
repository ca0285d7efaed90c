"""Archives and uploads survive kills, full and damaged disks, and clocks that step."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prober.client.archive_upload import FIRST_PART_BYTES, upload_archive
from prober.client.control_client import ControlClient
from prober.errors import ControlError
from tests.prober.server.running import TIMEOUT_S, serving_here
from tests.prober.server.services.uploading import archive, raw, serving_with, stored
from tests.prober.serving import serving


def test_damage_on_the_servers_disk_is_found_and_mended(tmp_path: Path) -> None:
    """What a loss of power left of an upload has other bytes: it begins again, by itself."""
    state = tmp_path / "state"
    file = archive(tmp_path / "run.pepscope.zip", 600_000)
    content = file.read_bytes()
    with serving_here(state) as here, raw(here) as mobile:
        mobile.offer(content)
        assert mobile.part(content, 0, content[:400_000])[0] == 200
    (part,) = (state / "archives" / "default").glob("*.part")
    part.write_bytes(content[:300_000] + bytes(100_000))
    with serving_here(state) as here:
        assert upload_archive(here.control, file, 60.0).found_bytes == 400_000
    assert stored(state) == {("default", "run.pepscope.zip"): content}


def test_a_clock_that_steps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty years back and forth in the middle of uploads, with rules of age, and sessions, keys and captures."""
    steps = itertools.cycle((0, -20, 20, -56))
    now, now_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: max(0.0, now() + next(steps) * 3.2e7))
    monkeypatch.setattr(time, "time_ns", lambda: max(0, now_ns() + next(steps) * 32_000_000_000_000_000))
    files = [archive(tmp_path / f"{number}.zip", 300_000, seed=number) for number in range(6)]
    with serving_with(tmp_path / "state", {"retention": {"days": 1.0}}) as (here, sweep):
        session = here.session
        for file in files:
            upload_archive(here.control, file, 60.0)
            sweep()
            assert here.session == session
        assert here.control.served() == []
    with serving_with(tmp_path / "state", {"retention": {"days": 1.0}}) as (_, sweep):
        sweep()
    assert sorted(name for _, name in stored(tmp_path / "state")) == [file.name for file in files]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB of its own."""
    if os.geteuid() != 0:
        raise RuntimeError("this test mounts a file system: run the tests as root")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "pepscope-test", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_full_in_the_middle_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    earlier, large = archive(tmp_path / "a.zip", 1_000_000), archive(tmp_path / "b.zip", 6_000_000, seed=2)
    state = small_disk / "state"
    with serving_with(state, {"archives": {"free_disk_bytes": 0}}) as (here, _):
        upload_archive(here.control, earlier, 60.0)
        with raw(here) as mobile:
            assert mobile.offer(large.read_bytes(), name="b.zip")[0] == 200
            # What is announced would fit; then something else fills the disk.
            filler = small_disk / "filler"
            filler.write_bytes(bytes(5 << 20))
            with pytest.raises(ControlError, match=r"(cannot store more of the archive: No space left|nearly full)"):
                upload_archive(here.control, large, 60.0)
            assert here.control.clock().unix_ns > 0, "everything else goes on"
            assert mobile.offer(large.read_bytes(), name="b.zip")[1]["stored_bytes"] > 0
        assert stored(state) == {("default", "a.zip"): earlier.read_bytes()}
        filler.unlink()
        assert upload_archive(here.control, large, 60.0).found_bytes > 0
    assert stored(state) == {("default", file.name): file.read_bytes() for file in (earlier, large)}


def test_a_server_that_is_killed_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """The client only waits, and the archives that were there stay."""
    files = [archive(tmp_path / f"{number}.zip", 2_000_000, seed=number) for number in range(2)]
    state, drawn = tmp_path / "state", random.Random(7)
    arrived: list[Path] = []
    failures: list[Exception] = []

    def upload(key: str, port: int) -> None:
        try:
            with ControlClient("127.0.0.1", port, key, patience_s=TIMEOUT_S) as mobile:
                for file in files:
                    upload_archive(slowed(mobile), file, TIMEOUT_S)
                    arrived.append(file)
        except Exception as error:
            failures.append(error)

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    thread, kills, known = None, 0, set[str]()
    while thread is None or thread.is_alive():
        with serving(state, ports=at(port)) as server:
            if thread is None:
                thread = threading.Thread(target=upload, args=(server.key, port))
                thread.start()
            names = {name for _, name in stored(state)}
            assert known | {file.name for file in arrived[:-1]} <= names, "what was whole is there"
            known = names
            thread.join(drawn.uniform(0.05, 0.8) if kills < 5 else TIMEOUT_S)
            if thread.is_alive():
                server.process.kill()
                server.process.wait(60)
                kills += 1
    assert failures == []
    assert kills >= 3
    assert stored(state) == {("default", file.name): file.read_bytes() for file in files}


def at(port: int) -> list[str]:
    others = ("http", "https", "ftp", "tcp", "udp_echo", "dead", "http_free", "https_free", "ftp_free")
    return [f"control={port}", *(f"{name}=0" for name in others)]


def slowed(mobile: ControlClient) -> ControlClient:
    """Parts stay small and take a little, so that there is something to kill."""
    send = mobile.send_part
    if getattr(send, "__name__", "") != "slow":

        def slow(path: str, part: bytes) -> Any:
            time.sleep(0.15)
            return send(path, part[:FIRST_PART_BYTES])

        mobile.send_part = slow  # type: ignore[method-assign]
    return mobile


def test_archives_survive_a_copy_of_the_state_directory(tmp_path: Path) -> None:
    file = archive(tmp_path / "run.zip", 10_000)
    with serving_here(tmp_path / "state") as here:
        upload_archive(here.control, file, 60.0)
        shutil.copytree(tmp_path / "state", tmp_path / "copy")
    with serving_here(tmp_path / "copy") as copy:
        assert upload_archive(copy.control, file, 60.0).found_bytes == 10_000
