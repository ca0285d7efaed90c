"""What the plain protocols serve, asked by clients that are not ours: http.client, curl, ftplib, bare sockets."""

from __future__ import annotations

import contextlib
import ftplib
import hashlib
import http.client
import io
import json
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from prober.protocol.application import Application
from prober.protocol.control_messages import Served
from prober.protocol.objects import ObjectKind, ObjectName, object_bytes
from prober.protocol.plain_requests import TcpRequest, UploadReport, echo_target, object_target, upload_target
from tests.prober.server.running import TIMEOUT_S, Here, received, serving_here


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with serving_here(tmp_path_factory.mktemp("state"), object_bytes=50_000_000) as here:
        yield here


@contextlib.contextmanager
def http_to(here: Here, *, secure: bool = False, free: bool = False) -> Iterator[http.client.HTTPConnection]:
    ports = here.ports
    connection: http.client.HTTPConnection
    if secure:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        port = ports.https_free if free else ports.https
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=tls)
    else:
        port = ports.http_free if free else ports.http
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    with contextlib.closing(connection):
        yield connection


def get(connection: http.client.HTTPConnection, target: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection.request("GET", target)
    response = connection.getresponse()
    return response, response.read()


def since(here: Here, before: int) -> list[Served]:
    return here.control.served(before, settle_s=TIMEOUT_S)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("kind", list(ObjectKind))
def test_objects_come_whole_and_many_on_one_connection(here: Here, kind: ObjectKind, secure: bool, free: bool) -> None:
    before = here.control.last_served_number()
    with http_to(here, secure=secure, free=free) as connection:
        for size, seed in ((1000, 1), (200_001, 2)):
            response, body = get(connection, object_target(here.session, kind, size, seed))
            assert response.status == 200
            assert response.getheader("Content-Type") == kind.content_type
            assert response.getheader("Cache-Control") == "no-store"
            assert float(response.getheader("X-Think-Time", "nan")) < 5
            assert body == object_bytes(kind, size, seed)
        assert connection.sock is not None  # the connection was kept
    first, second = since(here, before)
    picture = kind.is_picture
    wanted = Application.HTTPS if secure else Application.HTTP_IMAGE if picture else Application.HTTP_DATA
    assert (first.application, first.object, first.ending) == (wanted, f"1000-1.{kind}", "finished")
    assert second.sha256 == ObjectName(kind, 200_001, 2).sha256()
    assert (second.size_bytes, second.sent_bytes) == (200_001, 200_001)
    assert first.peer == second.peer
    assert (first.connection_requests, second.connection_requests) == (0, 1)
    now_ns = here.control.clock().monotonic_ns
    assert now_ns - 60e9 < first.connection_accepted_ns == second.connection_accepted_ns < now_ns
    assert second.tcp_info["bytes_acked"] >= 200_001
    assert second.ended_unix_ns > second.started_unix_ns > first.started_unix_ns


def test_the_log_has_the_syn_as_it_came(here: Here) -> None:
    before = here.control.last_served_number()
    with here.connect(here.ports.http) as sock:
        sock.sendall(f"GET {echo_target(here.session)} HTTP/1.0\r\n\r\n".encode())
        received(sock)
        own_port = sock.getsockname()[1]
    (entry,) = since(here, before)
    header_bytes = (entry.syn[0] & 15) * 4
    source, destination = struct.unpack_from(">HH", entry.syn, header_bytes)
    assert (source, destination) == (own_port, here.ports.http)
    assert entry.syn[header_bytes + 13] & 0x12 == 0x02  # SYN without ACK


def test_caching_is_allowed_when_asked_for(here: Here) -> None:
    with http_to(here) as connection:
        response, _ = get(connection, object_target(here.session, "bin", 10, 1, cache_s=60))
    assert response.getheader("Cache-Control") == "public, max-age=60"


def test_head_returns_the_size_without_content(here: Here) -> None:
    with http_to(here) as connection:
        connection.request("HEAD", object_target(here.session, "bin", 5000, 1))
        response = connection.getresponse()
        assert (response.status, response.getheader("Content-Length"), response.read()) == (200, "5000", b"")
        assert get(connection, object_target(here.session, "bin", 10, 1))[0].status == 200


@pytest.mark.parametrize("secure", [False, True])
def test_uploads_are_hashed(here: Here, secure: bool) -> None:
    data = object_bytes("bin", 1_000_000, 3)
    before = here.control.last_served_number()
    with http_to(here, secure=secure) as connection:
        for body in (data, iter([data[:7], data[7:]])):
            connection.request("PUT", upload_target(here.session, "up.bin"), body, {"Content-Type": "image/jpeg"})
            report = UploadReport.parse(connection.getresponse().read())
            assert (report.received_bytes, report.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    sized, chunked = since(here, before)
    assert (sized.verb, sized.object, sized.size_bytes, sized.received_bytes) == ("PUT", "up.bin", 10**6, 10**6)
    assert (chunked.size_bytes, chunked.received_bytes) == (-1, 10**6)


def test_curl_gets_and_puts(here: Here, tmp_path: Path) -> None:
    base = f"http://127.0.0.1:{here.ports.http}"
    (tmp_path / "up").write_bytes(b"x" * 3_000_000)  # more than curl sends without asking with Expect
    up = subprocess.run(
        ["curl", "-sS", "-T", str(tmp_path / "up"), base + upload_target(here.session, "up")],
        capture_output=True, check=True, timeout=600,
    )  # fmt: skip
    assert json.loads(up.stdout)["received_bytes"] == 3_000_000
    url = f"https://127.0.0.1:{here.ports.https}" + object_target(here.session, "png", 4000, 9)
    down = subprocess.run(["curl", "-sSk", url], capture_output=True, check=True, timeout=600)
    assert down.stdout == object_bytes("png", 4000, 9)


def test_an_echo_is_the_head_byte_for_byte(here: Here) -> None:
    head = (
        f"BREW http://elsewhere.example{echo_target(here.session)} HTTP/1.1\r\nhOsT: elsewhere.example\r\n"
        "x-Odd:   two  spaces \r\nX-odd: again\r\nConnection: close\r\n\r\n"
    ).encode()
    before = here.control.last_served_number()
    with here.connect(here.ports.http) as sock:
        sock.sendall(head)
        answer = received(sock)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.partition(b"\r\n\r\n")[2] == head
    (entry,) = since(here, before)
    assert (entry.verb, entry.request_head) == ("BREW", head)


def test_heads_of_pipelined_requests_are_separated(here: Here) -> None:
    heads = [
        f"GET {echo_target(here.session)} HTTP/1.1\r\nHost: a\r\nX-N: {number}\r\n\r\n".encode() for number in range(3)
    ]
    before = here.control.last_served_number()
    with here.connect(here.ports.http) as sock:
        sock.sendall(b"".join(heads))
        sock.shutdown(socket.SHUT_WR)
        received(sock)
    assert [entry.request_head for entry in since(here, before)] == heads


def test_invalid_http_is_echoed_to_a_client_with_a_session(here: Here) -> None:
    malformed = f"get\x01{echo_target(here.session)} HTTP/9.9\r\nHost : x\r\n\r\n".encode()
    before = here.control.last_served_number()
    with here.connect(here.ports.http) as sock:
        sock.sendall(malformed)
        answer = received(sock)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.partition(b"\r\n\r\n")[2] == malformed
    (entry,) = since(here, before)
    assert (entry.ending, entry.request_head) == ("malformed", malformed)


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/objects/{other}/10/1.bin", 403),
        ("PUT", "/uploads/{other}/x", 403),
        ("GET", "/echo/{other}", 403),
        ("GET", "/objects/{session}/60000000/1.bin", 413),
        ("POST", "/objects/{session}/10/1.bin", 405),
        ("GET", "/uploads/{session}/x", 405),
        ("GET", "/", 404),
        ("CONNECT", "example.com:443", 404),
        ("GET", "http://example.com/", 404),
        ("OPTIONS", "*", 404),
    ],
)
def test_other_requests_are_refused(here: Here, method: str, target: str, status: int) -> None:
    wanted = target.format(session=here.session, other="a" * 26)
    with here.connect(here.ports.http) as sock:
        sock.sendall(f"{method} {wanted} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        answer = received(sock)
    assert answer.split(b" ")[1] == str(status).encode()
    assert len(answer) < 700


@pytest.mark.parametrize("protocol", ["http", "https", "tcp"])
def test_the_server_aborts_at_the_requested_byte(here: Here, protocol: str) -> None:
    before = here.control.last_served_number()
    if protocol == "tcp":
        with here.connect(here.ports.tcp[0]) as sock:
            sock.sendall(TcpRequest(here.session, "download", 900_000, 1, abort_after_bytes=100_000).to_line())
            assert len(received(sock)) <= 100_000
            with pytest.raises(ConnectionError):
                sock.sendall(b"after a reset nothing can be sent")
    else:
        target = object_target(here.session, "bin", 900_000, 1, abort_after_bytes=100_000)
        with (
            http_to(here, secure=protocol == "https") as connection,
            pytest.raises((ConnectionResetError, http.client.IncompleteRead, ssl.SSLError)),
        ):
            get(connection, target)
    (entry,) = since(here, before)
    assert (entry.ending, entry.sent_bytes) == ("aborted-by-server", 100_000)


@pytest.mark.parametrize("protocol", ["http", "tcp"])
def test_a_client_that_aborts_is_seen_to(here: Here, protocol: str) -> None:
    """All of it fits the server's send buffer, so that only waiting for acknowledgements tells."""
    before = here.control.last_served_number()
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        sock.settimeout(TIMEOUT_S)
        sock.connect(("127.0.0.1", here.ports.http if protocol == "http" else here.ports.tcp[0]))
        target = object_target(here.session, "bin", 300_000, 1)
        line = TcpRequest(here.session, "download", 300_000, 1).to_line()
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode() if protocol == "http" else line)
        assert sock.recv(1000)
        (under_way,) = here.control.served(before, settle_s=0)
        assert not under_way.is_over
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    (entry,) = since(here, before)
    assert entry.ending == "aborted-by-peer"
    assert entry.tcp_info["bytes_acked"] < 300_000


