"""How a running proxy treats connections: halves, aborts, limits, and clients that mean no good."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference_proxy.running import abort, echo, proxy, received, serving

DATA = bytes(range(256)) * 4000


@pytest.mark.parametrize("mode", ["split", "store-and-forward"])
def test_one_half_closes_before_the_other(tmp_path: Path, mode: str) -> None:
    """The server answers only when the client has finished: the end must travel, and the way back stay open."""
    with serving(echo) as server, proxy(tmp_path, mode, "--set", "store.pause_s=0.1") as running:
        with running.ask(server, extra=b"first ") as sock:
            sock.sendall(DATA)
            sock.shutdown(socket.SHUT_WR)
            assert received(sock) == b"first " + DATA
        (line,) = running.truth()
    assert line["ending"] == "finished"
    assert line["requested"] == line["server_leg"]["remote"]
    assert line["mobile_leg"]["given_bytes"] == line["server_leg"]["given_bytes"] == len(DATA) + 6
    assert line["manner"] == ("relayed" if mode == "split" else "stored")


def test_a_slow_reader_holds_the_sender_back(tmp_path: Path) -> None:
    """Nothing is lost, and the proxy holds no more than its buffer."""
    sizes = [f"{leg}.{side}_buffer_bytes=16384" for leg in ("mobile", "server") for side in ("send", "receive")]
    options = [word for size in ["buffer_bytes=16384", *sizes] for word in ("--set", size)]
    sent = threading.Event()

    def send(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        sock.sendall(DATA)
        sent.set()

    with serving(send) as server, proxy(tmp_path, "split", *options) as running:
        sock = running.connect()
        sock.close()
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
            sock.settimeout(60)
            sock.connect(running.address)
            sock.sendall(f"CONNECT {server[0]}:{server[1]} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert not sent.wait(0.5), "the sender must wait for the reader"
            data = received(sock)
        assert data.partition(b"\r\n\r\n")[2] == DATA
        *_, line = running.truth(2)
    assert 0 < line["most_held_bytes"] <= 16_384


@pytest.mark.parametrize(
    ("aborts", "abort_delay_s", "idle_s", "earliest_s", "latest_s"),
    [("at-once", 100.0, 200.0, 0.0, 100.0), ("after-delay", 0.5, 100.0, 0.5, 100.0), ("never", 0.1, 1.0, 1.0, 100.0)],
)
def test_aborts_travel_as_configured(
    tmp_path: Path, aborts: str, abort_delay_s: float, idle_s: float, earliest_s: float, latest_s: float
) -> None:
    """`never` ends with the idle limit, as the longest of seed 004's providers did.

    What each would wait for beyond its own limit is so far away that a busy machine cannot take it for that.
    """
    ended: list[float] = []
    begun = threading.Event()

    def wait(sock: socket.socket) -> None:
        begun.set()
        try:
            sock.recv(1)
        finally:
            ended.append(time.monotonic())

    limits = (f"aborts={aborts}", f"abort_delay_s={abort_delay_s}", f"limits.idle_s={idle_s}")
    options = [word for limit in limits for word in ("--set", limit)]
    with serving(wait) as server, proxy(tmp_path, "split", *options) as running:
        sock = running.ask(server)
        assert begun.wait(60)
        aborted_at = time.monotonic()
        abort(sock)
        (line,) = running.truth()
        deadline = time.monotonic() + 60
        while not ended and time.monotonic() < deadline:
            time.sleep(0.01)
    assert line["ending"] == "mobile-aborted"
    assert earliest_s <= ended[0] - aborted_at < latest_s
    assert earliest_s <= line["abort_propagated_after_s"] + 0.01
    assert line["abort_propagated_after_s"] < latest_s


def test_an_abort_of_the_server_reaches_the_client(tmp_path: Path) -> None:
    def begin_and_abort(sock: socket.socket) -> None:
        sock.recv(1)
        abort(sock)

    with serving(begin_and_abort) as server, proxy(tmp_path, "split") as running:
        with running.ask(server) as sock:
            sock.sendall(b"x")
            with pytest.raises(ConnectionResetError):
                received(sock)
        assert running.truth()[0]["ending"] == "server-aborted"


def test_idle_connections_end(tmp_path: Path) -> None:
    with serving(echo) as server, proxy(tmp_path, "split", "--set", "limits.idle_s=0.5") as running:
        with running.ask(server) as sock, pytest.raises(ConnectionResetError):
            sock.recv(1)
        assert running.truth()[0]["ending"] == "idle"


@pytest.mark.parametrize("mode", ["split", "store-and-forward"])
def test_slow_loris_gets_no_time_for_trickling(tmp_path: Path, mode: str) -> None:
    options = ("--set", "limits.handshake_s=0.6")
    with proxy(tmp_path, mode, *options) as running, running.connect() as sock:
        sock.sendall(b"GET http://127.0.0.1/ HTTP/1.1\r\n")
        with pytest.raises(OSError, match=r"reset|Broken"):  # noqa: PT012
            for number in range(2000):
                sock.sendall(b"X-%d: y\r\n" % number)
                time.sleep(0.05)
        assert running.truth()[0]["ending"] == "handshake-timeout"
        assert running.await_event("handshake-timeout")["level"] == "warning"


@pytest.mark.parametrize("mode", ["split", "store-and-forward"])
@pytest.mark.parametrize("said", [b"", b"GET http://127.0.0.1/ HTTP/1.1\r\n", b"\x05"])
def test_slow_clients_make_room_for_others(tmp_path: Path, mode: str, said: bytes) -> None:
    """Not one of them is over when the good client comes."""
    options = ("--set", "limits.connections=10", "--set", "limits.handshake_s=600")
    with serving(echo) as server, proxy(tmp_path, mode, *options) as running, contextlib.ExitStack() as crowd:
        for _ in range(20):
            crowd.enter_context(running.connect()).sendall(said)
        for _ in range(3):
            with running.ask(server) as sock:
                sock.sendall(DATA)
                sock.shutdown(socket.SHUT_WR)
                assert received(sock) == DATA
        assert {line["ending"] for line in running.truth(10)[:10]} == {"displaced"}
        assert running.await_event("displaced")["level"] == "warning"


@pytest.mark.parametrize(
    ("said", "status", "ending"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", b" 400 ", "malformed"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b" 400 ", "malformed"),
        (b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 200_000, b" 431 ", "header-too-large"),
        (b"CONNECT 192.0.2.1:80 HTTP/1.1\r\nHost: x\r\n\r\n", b" 403 ", "not-allowed"),
        (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n", b" 502 ", "server-refused"),
    ],
)
def test_an_unserved_request_is_answered_and_reported(tmp_path: Path, said: bytes, status: bytes, ending: str) -> None:
    with proxy(tmp_path, "split") as running:
        with running.connect() as sock:
            try:
                sock.sendall(said)
                answer = received(sock)
            except ConnectionResetError:
                answer = status  # more came than was read: the reset may overtake the answer
            assert status in answer
        (line,) = running.truth()
        assert (line["ending"], line["class"]) == (ending, None)
        assert running.await_event(ending)["level"] == "warning"


def test_it_does_not_connect_to_itself(tmp_path: Path) -> None:
    with proxy(tmp_path, "split") as running, running.connect() as sock:
        sock.sendall(f"CONNECT 127.0.0.1:{running.address[1]} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b" 508 " in received(sock)


def test_a_flood_of_idle_connections_is_bounded_and_leaves_room_for_others(tmp_path: Path) -> None:
    """More than are allowed wait in the kernel; idle ones are closed at their time limit."""
    options = ("--set", "limits.connections=20", "--set", "limits.handshake_s=2")
    with serving(echo) as server, proxy(tmp_path, "split", *options) as running:
        flood = [running.connect() for _ in range(60)]
        assert running.await_event("full")["level"] == "warning"
        with running.ask(server) as sock:
            sock.sendall(b"hello")
            sock.shutdown(socket.SHUT_WR)
            assert received(sock) == b"hello"
        for silent in flood:
            silent.close()
        warnings = [line for line in running.log if line.get("event") == "handshake-timeout"]
        assert len(warnings) < 20, "a flood must not flood the log"


def test_one_client_cannot_take_all_places(tmp_path: Path) -> None:
    with proxy(tmp_path, "split", "--set", "limits.connections_per_client=2") as running:
        kept = [running.connect() for _ in range(2)]  # accepted in this order
        # The reset may come before connecting has ended.
        with pytest.raises(ConnectionResetError), running.connect() as third:
            third.recv(1)
        assert running.await_event("too-many-of-client")["client"] == "127.0.0.1"
        for sock in kept:
            sock.close()


def test_sigterm_drains_and_a_second_one_stops(tmp_path: Path) -> None:
    with serving(echo) as server, proxy(tmp_path, "split") as running:
        with running.ask(server) as sock:
            running.process.send_signal(signal.SIGTERM)
            running.await_event("draining")
            with pytest.raises(ConnectionRefusedError):
                running.connect()
            sock.sendall(DATA)
            sock.shutdown(socket.SHUT_WR)
            assert received(sock) == DATA
        assert running.process.wait(60) == 0
        assert running.truth()[0]["ending"] == "finished"
    with serving(echo) as server, proxy(tmp_path, "split") as running, running.ask(server) as sock:
        running.process.send_signal(signal.SIGTERM)
        running.await_event("draining")
        assert running.end() == 0
        assert running.truth(2)[1]["ending"] == "stopped"


def test_metrics_count_what_happened(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        serving(echo) as server,
        proxy(tmp_path, "split", "--metrics", f"127.0.0.1:{port}") as running,
    ):
        with running.ask(server) as sock:
            sock.sendall(DATA)
            sock.shutdown(socket.SHUT_WR)
            received(sock)
        running.truth()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
            text = response.read().decode()
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(samples["pepscope_proxy_accepted_total"]) == 1
    assert float(samples['pepscope_proxy_bytes_total{direction="down"}']) == len(DATA)
    assert float(samples['pepscope_proxy_ended_total{ending="finished"}']) == 1


class Pages(http.server.BaseHTTPRequestHandler):
    """`/fresh` may be kept, `/tagged` must be asked for again, everything else may not be kept."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = f"page {self.path} ".encode() * 500
        if self.headers.get("If-None-Match") == '"tag"':
            self.send_response(304)
            body = b""
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
        control = {"/fresh": "max-age=100", "/tagged": "no-cache"}.get(self.path, "no-store")
        self.send_header("Cache-Control", control)
        self.send_header("ETag", '"tag"')
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def pages() -> Iterator[tuple[str, list[str]]]:
    handler = type("Handler", (Pages,), {"asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", handler.asked  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()


def test_the_http_proxy_caches_validates_and_compresses(tmp_path: Path, pages: tuple[str, list[str]]) -> None:
    base, asked = pages
    with proxy(tmp_path, "store-and-forward") as running:
        client = http.client.HTTPConnection(*running.address, timeout=60)
        for path in ("/fresh", "/fresh", "/tagged", "/tagged", "/never", "/never"):
            client.request("GET", base + path)
            assert client.getresponse().read() == f"page {path} ".encode() * 500
        client.request("GET", f"{base}/fresh", headers={"Accept-Encoding": "gzip"})
        response = client.getresponse()
        assert response.getheader("Content-Encoding") == "gzip"
        assert len(response.read()) < 500
        client.request("GET", f"{base}/fresh", headers={"If-None-Match": 'W/"tag"'})
        response = client.getresponse()
        assert (response.status, response.read()) == (304, b"")
        client.close()
        (line,) = running.truth()
    assert asked == ["/fresh", "/tagged", "/tagged", "/never", "/never"]
    assert (line["requests"], line["cache_hits"], line["revalidated"], line["recompressed"]) == (8, 3, 1, 1)


def test_an_answer_that_breaks_off_is_not_passed_on(tmp_path: Path) -> None:
    def break_off(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")

    with serving(break_off) as server, proxy(tmp_path, "store-and-forward") as running, running.connect() as sock:
        sock.sendall(f"GET http://127.0.0.1:{server[1]}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        answer = received(sock)
    assert b" 502 " in answer
    assert b"only this" not in answer


def test_a_too_large_answer_is_passed_on_whole(tmp_path: Path, pages: tuple[str, list[str]]) -> None:
    limits = ("--set", "store.object_bytes=4096", "--set", "buffer_bytes=4096")
    with proxy(tmp_path, "store-and-forward", *limits) as running:
        client = http.client.HTTPConnection(*running.address, timeout=60)
        client.request("GET", pages[0] + "/never")
        assert client.getresponse().read() == b"page /never " * 500
        client.close()
        assert running.truth()[0]["manner"] == "relayed"


@pytest.mark.parametrize(("types", "manner"), [("text/*", "stored"), ("image/*", "relayed"), ("*/*", "stored")])
def test_only_chosen_media_types_are_stored(
    tmp_path: Path, pages: tuple[str, list[str]], types: str, manner: str
) -> None:
    with proxy(tmp_path, "store-and-forward", "--set", f"store.content_types={types}") as running:
        client = http.client.HTTPConnection(*running.address, timeout=60)
        for path in ("/fresh", "/fresh"):
            client.request("GET", pages[0] + path)
            assert client.getresponse().read() == b"page /fresh " * 500
        client.close()
        (line,) = running.truth()
    assert line["manner"] == manner
    assert line["cache_hits"] == (1 if manner == "stored" else 0)
