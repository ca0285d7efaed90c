"""Transfers of every application, both ways: against the real server, and against answers that go wrong."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import trustme

import prober.client.mobile_end
from pepscope.captures.packets import Direction
from prober.client.mobile_end import MobileEnd
from prober.errors import ImpossibleError, MeasurementError
from prober.experiments.gain import Gain
from prober.measurement.measured_transfer import measured_transfer
from prober.protocol.application import Application
from prober.protocol.control_messages import About
from prober.protocol.objects import ObjectName
from tests.prober.experiments.observed import tasks_of
from tests.prober.runs_made_by_hand import plan
from tests.prober.serving import Serving, mobile_end, scripted, serving

SIZES = {Application.HTTP_IMAGE: (1_000, 150_000)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("state")) as running:
        yield running


@pytest.fixture
def end(server: Serving) -> Iterator[MobileEnd]:
    with mobile_end(server, plan(limits={"task_s": 20})) as made, made.task():
        yield made


@pytest.mark.parametrize("direction", list(Direction), ids=lambda item: item.name)
@pytest.mark.parametrize("application", list(Application))
def test_objects_arrive_as_they_were_made(application: Application, direction: Direction, end: MobileEnd) -> None:
    for size_bytes in SIZES.get(application, (1, 150_000)):
        progress: list[int] = []
        before = end.control.last_served_number()
        moved = end.transfer(application, direction, size_bytes, seed=7, on_bytes=progress.append)
        assert moved.intact
        assert moved.moved_bytes == moved.size_bytes == size_bytes
        assert progress[-1] == size_bytes
        assert progress == sorted(progress)
        assert 0 < moved.connect_s <= moved.first_byte_s <= moved.total_s
        assert moved.rate_bit_s == pytest.approx(size_bytes * 8 / moved.total_s)
        kind = "jpg" if application is Application.HTTP_IMAGE else "bin"
        assert moved.sha256 == ObjectName.parse(f"{size_bytes}-7.{kind}").sha256()
        (entry,) = [item for item in served(end, before) if item.sha256 == moved.sha256]
        assert f"127.0.0.1:{moved.flows[0].mobile_port}" == entry.peer
        assert moved.flows[-1].server_port == end.port(application)


def served(end: MobileEnd, after: int) -> list[Any]:
    """The server writes its log once a connection ended, which the mobile may be the first to know."""
    deadline_s = time.monotonic() + 60
    while not (entries := end.control.served(after)):
        assert time.monotonic() < deadline_s, "nothing was served"
        time.sleep(0.05)
    return entries


def test_the_data_connection_of_ftp_comes_first(end: MobileEnd) -> None:
    moved = end.transfer(Application.FTP, Direction.DOWN, 5_000)
    data, control = moved.flows
    assert (data.role, control.role) == ("data", "control")
    assert control.server_port == end.about.ports.ftp
    assert end.about.ports.ftp_data[0] <= data.server_port <= end.about.ports.ftp_data[1]


def test_without_a_seed_no_object_comes_twice(end: MobileEnd) -> None:
    first, second = (end.transfer(Application.TCP, Direction.DOWN, 1_000) for _ in range(2))
    assert first.sha256 != second.sha256


def test_options_are_set_before_the_connection_is_made(end: MobileEnd) -> None:
    seen: list[tuple[bool, int]] = []

    def prepare(link: socket.socket) -> None:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        try:
            link.getpeername()
        except OSError:
            seen.append((False, link.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)))
        else:
            seen.append((True, 0))

    for application in Application:
        seen.clear()
        assert end.transfer(application, Direction.DOWN, 20_000, prepare=prepare).intact
        assert seen == [(False, 16_384)] * (2 if application is Application.FTP else 1)


def test_other_ports_serve_the_same(end: MobileEnd) -> None:
    ports = end.about.ports
    for application, port in (
        (Application.HTTP_DATA, ports.http_free),
        (Application.HTTPS, ports.https_free),
        (Application.FTP, ports.ftp_free),
    ):
        moved = end.transfer(application, Direction.DOWN, 3_000, port=port)
        assert moved.intact
        assert port in {flow.server_port for flow in moved.flows}


def test_the_servers_permission_to_keep_an_answer_is_asked_for(end: MobileEnd) -> None:
    kept = end.transfer(Application.HTTP_DATA, Direction.DOWN, 1_000, cache_s=60)
    fresh = end.transfer(Application.HTTP_DATA, Direction.DOWN, 1_000)
    assert "max-age=60" in kept.answer_fields["cache-control"]
    assert "no-store" in fresh.answer_fields["cache-control"]


def test_the_certificate_is_compared(end: MobileEnd, server: Serving) -> None:
    assert end.transfer(Application.HTTPS, Direction.DOWN, 100).certificate_is_the_servers is True
    assert end.transfer(Application.HTTP_DATA, Direction.DOWN, 100).certificate_is_the_servers is None


def test_who_ends_tls_in_between_is_found_and_served(end: MobileEnd) -> None:
    """Its certificate is another; the transfer goes on, since that is what is to be seen."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    data = ObjectName.parse("500-3.bin")

    def answer(link: socket.socket) -> None:
        with context.wrap_socket(link, server_side=True) as secured:
            secured.recv(4096)
            secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + b"".join(data.pieces()))

    with scripted(answer) as port:
        moved = end.transfer(Application.HTTPS, Direction.DOWN, 500, seed=3, port=port)
    assert moved.intact
    assert moved.certificate_is_the_servers is False


