"""Stored keys: private, whole at any moment, changed by one command at a time."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.errors import ServerError
from prober.server.keys import key_file
from prober.server.keys.client_key import Quotas
from prober.server.keys.key_file import KeyFile
from prober.server.keys.key_ring import KeyRing
from prober.server.refusal import RefusedError

OWN = "own" * 10


def names(file: KeyFile) -> list[str]:
    return [record.name for record in file.read()]


def test_a_key_is_stored_without_its_token_and_for_the_owner_only(tmp_path: Path) -> None:
    file = KeyFile(tmp_path)
    token = file.add("alice", Quotas(sessions=2, day_bytes=5))
    assert token not in file.path.read_text()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    (record,) = file.read()
    assert (record.name, record.quotas) == ("alice", Quotas(sessions=2, day_bytes=5))
    assert KeyRing(file, OWN).find(token).name == "alice"
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]


def test_root_leaves_the_file_to_the_owner_of_the_directory(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 12_345, 12_345)
    KeyFile(tmp_path).add("alice", Quotas())
    assert (tmp_path / "keys.json").stat().st_uid == tmp_path.stat().st_uid


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 41, "-x", "ä", "a\nb", "default"])
def test_names_are_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(ServerError, match=r"name") as caught:
        KeyFile(tmp_path).add(name, Quotas())
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_free_again_once_its_key_is_revoked(tmp_path: Path) -> None:
    file = KeyFile(tmp_path)
    first = file.add("alice", Quotas())
    with pytest.raises(ServerError, match="there is a key alice already"):
        file.add("alice", Quotas())
    file.revoke("alice")
    with pytest.raises(ServerError, match="the key alice is revoked already"):
        file.revoke("alice")
    second = file.add("alice", Quotas())
    ring = KeyRing(file, OWN)
    assert ring.find(second).name == "alice"
    with pytest.raises(RefusedError, match="missing or wrong"):
        ring.find(first)
    assert names(file) == ["alice"]


def test_commands_at_the_same_time_lose_no_key(tmp_path: Path) -> None:
    file = KeyFile(tmp_path)
    threads = [threading.Thread(target=file.add, args=(f"k{number}", Quotas())) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names(file)) == sorted(f"k{number}" for number in range(12))


ADDING = """
import sys
from pathlib import Path
from prober.server.keys.client_key import Quotas
from prober.server.keys.key_file import KeyFile
for number in range(10_000):
    KeyFile(Path(sys.argv[1])).add(f"k{number}", Quotas())
    print(number, flush=True)
"""


def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """Each key that was reported is there, and the next command goes on."""
    file = KeyFile(tmp_path)
    for round_number in range(4):
        file.path.unlink(missing_ok=True)
        command = [sys.executable, "-c", ADDING, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(5 + 3 * round_number):
                process.stdout.readline()
            process.kill()
            reported = 5 + 3 * round_number + len(process.stdout.read().splitlines())
        assert names(file)[:reported] == [f"k{number}" for number in range(reported)]
        file.add("next", Quotas())
        assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]


def test_a_full_disk_leaves_the_keys_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = KeyFile(tmp_path)
    file.add("alice", Quotas())

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pepscope.whole_file.os.fsync", full)
    with pytest.raises(ServerError, match=r"keys\.json cannot be written: No space left on device"):
        file.add("bob", Quotas())
    assert names(file) == ["alice"]
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must be JSON"),
        ("[" * 100_000, "must be JSON"),
        ("[]", "must be a table, got a list"),
        ('{"schema": 2, "keys": []}', "schema must be 1, got 2"),
        ('{"schema": 1, "keys": [{"name": "a"}]}', r"keys\[0\].token_sha256 is missing"),
        ('{"schema": 1, "keys": [], "x": 1}', "x is not a field"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "keys.json").write_text(text)
    (tmp_path / "keys.json").chmod(0o600)
    with pytest.raises(ServerError, match=sentence) as caught:
        KeyFile(tmp_path).read()
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=300))
def test_no_file_does_more_than_be_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    directory = tmp_path_factory.mktemp("keys")
    key_file.write_private(directory / "keys.json", data)
    with pytest.raises(ServerError):
        KeyFile(directory).read()


def test_what_others_could_read_is_not_trusted(tmp_path: Path) -> None:
    file = KeyFile(tmp_path)
    file.add("alice", Quotas())
    file.path.chmod(0o640)
    with pytest.raises(ServerError, match=r"can be read by others \(mode 0640\)"):
        file.read()


def test_a_ring_follows_the_file_and_keeps_its_keys_where_the_file_is_damaged(tmp_path: Path) -> None:
    file = KeyFile(tmp_path)
    ring = KeyRing(file, OWN)
    assert ring.refresh() == []
    token = file.add("alice", Quotas())
    assert ring.refresh() == []
    alice = ring.find(token)
    file.add("bob", Quotas())
    assert ring.refresh() == []
    assert ring.find(token) is alice, "what a key has used is not forgotten"
    good = file.path.read_text()
    key_file.write_private(file.path, b"{")
    with pytest.raises(ServerError):
        ring.refresh()
    assert ring.find(token) is alice
    key_file.write_private(file.path, json.dumps(json.loads(good)).encode())
    assert ring.refresh() == []
    file.revoke("alice")
    assert ring.refresh() == [alice]
    with pytest.raises(RefusedError, match="the key alice was revoked"):
        ring.find(token)
    assert ring.find(OWN).name == "default"


def test_without_its_file_a_ring_has_the_servers_own_key_only(tmp_path: Path) -> None:
    file = KeyFile(tmp_path)
    token = file.add("alice", Quotas())
    ring = KeyRing(file, OWN)
    alice = ring.find(token)
    file.path.unlink()
    assert ring.refresh() == [alice]
    assert [key.name for key in ring.accepted] == ["default"]
