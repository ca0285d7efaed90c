"""What the mobile asks for on the plain protocols: targets of HTTP, and the one line that begins a raw TCP transfer.

They carry the name of a session and never the token: an eavesdropper gets no secret that is valid after the run.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Meta

from pepscope.errors import UsageError
from pepscope.strict_reading import Amount, WholeNumber, shown
from prober.errors import MalformedMessageError
from prober.protocol.control_messages import is_session
from prober.protocol.json_documents import Message, parse_json
from prober.protocol.objects import ObjectKind, ObjectName

#: A request line of raw TCP is never longer.
MOST_LINE_BYTES = 512
MOST_PAUSE_S = 600.0

_LINE_START = "PEPSCOPE/1"
_UPLOAD_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class Reading:
    """How the server is to read an upload: as it comes, unless something is asked for."""

    #: The server stops reading for so long once it has read `after_bytes`.
    pause_s: float = 0.0
    after_bytes: int = 0
    #: The server sets its SO_RCVBUF before it reads on; 0 leaves it to its kernel.
    receive_buffer_bytes: int = 0

    def query(self) -> list[tuple[str, float]]:
        """Names and values, as a query or a line has them; what is not asked for has 0."""
        return [("pause_s", self.pause_s), ("after", self.after_bytes), ("receive_buffer", self.receive_buffer_bytes)]

    @classmethod
    def parse(cls, query: dict[str, str]) -> Reading:
        """Read the fields of a query. Raises MalformedMessageError."""
        try:
            pause_s = _seconds(query.get("pause_s", "0"))
        except ValueError:
            raise MalformedMessageError(
                f"pause_s must be between 0 and {MOST_PAUSE_S:g}, got {shown(query['pause_s'])}"
            ) from None
        return cls(pause_s, _whole(query, "after"), _whole(query, "receive_buffer"))


@dataclass(frozen=True, slots=True)
class Target:
    """What an HTTP request is for: `/objects/SESSION/SIZE/SEED.KIND`, `/uploads/SESSION/NAME`, `/echo/SESSION`."""

    session: str
    #: `objects`, `uploads` or `echo`.
    verb: str
    #: Only of `objects`.
    object: ObjectName | None = None
    #: Only of `uploads`.
    name: str = ""
    #: How long caches may store the object; 0 forbids it.
    cache_s: int = 0
    #: After so many bytes of content the server resets the connection; 0 for never.
    abort_after_bytes: int = 0
    #: Only of `uploads`.
    reading: Reading = field(default_factory=Reading)

    def __str__(self) -> str:
        last = {"uploads": f"/{self.name}", "echo": ""}.get(self.verb, "")
        if self.object is not None:
            last = f"/{self.object.size_bytes}/{self.object.seed}.{self.object.kind}"
        fields = [("cache", self.cache_s), ("abort_after", self.abort_after_bytes), *self.reading.query()]
        query = "&".join(f"{name}={value}" for name, value in fields if value)
        return f"/{self.verb}/{self.session}{last}" + (f"?{query}" if query else "")

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read a target, in origin or in absolute form (RFC 9112, section 3.2). Raises MalformedMessageError."""
        try:
            parts = urlsplit(text)
            path = unquote(parts.path, errors="strict").split("/")
            query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query), max_num_fields=10))
        except ValueError:
            raise MalformedMessageError(f"the target must be a path of this server, got {shown(text)}") from None
        match path:
            case ["", "objects", session, size, file] if is_session(session):
                seed, _, kind = file.rpartition(".")
                try:
                    wanted = ObjectName.parse(f"{size}-{seed}.{kind}")
                except UsageError as error:
                    raise MalformedMessageError(str(error)) from None
                return cls(session, "objects", wanted, "", _whole(query, "cache"), _whole(query, "abort_after"))
            case ["", "uploads", session, name] if is_session(session) and _UPLOAD_NAME.fullmatch(name):
                return cls(session, "uploads", None, name, 0, _whole(query, "abort_after"), Reading.parse(query))
            case ["", "echo", session] if is_session(session):
                return cls(session, "echo")
        raise MalformedMessageError(
            "the target must be /objects/SESSION/SIZE/SEED.bin (.txt, .jpg, .png), /uploads/SESSION/NAME or "
            "/echo/SESSION"
        )


def object_target(
    session: str, kind: ObjectKind | str, size_bytes: int, seed: int, *, cache_s: int = 0, abort_after_bytes: int = 0
) -> str:
    """The target of an object. Raises UsageError for sizes and seeds that there are not."""
    wanted = ObjectName(ObjectKind(kind), size_bytes, seed)
    return str(Target(session, "objects", wanted, "", cache_s, abort_after_bytes))


def upload_target(session: str, name: str, *, abort_after_bytes: int = 0, reading: Reading | None = None) -> str:
    """The target of an upload; `name` has only letters, digits, `.`, `_` and `-`."""
    return str(Target(session, "uploads", None, name, 0, abort_after_bytes, reading or Reading()))


