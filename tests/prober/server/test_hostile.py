"""Hostile clients: garbage, slow senders, floods. Limits hold, and other clients are served."""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import ssl
import time
from collections.abc import Iterator

import pytest

from prober.errors import ControlError
from prober.protocol.objects import object_bytes
from prober.protocol.plain_requests import TcpRequest, object_target, upload_target
from prober.server.services import raw_tcp
from tests.prober.server.running import TIMEOUT_S, Here, received, serving_here

SERVICES = ("control", "http", "https", "ftp", "tcp", "http_free", "https_free", "ftp_free")
GARBAGE = {
    "nothing": b"",
    "zeros": bytes(100_000),
    "noise": random.Random(6).randbytes(200_000),
    "long line": b"A" * 300_000,
    "tls hello cut": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50),
    "tls alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "http header bomb": b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50_000,
    "http smuggling": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
    "http bad length": b"PUT /uploads/" + b"a" * 26 + b"/x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "http huge length": b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 300 + b"\r\n\r\n",
    "http huge chunk": b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 400,
    "http2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "socks": b"\x05\x01\x00\x05\x01\x00\x01\x7f\0\0\1\0\x50",
    "names": b" ".join(b"a" * 26 for _ in range(3000)) + b"\r\n\r\n",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with serving_here(tmp_path_factory.mktemp("state")) as here:
        yield here


class _Kept(logging.Handler):
    """Keeps errors in a list."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())


@pytest.fixture
def errors() -> Iterator[list[str]]:
    """Errors that the server logs, read at its own loggers: a command in this process may have ended propagation."""
    kept = _Kept()
    loggers = [logging.getLogger(name) for name in ("prober", "pyftpdlib")]
    for logger in loggers:
        logger.addHandler(kept)
    yield kept.records
    for logger in loggers:
        logger.removeHandler(kept)


def port_of(here: Here, service: str) -> int:
    return here.ports.tcp[0] if service == "tcp" else int(getattr(here.ports, service))


def serves(here: Here) -> None:
    """It does what it is for."""
    with here.connect(here.ports.tcp[0]) as sock:
        sock.sendall(TcpRequest(here.session, "download", 10_000, 1).to_line())
        assert received(sock) == object_bytes("bin", 10_000, 1)


def test_an_error_of_the_server_is_seen(here: Here, errors: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no test of garbage could fail by what the server logs."""
    monkeypatch.setattr(raw_tcp, "saved_syn", lambda _: 1 / 0)
    with here.connect(here.ports.tcp[0]) as sock:
        assert received(sock) == b""
    assert errors == ["a connection ended by an error of ours"]


@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("service", SERVICES)
def test_garbage_gets_little_and_breaks_nothing(here: Here, service: str, kind: str, errors: list[str]) -> None:
    answer = b""
    with here.connect(port_of(here, service)) as sock, contextlib.suppress(OSError):
        sock.sendall(GARBAGE[kind])
        sock.shutdown(socket.SHUT_WR)
        answer = received(sock)
    assert len(answer) <= 1500
    serves(here)
    assert errors == []


@pytest.mark.parametrize("service", ["https", "control"])
@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_within_tls_gets_little_too(here: Here, service: str, kind: str, errors: list[str]) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    answer = b""
    with here.connect(port_of(here, service)) as plain, tls.wrap_socket(plain) as sock, contextlib.suppress(OSError):
        sock.sendall(GARBAGE[kind])
        socket.socket.shutdown(sock, socket.SHUT_WR)
        answer = received(sock)
    assert len(answer) <= 1000
    assert b"200 " not in answer
    serves(here)
    assert errors == []


@pytest.mark.parametrize("service", SERVICES)
def test_dawdlers_are_cut_off(tmp_path_factory: pytest.TempPathFactory, service: str) -> None:
    """One byte at a time buys no time: there is one deadline for a whole head."""
    with (
        serving_here(tmp_path_factory.mktemp("state"), head_s=0.5) as here,
        here.connect(port_of(here, service)) as sock,
    ):
        began = time.monotonic()
        with pytest.raises((ConnectionError, EOFError)):
            dawdle(sock, client_hello() if service in ("control", "https", "https_free") else WORDS)
        assert 0.4 < time.monotonic() - began < 60


#: No line ends within it, so that every protocol waits for more.
WORDS = b"GET /" + b"x" * 200


def client_hello() -> bytes:
    """The beginning of TLS, as clients say it."""
    said = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), said, server_hostname="example.com")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return said.read()[:205]


def dawdle(sock: socket.socket, words: bytes) -> None:
    sock.settimeout(0.05)
    for letter in words:
        sock.sendall(bytes((letter,)))
        with contextlib.suppress(TimeoutError):
            if not sock.recv(1000):
                raise EOFError


@pytest.mark.parametrize("service", ["http", "https", "tcp", "ftp", "control"])
def test_a_client_is_served_beside_as_many_slow_ones_as_the_server_admits(
    tmp_path_factory: pytest.TempPathFactory, service: str
) -> None:
    """They come from many networks, and not one of them is over when the good client comes."""
    limits = {"connections": 30, "head_s": 600.0}
    with serving_here(tmp_path_factory.mktemp("state"), **limits) as here, contextlib.ExitStack() as crowd:
        session = here.session
        words = client_hello() if service in ("https", "control") else WORDS
        for number in range(60):
            source = (f"127.1.{number}.1", 0)
            sock = socket.create_connection(("127.0.0.1", port_of(here, service)), TIMEOUT_S, source_address=source)
            crowd.enter_context(sock).sendall(words[:5])
        for _ in range(5):
            with here.connect(here.ports.http) as good:
                good.sendall(f"GET /echo/{session} HTTP/1.0\r\n\r\n".encode())
                assert received(good).startswith(b"HTTP/1.1 200 ")
        assert here.control.clock().unix_ns > 0


