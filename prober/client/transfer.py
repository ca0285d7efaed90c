"""What one transfer was: how much moved, when, over which connections, and whether it arrived as it was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pepscope.captures.direction import Direction
from prober.protocol.application import Application

#: Suffix of the object that each application moves; what a proxy takes for an image is one.
SUFFIXES: Mapping[Application, str] = {
    Application.FTP: "bin",
    Application.HTTP_DATA: "bin",
    Application.HTTP_IMAGE: "jpg",
    Application.HTTPS: "bin",
    Application.TCP: "bin",
}


@dataclass(frozen=True, slots=True)
class Flow:
    """A connection that a task made, as the mobile's kernel named it, so that it can be found in the captures."""

    mobile_port: int
    server_port: int
    #: What it was for: `data`, `control` (FTP), `probe` (no answer expected), ...
    role: str = "data"
    protocol: str = "tcp"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One object moved, or as much of it as came.

    Times are in seconds of the mobile's monotonic clock and count from the first SYN of the connection that carries the
    object (FTP: the data connection, after the login), so that they can be compared between protocols.
    """

    application: Application
    direction: Direction
    #: What was asked for, and what the receiver got of it: the mobile's count down, the server's receipt up.
    size_bytes: int
    moved_bytes: int
    seed: int
    #: Until the connection that carries the object was there (TLS: before its own handshake).
    connect_s: float
    #: Until the first byte of the object came (down), or of the server's receipt (up).
    first_byte_s: float
    total_s: float
    #: Of what the receiver got, and of the object as it was made; lower-case hexadecimal.
    sha256: str
    sha256_expected: str
    #: The connection that carries the object first.
    flows: tuple[Flow, ...]
    #: Whether all announced bytes arrived, with a status of success.
    complete: bool
    #: The last answer's code as the protocol writes it: `200`, `226`, `closed`.
    status: str
    started_unix_ns: int
    #: HTTP: fields of the answer, names in lower case.
    answer_fields: Mapping[str, str] = field(default_factory=dict)
    #: HTTPS: whether the certificate is the one that the server's key names; `None` without TLS.
    certificate_is_the_servers: bool | None = None

    @property
    def intact(self) -> bool:
        """Whether the object arrived as it was made."""
        return self.complete and self.sha256 == self.sha256_expected

    @property
    def rate_bit_s(self) -> float:
        """Payload a second from the first SYN to the last byte, as users see it."""
        return self.moved_bytes * 8 / self.total_s if self.total_s > 0 else 0.0