def echo_target(session: str) -> str:
    """The target whose answer is the request's own head."""
    return str(Target(session, "echo"))


def _whole(query: dict[str, str], name: str) -> int:
    text = query.get(name, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 13:
        raise MalformedMessageError(f"{name} must be a whole number, got {shown(text)}")
    return int(text)


@dataclass(frozen=True, slots=True)
class TcpRequest:
    """A raw TCP transfer: `PEPSCOPE/1 SESSION VERB key=value...`, ended by a line feed.

    `download`: the server sends the object and ends. `upload`: the mobile sends so many bytes, and the server answers
    with one line of JSON (`UploadReport`). `echo`: every byte comes back, until the mobile ends.
    """

    session: str
    verb: str
    size_bytes: int = 0
    seed: int = 0
    kind: ObjectKind = ObjectKind.BINARY
    #: Of an upload: the fields of `Reading`.
    pause_s: float = 0.0
    after_bytes: int = 0
    receive_buffer_bytes: int = 0
    #: After so many bytes the server resets the connection; 0 for never.
    abort_after_bytes: int = 0

    @property
    def reading(self) -> Reading:
        """How an upload is to be read."""
        return Reading(self.pause_s, self.after_bytes, self.receive_buffer_bytes)

    def __str__(self) -> str:
        words = [_LINE_START, self.session, self.verb]
        words += [f"{word}={getattr(self, name)}" for word, (name, _) in _WORDS.items() if getattr(self, name)]
        return " ".join(words)

    def to_line(self) -> bytes:
        """As it is sent."""
        return f"{self}\n".encode("ascii")

    @classmethod
    def parse(cls, line: bytes) -> TcpRequest:
        """Read a line without its end. Raises MalformedMessageError."""
        try:
            start, session, verb, *words = line.decode("ascii").rstrip("\r").split(" ")
        except ValueError:
            raise MalformedMessageError("a request must be `PEPSCOPE/1 SESSION VERB key=value...`") from None
        if start != _LINE_START or not is_session(session):
            raise MalformedMessageError("a request must be `PEPSCOPE/1 SESSION VERB key=value...`")
        if verb not in ("download", "upload", "echo"):
            raise MalformedMessageError(f"the verb must be download, upload or echo, got {shown(verb)}")
        values: dict[str, Any] = {}
        for word in words:
            name, _, text = word.partition("=")
            if name not in _WORDS:
                raise MalformedMessageError(f"a word must be one of {', '.join(_WORDS)}, got {shown(name)}")
            field, read = _WORDS[name]
            try:
                values[field] = read(text)
            except ValueError:
                raise MalformedMessageError(f"{name} must have a value of its type, got {shown(text)}") from None
        request = cls(session, verb, **values)
        if verb == "download":
            try:
                ObjectName(request.kind, request.size_bytes, request.seed)
            except UsageError as error:
                raise MalformedMessageError(str(error)) from None
        return request


def _count(text: str) -> int:
    if not text.isdigit() or len(text) > 20:
        raise ValueError(text)
    return int(text)


def _seconds(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and 0 <= value <= MOST_PAUSE_S):
        raise ValueError(text)
    return value


_WORDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "bytes": ("size_bytes", _count),
    "seed": ("seed", _count),
    "kind": ("kind", ObjectKind),
    "pause_s": ("pause_s", _seconds),
    "after": ("after_bytes", _count),
    "receive_buffer": ("receive_buffer_bytes", _count),
    "abort_after": ("abort_after_bytes", _count),
}


class UploadReport(Message, frozen=True):
    """The server's one line about an upload, over raw TCP and as the answer to an HTTP upload."""

    place = "upload report"

    received_bytes: WholeNumber
    sha256: Annotated[str, Meta(max_length=64)]
    #: From the first byte read to the last.
    duration_s: Amount = 0.0
    #: SO_RCVBUF as the kernel counts it (twice what was asked for).
    receive_buffer_bytes: WholeNumber = 0
    #: While the server paused: what it had read, what its kernel had taken in beyond that at the end of the pause
    #: (FIONREAD), and how long the pause was. All 0 where there was none.
    read_bytes_at_pause: WholeNumber = 0
    queued_bytes_at_pause: WholeNumber = 0
    paused_s: Amount = 0.0
    #: All that the server's kernel had taken in of the connection when the pause was over, heads and TLS included
    #: (`tcpi_bytes_received`); 0 where its kernel does not count.
    taken_bytes_at_pause: WholeNumber = 0

    def to_line(self) -> bytes:
        """As it is sent over raw TCP."""
        return json.dumps(self.to_json()).encode("ascii") + b"\n"

    @classmethod
    def parse(cls, data: bytes) -> UploadReport:
        """As it arrives. Raises MalformedMessageError."""
        return cls.from_json(parse_json(data[:4096], "the server's report of an upload"))
