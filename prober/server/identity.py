"""The server's identity: a certificate, its key and a token, made at the first start and readable by the owner only.

The mobile knows the server by the fingerprint of its certificate alone, so that no authority is needed and none is
trusted; the same directory means the same fingerprint at the next start.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prober.errors import ServerError
from prober.protocol.control_messages import Key
from prober.server.keys.client_key import DEFAULT_NAME, KeyRecord, digest_of
from prober.server.keys.key_file import KeyFile, changing, read_private, write_private

_TOKEN = re.compile(r"[A-Za-z0-9_-]{20,100}")
_CERTIFICATE_NAME = "probe-server.pepscope.invalid"
#: Says that a directory is a probe server's, which then deletes in it what a killed server left.
MARKER = "pepscope-probe-server"
_MARKER_TEXT = "State of a probe server of pepscope: certificate, token, and captures while they are taken.\n"
#: Where captures are while they are taken; the server deletes what it finds there at its start.
_CAPTURES = "captures"
_CERTIFICATE_FILE, _TOKEN_FILE = "certificate.pem", "token"
_MOST_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Identity:
    """Certificate and token of a server."""

    key: Key
    #: Holds the private key and the certificate, in that order, as PEM.
    certificate_file: Path

    def tls(self) -> ssl.SSLContext:
        """TLS of the control channel and of HTTPS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate_file)
        return context


class StateDirectory:
    """A directory that one running server has for itself.

    The server takes a directory that is missing or empty and marks it as its own; it takes no directory that holds
    other things, so that nothing is deleted and no mode changed but its own.
    """

    def __init__(self, path: Path) -> None:
        """Make it where it is missing, and take it. Raises ServerError."""
        self.path = path
        try:
            _claim(path)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ServerError(f"the state directory {path} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise ServerError(
                f"another probe server uses the state directory {path}; choose one with --state"
            ) from None
        # What a server that was killed left behind.
        shutil.rmtree(path / _CAPTURES, ignore_errors=True)

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)

    @contextlib.contextmanager
    def captures(self) -> Iterator[Path]:
        """A directory for captures, removed at the end with all that is in it."""
        place = self.path / _CAPTURES
        place.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as directory:
            yield Path(directory)

    def identity(self) -> Identity:
        """The stored identity; made where there is none. Raises ServerError."""
        return identity_in(self.path)


def identity_in(path: Path) -> Identity:
    """Certificate and token of a state directory; made where there are none, or the token was revoked.

    Raises ServerError.
    """
    fingerprint = fingerprint_in(path)
    with changing(path):
        token = default_token(path)
        if token is None:
            token = secrets.token_urlsafe(32)
            write_private(path / _TOKEN_FILE, token.encode())
    identity = Identity(Key(token, fingerprint), path / _CERTIFICATE_FILE)
    try:
        identity.tls()
    except (ssl.SSLError, OSError) as error:
        raise ServerError(f"{identity.certificate_file} cannot be used ({error}); remove it for a new one") from None
    return identity


def fingerprint_in(path: Path) -> str:
    """The fingerprint of a state directory's certificate, which is made where there is none. Raises ServerError."""
    try:
        _claim(path)
    except OSError as error:
        raise ServerError(f"the state directory {path} cannot be used: {error.strerror}") from None
    certificate = path / _CERTIFICATE_FILE
    with changing(path):
        pem = read_private(certificate, _MOST_FILE_BYTES)
        if pem is None:
            pem = _new_certificate()
            write_private(certificate, pem)
    return _fingerprint(pem, certificate)


def default_token(path: Path) -> str | None:
    """The token of the server's own key; `None` where there is none, or where it was revoked. Raises ServerError."""
    data = read_private(path / _TOKEN_FILE, _MOST_FILE_BYTES)
    if data is None:
        return None
    token = data.decode("ascii", "replace").strip()
    if _TOKEN.fullmatch(token) is None:
        raise ServerError(f"{path / _TOKEN_FILE} holds no token; remove it for a new one")
    revoked = {record.token_sha256 for record in KeyFile(path).read() if record.revoked_unix_s is not None}
    return None if digest_of(token) in revoked else token


def known_keys(path: Path) -> list[KeyRecord]:
    """The keys of a state directory: the server's own first, then those that were added or revoked.

    Raises ServerError.
    """
    if not (path / MARKER).exists():
        raise ServerError(f"the state directory must be a probe server's, got {path}; choose one with --state")
    token = default_token(path)
    own = [] if token is None else [KeyRecord(name=DEFAULT_NAME, token_sha256=digest_of(token), added_unix_s=0)]
    return [*own, *KeyFile(path).read()]


def revoke(path: Path, name: str) -> None:
    """Have a key accepted no longer. Raises ServerError."""
    own = next((key for key in known_keys(path) if key.name == name == DEFAULT_NAME), None)
    KeyFile(path).revoke(name, own)


def _claim(path: Path) -> None:
    """Mark a new or empty directory; accept one that is marked. Raises ServerError, OSError."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    held = {entry.name for entry in path.iterdir()}
    if MARKER in held:
        return
    # A server of before there was a mark left its own three files, and captures only where it was killed.
    if not held <= {"certificate.pem", "token", "lock"}:
        raise ServerError(
            f"the state directory {path} must be empty or a probe server's, but it holds {min(held)}; choose another "
            "with --state"
        )
    path.chmod(0o700)
    (path / MARKER).write_text(_MARKER_TEXT, encoding="utf-8")


def _new_certificate() -> bytes:
    try:
        import trustme
    except ImportError:
        raise ServerError("making a certificate needs the package trustme: pip install 'pepscope[probe]'") from None
    made = trustme.CA(organization_name="pepscope").issue_cert(_CERTIFICATE_NAME, organization_name="pepscope")
    return made.private_key_pem.bytes() + made.cert_chain_pems[0].bytes()


def _fingerprint(pem: bytes, path: Path) -> str:
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    start = pem.find(begin)
    stop = pem.find(end, start)
    try:
        if min(start, stop) < 0:
            raise ValueError
        der = ssl.PEM_cert_to_DER_cert(pem[start : stop + len(end)].decode("ascii"))
    except ValueError:
        raise ServerError(f"{path} holds no certificate; remove it for a new one") from None
    return hashlib.sha256(der).hexdigest()
