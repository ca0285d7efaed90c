"""Whatever arrives at either end is understood, or refused in one sentence: never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pepscope.errors import UsageError
from prober.errors import MalformedMessageError
from prober.protocol.application import Application
from prober.protocol.control_messages import (
    About,
    CaptureSummary,
    Clock,
    HoldReport,
    Key,
    Ports,
    Served,
    ServedPage,
    ServerCapabilities,
    SessionGrant,
)
from prober.protocol.json_documents import parse_json
from prober.protocol.objects import ObjectKind, ObjectName
from prober.protocol.plain_requests import Target, TcpRequest, UploadReport, echo_target, object_target, upload_target

SESSION = "abcdefghijklmnopqrstuvwxyz"
PORTS = Ports(8443, 80, 443, 21, (5001, 5002), 7, 81, 8080, 0, 2121, (5100, 5199))
SERVED = Served(
    3, Application.HTTP_IMAGE, "192.0.2.1:4", 80, "GET", "1000-3.jpg", 1000, 900, 0, "ab" * 32,
    b"GET / HTTP/1.1\r\n\r\n", 5, 6, "finished", {"rtt": 7}, b"\x45\0", 12, 4,
)  # fmt: skip
MESSAGES: list[Any] = [
    PORTS,
    ServerCapabilities("", "no root", ""),
    About(1, "0.1", PORTS, ServerCapabilities("no", "", ""), {"lease_s": 900}, {"system": "Linux"}),
    SessionGrant(SESSION, 900.0),
    CaptureSummary(5, -1, 700, 300, "cd" * 32, "the disk is full"),
    HoldReport(5, 5, 0.004),
    Clock(1, 2, True),
    SERVED,
    ServedPage(9, (SERVED, SERVED)),
]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def names(message: Any) -> str:
    return type(message).__name__


@pytest.mark.parametrize("message", MESSAGES, ids=names)
def test_messages_survive_the_wire(message: Any) -> None:
    assert type(message).from_json(parse_json(json.dumps(message.to_json()).encode(), "it")) == message


def test_entries_of_servers_without_connection_numbers_are_read() -> None:
    document = SERVED.to_json()
    del document["connection_accepted_ns"], document["connection_requests"]
    read = Served.from_json(document)
    assert (read.connection_accepted_ns, read.connection_requests) == (0, -1)


@pytest.mark.parametrize("message", MESSAGES, ids=names)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_field_may_be_anything(message: Any, data: st.DataObject) -> None:
    document = json.loads(json.dumps(message.to_json()))
    name = data.draw(st.sampled_from(sorted(document)))
    if data.draw(st.booleans()):
        del document[name]
    else:
        document[name] = data.draw(anything)
    read_or_refused(type(message).from_json, document)


@pytest.mark.parametrize("message", MESSAGES, ids=names)
@given(document=anything)
@settings(max_examples=50, deadline=None)
def test_any_document_may_come(message: Any, document: Any) -> None:
    read_or_refused(type(message).from_json, document)


@given(st.binary(max_size=200))
def test_any_bytes_may_come_as_json(data: bytes) -> None:
    read_or_refused(lambda given: parse_json(given, "it"), data)
    read_or_refused(UploadReport.parse, data)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 50_000, b'{"a": NaN}', b"{\xff}", b'{"a": 1e999}', b"3"])
def test_json_that_means_harm_is_refused_or_harmless(data: bytes) -> None:
    read_or_refused(Clock.from_json, read_or_refused(lambda given: parse_json(given, "it"), data))


@given(st.text(max_size=120))
def test_any_text_may_come_as_a_key(text: str) -> None:
    read_or_refused(Key.parse, text)


def test_a_key_that_is_none_is_not_repeated() -> None:
    with pytest.raises(MalformedMessageError) as caught:
        Key.parse("pepscope1.secret-secret-secret-secret.nonsense")
    assert "secret-secret" not in str(caught.value)
    assert "0" * 30 not in repr(Key("0" * 30, "1" * 64))


@given(
    st.builds(
        TcpRequest,
        st.just(SESSION),
        st.sampled_from(["download", "upload", "echo"]),
        st.integers(1000, 10**9),
        st.integers(0, 2**63),
        st.sampled_from([ObjectKind.BINARY, ObjectKind.TEXT]),
        st.sampled_from([0.0, 0.5, 30.0]),
        *[st.integers(0, 10**6)] * 3,
    )
)
def test_raw_requests_survive_the_wire(request: TcpRequest) -> None:
    assert TcpRequest.parse(request.to_line()[:-1]) == request


@given(st.binary(max_size=100) | st.binary(max_size=60).map(lambda tail: f"PEPSCOPE/1 {SESSION} ".encode() + tail))
def test_any_bytes_may_come_as_a_raw_request(line: bytes) -> None:
    read_or_refused(TcpRequest.parse, line)


@pytest.mark.parametrize(
    "words",
    ["upload pause_s=nan", "upload pause_s=inf", "upload pause_s=-1", "upload bytes=-1", "upload bytes=1e9", "serve",
     "download bytes=10 kind=jpg", "upload bytes=" + "9" * 400, "upload a=b", "upload  bytes=1", "download kind=exe"],
)  # fmt: skip
def test_raw_requests_that_make_no_sense_are_refused(words: str) -> None:
    with pytest.raises(MalformedMessageError):
        TcpRequest.parse(f"PEPSCOPE/1 {SESSION} {words}".encode())


def test_targets_survive_the_wire() -> None:
    wanted = Target.parse(object_target(SESSION, "png", 5000, 3, cache_s=60, abort_after_bytes=10))
    assert (wanted.object, wanted.cache_s, wanted.abort_after_bytes) == (ObjectName(ObjectKind.PNG, 5000, 3), 60, 10)
    assert Target.parse(upload_target(SESSION, "up.bin", abort_after_bytes=5)).name == "up.bin"
    assert Target.parse(echo_target(SESSION)).verb == "echo"
    assert Target.parse(f"http://other.example{echo_target(SESSION)}").session == SESSION


@given(st.text(max_size=100) | st.text(max_size=60).map(lambda tail: f"/objects/{SESSION}/{tail}"))
def test_any_text_may_come_as_a_target(text: str) -> None:
    read_or_refused(Target.parse, text)


@pytest.mark.parametrize(
    "text",
    ["/", "*", "//", "http://", "http://[::1", "/objects/x/1/1.bin", f"/uploads/{SESSION}/../../etc/passwd",
     f"/uploads/{SESSION}/%2e%2e%2fpasswd", f"/objects/{SESSION}/5/5.jpg", f"/objects/{SESSION}/5/5.bin?cache=-1",
     f"/objects/{SESSION}/5/5.bin?cache=٣", f"/echo/{SESSION.upper()}", f"/echo/{SESSION}/", "example.com:443",
     f"/objects/{SESSION}/5/5.bin?" + "&".join("a=1" for _ in range(20))],
)  # fmt: skip
def test_other_targets_are_refused(text: str) -> None:
    with pytest.raises(MalformedMessageError):
        Target.parse(text)


def read_or_refused(read: Callable[[Any], Any], given: Any) -> Any:
    """What is read; None where it is refused by one sentence. Any other exception fails the test."""
    try:
        return read(given)
    except (MalformedMessageError, UsageError) as error:
        sentence = str(error)
    assert sentence
    assert "\n" not in sentence
    assert len(sentence) < 400
    return None
