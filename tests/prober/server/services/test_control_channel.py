"""The control channel: authorisation, valid messages, and idempotent requests."""

from __future__ import annotations

import contextlib
import ftplib
import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from prober.client.control_client import ControlClient
from prober.errors import ControlError, UnreachableError
from prober.protocol.control_messages import REQUEST_FIELD, SESSION_FIELD, Key
from prober.protocol.plain_requests import TcpRequest, UploadReport
from prober.server.sockets.kernel_state import unacknowledged_bytes
from tests.prober.server.running import TIMEOUT_S, Here, received, serving_here
from tests.prober.serving import scripted


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with serving_here(tmp_path_factory.mktemp("state"), sessions=6) as here:
        yield here


class Raw:
    """Control messages written by hand."""

    def __init__(self, here: Here, **changes: str) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        self.connection = http.client.HTTPSConnection("127.0.0.1", here.ports.control, timeout=TIMEOUT_S, context=tls)
        self._headers = {"Authorization": f"Bearer {here.key.token}", SESSION_FIELD: here.session, **changes}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self.connection.request(method, path, data, {**self._headers, **headers})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


@contextlib.contextmanager
def raw(here: Here, **changes: str) -> Iterator[Raw]:
    mobile = Raw(here, **changes)
    with contextlib.closing(mobile.connection):
        yield mobile


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic {token}", "bearer  {token}"])
@pytest.mark.parametrize("path", ["/v1/about", "/v1/sessions", "/nothing", "/v1/captures/../../x"])
def test_without_the_token_the_server_reveals_nothing(here: Here, authorization: str, path: str) -> None:
    with raw(here, Authorization=authorization.format(token=here.key.token)) as mobile:
        assert mobile.ask("GET", path) == (401, {"error": "the token is missing or wrong"})
        assert mobile.connection.sock is None  # and the connection is over


def test_a_client_that_guesses_tokens_gets_no_answer_and_the_owner_does(tmp_path: Any) -> None:
    with serving_here(tmp_path, refusals_per_minute=3) as here:
        for _ in range(3):
            with raw(here, Authorization="Bearer no") as mobile:
                assert mobile.ask("GET", "/v1/about")[0] == 401
        with raw(here, Authorization="Bearer no") as mobile, pytest.raises((OSError, http.client.HTTPException)):
            mobile.ask("GET", "/v1/about")
        assert here.control.about() == here.about


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/captures", b"{", 400),
        ("POST", "/v1/captures", b"[]", 400),
        ("POST", "/v1/captures", b"[" * 5000, 400),
        ("POST", "/v1/captures", {"snap_bytes": -1}, 400),
        ("POST", "/v1/captures", {"snap_bytes": "many"}, 400),
        ("POST", "/v1/captures", {"label": "x" * 300}, 400),
        ("POST", "/v1/captures", {"filter": "tcp"}, 400),
        ("POST", "/v1/captures", b" " * 70_000, 413),
        ("POST", "/v1/holds", {"port": 22, "delay_s": 1}, 404),
        ("POST", "/v1/holds", {"port": "http", "delay_s": 1}, 400),
        ("POST", "/v1/holds", {"port": 70_000, "delay_s": 1}, 400),
        ("POST", "/v1/holds", {"port": 80, "delay_s": 1e9}, 400),
        ("POST", "/v1/holds", b'{"port": 80, "delay_s": NaN}', 400),
        ("POST", "/v1/silences", {"port": 22}, 404),
        ("POST", "/v1/silences", {"port": True}, 400),
        ("DELETE", "/v1/silences/0123456789abcdef", None, 404),
        ("DELETE", "/v1/holds/0123456789abcdef", None, 404),
        ("POST", "/v1/captures/0123456789abcdef/finish", None, 404),
        ("GET", "/v1/captures/0123456789abcdef", None, 404),
        ("DELETE", "/v1/captures/../../etc/passwd", None, 404),
        ("GET", "/v1/served?after=x", None, 400),
        ("GET", "/v1/nothing", None, 404),
        ("PATCH", "/v1/sessions", None, 404),
    ],
)
def test_malformed_messages_are_refused_in_one_sentence(
    here: Here, method: str, path: str, body: Any, status: int
) -> None:
    with raw(here) as mobile:
        got, answer = mobile.ask(method, path, body)
        assert got == status
        assert list(answer) == ["error"]
        assert "\n" not in answer["error"]
        assert mobile.ask("GET", "/v1/clock")[0] == 200  # and nothing is the worse for it