def test_raw_tcp_moves_objects_both_ways(here: Here) -> None:
    before = here.control.last_served_number()
    for port in here.ports.tcp:
        with here.connect(port) as sock:
            sock.sendall(TcpRequest(here.session, "download", 300_000, 5, ObjectKind.TEXT).to_line())
            assert received(sock) == object_bytes("txt", 300_000, 5)
        with here.connect(port) as sock:
            sock.sendall(TcpRequest(here.session, "upload", 100_000).to_line() + b"u" * 100_000)
            report = UploadReport.parse(received(sock))
            assert (report.received_bytes, report.sha256) == (100_000, hashlib.sha256(b"u" * 100_000).hexdigest())
        with here.connect(port) as sock:
            sock.sendall(TcpRequest(here.session, "echo").to_line() + b"hello")
            assert sock.recv(5, socket.MSG_WAITALL) == b"hello"
            sock.shutdown(socket.SHUT_WR)
            assert received(sock) == b""
    entries = since(here, before)
    assert [entry.verb for entry in entries] == ["download", "upload", "echo"] * 2
    assert {entry.ending for entry in entries} == {"finished"}
    assert {entry.local_port for entry in entries} == set(here.ports.tcp)
    assert {entry.connection_requests for entry in entries} == {0}
    assert len({entry.connection_accepted_ns for entry in entries}) == len(entries)


