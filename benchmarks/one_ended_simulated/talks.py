"""Talks: both sides' turns of one connection, over TLS 1.2 and 1.3, HTTP/1.1 and protocols that greet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from benchmarks.one_ended_simulated import tls
from benchmarks.one_ended_simulated.applications import Gate, Turn

Draw = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that a client asks for."""

    request_bytes: int
    answer_bytes: int
    wait_s: float  # of the client before it asks, beyond its habit
    is_automatic: bool  # asked without a person or a timer
    is_stored: bool = False  # in a cache of the middle, if there is one
    is_together: bool = False  # asked with the request before it (HTTP/2, pipelining)


@dataclass(frozen=True, slots=True)
class ClientHabits:
    """How long a client's program takes: each a draw in seconds."""

    finish: Draw  # its part of a TLS handshake
    next_request: Draw  # from an answer to the next request, without the client's think time
    answer: Draw  # any other automatic answer
    close: Draw = lambda: 0.0  # from the last answer to the close, without lingering
    works: bool = False  # whether it works on each answer, for nearly the same time


@dataclass(frozen=True, slots=True)
class ServerHabits:
    """How long a server's program takes: each a draw in seconds."""

    hello: Draw
    answer: Draw
    command: Draw  # a turn that needs no work: greeting, acknowledgement of a command


@dataclass(slots=True)
class Talk:
    """Turns of both sides, and how many of them answer the other side without a person's help."""

    client: list[Turn] = field(default_factory=list)
    server: list[Turn] = field(default_factory=list)
    client_bytes: int = 0
    server_bytes: int = 0
    client_answers: int = 0
    server_answers: int = 0

    def from_client(
        self, data: bytes, wait_s: float, *, answers: bool = False, gate: Gate | None = None, opens: Gate | None = None
    ) -> None:
        """The client says something after all that the server has said so far."""
        self.client.append(Turn(self.server_bytes, wait_s, data, gate, opens))
        self.client_bytes += len(data)
        self.client_answers += answers

    def from_server(
        self,
        data: bytes,
        wait_s: float,
        *,
        answers: bool = False,
        gate: Gate | None = None,
        opens: Gate | None = None,
        needs_bytes: int | None = None,
    ) -> None:
        """The server says something after all that the client has said so far (or `needs_bytes` of it)."""
        needs = self.client_bytes if needs_bytes is None else needs_bytes
        self.server.append(Turn(needs, wait_s, data, gate, opens))
        self.server_bytes += len(data)
        self.server_answers += answers


@dataclass(frozen=True, slots=True)
class Secure:
    """How a connection uses TLS."""

    version: tls.Version
    host: str
    offers_h2: bool
    certificate_bytes: int
    hello_bytes: int


def handshake(talk: Talk, random: Random, secure: Secure, client: ClientHabits, server: ServerHabits) -> None:
    """A TLS handshake; what follows the client's Finished without waiting goes with it."""
    hello = tls.client_hello(
        random, secure.version, secure.host, offers_h2=secure.offers_h2, size_bytes=secure.hello_bytes
    )
    talk.from_client(hello, client.answer() if talk.server_bytes else 0.0)
    talk.from_server(tls.server_flight(random, secure.version, secure.certificate_bytes), server.hello(), answers=True)
    talk.from_client(tls.client_finished(random, secure.version), client.finish(), answers=True)
    if secure.version is tls.Version.TLS_1_2:
        talk.from_server(tls.server_finished(), server.command(), answers=True)


def exchange(
    talk: Talk,
    requests: list[Request],
    client: ClientHabits,
    server: ServerHabits,
    secure: Secure | None,
) -> None:
    """Requests and answers of HTTP, in clear or encrypted."""
    handshake_bytes = talk.client_bytes
    is_1_3 = secure is not None and secure.version is tls.Version.TLS_1_3
    answers: list[tuple[int, Request]] = []
    for place, request in enumerate(requests):
        if not request.is_together:
            _say_answers(talk, answers, server, secure)
        wait_s = request.wait_s
        follows = bool(talk.server_bytes) and not (is_1_3 and place == 0) and not request.is_together
        if follows:
            wait_s += client.next_request()
        if is_1_3 and place == 0 and secure is not None and secure.offers_h2:
            talk.from_client(tls.application_data(60), 0.0)  # HTTP/2: preface, SETTINGS, WINDOW_UPDATE
        talk.from_client(_request(request, secure), wait_s, answers=follows and request.is_automatic)
        if is_1_3 and place == 0:
            talk.from_server(tls.tickets(), server.command(), needs_bytes=handshake_bytes)
            if secure is not None and secure.offers_h2:
                talk.from_server(tls.application_data(40), 0.0, needs_bytes=handshake_bytes)
        answers.append((talk.client_bytes, request))
    _say_answers(talk, answers, server, secure)


