"""What the two ends say to each other on the control channel, one copy for both: HTTP and JSON over TLS, under /v1/.

Every message is a frozen dataclass with `to_json` and `from_json`; `from_json` takes whatever may arrive and raises
MalformedMessageError with one sentence. The plain protocols' own words are in `prober.requests`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prober.errors import MalformedMessageError
from prober.experiment import Application
from prober.message_fields import Fields

SCHEMA = 1
KEY_PREFIX = "pepscope1"

#: Header fields of the control channel: the session that a request belongs to, and a name under which the answer to a
#: request is kept, so that asking again after a lost answer does nothing twice.
SESSION_FIELD = "Pepscope-Session"
REQUEST_FIELD = "Pepscope-Request"

#: No control message is longer, captures apart.
MOST_MESSAGE_BYTES = 1 << 20
#: How many entries one answer to `served` holds at most.
MOST_SERVED_ENTRIES = 200
MOST_HEAD_BYTES = 1 << 16
#: The ending of an entry that has none yet.
UNDER_WAY = "under-way"

_KEY = re.compile(r"pepscope1\.([A-Za-z0-9_-]{20,100})\.([0-9a-f]{64})")
_SESSION = re.compile(r"[a-z2-7]{26}")


@dataclass(frozen=True, slots=True)
class Key:
    """What the server prints when it starts: the secret token, and the SHA-256 of its certificate (DER)."""

    token: str = field(repr=False)
    fingerprint: str

    @classmethod
    def parse(cls, text: str) -> Key:
        """Read `pepscope1.TOKEN.FINGERPRINT`. Raises MalformedMessageError."""
        match = _KEY.fullmatch(text.strip())
        if match is None:
            # The key is a secret: the sentence must not repeat it.
            raise MalformedMessageError(
                "this is no key of a probe server; it prints one that reads pepscope1.TOKEN.FINGERPRINT"
            )
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"{KEY_PREFIX}.{self.token}.{self.fingerprint}"


def is_session(text: str) -> bool:
    """Whether this could be the name of a session: 26 letters and digits (RFC 4648 base32, lower case; 130 bits)."""
    return _SESSION.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the server listens, and nowhere else."""

    control: int
    http: int
    https: int
    ftp: int
    #: Raw TCP; the first is the free port, which nobody is expected to treat specially.
    tcp: tuple[int, ...]
    udp_echo: int
    #: Never answers a SYN.
    dead: int
    #: The same services once more, at ports that nobody is expected to treat specially; 0 for none.
    http_free: int = 0
    https_free: int = 0
    ftp_free: int = 0
    #: First and last port of passive FTP data connections.
    ftp_data: tuple[int, int] = (0, 0)

    @property
    def services(self) -> tuple[int, ...]:
        """All single TCP ports with a service that an ACK hold or a silence may be asked for."""
        named = (self.http, self.https, self.ftp, *self.tcp, self.http_free, self.https_free, self.ftp_free)
        return tuple(dict.fromkeys(port for port in named if port))

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {
            **{name: getattr(self, name) for name in _SINGLE_PORTS},
            "tcp": [*self.tcp],
            "ftp_data": [*self.ftp_data],
        }

    @classmethod
    def from_json(cls, document: Any) -> Ports:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "the server's ports")
        tcp, data = fields.integers("tcp", 1, 65_535), fields.integers("ftp_data", 0, 65_535, 2)
        if not tcp or len(data) != 2:
            raise MalformedMessageError("the server's ports lack a raw TCP port, or the range of FTP data connections")
        single = {name: fields.integer(name, 0, 65_535) for name in _SINGLE_PORTS}
        return cls(tcp=tcp, ftp_data=(data[0], data[1]), **single)


_SINGLE_PORTS = ("control", "http", "https", "ftp", "udp_echo", "dead", "http_free", "https_free", "ftp_free")


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the server can do beside serving: empty where it can, else a sentence that says why not."""

    captures: str = ""
    holds: str = ""
    silences: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {"captures": self.captures, "holds": self.holds, "silences": self.silences}

    @classmethod
    def from_json(cls, document: Any) -> Abilities:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "what the server can")
        return cls(*(fields.text(name) for name in ("captures", "holds", "silences")))


@dataclass(frozen=True, slots=True)
class About:
    """What a server says of itself."""

    schema: int
    version: str
    ports: Ports
    can: Abilities
    #: The server's limits by name, such as `object_bytes`, `session_bytes`, `capture_bytes`, `lease_s`.
    limits: Mapping[str, int]
    #: Facts about the host that an archive should remember.
    host: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {
            "schema": self.schema,
            "version": self.version,
            "ports": self.ports.to_json(),
            "can": self.can.to_json(),
            "limits": dict(self.limits),
            "host": dict(self.host),
        }

    @classmethod
    def from_json(cls, document: Any) -> About:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "what the server says of itself")
        schema = fields.integer("schema")
        if schema != SCHEMA:
            raise MalformedMessageError(
                f"the server speaks version {schema} of the control channel, this pepscope version {SCHEMA}; "
                "install the same pepscope at both ends"
            )
        ports, can = Ports.from_json(fields.value("ports")), Abilities.from_json(fields.value("can"))
        limits, host = fields.numbers_by_name("limits"), fields.texts_by_name("host")
        return cls(schema, fields.text("version", 100), ports, can, limits, host)


@dataclass(frozen=True, slots=True)
class SessionGrant:
    """A session: the plain protocols carry its name instead of the token."""

    session: str
    #: Counted from the last control message of the session.
    expires_s: float

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {"session": self.session, "expires_s": self.expires_s}

    @classmethod
    def from_json(cls, document: Any) -> SessionGrant:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "the server's session")
        name = fields.text("session", 100)
        if not is_session(name):
            raise MalformedMessageError("the server's session has no name that a session can have")
        return cls(name, fields.number("expires_s", 0, 1e6))


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """A finished capture at the server."""

    packets: int
    #: That libpcap or its kernel lost; -1 where it cannot tell.
    missed: int
    #: Of the capture file, and of what is sent for it, which is packed by gzip.
    size_bytes: int
    packed_bytes: int
    #: Of the capture file, in hexadecimal digits.
    sha256: str
    #: Why it ended before it was finished, one sentence; empty where it did not.
    ended_early: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, document: Any) -> CaptureSummary:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "the server's capture")
        return cls(
            fields.integer("packets"),
            fields.integer("missed", -1),
            fields.integer("size_bytes"),
            fields.integer("packed_bytes"),
            fields.text("sha256", 64),
            fields.text("ended_early"),
        )


@dataclass(frozen=True, slots=True)
class HoldReport:
    """What an ACK hold at the server did."""

    #: Segments that were held back, and let go after the delay.
    held: int
    released: int
    #: Largest difference between the delay asked for and the one given.
    largest_error_s: float

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, document: Any) -> HoldReport:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "the server's report of an ACK hold")
        return cls(fields.integer("held"), fields.integer("released"), fields.number("largest_error_s"))


@dataclass(frozen=True, slots=True)
class Clock:
    """The server's clocks, read while it answered."""

    unix_ns: int
    monotonic_ns: int
    #: Whether its kernel says that the clock is disciplined (adjtimex).
    synchronised: bool

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, document: Any) -> Clock:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "the server's clock")
        return cls(fields.integer("unix_ns"), fields.integer("monotonic_ns"), fields.truth("synchronised"))


