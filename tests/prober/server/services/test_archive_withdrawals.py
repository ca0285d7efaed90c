"""Archives that their clients withdraw, and that an operator deletes beside a server that runs."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from prober.client.archive_upload import upload_archive
from prober.client.control_client import ControlClient
from prober.errors import ControlError
from prober.protocol.control_messages import Key
from prober.server.archives.stored_archive import delete_archive, stored_archives
from prober.server.keys.client_key import Quotas
from prober.server.keys.key_file import KeyFile
from tests.prober.server.running import TIMEOUT_S, Here, serving_here
from tests.prober.server.services.uploading import archive, left_over, raw, serving_with, stored

NONE = r"^the server has no such archive of this key$"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def here(state: Path) -> Iterator[Here]:
    with serving_here(state) as here:
        yield here


def withdraw(control: ControlClient, content: bytes) -> None:
    assert control.ask("DELETE", f"archives/{hashlib.sha256(content).hexdigest()}") == {}


def test_a_withdrawn_archive_is_gone_and_may_come_again(here: Here, state: Path, tmp_path: Path) -> None:
    file, other = archive(tmp_path / "a.zip", 200_000), archive(tmp_path / "b.zip", 1000, seed=2)
    for each in (file, other):
        upload_archive(here.control, each, TIMEOUT_S)
    withdraw(here.control, file.read_bytes())
    assert list(stored(state)) == [("default", "b.zip")]
    assert len(list((state / "archives").rglob("*.*"))) == 2, "its record is gone, too"
    with pytest.raises(ControlError, match=NONE):
        withdraw(here.control, file.read_bytes())
    assert upload_archive(here.control, file, TIMEOUT_S).found_bytes == 0
    assert sorted(stored(state)) == [("default", "a.zip"), ("default", "b.zip")]


def test_what_came_so_far_is_withdrawn_and_frees_its_room(tmp_path: Path) -> None:
    first, second = archive(tmp_path / "a.zip", 700_000), archive(tmp_path / "b.zip", 700_000, seed=2)
    tables = {"archives": {"total_bytes": 1_000_000, "free_disk_bytes": 0}}
    with serving_with(tmp_path / "state", tables) as (here, _), raw(here) as mobile:
        content = first.read_bytes()
        assert mobile.offer(content)[0] == 200
        assert mobile.part(content, 0, content[:1000])[0] == 200
        withdraw(here.control, content)
        assert left_over(tmp_path / "state") == []
        assert mobile.part(content, 1000, content[1000:])[0] == 404
        upload_archive(here.control, second, TIMEOUT_S)


def test_nobody_withdraws_the_same_archive_of_another_client(here: Here, state: Path, tmp_path: Path) -> None:
    file = archive(tmp_path / "a.zip", 1000)
    upload_archive(here.control, file, TIMEOUT_S)
    with ControlClient("127.0.0.1", here.ports.control, _new_key(here, state), patience_s=20.0) as stranger:
        with pytest.raises(ControlError, match=NONE):
            withdraw(stranger, file.read_bytes())
        upload_archive(stranger, file, TIMEOUT_S)
        withdraw(stranger, file.read_bytes())
    assert list(stored(state)) == [("default", "a.zip")]


def _new_key(here: Here, state: Path) -> Key:
    key = Key(KeyFile(state).add("stranger", Quotas()), here.key.fingerprint)
    with ControlClient("127.0.0.1", here.ports.control, key, patience_s=20.0) as mobile:
        for _ in range(3000):
            with contextlib.suppress(ControlError):
                mobile.clock()
                return key
            threading.Event().wait(0.02)
    raise AssertionError("the server must accept a new key")


def test_uploads_and_withdrawals_of_one_archive_at_once_leave_all_or_nothing(
    here: Here, state: Path, tmp_path: Path
) -> None:
    file = archive(tmp_path / "a.zip", 300_000)
    content = file.read_bytes()
    unexpected: list[Exception] = []

    def upload() -> None:
        with here.another() as mobile:
            for _ in range(6):
                try:
                    upload_archive(mobile, file, TIMEOUT_S)
                except ControlError as error:
                    # Withdrawn under its hands, again and again.
                    if not any(word in str(error) for word in ("over", "announced", "goes on at")):
                        unexpected.append(error)

    def take_back() -> None:
        with here.another() as mobile:
            for _ in range(20):
                try:
                    withdraw(mobile, content)
                except ControlError as error:
                    if "no such archive" not in str(error):
                        unexpected.append(error)

    threads = [threading.Thread(target=each) for each in (upload, upload, take_back)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert unexpected == []
    assert left_over(state) == [] or upload_archive(here.control, file, TIMEOUT_S).found_bytes <= len(content)
    upload_archive(here.control, file, TIMEOUT_S)
    assert stored(state) == {("default", "a.zip"): content}


def test_what_an_operator_deletes_is_unknown_to_a_server_that_runs(tmp_path: Path) -> None:
    state = tmp_path / "state"
    files = [archive(tmp_path / f"{number}.zip", 1000, seed=number) for number in range(3)]
    with serving_with(state, {"archives": {"client_bytes": 3000}}) as (here, sweep):
        for file in files:
            upload_archive(here.control, file, TIMEOUT_S)
        for record in list(stored_archives(state / "archives")):
            if record.name != "2.zip":
                delete_archive(state / "archives", record)
        assert upload_archive(here.control, files[0], TIMEOUT_S).found_bytes == 0
        sweep()
        upload_archive(here.control, archive(tmp_path / "3.zip", 1000, seed=3), TIMEOUT_S)
    assert sorted(name for _, name in stored(state)) == ["0.zip", "2.zip", "3.zip"]
