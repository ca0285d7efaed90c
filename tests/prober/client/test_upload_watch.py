"""Round trips of all that is sent, as the sender's kernel sees them."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prober.client.upload_watch import UploadWatch

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def connected(listener: socket.socket, watching: UploadWatch) -> socket.socket:
    link = socket.socket()
    watching.watch(link)
    link.connect(listener.getsockname())
    return link


def eventually(watching: UploadWatch, port: int) -> float | None:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        found = watching.round_trips(port)
        if found:
            return found[0].seconds
        time.sleep(0.01)
    return None


def test_the_first_payload_is_timed(listener: socket.socket) -> None:
    with UploadWatch(5.0) as watching, connected(listener, watching) as link:
        port = link.getsockname()[1]
        time.sleep(0.05)
        assert watching.round_trips(port) == ()  # a handshake is no payload
        link.sendall(b"payload")
        took_s = eventually(watching, port)
    assert took_s is not None
    assert took_s >= 0


def test_a_socket_that_was_handed_on_is_watched_to_its_first_acknowledgement(listener: socket.socket) -> None:
    """As TLS does it: the object gives up its descriptor, and the connection goes on under another."""
    with UploadWatch(5.0) as watching:
        link = connected(listener, watching)
        with socket.socket(fileno=link.detach()) as other:
            other.sendall(b"payload")
            assert eventually(watching, other.getsockname()[1]) is not None


def test_the_end_of_a_connection_reaches_the_other_end(listener: socket.socket) -> None:
    with UploadWatch(5.0) as watching:
        with connected(listener, watching) as link:
            link.sendall(b"all there is")
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(60.0)
            received = b""
            while piece := accepted.recv(100):
                received += piece
    assert received == b"all there is"


def test_no_descriptor_is_left(listener: socket.socket) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with UploadWatch(0.01) as watching:
            links = [connected(listener, watching) for _ in range(3)]
            links[0].sendall(b"payload")
            for link in links:
                link.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_connection_that_never_was_has_no_round_trip() -> None:
    with UploadWatch(0.01) as watching, socket.socket() as link:
        watching.watch(link)
        time.sleep(0.05)
        assert watching.round_trips(0) == ()
        assert watching.round_trips(1) == ()


def test_every_byte_is_timed_and_a_reader_that_stops_holds_none_back(listener: socket.socket) -> None:
    """The kernel acknowledges what it takes in, whether it is read or not: all round trips of loopback are short."""
    with UploadWatch(5.0) as watching, connected(listener, watching) as link:
        port = link.getsockname()[1]
        for _ in range(5):
            link.sendall(b"u" * 10_000)
            time.sleep(0.02)
        deadline_s = time.monotonic() + 60
        while not (made := watching.round_trips(port)) or made[-1].acked_bytes < 50_000:
            assert time.monotonic() < deadline_s, made
            time.sleep(0.01)
    acked = [one.acked_bytes for one in made]
    assert acked == sorted(set(acked))
    assert acked[-1] == 50_000
    assert len(made) >= 4
    assert all(one.seconds >= 0 for one in made)