@dataclass(frozen=True, slots=True)
class Served:
    """One request or transfer as the server saw it."""

    #: Rising within a session, from 1, in the order of their beginning.
    number: int
    application: Application
    #: `ADDRESS:PORT` of who the server talked to; it is not the mobile's where somebody stood in between.
    peer: str
    local_port: int
    #: Method of HTTP, `RETR` or `STOR`, `download`, `upload` or `echo`.
    verb: str
    #: `SIZE-SEED.bin` of an object whichever protocol carried it; else the path or the name of an upload.
    object: str
    #: Of the whole object; for uploads what was announced, or -1 where nothing was.
    size_bytes: int
    #: Payload that was handed to TCP and taken from it, heads not counted.
    sent_bytes: int
    received_bytes: int
    #: Of what was sent or received, in hexadecimal digits.
    sha256: str
    #: Request line and header of HTTP, byte for byte as they came.
    request_head: bytes
    started_unix_ns: int
    ended_unix_ns: int
    #: `under-way`, `finished` (the peer acknowledged everything), `aborted-by-peer`, `aborted-by-server`, `idle`,
    #: `refused`, `malformed`, `stopped`.
    ending: str
    #: Fields of the kernel's `struct tcp_info` (linux/tcp.h) when it ended; names as there.
    tcp_info: Mapping[str, int]
    #: The SYN as the server's kernel got it (TCP_SAVED_SYN), IP header first; empty where it cannot be had.
    syn: bytes = b""
    #: When the connection that carried it was accepted, by the server's monotonic clock (`Clock.monotonic_ns`); 0 where
    #: the server does not say.
    connection_accepted_ns: int = 0
    #: How many requests had come on that connection before, of any session; -1 where the server does not say.
    connection_requests: int = -1

    @property
    def is_over(self) -> bool:
        """Whether this is how it ended; until then counts still grow, and neither end nor TCP's facts are known."""
        return self.ending != UNDER_WAY

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        document = {name: getattr(self, name) for name in self.__slots__}
        document["application"] = self.application.value
        document["tcp_info"] = dict(self.tcp_info)
        for name in ("request_head", "syn"):
            document[name] = base64.b64encode(document[name]).decode("ascii")
        return document

    @classmethod
    def from_json(cls, document: Any) -> Served:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "the server's log")
        try:
            application = Application(fields.text("application", 20))
        except ValueError:
            raise MalformedMessageError("the server's log names an application that there is not") from None
        texts = {name: fields.text(name, 4000) for name in ("peer", "verb", "object", "sha256", "ending")}
        counts = ("number", "local_port", "sent_bytes", "received_bytes", "started_unix_ns", "ended_unix_ns")
        values: dict[str, Any] = {**texts, **{name: fields.integer(name) for name in counts}}
        return cls(
            application=application,
            size_bytes=fields.integer("size_bytes", -1),
            request_head=_bytes(fields, "request_head"),
            tcp_info=fields.numbers_by_name("tcp_info"),
            syn=_bytes(fields, "syn"),
            connection_accepted_ns=fields.integer("connection_accepted_ns", default=0),
            connection_requests=fields.integer("connection_requests", -1, default=-1),
            **values,
        )


@dataclass(frozen=True, slots=True)
class ServedPage:
    """Some entries of a session's log, and the number of its last one."""

    last: int
    entries: tuple[Served, ...]

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {"last": self.last, "entries": [entry.to_json() for entry in self.entries]}

    @classmethod
    def from_json(cls, document: Any) -> ServedPage:
        """As it arrives. Raises MalformedMessageError."""
        fields = Fields(document, "the server's log")
        entries = fields.list("entries", MOST_SERVED_ENTRIES)
        return cls(fields.integer("last"), tuple(Served.from_json(entry) for entry in entries))


def _bytes(fields: Fields, name: str) -> bytes:
    try:
        return base64.b64decode(fields.text(name, MOST_HEAD_BYTES * 2), validate=True)
    except (binascii.Error, ValueError):
        raise MalformedMessageError(f"the server's log has a {name} that is not base64") from None
