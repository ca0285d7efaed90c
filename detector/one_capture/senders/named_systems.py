"""Which system a client names by what it says first: the User-Agent of its request, or the TLS library of its hello.

A split point's SYN is its own, while request and hello are the client's (design of p0f, M. Zalewski, 2014, for SYNs;
JA3, J. Althouse et al., 2017, for hellos). So a SYN of another system than the client names stands for a split, and one
that fits for none. Programs may name any system they like, and tools that fetch pages in a browser's name often do.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data

from msgspec import json

#: What User-Agents have of each system. The order counts: Android's name Linux too, those of iOS "like Mac OS X".
_AGENTS = (
    ("windows", (b"windows nt",)),
    ("android", (b"android",)),
    ("darwin", (b"iphone", b"ipad", b"macintosh", b"darwin/")),
    ("linux", (b"linux", b"x11; cros")),
)

#: Robots of search engines name a telephone to get its pages.
_ROBOTS = (b"bot", b"spider", b"crawl")

#: Of a hello: a record's header (RFC 8446, section 5.1), a message's (section 4), version and random.
_RECORD_BYTES, _MESSAGE_BYTES, _BEFORE_SESSION_BYTES = 5, 4, 34
_HANDSHAKE, _CLIENT_HELLO = 0x16, 0x01


def named_system(opening: bytes) -> str | None:
    """The system that a client's first bytes name, as `stacks.json` calls it; None where they name none."""
    if opening[:1] == bytes([_HANDSHAKE]):
        return _of_hello(opening)
    return _of_agent(opening)


def _of_agent(request: bytes) -> str | None:
    """The system in the User-Agent of an HTTP/1 request (RFC 9110, section 10.1.5)."""
    head = request.partition(b"\r\n\r\n")[0].lower()
    _, _, behind = head.partition(b"\r\nuser-agent:")
    agent = behind.partition(b"\r\n")[0]
    if any(word in agent for word in _ROBOTS):
        return None
    return next((system for system, words in _AGENTS if any(word in agent for word in words)), None)


def _of_hello(record: bytes) -> str | None:
    """The system whose TLS library offers cipher suites as this ClientHello does first."""
    message = record[_RECORD_BYTES:]
    session = message[_MESSAGE_BYTES + _BEFORE_SESSION_BYTES :]
    if message[:1] != bytes([_CLIENT_HELLO]) or not session:
        return None
    offered = session[1 + session[0] :]
    size = int.from_bytes(offered[:2])
    codes = offered[2 : 2 + size]
    suites = [codes[place : place + 2] for place in range(0, len(codes) - 1, 2)]
    first = tuple(suite.hex() for suite in suites if not _is_grease(suite))
    return next((system for beginning, system in _hellos().items() if first[: len(beginning)] == beginning), None)


def _is_grease(suite: bytes) -> bool:
    """Whether a code point is one of those that clients offer to keep servers tolerant (RFC 8701)."""
    return suite[0] == suite[1] and suite[0] & 0x0F == 0x0A


@cache
def _hellos() -> Mapping[tuple[str, ...], str]:
    """The table of hellos that is installed with the program, by the suites that they offer first."""
    content = json.decode(get_data(__package__, "hellos.json") or b"{}")
    return {tuple(each["cipher_suites"]): each["system"] for each in content["hellos"]}