def test_an_upload_without_a_size_ends_with_its_sender(here: Here) -> None:
    with here.connect(here.ports.tcp[0]) as sock:
        sock.sendall(TcpRequest(here.session, "upload").to_line() + b"u" * 10)
        sock.shutdown(socket.SHUT_WR)
        assert UploadReport.parse(received(sock)).received_bytes == 10


def test_a_server_that_pauses_takes_no_more_than_its_buffer_holds(here: Here) -> None:
    request = TcpRequest(here.session, "upload", 3_000_000, pause_s=0.5, after_bytes=5000, receive_buffer_bytes=20_000)
    with here.connect(here.ports.tcp[0]) as sock:
        began = time.monotonic()
        sock.sendall(request.to_line())
        sock.sendall(b"u" * 3_000_000)
        report = UploadReport.parse(received(sock))
    assert report.received_bytes == 3_000_000
    assert report.read_bytes_at_pause == 5000
    assert 0 < report.queued_bytes_at_pause < 2_000_000
    assert report.receive_buffer_bytes == 40_000
    assert 0.5 <= report.paused_s <= report.duration_s <= time.monotonic() - began


@pytest.mark.parametrize(
    "line", [b"GET / HTTP/1.0\r\n\r\n", b"PEPSCOPE/1 " + b"a" * 26 + b" echo\n", b"x" * 5000 + b"\n", b"\xff\n", b"\n"]
)
def test_raw_tcp_refuses_in_one_line(here: Here, line: bytes) -> None:
    with here.connect(here.ports.tcp[0]) as sock:
        sock.sendall(line)
        answer = received(sock)
    assert answer == b"" or (answer.startswith(b"error ") and answer.count(b"\n") == 1 and len(answer) < 300)


