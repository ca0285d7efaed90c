"""Keys while a server runs: whose a session is, what a key may take, and what ends when it is revoked."""

from __future__ import annotations

import contextlib
import ftplib
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prober.client.control_client import ControlClient
from prober.errors import ControlError, UnreachableError
from prober.protocol.control_messages import SESSION_FIELD, Key
from prober.protocol.plain_requests import TcpRequest
from prober.server.identity import revoke
from prober.server.keys.client_key import Quotas
from prober.server.keys.key_file import KeyFile
from tests.prober.server.running import TIMEOUT_S, Here, received, serving_here


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def here(state: Path) -> Iterator[Here]:
    with serving_here(state) as here:
        yield here


@contextlib.contextmanager
def client(here: Here, state: Path, name: str, **quotas: int) -> Iterator[ControlClient]:
    """A mobile with a key of its own."""
    key = Key(KeyFile(state).add(name, Quotas(**quotas)), here.key.fingerprint)
    with ControlClient("127.0.0.1", here.ports.control, key, patience_s=0.5) as mobile:
        until(lambda: accepts(mobile))
        yield mobile


def accepts(mobile: ControlClient) -> bool:
    with contextlib.suppress(ControlError):
        mobile.clock()
        return True
    return False


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ask(here: Here, key: Key, method: str, path: str, source: str = "127.0.0.1", session: str = "") -> tuple[int, Any]:
    """One control message from an address of this host."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(
        "127.0.0.1", here.ports.control, timeout=TIMEOUT_S, context=tls, source_address=(source, 0)
    )
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {key.token}", **({SESSION_FIELD: session} if session else {})}
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_keys_that_are_added_while_it_runs_are_accepted(here: Here, state: Path) -> None:
    with client(here, state, "added") as mobile:
        assert mobile.session != here.session


def test_a_session_belongs_to_its_key(here: Here, state: Path) -> None:
    with client(here, state, "thief") as other:
        status, answer = ask(here, other._key, "GET", "/v1/served", session=here.session)
        assert (status, answer) == (403, {"error": "the session belongs to another key"})
        status, answer = ask(here, other._key, "POST", "/v1/sessions", session=here.session)
        assert status == 200
        assert answer["session"] != here.session
        assert ask(here, other._key, "DELETE", "/v1/sessions", session=here.session)[0] == 403
    here.control.served(settle_s=0.0)


def test_a_session_belongs_to_its_address_too(here: Here) -> None:
    status, answer = ask(here, here.key, "GET", "/v1/served", "127.0.0.9", here.session)
    assert (status, answer) == (410, {"error": "the session was started from another address; begin a new one"})
    status, answer = ask(here, here.key, "POST", "/v1/sessions", "127.0.0.9", here.session)
    assert status == 200
    assert answer["session"] != here.session
    assert ask(here, here.key, "DELETE", "/v1/sessions", "127.0.0.9", answer["session"])[0] == 200


def test_two_clients_with_one_key_have_sessions_of_their_own(here: Here) -> None:
    with here.another() as other:
        capture = here.control.start_capture("mine", 100)
        assert other.session != here.session
        with pytest.raises(ControlError, match="no capture of this name"):
            other.delete_capture(capture)
    here.control.delete_capture(capture)


def test_a_key_has_only_so_many_sessions(here: Here, state: Path) -> None:
    with client(here, state, "single", sessions=1) as first:
        assert first.session
        with ControlClient("127.0.0.1", here.ports.control, first._key, patience_s=0.3) as second:
            with pytest.raises(UnreachableError, match="the key single has 1 sessions, its maximum"):
                assert second.session
            with here.another() as other:
                assert other.session, "the others have room"
            first.close()
            assert second.session


def download(here: Here, session: str, size_bytes: int) -> bytes:
    with here.connect(here.ports.tcp[0]) as sock:
        sock.sendall(TcpRequest(session, "download", size_bytes, 1).to_line())
        return received(sock)


def test_a_key_moves_only_so_much_a_day_in_all_its_sessions(here: Here, state: Path) -> None:
    with client(here, state, "frugal", day_bytes=300_000) as mobile:
        assert len(download(here, mobile.session, 200_000)) == 200_000
        with ControlClient("127.0.0.1", here.ports.control, mobile._key, patience_s=0.5) as again:
            said = download(here, again.session, 200_000)
        assert len(said) < 120_000
        assert said.endswith(b"error the key frugal has reached its limit of bytes for this day\n")
        assert len(download(here, here.session, 200_000)) == 200_000


def test_a_keys_captures_take_only_so_much(here: Here, state: Path) -> None:
    with client(here, state, "brief", capture_bytes=20_000) as mobile:
        first = mobile.start_capture("a", 0)
        until(lambda: len(download(here, here.session, 100_000)) == 100_000 and not is_running(state))
        assert (
            mobile.finish_capture(first).ended_early == "the captures of the key brief must take less than 20000 bytes"
        )
        with pytest.raises(ControlError, match="the captures of the key brief must take less than 20000 bytes: delete"):
            mobile.start_capture("b", 0)
        mobile.delete_capture(first)
        mobile.delete_capture(mobile.start_capture("c", 0))


def is_running(state: Path) -> bool:
    return any(path.suffix == ".pcap" for path in state.rglob("*.pcap"))


def test_a_revoked_key_ends_at_once(here: Here, state: Path) -> None:
    """Its sessions, its captures, its silences, and its connections of every protocol; nobody else's."""
    with client(here, state, "gone") as mobile, contextlib.ExitStack() as stack:
        mobile.start_capture("x", 100)
        mobile.silence(here.ports.http_free, 60.0).__enter__()
        raw = stack.enter_context(here.connect(here.ports.tcp[0]))
        raw.sendall(TcpRequest(mobile.session, "echo").to_line() + b"a")
        assert raw.recv(1) == b"a"
        web = stack.enter_context(here.connect(here.ports.http))
        web.sendall(f"GET /echo/{mobile.session} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert web.recv(9) == b"HTTP/1.1 "
        ftp = stack.enter_context(ftplib.FTP())
        ftp.connect("127.0.0.1", here.ports.ftp, timeout=TIMEOUT_S)
        ftp.login(mobile.session, "x")
        other = stack.enter_context(here.connect(here.ports.tcp[0]))
        other.sendall(TcpRequest(here.session, "echo").to_line() + b"a")
        assert other.recv(1) == b"a"
        session = mobile.session
        KeyFile(state).revoke("gone")
        assert received(raw) == b""
        received(web)
        with pytest.raises(EOFError):
            ftp.getresp()
        until(lambda: not list(state.rglob("*.pcap*")))
        with here.connect(here.ports.http_free) as silenced:
            silenced.sendall(f"GET /echo/{session} HTTP/1.0\r\n\r\n".encode())
            assert received(silenced).startswith(b"HTTP/1.1 403 ")
        with pytest.raises(ControlError, match="the key gone was revoked"):
            mobile.clock()
        other.sendall(b"b")
        assert other.recv(1) == b"b"


def test_the_servers_own_key_can_be_revoked_and_the_others_go_on(tmp_path: Path) -> None:
    with serving_here(tmp_path) as here, client(here, tmp_path, "alice") as alice:
        assert here.control.session
        revoke(tmp_path, "default")
        until(lambda: not accepts(here.control))
        with pytest.raises(ControlError, match="the key default was revoked"):
            here.control.clock()
        assert alice.session
    with serving_here(tmp_path) as again:
        assert again.key.token != here.key.token
        assert ask(again, alice._key, "GET", "/v1/clock")[0] == 200
        assert ask(again, here.key, "GET", "/v1/clock") == (401, {"error": "the key default was revoked"})


def test_a_damaged_file_of_keys_changes_nothing_while_it_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving_here(tmp_path) as here, client(here, tmp_path, "alice") as alice:
        session = alice.session
        (tmp_path / "keys.json").write_text("{")
        until(lambda: "must be JSON" in caplog.text)
        assert alice.session == session
        assert accepts(alice)