@pytest.mark.parametrize("path", ["captures", "holds", "silences"])
def test_what_belongs_to_a_session_needs_one(here: Here, path: str) -> None:
    with raw(here, **{SESSION_FIELD: "a" * 26}) as mobile:
        assert mobile.ask("POST", f"/v1/{path}", {"port": here.ports.http, "delay_s": 1})[0] == 410
        assert mobile.ask("GET", "/v1/served")[0] == 410


def test_the_control_port_cannot_be_silenced(here: Here) -> None:
    with raw(here) as mobile:
        assert mobile.ask("POST", "/v1/silences", {"port": here.ports.control})[0] == 404


def test_asking_again_does_nothing_twice(here: Here) -> None:
    with raw(here) as mobile:
        name = {REQUEST_FIELD: "00112233445566ff"}
        first = mobile.ask("POST", "/v1/captures", {"snap_bytes": 100}, **name)
        assert first[0] == 200
        assert mobile.ask("POST", "/v1/captures", {"snap_bytes": 100}, **name) == first
        path = f"/v1/captures/{first[1]['capture']}"
        gone = mobile.ask("DELETE", path, **{REQUEST_FIELD: "00112233445566fe"})
        assert gone[0] == 200
        assert mobile.ask("DELETE", path, **{REQUEST_FIELD: "00112233445566fe"}) == gone
        assert mobile.ask("DELETE", path)[0] == 404


def test_a_session_has_no_access_to_another_sessions_captures(here: Here) -> None:
    capture = here.control.start_capture("mine", 100)
    with here.another() as other:
        assert other.session != here.session
        with pytest.raises(ControlError, match="no capture of this name"):
            other.finish_capture(capture)
    here.control.delete_capture(capture)


def test_there_are_only_so_many_sessions(here: Here) -> None:
    with contextlib.ExitStack() as others:
        names = {others.enter_context(here.another()).session for _ in range(5)} | {here.session}
        assert len(names) == 6
        late = others.enter_context(ControlClient("127.0.0.1", here.ports.control, here.key, patience_s=0.3))
        with pytest.raises(UnreachableError, match="the maximum"):
            assert late.session
    with here.another() as later:  # the others ended theirs
        assert later.session not in names


def test_a_session_that_expired_is_replaced(tmp_path: Any) -> None:
    """That each request renews it is tested where time is virtual."""
    with serving_here(tmp_path, session_s=0.5) as here:
        first = here.session
        time.sleep(1.0)
        with pytest.raises(ControlError, match="there is no such session"):
            here.control.finish_capture("0123456789abcdef")
        assert here.session != first


def test_a_session_that_is_over_is_replaced_where_that_loses_nothing(tmp_path: Any) -> None:
    with serving_here(tmp_path, session_s=5.0) as here:
        first = here.session
        with raw(here) as mobile:
            assert mobile.ask("DELETE", "/v1/sessions")[0] == 200
        here.control.delete_capture(here.control.start_capture("x", 100))
        assert here.session != first


def test_another_certificate_is_not_spoken_to(here: Here) -> None:
    stranger = Key(here.key.token, "0" * 64)
    mobile = ControlClient("127.0.0.1", here.ports.control, stranger, patience_s=5.0)
    with pytest.raises(ControlError, match="another certificate") as caught:
        mobile.about()
    assert not isinstance(caught.value, UnreachableError)