def test_what_on_bytes_raises_ends_the_transfer(end: MobileEnd) -> None:
    class EnoughError(Exception):
        pass

    def stop(moved_bytes: int) -> None:
        if moved_bytes > 50_000:
            raise EnoughError

    for application in Application:
        with pytest.raises(EnoughError):
            end.transfer(application, Direction.DOWN, 5_000_000, on_bytes=stop)


def test_which_port_of_a_pair_comes_first_changes_by_turns(end: MobileEnd) -> None:
    tasks = tasks_of(Gain(), plan(experiments={"gain": {"repeats": 2, "sizes_bytes": [1_000]}}))
    first, second = (Gain().measure(task, end) for task in tasks)
    assert (first.values["first"], second.values["first"]) == ("usual", "free")
    for measured in (first, second):
        ports = (end.about.ports.http, end.about.ports.http_free)
        assert (measured.values["usual_port"], measured.values["free_port"]) == ports
        assert tuple(flow.server_port for flow in measured.flows) == ports
        assert measured.values["usual_total_s"] > 0


# ---- what goes wrong


def http(answer: bytes):
    """A peer that answers the first bytes and closes only when the client has closed: unread bytes would make the
    kernel send a reset in place of the answer's last bytes."""

    def give(link: socket.socket) -> None:
        link.settimeout(60)
        link.recv(65_536)
        link.sendall(answer)
        link.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while link.recv(65_536):
                pass

    return give


@pytest.mark.parametrize(
    ("answer", "status", "moved_bytes"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + bytes(400), "200", 400),
        (b"HTTP/1.1 503 Later\r\nContent-Length: 4\r\n\r\nbusy", "503", 4),
        (b"HTTP/1.1 302 Elsewhere\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n", "302", 0),
    ],
)
def test_answers_that_are_not_the_object_are_not_complete(
    answer: bytes, status: str, moved_bytes: int, end: MobileEnd
) -> None:
    with scripted(http(answer)) as port:
        moved = end.transfer(Application.HTTP_DATA, Direction.DOWN, 1_000, port=port)
    assert not moved.complete
    assert not moved.intact
    assert (moved.status, moved.moved_bytes) == (status, moved_bytes)


def test_another_object_is_complete_but_not_intact(end: MobileEnd) -> None:
    """As a proxy does that makes pictures smaller."""
    with scripted(http(b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + bytes(300))) as port:
        moved = end.transfer(Application.HTTP_IMAGE, Direction.DOWN, 2_000, port=port)
    assert moved.complete
    assert not moved.intact
    assert moved.sha256 == hashlib.sha256(bytes(300)).hexdigest()


def test_an_upload_that_a_middlebox_accepted_is_not_complete(end: MobileEnd) -> None:
    def take(link: socket.socket) -> None:
        taken = 0
        while taken < 5_000 and (piece := link.recv(65_536)):
            taken += len(piece)
        link.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 7\r\n\r\nstored!")

    with scripted(take) as port:
        moved = end.transfer(Application.HTTP_DATA, Direction.UP, 5_000, port=port)
    assert not moved.complete
    assert (moved.status, moved.moved_bytes) == ("201", 0)


