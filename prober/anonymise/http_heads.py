"""The head of an HTTP message with everything hidden but the protocol's own words.

Methods look at heads: whether a proxy wrote them anew, whether two requests are the same. So a head stays a head: its
method, its version, its status, and names of standard and proxy header fields are kept. Every other name,
each segment of a path, and every value is replaced as a whole by a keyed hash of itself, letter by letter, digit by
digit; punctuation stays. Equal parts stay equal, and what differs anywhere differs all over.

A part that the capture cut off is left out, since its hash cannot be known.
"""

from __future__ import annotations

import re

from prober.anonymise.keys import SecretKey

#: Longest head that is looked for.
LONGEST_BYTES = 1 << 14

_METHODS = frozenset(b"GET HEAD POST PUT DELETE OPTIONS PATCH TRACE CONNECT PEPSCOPE".split())

#: Names of fields (RFC 9110 to 9112, 7239, and what proxies are used to adding), in lower case.
FIELD_NAMES = frozenset(
    b"""
    accept accept-charset accept-encoding accept-language accept-ranges age allow authorization cache-control
    connection content-disposition content-encoding content-language content-length content-location
    content-range content-type cookie date etag expect expires forwarded from host if-match if-modified-since
    if-none-match if-range if-unmodified-since keep-alive last-modified location max-forwards pragma
    proxy-authenticate proxy-authorization proxy-connection range referer retry-after server set-cookie te
    trailer transfer-encoding upgrade user-agent vary via warning www-authenticate x-cache x-cache-lookup
    x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip x-think-time x-via
    """.split()
)

_REQUEST = re.compile(rb"([A-Z]{3,10}) ")
_ANSWER = re.compile(rb"HTTP/1\.[01] \d{3}")
_VERSION = re.compile(rb" HTTP/1\.[01]\r\n")
_LETTERS, _CAPITALS, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"


#: How far behind the beginning of a datagram a head may begin.
_FARTHEST = 256
_BEGINNING = re.compile(rb"(?:" + b"|".join(sorted(_METHODS)) + rb") [/h*]|HTTP/1\.[01] \d{3}")


def find_head(data: bytes) -> int | None:
    """Where a head begins in a datagram, behind some header or at once."""
    found = _BEGINNING.search(data[: _FARTHEST + 16])
    return None if found is None else found.start()


class HeadHider:
    """Hides heads under one key."""

    def __init__(self, key: SecretKey) -> None:
        self._key = key

    def hidden(self, data: bytes) -> tuple[bytes, bool] | None:
        """What begins `data`, hidden, and whether it is a whole head; `None` where that is no head of HTTP.

        The result is as long as the part of `data` that it stands for. Of a head that is not whole it ends before the
        first part that may have been cut.
        """
        data = data[:LONGEST_BYTES]
        request = _REQUEST.match(data)
        answer = _ANSWER.match(data)
        if answer is None and (request is None or request[1] not in _METHODS):
            return None
        made = bytearray()
        position = 0
        while True:
            end = data.find(b"\r\n", position)
            if end < 0:
                made += self._cut_line(data[position:], is_first=position == 0)
                return bytes(made), False
            line = data[position:end]
            made += (self._first(line) if position == 0 else self._field(line)) + b"\r\n"
            position = end + 2
            if not line:
                return bytes(made), True

    def value(self, text: bytes) -> bytes:
        """A value as a whole: letters, capitals and digits by others of their kind, punctuation as it is."""
        stream = self._key.hashed("head", text, len(text))
        return bytes(_replaced(letter, chance) for letter, chance in zip(text, stream, strict=True))

    def name(self, text: bytes) -> bytes:
        """A field's name: kept where it is known."""
        return text if text.strip().lower() in FIELD_NAMES else self.value(text)

    def host(self, text: bytes) -> bytes:
        """A host's name; the port behind it identifies the service, and is kept."""
        name, colon, port = text.rpartition(b":")
        if colon and port.isdigit():
            return self.value(name) + colon + port
        return self.value(text)

    def target(self, text: bytes) -> bytes:
        """A request's target, segment by segment; scheme and port are kept."""
        scheme = re.match(rb"(https?://)([^/]*)", text)
        if scheme is None:
            return b"".join(self._segment(part) for part in re.split(rb"([/?&=])", text))
        rest = text[scheme.end() :]
        return scheme[1] + self.host(scheme[2]) + b"".join(self._segment(part) for part in re.split(rb"([/?&=])", rest))

    def _segment(self, part: bytes) -> bytes:
        return part if part in (b"", b"/", b"?", b"&", b"=") else self.value(part)

    def _first(self, line: bytes) -> bytes:
        answer = _ANSWER.match(line)
        if answer is not None:
            return answer[0] + self.value(line[answer.end() :])
        method, _, rest = line.partition(b" ")
        target, space, version = rest.rpartition(b" ")
        if _VERSION.fullmatch(b" " + version + b"\r\n") is None:
            target, space, version = rest, b"", b""
        return method + b" " + self.target(target) + space + version

    def _field(self, line: bytes) -> bytes:
        name, colon, rest = line.partition(b":")
        text = rest.strip(b" \t")
        before = rest[: len(rest) - len(rest.lstrip(b" \t"))]
        after = rest[len(before) + len(text) :]
        hidden = self.host(text) if name.lower() == b"host" else self.value(text)
        return self.name(name) + colon + before + hidden + after

    def _cut_line(self, line: bytes, *, is_first: bool) -> bytes:
        """As much of a line without its end as is certain."""
        if not is_first:
            name, colon, _ = line.partition(b":")
            return self.name(name) + colon if colon else b""
        if _ANSWER.match(line):
            return line[:12]
        method, _, rest = line.partition(b" ")
        target, space, _ = rest.partition(b" ")
        if space:
            return method + b" " + self.target(target) + b" "
        whole = target[: max(target.rfind(mark) for mark in (b"/", b"?", b"&", b"=")) + 1]
        # Within a scheme or a host nothing is certain yet.
        if whole.startswith(b"http") and whole.count(b"/") < 3:
            return method + b" "
        return method + b" " + self.target(whole)


def _replaced(letter: int, chance: int) -> int:
    if 48 <= letter <= 57:
        return _DIGITS[chance % 10]
    if 65 <= letter <= 90:
        return _CAPITALS[chance % 26]
    if 97 <= letter <= 122 or letter >= 128:
        return _LETTERS[chance % 26]
    return letter