def test_ftp_moves_objects_both_ways(here: Here) -> None:
    before = here.control.last_served_number()
    for port in (here.ports.ftp, here.ports.ftp_free):
        with ftplib.FTP() as ftp:
            ftp.connect("127.0.0.1", port, timeout=TIMEOUT_S)
            ftp.login(here.session, "anything")
            digest = hashlib.sha256()
            ftp.retrbinary("RETR 300000-4.bin", digest.update)
            assert digest.hexdigest() == ObjectName(ObjectKind.BINARY, 300_000, 4).sha256()
            assert ftp.size("300000-4.bin") == 300_000
            part = io.BytesIO()
            ftp.retrbinary("RETR 300000-4.bin", part.write, rest=299_990)
            assert part.getvalue() == object_bytes("bin", 300_000, 4)[-10:]
            assert ftp.storbinary("STOR up.bin", io.BytesIO(b"s" * 200_000)).startswith("226")
    whole, part_of_it, stored = since(here, before)[:3]
    assert (whole.application, whole.verb, whole.object) == (Application.FTP, "RETR", "300000-4.bin")
    assert (whole.size_bytes, whole.sent_bytes, whole.ending) == (300_000, 300_000, "finished")
    assert part_of_it.sent_bytes == 10
    assert (stored.verb, stored.object, stored.received_bytes) == ("STOR", "up.bin", 200_000)
    assert stored.sha256 == hashlib.sha256(b"s" * 200_000).hexdigest()
    assert here.ports.ftp_data[0] <= stored.local_port <= here.ports.ftp_data[1]


def test_an_ftp_client_that_aborts_is_seen_to(here: Here) -> None:
    before = here.control.last_served_number()
    with ftplib.FTP() as ftp:
        ftp.connect("127.0.0.1", here.ports.ftp, timeout=TIMEOUT_S)
        ftp.login(here.session, "anything")
        ftp.voidcmd("TYPE I")
        host, port = ftp.makepasv()
        with socket.socket() as data:
            data.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            data.connect((host, port))
            ftp.sendcmd("RETR 30000000-4.bin")  # more than the server's buffers take
            assert data.recv(1000)
            data.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with pytest.raises(ftplib.error_temp, match="426"):
            ftp.voidresp()
    (entry,) = since(here, before)
    assert entry.ending == "aborted-by-peer"
