"""One client's key: its name, the digest of its token, and what it may take."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from pepscope.strict_reading import Table, WholeNumber, between

#: Name of the key that the server makes by itself and prints at every start.
DEFAULT_NAME = "default"


class Quotas(Table, frozen=True):
    """What one key may take; without a value what the server allows to all keys together, or to each session."""

    #: Sessions at once.
    sessions: Annotated[int, between(1, 10_000)] | None = None
    #: Connections at once, of all protocols but FTP's for data.
    connections: Annotated[int, between(1, 10_000)] | None = None
    #: Payload of all its sessions in 24 hours, both ways together.
    day_bytes: Annotated[int, between(1, 1 << 50)] | None = None
    #: What its captures may take on the server's disk at once.
    capture_bytes: Annotated[int, between(4096, 1 << 50)] | None = None
    #: What the archives that it uploads may take on the server's disk.
    archive_bytes: Annotated[int, between(0, 1 << 50)] | None = None


class KeyRecord(Table, frozen=True):
    """A key as it is stored: the token itself is not, only its SHA-256 in hexadecimal digits."""

    name: Annotated[str, Meta(min_length=1, max_length=40)]
    token_sha256: Annotated[str, Meta(min_length=64, max_length=64, pattern=r"^[0-9a-f]+$")]
    #: 0 for the server's own.
    added_unix_s: WholeNumber
    quotas: Quotas = Quotas()
    #: Whether the dashboard shows its holder the archives of all clients.
    reads_all: bool = False
    #: When it was revoked; kept, so that its holder is told the reason.
    revoked_unix_s: WholeNumber | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ClientKey:
    """A key that a running server accepts; one object as long as it does."""

    name: str
    quotas: Quotas = field(default_factory=Quotas)
    token_sha256: str = field(default="", repr=False)
    reads_all: bool = False


def digest_of(token: str) -> str:
    """What is stored of a token. Tokens have 256 random bits, so that one round of SHA-256 cannot be reversed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
