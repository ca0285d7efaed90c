"""What the two ends say to each other on the control channel, one copy for both: HTTP and JSON over TLS, under /v1/.

Every message is a frozen type whose fields carry their bounds; `from_json` takes whatever may arrive and raises
MalformedMessageError with one sentence. The plain protocols' requests are in `plain_requests`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from pepscope.strict_reading import LARGEST_INTEGER, Table, WholeNumber, between, shown
from prober.errors import MalformedMessageError
from prober.protocol.application import Application
from prober.protocol.json_documents import Message

SCHEMA = 1
DEFAULT_CONTROL_PORT = 8443
KEY_PREFIX = "pepscope1"

#: Header fields of the control channel: the session that a request belongs to, and a name under which the answer to a
#: request is stored, so that a repeated request after a lost answer has no second effect.
SESSION_FIELD = "Pepscope-Session"
REQUEST_FIELD = "Pepscope-Request"

#: No control message is longer, captures apart.
MOST_MESSAGE_BYTES = 1 << 20
#: How many entries one answer to `served` holds at most.
MOST_SERVED_ENTRIES = 200
MOST_HEAD_BYTES = 1 << 16
#: What one request carries of an archive at most: the server always reads it to its end, so that no answer is lost.
MOST_PART_BYTES = 4 << 20
MOST_LABEL_LENGTH = 200
#: The ending of an entry that has none yet.
UNDER_WAY = "under-way"

_Port: TypeAlias = Annotated[int, between(0, 65_535)]
_Name: TypeAlias = Annotated[str, Meta(max_length=100)]
_Text: TypeAlias = Annotated[str, Meta(max_length=1000)]
_LongText: TypeAlias = Annotated[str, Meta(max_length=4000)]
_Head: TypeAlias = Annotated[bytes, Meta(max_length=MOST_HEAD_BYTES * 3 // 2)]
#: A number of at least 0, or -1 for none.
_CountOrNone: TypeAlias = Annotated[int, between(-1, LARGEST_INTEGER)]

_KEY = re.compile(r"pepscope1\.([A-Za-z0-9_-]{20,100})\.([0-9a-f]{64})")
_SESSION = re.compile(r"[a-z2-7]{26}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


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
            raise MalformedMessageError("a key must be pepscope1.TOKEN.FINGERPRINT, as the probe server prints it")
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"{KEY_PREFIX}.{self.token}.{self.fingerprint}"


def is_digest(text: str) -> bool:
    """Whether this is a SHA-256 in hexadecimal digits."""
    return _DIGEST.fullmatch(text) is not None


def is_session(text: str) -> bool:
    """Whether this could be the name of a session: 26 letters and digits (RFC 4648 base32, lower case; 130 bits)."""
    return _SESSION.fullmatch(text) is not None


class Ports(Message, frozen=True):
    """Where the server listens, and nowhere else."""

    place = "ports"

    control: _Port
    http: _Port
    https: _Port
    ftp: _Port
    #: Raw TCP; the first is the free port, which no middlebox is expected to treat specially.
    tcp: Annotated[tuple[Annotated[int, between(1, 65_535)], ...], Meta(min_length=1, max_length=64)]
    udp_echo: _Port
    #: Never answers a SYN.
    dead: _Port
    #: The same services once more, at ports that no middlebox is expected to treat specially; 0 for none.
    http_free: _Port = 0
    https_free: _Port = 0
    ftp_free: _Port = 0
    #: First and last port of passive FTP data connections.
    ftp_data: tuple[_Port, _Port] = (0, 0)

    @property
    def services(self) -> tuple[int, ...]:
        """All single TCP ports with a service for which an ACK hold or a silence may be requested."""
        named = (self.http, self.https, self.ftp, *self.tcp, self.http_free, self.https_free, self.ftp_free)
        return tuple(dict.fromkeys(port for port in named if port))


class ServerCapabilities(Message, frozen=True):
    """Capabilities of the server beside serving: empty where it has one, otherwise the reason."""

    place = "can"

    captures: _Text = ""
    holds: _Text = ""
    silences: _Text = ""


class About(Message, frozen=True):
    """A server's description of itself."""

    place = "about"

    schema: WholeNumber
    version: Annotated[str, Meta(max_length=100)]
    ports: Ports
    can: ServerCapabilities
    #: The server's limits by name, such as `object_bytes`, `session_bytes`, `capture_bytes`, `lease_s`.
    limits: Annotated[dict[_Name, int], Meta(max_length=200)]
    #: Properties of the host, for the archive.
    host: Annotated[dict[_Name, _Text], Meta(max_length=50)]

    @classmethod
    def from_json(cls, document: Any) -> About:
        """As it arrives. Raises MalformedMessageError, first of all for another version of the control channel."""
        schema = document.get("schema") if isinstance(document, Mapping) else None
        if isinstance(schema, int) and schema != SCHEMA:
            raise MalformedMessageError(
                f"the server's control channel must have version {SCHEMA}, got {shown(schema)}; "
                "install the same pepscope at both ends"
            )
        return super().from_json(document)


class SessionGrant(Message, frozen=True):
    """A session: the plain protocols carry its name instead of the token."""

    place = "session"

    session: Annotated[str, Meta(max_length=100)]
    #: Counted from the last control message of the session.
    expires_s: Annotated[float, between(0, 1e6)]

    @classmethod
    def from_json(cls, document: Any) -> SessionGrant:
        """As it arrives. Raises MalformedMessageError."""
        read = super().from_json(document)
        if not is_session(read.session):
            raise MalformedMessageError(f"session.session must be the name of a session, got {shown(read.session)}")
        return read


