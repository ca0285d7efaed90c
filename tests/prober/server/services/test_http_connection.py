"""HTTP on a socket: whatever comes is a request, the end, or refused; nothing else ever happens."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.server.refusal import RefusedError
from prober.server.services.http_connection import HttpConnection, MalformedHeadError, Request
from prober.server.settings import LimitsTable

LIMITS = LimitsTable(head_s=2.0, idle_s=2.0, header_bytes=2048)
PARTS = st.sampled_from(
    [b"GET ", b"PUT ", b"/ ", b"/echo ", b"HTTP/1.1", b"HTTP/1.0", b"\r\n", b"\n", b"Host: x\r\n", b"Host : x\r\n",
     b"Content-Length: 3\r\n", b"Content-Length: 99999\r\n", b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n",
     b"0\r\n\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b" folded\r\n", b"\0", b"\xff", b"abc",
     b"Upgrade: websocket\r\nConnection: upgrade\r\n", b"a" * 3000]
)  # fmt: skip


def served(data: bytes) -> list[Request]:
    """All requests that can be read from these bytes, each answered with its own head."""
    requests = []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        http = HttpConnection(ours, LIMITS, time.monotonic())
        with contextlib.suppress(RefusedError, OSError):
            while (request := http.next_request()) is not None:
                requests.append(request)
                content = b"".join(http.content())
                assert len(content) <= len(data)
                http.answer(request, 200, [], request.head)
    return requests


@given(st.lists(PARTS, max_size=14).map(b"".join) | st.binary(max_size=300))
@settings(max_examples=400, deadline=None)
def test_any_bytes_may_come(data: bytes) -> None:
    place = 0
    for request in served(data):
        # Heads are cut from what came, in order: no byte is made up.
        place = data.index(request.head, place) + len(request.head)


@given(st.lists(st.sampled_from([b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", b"HEAD /b HTTP/1.1\r\nhOST:  y\r\n\r\n",
                                 b"PUT /c HTTP/1.1\r\nHost: z\r\nContent-Length: 2\r\n\r\n"]), max_size=6))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_heads_are_those_that_were_sent(heads: list[bytes]) -> None:
    data = b"".join(head + (b"ab" if head.startswith(b"PUT") else b"") for head in heads)
    assert [request.head for request in served(data)] == heads


@given(st.integers(1, 60), st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_heads_may_come_in_pieces(step: int, content: bytes) -> None:
    head = b"PUT /c HTTP/1.1\r\nHost: z\r\nContent-Length: %d\r\n\r\n" % len(content)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        http = HttpConnection(ours, LIMITS, time.monotonic())
        data = head + content
        for at in range(0, len(data), step):
            theirs.sendall(data[at : at + step])
        request = http.next_request()
        assert request is not None
        assert request.head == head
        assert b"".join(http.content()) == content


def test_a_malformed_head_is_kept_as_far_as_it_came() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"GET / HTTP/1.1\r\nHost : x\r\n\r\nrest")
        with pytest.raises(MalformedHeadError) as caught:
            HttpConnection(ours, LIMITS, time.monotonic()).next_request()
    assert caught.value.head == b"GET / HTTP/1.1\r\nHost : x\r\n\r\nrest"
    assert caught.value.status == 400


def test_a_long_head_is_too_large() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 60_000)
        with pytest.raises(MalformedHeadError) as caught:
            HttpConnection(ours, LIMITS, time.monotonic()).next_request()
    assert caught.value.status == 431
