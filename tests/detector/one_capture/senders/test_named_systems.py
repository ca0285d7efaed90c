"""Which system a client's first bytes name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.senders.named_systems import named_system
from detector.one_capture.senders.stacks import known_stacks

#: Cipher suites that programs offer first: Schannel with TLS 1.2 and 1.3, Safari 17, okhttp on Android, Chromium,
#: Firefox, OpenSSL 3, rustls, Java 17.
SCHANNEL_12 = (0xC02C, 0xC02B, 0xC030, 0xC02F, 0xC024, 0xC023, 0xC028)
SCHANNEL_13 = (0x1302, 0x1301, 0xC02C, 0xC02B, 0xC030, 0xC02F, 0x009F)
SAFARI = (0x5A5A, 0x1301, 0x1302, 0x1303, 0xC02C, 0xC02B, 0xCCA9, 0xC030)
OKHTTP = (0x1301, 0x1302, 0x1303, 0xC02B, 0xC02C, 0xCCA9, 0xC02F)
OF_ANY_SYSTEM = {
    "chromium": (0xCACA, 0x1301, 0x1302, 0x1303, 0xC02B, 0xC02F, 0xC02C),
    "firefox": (0x1301, 0x1303, 0x1302, 0xC02B, 0xC02F, 0xCCA9),
    "openssl": (0x1302, 0x1303, 0x1301, 0xC02C, 0xC030, 0x009F),
    "rustls": (0x1302, 0x1301, 0x1303, 0xC02C, 0xC02B, 0xCCA9),
    "java": (0x1302, 0x1301, 0x1303, 0xC02C, 0xC02B, 0xCCA9),
}


def hello(suites: Sequence[int], session: bytes = bytes(32)) -> bytes:
    """The beginning of a ClientHello (RFC 8446, section 4.1.2) that offers these."""
    offered = b"".join(code.to_bytes(2) for code in suites)
    body = b"\x03\x03" + bytes(range(32)) + bytes([len(session)]) + session + len(offered).to_bytes(2) + offered
    message = b"\x01" + (len(body) + 2).to_bytes(3) + body + b"\x01\x00"
    return b"\x16\x03\x01" + len(message).to_bytes(2) + message


def request(agent: bytes, field: bytes = b"User-Agent") -> bytes:
    """A request with this User-Agent."""
    return b"GET / HTTP/1.1\r\nHost: a\r\n" + field + b": " + agent + b"\r\nAccept: */*\r\n\r\n"


@pytest.mark.parametrize(
    ("agent", "system"),
    [
        (b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36", "windows"),
        (b"Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36", "android"),
        (b"Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X)", "darwin"),
        (b"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", "darwin"),
        (b"MyApp/2 CFNetwork/1494.0.7 Darwin/23.4.0", "darwin"),
        (b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "linux"),
        (b"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0)", "linux"),
        (b"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X) (compatible; Googlebot/2.1)", None),
        (b"curl/8.5.0", None),
        (b"", None),
    ],
)
def test_user_agents_name_systems(agent: bytes, system: str | None) -> None:
    assert named_system(request(agent)) == system
    assert named_system(request(agent, b"user-agent")) == system
    assert named_system(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nUser-Agent: " + agent) is None, "content names nothing"


@pytest.mark.parametrize(
    ("suites", "system"),
    [(SCHANNEL_12, "windows"), (SCHANNEL_13, "windows"), (SAFARI, "darwin"), (OKHTTP, "android")],
)
def test_libraries_of_systems_are_told_by_what_they_offer_first(suites: Sequence[int], system: str) -> None:
    assert named_system(hello(suites)) == system
    assert named_system(hello(suites, session=b"")) == system


@pytest.mark.parametrize("suites", OF_ANY_SYSTEM.values(), ids=OF_ANY_SYSTEM)
def test_libraries_that_run_on_any_system_name_none(suites: Sequence[int]) -> None:
    assert named_system(hello(suites)) is None


def test_a_hello_that_was_cut_names_nothing_before_its_suites_tell() -> None:
    whole = hello(SCHANNEL_13)
    told = [named_system(whole[:length]) for length in range(len(whole) + 1)]
    first = told.index("windows")
    assert set(told[:first]) == {None}
    assert set(told[first:]) == {"windows"}
    assert first == 5 + 4 + 34 + 33 + 2 + 2 * 6, "header, message, version and random, session, length, six suites"


@given(st.binary(max_size=120), st.sampled_from([b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\nUser-Agent: "]))
def test_any_bytes_are_read(rest: bytes, beginning: bytes) -> None:
    systems = frozenset().union(*(stack.systems for stack in known_stacks()))
    assert named_system(beginning + rest) in {None, *systems}