def _say_answers(talk: Talk, asked: list[tuple[int, Request]], server: ServerHabits, secure: Secure | None) -> None:
    """The server answers what was asked together; only the first answer waits for what the client said last."""
    for place, (needs_bytes, request) in enumerate(asked):
        answer = _answer(request, secure)
        talk.from_server(answer, server.answer(), answers=place == 0, needs_bytes=needs_bytes)
    asked.clear()


def _request(request: Request, secure: Secure | None) -> bytes:
    if secure is not None:
        return tls.application_data(request.request_bytes)
    head = f"GET /r/{request.answer_bytes} HTTP/1.1\r\nHost: site.example\r\nAccept: */*\r\nUser-Agent: client/1.0\r\n"
    filling = max(1, request.request_bytes - len(head) - 14)
    return f"{head}Cookie: {'a' * filling}\r\n\r\n".encode()


def _answer(request: Request, secure: Secure | None) -> bytes:
    if secure is not None:
        return tls.application_data(request.answer_bytes)
    head = (
        "HTTP/1.1 200 OK\r\nServer: site\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {request.answer_bytes}\r\n\r\n"
    )
    return head.encode() + tls.body(request.answer_bytes)


def web(
    random: Random, requests: list[Request], client: ClientHabits, server: ServerHabits, secure: Secure | None
) -> Talk:
    """One connection of HTTP, over TLS or not."""
    talk = Talk()
    if secure is not None:
        handshake(talk, random, secure, client, server)
    exchange(talk, requests, client, server, secure)
    return talk


def mail(random: Random, client: ClientHabits, server: ServerHabits, message_bytes: int) -> Talk:
    """The server greets, then commands and replies (RFC 5321, without pipelining)."""
    talk = Talk()
    talk.from_server(b"220 mail.example ESMTP ready\r\n", server.command())
    lines = [
        (b"EHLO client.example\r\n", b"250-mail.example\r\n250-SIZE 10240000\r\n250 8BITMIME\r\n"),
        (b"MAIL FROM:<a@client.example>\r\n", b"250 2.1.0 Ok\r\n"),
        (b"RCPT TO:<b@mail.example>\r\n", b"250 2.1.5 Ok\r\n"),
        (b"DATA\r\n", b"354 End data with <CR><LF>.<CR><LF>\r\n"),
        (_message(message_bytes), b"250 2.0.0 Ok: queued\r\n"),
        (b"QUIT\r\n", b"221 2.0.0 Bye\r\n"),
    ]
    for said, answered in lines[: random.choice((2, 4, 6, 6))]:
        talk.from_client(said, client.answer(), answers=True)
        work_s = server.answer() if said.startswith((b"RCPT", b"Subject")) else server.command()
        talk.from_server(answered, work_s, answers=True)
    return talk


def _message(size_bytes: int) -> bytes:
    line = b"All that is said here was said before, and will be said once more.\r\n"
    return b"Subject: report\r\n\r\n" + line * (size_bytes // len(line) + 1) + b".\r\n"


def fetching(
    random: Random,
    requests: list[Request],
    client: ClientHabits,
    server: ServerHabits,
    box_as_server: ServerHabits,
    box_as_client: ClientHabits,
    secure: Secure | None,
) -> tuple[Talk, Talk | None, Gate]:
    """The talks of a box that speaks HTTP (and TLS) itself: with the client, and with the server what it must fetch.

    The far talk is None where everything is stored. The gate opens when the near side has asked for the first thing
    that must be fetched: the time to connect.
    """
    near, far, connect = Talk(), Talk(), Gate()
    if secure is not None:
        handshake(near, random, secure, client, box_as_server)
        handshake(far, random, secure, box_as_client, server)
    handshake_bytes = near.client_bytes
    is_1_3 = secure is not None and secure.version is tls.Version.TLS_1_3
    has_far = False
    for place, request in enumerate(requests):
        follows = bool(near.server_bytes) and not (is_1_3 and place == 0)
        wait_s = request.wait_s + (client.next_request() if follows else 0.0)
        near.from_client(_request(request, secure), wait_s, answers=follows and request.is_automatic)
        if is_1_3 and place == 0:
            near.from_server(tls.tickets(), box_as_server.command(), needs_bytes=handshake_bytes)
        if request.is_stored:
            near.from_server(_answer(request, secure), box_as_server.answer(), answers=True)
            continue
        asked, fetched = Gate(), Gate()
        near.from_server(b"", box_as_server.command(), opens=asked if has_far else _both(asked, connect))
        far.from_client(_request(request, secure), 0.0, answers=has_far, gate=asked)
        far.from_server(_answer(request, secure), server.answer(), answers=True)
        far.from_client(b"", 0.0, opens=fetched)
        near.from_server(_answer(request, secure), box_as_server.command(), answers=True, gate=fetched)
        has_far = True
    return near, far if has_far else None, connect


def _both(first: Gate, second: Gate) -> Gate:
    """A gate that opens two."""
    first.waiting.append(second.open)
    return first