def test_old_tls_is_refused(here: Here) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_1
    with here.connect(here.ports.control) as sock, pytest.raises((ssl.SSLError, ConnectionError)):
        tls.wrap_socket(sock)


def test_a_host_without_tls_is_distinguished_from_an_unreachable_one(here: Here) -> None:
    with scripted(lambda link: link.sendall(b"SSH-2.0-other\r\n")) as port:
        mobile = ControlClient("127.0.0.1", port, here.key, patience_s=5.0)
        with pytest.raises(ControlError, match="must offer TLS"):
            mobile.about()


def test_a_path_that_comes_back_only_takes_time(here: Here) -> None:
    """The first tries end without an answer; the last one is relayed to the server."""
    tries = []

    def flap(link: Any) -> None:
        tries.append(link)
        if len(tries) > 2:
            with here.connect(here.ports.control) as server:
                forward = threading.Thread(target=copy, args=(link, server))
                forward.start()
                copy(server, link)
                forward.join()

    with scripted(flap) as port, ControlClient("127.0.0.1", port, here.key, patience_s=20.0) as mobile:
        assert mobile.about() == here.about
    assert len(tries) == 3


def copy(source: Any, sink: Any) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(1)
        source.shutdown(0)


def test_a_server_that_does_not_answer_is_given_up(here: Here) -> None:
    with ControlClient("127.0.0.1", 1, here.key, patience_s=0.5) as mobile:
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="did not answer for 0"):
            mobile.about()
    assert time.monotonic() - began < 60


def test_connections_that_were_idle_are_made_again_at_once(tmp_path: Any) -> None:
    with serving_here(tmp_path, keep_s=0.2) as here:
        here.control.clock()
        time.sleep(0.6)
        assert here.control.clock().unix_ns > 0


def test_about_lists_the_services(here: Here) -> None:
    about = here.control.about()
    assert (about.can.captures, about.can.silences) == ("", "")
    assert about.limits["object_bytes"] == 1 << 30
    assert "ipv4/tcp_congestion_control" in about.host
    ports = [*about.ports.services, about.ports.control, about.ports.dead]
    assert len(set(ports)) == len(ports) == 10
    assert about.ports.udp_echo  # of UDP, whose ports are others


def test_the_clock_is_the_servers(here: Here) -> None:
    before = time.time_ns(), time.monotonic_ns()
    clock = here.control.clock()
    after = time.time_ns(), time.monotonic_ns()
    assert before[0] <= clock.unix_ns <= after[0]
    assert before[1] <= clock.monotonic_ns <= after[1]


def test_holds_hold_and_let_go(here: Here) -> None:
    """The upload's report comes back only once the server's kernel has acknowledged, which takes the delay."""
    with here.control.hold_acks(here.ports.tcp[0], 0.4, 30.0) as hold:
        began = time.monotonic()
        with here.connect(here.ports.tcp[0]) as sock:
            sock.sendall(TcpRequest(here.session, "upload", 1000).to_line() + b"x" * 1000)
            assert UploadReport.parse(received(sock)).received_bytes == 1000
        assert time.monotonic() - began >= 0.4
    assert hold.report is not None
    assert hold.report.held == hold.report.released > 0


def test_a_hold_on_ftp_holds_its_data_connections(here: Here) -> None:
    """The upload is over for its sender once the server's kernel has acknowledged the end of it."""
    with here.control.hold_acks(here.ports.ftp, 0.4, 30.0) as hold, ftplib.FTP() as ftp:
        ftp.connect("127.0.0.1", here.ports.ftp, timeout=TIMEOUT_S)
        ftp.login(here.session, "x")
        ftp.voidcmd("TYPE I")
        with here.connect(ftp.makepasv()[1]) as data:
            ftp.sendcmd("STOR up.bin")
            began = time.monotonic()
            data.sendall(b"x" * 1000)
            while unacknowledged_bytes(data):
                time.sleep(0.01)
            assert time.monotonic() - began >= 0.4
        ftp.voidresp()
    assert hold.report is not None
    assert hold.report.held > 4
