"""What a user may give a check beside targets: a service that echoes requests, and a host that reads slowly."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from pepscope.errors import UsageError


@dataclass(frozen=True, slots=True)
class SlowReader:
    """A host that takes what is sent to it at a rate of its own, and says something once it has all."""

    host: str
    port: int
    rate_bytes_s: float
    #: What its receive buffer holds at most.
    buffer_bytes: int


@dataclass(frozen=True, slots=True)
class EchoService:
    """A service that answers a request with the head of the request as it arrived, on plain HTTP and on TLS."""

    host: str
    port: int
    path: str
    tls_port: int | None


@dataclass(frozen=True, slots=True)
class Given:
    """None where the user gave none."""

    echo: EchoService | None = None
    slow_reader: SlowReader | None = None


def read_echo(text: str) -> EchoService:
    """An echo service as `http://HOST[:PORT]/PATH`, with `+tls[:PORT]` where it also answers over TLS.

    Raises UsageError.
    """
    address, plus, over_tls = text.partition("+tls")
    try:
        parts = urlsplit(address)
        port, tls_port = parts.port or 80, int(over_tls.removeprefix(":") or 443) if plus else None
        well_formed = parts.scheme == "http" and bool(parts.hostname) and (tls_port is None or 1 <= tls_port <= 65_535)
        is_clean = not any(character <= " " for character in text)
    except ValueError:
        well_formed = False
    if not well_formed or not is_clean:
        raise UsageError(f"echo must be http://HOST[:PORT]/PATH, with +tls[:PORT] behind it or not, got {text[:80]!r}")
    path = parts.path or "/"
    return EchoService(parts.hostname or "", port, f"{path}?{parts.query}" if parts.query else path, tls_port)


def read_slow_reader(text: str) -> SlowReader:
    """A slow reader as `HOST:PORT:BYTES_PER_SECOND:BUFFER_BYTES`. Raises UsageError."""
    words = text.rsplit(":", 3)
    try:
        host, port, rate, buffer = words[0].strip("[]"), int(words[1]), float(words[2]), int(words[3])
        well_formed = bool(host) and 1 <= port <= 65_535 and 1 <= rate <= 1e9 and 0 <= buffer <= 1e9
    except (ValueError, IndexError):
        well_formed = False
    if not well_formed:
        raise UsageError(f"slow-reader must be HOST:PORT:BYTES_PER_SECOND:BUFFER_BYTES, got {text[:80]!r}")
    return SlowReader(host, port, rate, buffer)