class CaptureSummary(Message, frozen=True):
    """A finished capture at the server."""

    place = "capture"

    packets: WholeNumber
    #: That libpcap or its kernel lost; -1 where it is not known.
    missed: _CountOrNone
    #: Of the capture file, and of what is sent for it, which is packed by gzip.
    size_bytes: WholeNumber
    packed_bytes: WholeNumber
    #: Of the capture file, in hexadecimal digits.
    sha256: Annotated[str, Meta(max_length=64)]
    #: Why it ended before it was finished, one sentence; empty where it did not.
    ended_early: _Text = ""


class HoldReport(Message, frozen=True):
    """What an ACK hold at the server did."""

    place = "hold"

    #: Segments that were held back, and let go after the delay.
    held: WholeNumber
    released: WholeNumber
    #: Largest difference between the delay asked for and the one given.
    largest_error_s: Annotated[float, between(0, 1e18)]


class Clock(Message, frozen=True):
    """The server's clocks, read while it answered."""

    place = "clock"

    unix_ns: WholeNumber
    monotonic_ns: WholeNumber
    #: Whether its kernel's clock is disciplined (adjtimex).
    synchronised: bool


class Served(Message, frozen=True):
    """One request or transfer as the server saw it."""

    place = "served"

    #: Rising within a session, from 1, in the order of their beginning.
    number: WholeNumber
    application: Application
    #: `ADDRESS:PORT` of the server's peer; it is not the mobile's where a middlebox ends the connection.
    peer: _LongText
    local_port: WholeNumber
    #: Method of HTTP, `RETR` or `STOR`, `download`, `upload` or `echo`.
    verb: _LongText
    #: `SIZE-SEED.bin` of an object whichever protocol carried it; else the path or the name of an upload.
    object: _LongText
    #: Of the whole object; for uploads what was announced, or -1 where nothing was.
    size_bytes: _CountOrNone
    #: Payload that was handed to TCP and taken from it, heads not counted.
    sent_bytes: WholeNumber
    received_bytes: WholeNumber
    #: Of what was sent or received, in hexadecimal digits.
    sha256: _LongText
    #: Request line and header of HTTP, byte for byte as they came.
    request_head: _Head
    started_unix_ns: WholeNumber
    ended_unix_ns: WholeNumber
    #: `under-way`, `finished` (the peer acknowledged everything), `aborted-by-peer`, `aborted-by-server`, `idle`,
    #: `refused`, `malformed`, `stopped`.
    ending: _LongText
    #: Fields of the kernel's `struct tcp_info` (linux/tcp.h) when it ended; names as there.
    tcp_info: Annotated[dict[_Name, int], Meta(max_length=200)]
    #: The SYN as the server's kernel got it (TCP_SAVED_SYN), IP header first; empty where it cannot be had.
    syn: _Head = b""
    #: When the connection that carried it was accepted, by the server's monotonic clock (`Clock.monotonic_ns`); 0 where
    #: the server does not say.
    connection_accepted_ns: WholeNumber = 0
    #: How many requests had come on that connection before, of any session; -1 where the server does not say.
    connection_requests: _CountOrNone = -1

    @property
    def is_over(self) -> bool:
        """Whether the record is final; before, counts may increase, and the end and TCP's state are unknown."""
        return self.ending != UNDER_WAY


class ServedPage(Message, frozen=True):
    """Some entries of a session's log, and the number of its last one."""

    place = "served"

    last: WholeNumber
    entries: Annotated[tuple[Served, ...], Meta(max_length=MOST_SERVED_ENTRIES)]


class ArchiveState(Message, frozen=True):
    """How much of an archive the server has."""

    place = "archive"

    sha256: Annotated[str, Meta(max_length=64)]
    size_bytes: WholeNumber
    #: From the beginning on; an upload goes on there.
    stored_bytes: WholeNumber
    #: Whether all is there, is what was announced, and is on the disk.
    is_whole: bool


class Refusal(Message, frozen=True):
    """Why the server does not do what it was asked to."""

    place = "refusal"

    error: _LongText


class CaptureRequest(Table, frozen=True):
    """Begin a capture at the server; 0 keeps as much of each packet as the server allows."""

    label: Annotated[str, Meta(max_length=MOST_LABEL_LENGTH)] = ""
    snap_bytes: Annotated[int, between(0, 262_144)] = 0


class SilenceRequest(Table, frozen=True):
    """Leave SYNs to a port unanswered; without `lease_s` for as long as the server allows."""

    port: Annotated[int, between(1, 65_535)]
    lease_s: Annotated[float, between(0.1, 1e6)] | None = None


class HoldRequest(Table, frozen=True):
    """Hold ACKs of a port back by `delay_s`; the server has a largest one."""

    port: Annotated[int, between(1, 65_535)]
    delay_s: Annotated[float, between(0.001, 1e6)]
    lease_s: Annotated[float, between(0.1, 1e6)] | None = None


class ArchiveOffer(Table, frozen=True):
    """Begin to upload an archive, or go on with it; its digest is its name on the control channel."""

    sha256: Annotated[str, Meta(min_length=64, max_length=64)]
    size_bytes: Annotated[int, between(1, 1 << 50)]
    #: What the client calls the file.
    name: Annotated[str, Meta(max_length=200)]