def test_a_slow_request_body_is_cut_off(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving_here(tmp_path_factory.mktemp("state"), idle_s=0.5) as here, here.connect(here.ports.http) as sock:
        target = upload_target(here.session, "slow")
        sock.sendall(f"PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx".encode())
        assert received(sock) == b""
        (entry,) = here.control.served(settle_s=TIMEOUT_S)
        assert (entry.ending, entry.received_bytes) == ("idle", 1)


def test_one_address_has_only_so_many_connections(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving_here(tmp_path_factory.mktemp("state"), connections_per_address=5) as here:
        session = here.session  # the control connection is one of them
        with contextlib.ExitStack() as crowd:
            for _ in range(4):
                sock = crowd.enter_context(here.connect(here.ports.http))
                sock.sendall(f"GET /echo/{session} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert sock.recv(9) == b"HTTP/1.1 "
            with pytest.raises(ConnectionResetError), here.connect(here.ports.http) as refused:
                refused.recv(1)
            greeted = crowd.enter_context(here.connect(here.ports.ftp))
            assert received(greeted).startswith(b"421 ")
            elsewhere = crowd.enter_context(
                socket.create_connection(("127.0.0.1", here.ports.http), source_address=("127.0.0.9", 0))
            )
            elsewhere.sendall(f"GET /echo/{session} HTTP/1.0\r\n\r\n".encode())
            assert received(elsewhere).startswith(b"HTTP/1.1 200 ")
        until_served(here)


def until_served(here: Here) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(ConnectionResetError, AssertionError):
            serves(here)
            return
        assert time.monotonic() < deadline


def test_one_address_has_only_so_many_new_ones_a_second(tmp_path_factory: pytest.TempPathFactory) -> None:
    per_s = 0.5
    with serving_here(tmp_path_factory.mktemp("state"), connections_per_s=per_s, connections_at_once=5) as here:
        began = time.monotonic()
        answered = 0
        for _ in range(20):
            with contextlib.suppress(ConnectionError), here.connect(here.ports.http) as sock:
                sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answered += received(sock).startswith(b"HTTP/1.1 404 ")
        assert 5 <= answered <= 5 + per_s * (time.monotonic() - began)


def test_a_session_moves_only_so_much(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving_here(tmp_path_factory.mktemp("state"), session_bytes=300_000) as here:
        with here.connect(here.ports.tcp[0]) as sock:
            sock.sendall(TcpRequest(here.session, "download", 1_000_000, 1).to_line())
            assert len(received(sock)) < 310_000
        with here.connect(here.ports.http) as sock:
            sock.sendall(f"GET {object_target(here.session, 'bin', 250_000, 1)} HTTP/1.0\r\n\r\n".encode())
            assert len(received(sock)) < 250_000
        with here.another() as fresh, here.connect(here.ports.tcp[0]) as sock:
            sock.sendall(TcpRequest(fresh.session, "download", 100_000, 1).to_line())
            assert len(received(sock)) == 100_000


def test_a_day_moves_only_so_much(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving_here(tmp_path_factory.mktemp("state"), day_bytes=300_000) as here, here.another() as other:
        for session in (here.session, other.session):
            with here.connect(here.ports.tcp[0]) as sock:
                sock.sendall(TcpRequest(session, "download", 200_000, 1).to_line())
                moved = len(received(sock))
        assert moved < 120_000


def test_udp_answers_are_echoes_to_sessions_only(here: Here) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.3)
        sock.connect(("127.0.0.1", here.ports.udp_echo))
        for silent in (b"", b"x", b"a" * 26, b"a" * 1400, here.session[:25].encode(), here.session.upper().encode(),
                       here.session.encode() + bytes(2000)):  # fmt: skip
            sock.send(silent)
            with pytest.raises(TimeoutError):
                sock.recv(3000)
        question = here.session.encode() + b" 1 " + bytes(500)
        sock.settimeout(TIMEOUT_S)
        sock.send(question)
        assert sock.recv(3000) == question


def test_udp_echoes_only_so_fast(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving_here(tmp_path_factory.mktemp("state"), datagrams_per_s=10) as here:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(TIMEOUT_S)
            sock.connect(("127.0.0.1", here.ports.udp_echo))
            session = here.session
            began = time.monotonic()
            for number in range(60):
                sock.send(f"{session}{number}".encode())
            for _ in range(10):
                sock.recv(3000)
            answers = 10
            sock.settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                while sock.recv(3000):
                    answers += 1
        assert answers <= 10 + 10 * (time.monotonic() - began)


def test_clients_that_vanish_leave_no_connections(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving_here(tmp_path_factory.mktemp("state"), connections=40, connections_per_address=40) as here:
        for _ in range(3):
            with contextlib.ExitStack() as crowd:
                for number in range(30):
                    sock = crowd.enter_context(here.connect(port_of(here, SERVICES[number % len(SERVICES)])))
                    sock.sendall(b"G" * (number % 3))
            until_served(here)


def test_a_control_channel_that_answers_without_end_is_left(here: Here) -> None:
    """The client's side of it: answers are bounded."""
    endless = Endless(here)
    with pytest.raises(ControlError, match="at most"):
        endless.control.about()
    endless.control.close()


class Endless:
    def __init__(self, here: Here) -> None:
        self.control = here.another()
        self.control._respond = lambda *_: Endless.Response()  # type: ignore[assignment,method-assign]

    class Response:
        def read(self, count: int) -> bytes:
            return b"x" * count
