"""Uploads of archives to a server that runs: cut, killed, doubled, refused, and never lost."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import itertools
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prober.client.archive_upload import FIRST_PART_BYTES, upload_archive
from prober.client.control_client import ControlClient
from prober.errors import ControlError, UnreachableError
from prober.protocol.control_messages import MOST_PART_BYTES, Key
from prober.server.archives.stored_archive import stored_archives
from prober.server.keys.client_key import Quotas
from prober.server.keys.key_file import KeyFile
from prober.server.service import running
from prober.server.settings import ServerSettings
from tests.prober.server.running import FREE, TIMEOUT_S, Here, serving_here
from tests.prober.serving import scripted, serving


def archive(path: Path, size_bytes: int, seed: int = 1) -> Path:
    """What looks like an archive, and compresses as little."""
    path.write_bytes(b"PK\x03\x04" + random.Random(seed).randbytes(size_bytes - 4))
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def here(state: Path) -> Iterator[Here]:
    with serving_here(state) as here:
        yield here


def stored(state: Path) -> dict[tuple[str, str], bytes]:
    """What is stored of each client, by the name that the client gave."""
    root = state / "archives"
    return {
        (each.client, each.name): (root / each.client / f"{each.sha256}.zip").read_bytes()
        for each in stored_archives(root)
    }


def left_over(state: Path) -> list[str]:
    return [path.name for path in (state / "archives").rglob("*") if path.suffix not in ("", ".json", ".zip")]


class Raw:
    """Requests about archives, written by hand."""

    def __init__(self, port: int, key: Key) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=tls)
        self._headers = {"Authorization": f"Bearer {key.token}"}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        self.connection.request(method, path, data, {**self._headers, **headers})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def offer(self, content: bytes, name: str = "run.pepscope.zip", **other: Any) -> tuple[int, dict[str, Any]]:
        digest = hashlib.sha256(content).hexdigest()
        return self.ask("POST", "/v1/archives", {"sha256": digest, "size_bytes": len(content), "name": name, **other})

    def part(self, content: bytes, offset: int, part: bytes) -> tuple[int, dict[str, Any]]:
        return self.ask("PUT", f"/v1/archives/{hashlib.sha256(content).hexdigest()}?offset={offset}", part)


@contextlib.contextmanager
def raw(here: Here, key: Key | None = None) -> Iterator[Raw]:
    made = Raw(here.ports.control, key or here.key)
    with contextlib.closing(made.connection):
        yield made


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


def test_damage_on_the_servers_disk_is_found_and_mended(state: Path, tmp_path: Path) -> None:
    """What a loss of power left of an upload has other bytes: it begins again, by itself."""
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


@contextlib.contextmanager
def serving_with(state: Path, tables: dict[str, Any]) -> Iterator[tuple[Here, Any]]:
    """A server that is swept when the test says so; the rules are due at once then."""
    document = {"listen": ["127.0.0.1"], "state": str(state), "ports": FREE, **tables}
    with running(ServerSettings.from_mapping(document)) as (key, about, sweep):

        def sweep_archives() -> None:
            sweep.__self__._archives._applied_s -= 3600  # type: ignore[attr-defined]
            sweep()

        with ControlClient("127.0.0.1", about.ports.control, key, patience_s=2.0) as control:
            yield Here(key, about, control), sweep_archives


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


def test_archives_survive_a_copy_of_the_state_directory(here: Here, state: Path, tmp_path: Path) -> None:
    file = archive(tmp_path / "run.zip", 10_000)
    upload_archive(here.control, file, 60.0)
    shutil.copytree(state, tmp_path / "copy")
    with serving_here(tmp_path / "copy") as copy:
        assert upload_archive(copy.control, file, 60.0).found_bytes == 10_000