BROKEN: dict[Application, list[bytes]] = {
    Application.HTTP_DATA: [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: no\r\n" + b"x" * 70_000],
    Application.HTTPS: [b"", b"HTTP/1.1 400 Bad\r\n\r\n"],
    Application.FTP: [b"", b"530 Go away\r\n", b"220 Hello\r\n331 x\r\n530 No\r\n", b"220-\x1b[2J\r\n" + b"x" * 9_000],
    Application.TCP: [],
}


@pytest.mark.parametrize(("application", "answer"), [(key, item) for key, items in BROKEN.items() for item in items])
def test_what_is_no_protocol_breaks_off_in_one_sentence(
    application: Application, answer: bytes, end: MobileEnd
) -> None:
    speak = http(answer) if application is not Application.FTP else lambda link: link.sendall(answer)
    with scripted(speak) as port, pytest.raises(MeasurementError) as caught:
        end.transfer(application, Direction.DOWN, 1_000, port=port)
    assert str(caught.value).startswith(f"the {application} download from port {port} broke off")
    assert "\n" not in str(caught.value)


def test_raw_tcp_that_ends_early_is_not_complete(end: MobileEnd) -> None:
    with scripted(http(bytes(10))) as port:
        moved = end.transfer(Application.TCP, Direction.DOWN, 1_000, port=port)
        assert (moved.complete, moved.moved_bytes) == (False, 10)
        moved = end.transfer(Application.TCP, Direction.UP, 1_000, port=port)
        assert not moved.complete


def test_a_reset_is_reported_with_its_progress(end: MobileEnd) -> None:
    def reset(link: socket.socket) -> None:
        link.recv(4096)
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + bytes(5_000))
        time.sleep(0.3)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    with scripted(reset) as port, pytest.raises(MeasurementError, match="after 5000 of 100000 bytes"):
        end.transfer(Application.HTTP_DATA, Direction.DOWN, 100_000, port=port)


def test_a_refused_connection_ends_the_transfer(end: MobileEnd) -> None:
    with scripted(http(b"")) as port:
        pass
    for application in Application:
        with pytest.raises(MeasurementError, match="refused"):
            end.transfer(application, Direction.UP, 1_000, port=port)


def test_a_dropped_port_does_not_use_up_the_tasks_time(end: MobileEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prober.client.mobile_end, "CONNECT_S", 0.3)
    for application in Application:
        with pytest.raises(MeasurementError, match="it is blocked"):
            end.transfer(application, Direction.DOWN, 1_000, port=end.about.ports.dead)
    assert end.remaining_s > 5


def test_trickling_buys_no_time(server: Serving) -> None:
    """Every byte comes well within a timeout of one read; the task's time counts all the same."""
    over = threading.Event()

    def trickle(link: socket.socket) -> None:
        while not over.wait(0.05):
            link.sendall(b"H")

    # Long enough for the second, whole transfer on a busy machine.
    with mobile_end(server, plan(limits={"task_s": 3})) as end:
        with scripted(trickle) as port:
            with pytest.raises(MeasurementError, match="took longer than"), end.task():
                end.transfer(Application.HTTP_DATA, Direction.DOWN, 1_000, port=port)
            over.set()
        with end.task():
            assert end.transfer(Application.HTTP_DATA, Direction.DOWN, 1_000).intact


def test_a_silent_server_ends_with_the_tasks_time(server: Serving) -> None:
    over = threading.Event()
    with mobile_end(server, plan(limits={"task_s": 1})) as end, scripted(lambda _link: over.wait(20)) as port:
        for application in (Application.HTTPS, Application.FTP, Application.TCP):
            with pytest.raises(MeasurementError), end.task():
                end.transfer(application, Direction.DOWN, 1_000, port=port)
            over.set()
            over.clear()
        over.set()


def test_applications_that_are_not_offered_are_impossible(end: MobileEnd) -> None:
    document = end.about.to_json()
    document["ports"]["ftp"] = 0
    poorer = MobileEnd(
        end.control,
        About.from_json(document),
        host="x",
        address="127.0.0.1",
        task_limit_s=60.0,
        expected_round_trip_s=0.1,
    )
    with pytest.raises(ImpossibleError, match="does not offer ftp"):
        poorer.transfer(Application.FTP, Direction.DOWN, 1_000)


def test_what_is_kept_of_a_transfer_is_json(end: MobileEnd) -> None:
    import json

    moved = end.transfer(Application.HTTPS, Direction.DOWN, 1_000)
    values = msgspec.json.decode(msgspec.json.encode(measured_transfer(moved)))
    assert values["application"] == "https"
    assert values["direction"] == "down"
    assert "flows" not in values
    assert end.control.session not in json.dumps(values)
    assert SimpleNamespace(**values).certificate_is_the_servers is True
