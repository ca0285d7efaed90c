"""The stored keys of a state directory, changed by one command at a time and never seen half changed.

The file appears whole under its name (`pepscope.whole_file`), so that a command that is killed, or finds the disk full,
leaves the keys of before.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from pepscope.strict_reading import Table, read_as, shown
from pepscope.whole_file import whole_file
from prober.errors import ServerError
from prober.server.keys.client_key import DEFAULT_NAME, KeyRecord, Quotas, digest_of

_NAME = "keys.json"
_MOST_KEYS = 10_000
_MOST_FILE_BYTES = 16 << 20
_TOKEN_BYTES = 32
#: Also the name of a directory: no path leads out of it.
KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class _Document(Table, frozen=True):
    schema: Literal[1]
    keys: tuple[KeyRecord, ...]


#: What tells one version of a file from the next.
Version = tuple[int, int, int] | None


class KeyFile:
    """The keys that were added, and those that were revoked; the default key is among them once it was revoked."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / _NAME

    def version(self) -> Version:
        """Changes with the file; `None` where there is none. Raises ServerError."""
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ServerError(f"{self.path} cannot be read: {error.strerror}") from None
        return state.st_mtime_ns, state.st_ino, state.st_size

    def read(self) -> tuple[KeyRecord, ...]:
        """All records, the oldest first. Raises ServerError."""
        data = read_private(self.path, _MOST_FILE_BYTES)
        if data is None:
            return ()
        try:
            document = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            raise ServerError(f"{self.path} must be JSON as `pepscope probe key` writes it") from None
        return read_as(_Document, document, ServerError, place=str(self.path)).keys

    def add(self, name: str, quotas: Quotas, *, reads_all: bool = False) -> str:
        """Store a new key; its token, which is stored nowhere. Raises ServerError."""
        if not KEY_NAME.fullmatch(name):
            raise ServerError(
                f"the name of a key must be at most 40 letters, digits, dots, dashes and underscores, got {shown(name)}"
            )
        if name == DEFAULT_NAME:
            raise ServerError(f"a key must have another name than the server's own, {DEFAULT_NAME}")
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        record = KeyRecord(
            name=name,
            token_sha256=digest_of(token),
            added_unix_s=int(time.time()),
            quotas=quotas,
            reads_all=reads_all,
        )
        with changing(self._directory):
            records = self.read()
            if any(other.name == name and other.revoked_unix_s is None for other in records):
                raise ServerError(f"there is a key {name} already; revoke it first, or choose another name")
            if len(records) >= _MOST_KEYS:
                raise ServerError(f"{self.path} must have at most {_MOST_KEYS} keys")
            self._write((*(other for other in records if other.name != name), record))
        return token

    def revoke(self, name: str, own: KeyRecord | None = None) -> None:
        """Store that a key is accepted no longer; `own` is the server's, which is not in the file.

        Raises ServerError.
        """
        with changing(self._directory):
            records = self.read()
            record = own or next((other for other in records if other.name == name), None)
            if record is None:
                raise ServerError(f"there is no key {shown(name)}")
            if record.revoked_unix_s is not None:
                raise ServerError(f"the key {name} is revoked already")
            gone = msgspec.structs.replace(record, revoked_unix_s=int(time.time()))
            self._write((*(other for other in records if other.name != name), gone))

    def _write(self, records: tuple[KeyRecord, ...]) -> None:
        data = msgspec.json.format(msgspec.json.encode(_Document(schema=1, keys=records)), indent=1)
        write_private(self.path, data)


@contextlib.contextmanager
def changing(directory: Path) -> Iterator[None]:
    """Be the only one that changes what is stored there. Raises ServerError."""
    try:
        number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ServerError(f"the state directory {directory} cannot be used: {error.strerror}") from None
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def write_private(path: Path, data: bytes) -> None:
    """Write a whole file that only the owner of its directory can read. Raises ServerError."""
    try:
        owner = path.parent.stat()
        with whole_file(path, mode=0o600, durable=True) as stream:
            if os.geteuid() == 0:
                # Root may change the keys of a service that runs as another user.
                os.fchown(stream.fileno(), owner.st_uid, owner.st_gid)
            stream.write(data)
    except OSError as error:
        raise ServerError(f"{path} cannot be written: {error.strerror}") from None


def read_private(path: Path, most_bytes: int) -> bytes | None:
    """What is in a file that nobody but its owner can read; `None` where there is none. Raises ServerError."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            if mode & 0o077:
                raise ServerError(
                    f"{path} can be read by others (mode {mode:04o}): chmod 600 it, or remove it for a new one"
                )
            data = file.read(most_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ServerError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > most_bytes:
        raise ServerError(f"{path} must have at most {most_bytes} bytes")
    return data
