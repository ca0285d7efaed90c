"""One archive on its way in: bytes are appended in order, whichever connection brings them.

A piece that comes once more, from a repeated request or from another client that uploads the same archive, is skipped
as far as it is stored. So an upload goes on wherever it was cut, no connection waits for another one to time out, and
what is stored is never written again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from pathlib import Path

from prober.server.refusal import RefusedError

_PIECE_BYTES = 1 << 20
_ZIP = b"PK\x03\x04"


class Upload:
    """What has arrived of one archive, in a file of its own; used by many threads."""

    def __init__(self, path: Path, sha256: str, size_bytes: int) -> None:
        """Take up what the file holds; an empty one is made where there is none. Raises OSError."""
        self.path, self.sha256, self.size_bytes = path, sha256, size_bytes
        #: What the client that offered it last calls it.
        self.name = ""
        self._lock = threading.Lock()
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._stored_bytes = path.stat().st_size
        #: Of what is stored; `None` until what an earlier server took is read again.
        self._digest = hashlib.sha256() if self._stored_bytes == 0 else None
        self._is_over = False
        #: Whether what comes of a complete upload is known.
        self.settled = threading.Event()

    @property
    def stored_bytes(self) -> int:
        """How many bytes are there, from the beginning on."""
        return self._stored_bytes

    def append(self, offset: int, piece: bytes) -> None:
        """Store what is new of a piece that begins at `offset`.

        Raises RefusedError: 409 where bytes before it are missing, or the upload is over; 413, 507 for a full disk.
        """
        with self._lock:
            if self._is_over:
                raise RefusedError(409, "the upload is over; ask for its state")
            if offset > self._stored_bytes:
                raise RefusedError(409, f"the upload goes on at {self._stored_bytes}, got {offset}")
            new = memoryview(piece)[self._stored_bytes - offset :]
            if len(new) > self.size_bytes - self._stored_bytes:
                raise RefusedError(413, f"the archive must have {self.size_bytes} bytes, as announced")
            if new:
                self._write(new)

    def _write(self, new: memoryview) -> None:
        digest = self._digest_so_far()
        try:
            number = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                while new:
                    count = os.pwrite(number, new, self._stored_bytes)
                    digest.update(new[:count])
                    self._stored_bytes += count
                    new = new[count:]
            finally:
                os.close(number)
        except OSError as error:
            raise RefusedError(507, f"the server cannot store more of the archive: {error.strerror}") from None

    def _digest_so_far(self) -> hashlib._Hash:
        if self._digest is None:
            read = hashlib.sha256()
            with self.path.open("rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    read.update(piece)
            self._digest = read
        return self._digest

    def finish(self) -> bool:
        """Have a complete upload on the disk, and let nothing change it any more; whether this call did it.

        Raises RefusedError where it is not what was announced: it is removed then, and may begin again.
        """
        with self._lock:
            if self._is_over or self._stored_bytes < self.size_bytes:
                return False
            self._is_over = True
            try:
                fault = self._fault()
                if not fault:
                    with self.path.open("rb") as file:
                        os.fsync(file.fileno())
                    return True
            except OSError as error:
                self._is_over = False
                raise RefusedError(507, f"the server cannot store the archive: {error.strerror}") from None
            with contextlib.suppress(OSError):
                self.path.unlink()
            raise RefusedError(422, fault)

    def _fault(self) -> str:
        """Why this is not the announced archive, one sentence; empty where it is. Raises OSError."""
        if self._digest_so_far().hexdigest() != self.sha256:
            return "the bytes that arrived must have the digest that was announced; upload the archive again"
        with self.path.open("rb") as file:
            if file.read(len(_ZIP)) != _ZIP:
                return "an upload must be an archive of a run"
        return ""

    def drop(self) -> bool:
        """Remove what arrived; whether this ended it, and not a call before. Raises OSError."""
        with self._lock:
            if self._is_over:
                return False
            self._is_over = True
            self.path.unlink(missing_ok=True)
            return True
