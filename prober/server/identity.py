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
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pepscope.whole_file import write_whole
from prober.errors import ServerError
from prober.protocol.control_messages import Key

_TOKEN = re.compile(r"[A-Za-z0-9_-]{20,100}")
_CERTIFICATE_NAME = "probe-server.pepscope.invalid"
#: Says that a directory is a probe server's, which then deletes in it what a killed server left.
MARKER = "pepscope-probe-server"
_MARKER_TEXT = "State of a probe server of pepscope: certificate, token, and captures while they are taken.\n"
#: Where captures are while they are taken; the server deletes what it finds there at its start.
_CAPTURES = "captures"


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
        certificate, token = self.path / "certificate.pem", self.path / "token"
        if not certificate.exists():
            self._write(certificate, _new_certificate())
        if not token.exists():
            self._write(token, secrets.token_urlsafe(32).encode())
        text = self._read(token).decode("ascii", "replace").strip()
        if _TOKEN.fullmatch(text) is None:
            raise ServerError(f"{token} holds no token; remove it for a new one")
        identity = Identity(Key(text, _fingerprint(self._read(certificate), certificate)), certificate)
        try:
            identity.tls()
        except (ssl.SSLError, OSError) as error:
            raise ServerError(f"{certificate} cannot be used ({error}); remove it for a new one") from None
        return identity

    def _write(self, path: Path, data: bytes) -> None:
        try:
            write_whole(path, data, mode=0o600, durable=True)
        except OSError as error:
            raise ServerError(f"{path} cannot be written: {error.strerror}") from None

    def _read(self, path: Path) -> bytes:
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                raise ServerError(
                    f"{path} can be read by others (mode {mode:04o}): chmod 600 it, or remove it for a new one"
                )
            return path.read_bytes()
        except OSError as error:
            raise ServerError(f"{path} cannot be read: {error.strerror}") from None


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
