"""Uploads of archives to a server that runs: cut, killed, doubled, refused, and never lost."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prober.client.archive_upload import upload_archive
from prober.client.control_client import ControlClient
from prober.errors import ControlError, UnreachableError
from prober.protocol.control_messages import MOST_PART_BYTES, Key
from prober.server.archives.stored_archive import stored_archives
from prober.server.keys.client_key import Quotas
from prober.server.keys.key_file import KeyFile
from tests.prober.server.running import TIMEOUT_S, Here, serving_here
from tests.prober.server.services.uploading import archive, left_over, raw, serving_with, stored
from tests.prober.serving import scripted


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def here(state: Path) -> Iterator[Here]:
    with serving_here(state) as here:
        yield here


@contextlib.contextmanager
def cutting(port: int, cuts: Iterator[int]) -> Iterator[int]:
    """A port that forwards to another one, and resets each connection after so many bytes towards it."""

    def forward(link: socket.socket) -> None:
        left = next(cuts)
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as beyond:
            back = threading.Thread(target=pump, args=(beyond, link, 1 << 60))
            back.start()
            pump(link, beyond, left)
            for sock in (link, beyond):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            back.join()

    def pump(source: socket.socket, target: socket.socket, left: int) -> None:
        with contextlib.suppress(OSError):
            while left > 0 and (piece := source.recv(min(left, 65_536))):
                target.sendall(piece)
                left -= len(piece)

    with scripted(forward) as listening:
        yield listening


def test_an_archive_arrives_and_is_uploaded_once(here: Here, state: Path, tmp_path: Path) -> None:
    file = archive(tmp_path / "run 1.pepscope.zip", 3_000_000)
    told: list[tuple[int, int]] = []
    done = upload_archive(here.control, file, 60.0, lambda *share: told.append(share))
    assert (done.size_bytes, done.found_bytes) == (3_000_000, 0)
    assert (told[0], told[-1]) == ((0, 3_000_000), (3_000_000, 3_000_000))
    assert stored(state) == {("default", "run_1.pepscope.zip"): file.read_bytes()}
    assert left_over(state) == []
    again = upload_archive(here.control, file, 60.0)
    assert again.found_bytes == 3_000_000
    (record,) = stored_archives(state / "archives")
    assert record.network == "127.0.0.0/24"
    for path in (state / "archives").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, "for the owner alone"


def test_an_upload_that_is_cut_anywhere_goes_on_there(here: Here, state: Path, tmp_path: Path) -> None:
    """Every connection is reset: within the handshake, a head, a part, or before the answer."""
    file = archive(tmp_path / "run.pepscope.zip", 2_000_000)
    drawn = random.Random(4)
    cuts = itertools.chain((drawn.choice((100, 2000, 20_000, 300_000)) + drawn.randrange(3000) for _ in range(25)),
                           itertools.repeat(1 << 60))  # fmt: skip
    with (
        cutting(here.ports.control, cuts) as port,
        ControlClient("127.0.0.1", port, here.key, patience_s=TIMEOUT_S) as mobile,
    ):
        upload_archive(mobile, file, TIMEOUT_S)
    assert next(cuts) == 1 << 60, "all cuts were made"
    assert stored(state) == {("default", "run.pepscope.zip"): file.read_bytes()}
    assert left_over(state) == []


def test_two_clients_with_one_key_upload_the_same_and_another_at_once(here: Here, state: Path, tmp_path: Path) -> None:
    same = archive(tmp_path / "same.pepscope.zip", 5_000_000)
    files = [same, same, archive(tmp_path / "another.pepscope.zip", 2_000_000, seed=2)]
    begin = threading.Barrier(len(files))
    failures: list[Exception] = []

    def upload(file: Path) -> None:
        with here.another() as mobile:
            begin.wait(60)
            try:
                upload_archive(mobile, file, TIMEOUT_S)
            except ControlError as error:
                failures.append(error)

    threads = [threading.Thread(target=upload, args=(file,)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert stored(state) == {("default", file.name): file.read_bytes() for file in files}
    assert left_over(state) == []


def test_a_connection_that_stalls_keeps_no_other_from_the_same_upload(here: Here, state: Path, tmp_path: Path) -> None:
    content = archive(tmp_path / "run.pepscope.zip", 100_000).read_bytes()
    with raw(here) as stalled, raw(here) as other:
        assert stalled.offer(content)[1]["stored_bytes"] == 0
        stalled.connection.putrequest("PUT", f"/v1/archives/{hashlib.sha256(content).hexdigest()}?offset=0")
        for name, value in {**stalled._headers, "Content-Length": "100000"}.items():
            stalled.connection.putheader(name, value)
        stalled.connection.endheaders(content[:40_000])
        deadline = time.monotonic() + 60
        while (found := other.offer(content)[1])["stored_bytes"] < 40_000:
            assert time.monotonic() < deadline
        assert found["stored_bytes"] == 40_000
        assert other.part(content, 40_000, content[40_000:])[1]["is_whole"]
        stalled.connection.send(content[40_000:])
        assert json.loads(stalled.connection.getresponse().read())["is_whole"], "it learns that all is there"
    assert stored(state) == {("default", "run.pepscope.zip"): content}


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ({"sha256": "x" * 64}, 400, "sha256 must be 64 hexadecimal digits"),
        ({"sha256": "a" * 65}, 400, "sha256 must be text of at most 64 characters, got"),
        ({"size_bytes": 0}, 400, "size_bytes must be a whole number between 1 and"),
        ({"size_bytes": 10**15 + 10**14}, 413, "an archive must have at most"),
        ({"name": "../../etc/passwd"}, 400, "name must be letters, digits, dots, dashes and underscores"),
        ({"name": ""}, 400, "name must be letters"),
        ({"more": 1}, 400, "more is not a field"),
    ],
)
def test_offers_that_make_no_sense_are_refused(
    here: Here, state: Path, change: dict[str, Any], status: int, sentence: str
) -> None:
    with raw(here) as mobile:
        answered, document = mobile.offer(b"PK\x03\x04", **change)
    assert (answered, document["error"][: len(sentence)]) == (status, sentence)
    assert stored(state) == {}
    assert left_over(state) == []


def test_parts_that_make_no_sense_are_refused(here: Here, state: Path, tmp_path: Path) -> None:
    content = archive(tmp_path / "run.pepscope.zip", 10_000).read_bytes()
    with raw(here) as mobile:
        assert mobile.part(content, 0, content) == (
            404, {"error": "no such archive was announced; it may have been dropped"}
        )  # fmt: skip
        assert mobile.offer(content)[0] == 200
        assert mobile.part(content, 1, content) == (409, {"error": "the upload goes on at 0, got 1"})
        for offset in ("-1", "1e3", "%D9%A3", "9" * 30):
            assert mobile.ask("PUT", f"/v1/archives/{hashlib.sha256(content).hexdigest()}?offset={offset}", b"x",
                              )[0] == 400  # fmt: skip
            mobile.connection.close()
        assert mobile.part(content, 0, content + b"x")[0] == 413
        assert mobile.offer(content)[1]["stored_bytes"] <= 10_000
        for path in ("/v1/archives/", "/v1/archives/..%2f..", f"/v1/archives/{'A' * 64}", "/v1/archives/%00"):
            assert mobile.ask("PUT", path, b"x")[0] == 404
        mobile.connection.request("PUT", f"/v1/archives/{hashlib.sha256(content).hexdigest()}?offset=0", None,
                                  {**mobile._headers, "Content-Length": str(MOST_PART_BYTES * 3)})  # fmt: skip
        with contextlib.suppress(OSError):
            for _ in range(3):
                mobile.connection.send(bytes(MOST_PART_BYTES))
    upload_archive(here.control, tmp_path / "run.pepscope.zip", 60.0)
    assert stored(state) == {("default", "run.pepscope.zip"): content}


def test_each_key_has_its_quota_and_its_own_archives(here: Here, state: Path, tmp_path: Path) -> None:
    small, large = archive(tmp_path / "small.zip", 1_000_000), archive(tmp_path / "large.zip", 1_200_000, seed=2)
    token = KeyFile(state).add("frugal", Quotas(archive_bytes=2_000_000))
    key = Key(token, here.key.fingerprint)
    with ControlClient("127.0.0.1", here.ports.control, key, patience_s=20.0) as frugal:
        until_accepted(frugal)
        upload_archive(frugal, small, 60.0)
        with pytest.raises(ControlError, match=r"^the archives of the key frugal must take at most 2000000 bytes$"):
            upload_archive(frugal, large, 60.0)
        upload_archive(here.control, large, 60.0)
        upload_archive(here.control, small, 60.0)
    assert sorted(stored(state)) == [("default", "large.zip"), ("default", "small.zip"), ("frugal", "small.zip")]


def until_accepted(mobile: ControlClient) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(ControlError):
            mobile.clock()
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_is_announced_has_its_room_until_it_is_dropped(tmp_path: Path) -> None:
    """Others cannot take it meanwhile; without a byte for long it is dropped."""
    first, second = archive(tmp_path / "a.zip", 700_000), archive(tmp_path / "b.zip", 700_000, seed=2)
    tables = {"archives": {"total_bytes": 1_000_000, "unfinished_s": 1.0, "free_disk_bytes": 0}}
    with serving_with(tmp_path / "state", tables) as (here, sweep), raw(here) as mobile:
        assert mobile.offer(first.read_bytes())[0] == 200
        with pytest.raises(ControlError, match=r"^the server has as many archives as it may store$"):
            upload_archive(here.control, second, 60.0)
        time.sleep(1.1)
        sweep()
        upload_archive(here.control, second, 60.0)
        assert mobile.part(first.read_bytes(), 0, b"PK")[0] == 404
    assert list(stored(tmp_path / "state")) == [("default", "b.zip")]


def test_a_server_that_takes_no_archives_says_so(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.zip", 1000)
    with (
        serving_with(tmp_path / "state", {"archives": {"archive_bytes": 0}}) as (here, _),
        pytest.raises(ControlError, match=r"^this server takes no archives \(archives.archive_bytes is 0\)$"),
    ):
        upload_archive(here.control, file, 60.0)
    assert not (tmp_path / "state" / "archives").exists()


def test_the_rules_delete_while_the_server_runs(tmp_path: Path) -> None:
    files = [archive(tmp_path / f"{number}.zip", 1000, seed=number) for number in range(5)]
    with serving_with(tmp_path / "state", {"retention": {"client_archives": 2}}) as (here, sweep):
        for file in files:
            upload_archive(here.control, file, 60.0)
        sweep()
        assert sorted(name for _, name in stored(tmp_path / "state")) == ["3.zip", "4.zip"]
        assert len(list((tmp_path / "state" / "archives").rglob("*.*"))) == 4


def test_a_server_that_stores_nothing_is_left(tmp_path: Path) -> None:
    """The client's side: an answer that never gets on ends within its patience."""
    file = archive(tmp_path / "run.zip", 100_000)

    class Stuck:
        def ask(self, *_: object) -> dict[str, Any]:
            return {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "size_bytes": 100_000, "stored_bytes": 0,
                    "is_whole": False}  # fmt: skip

        send_part = ask

    with pytest.raises(UnreachableError, match=r"^for 0.2 s the server stored nothing more of the archive$"):
        upload_archive(Stuck(), file, 0.2)  # type: ignore[arg-type]
