"""SHA-256 digests of capture files, taken while the files are read."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import BinaryIO

from pepscope.captures.opening.capture_files import STANDARD_INPUT

#: Read at once, into one buffer that stays in the second-level cache; then the thread looks whether it was stopped.
#: Larger buffers begin 16 bytes behind that of a page, to where some processors copy the pages of a file at a
#: third of the speed.
_PIECE_BYTES = 64 << 10


class FileDigest:
    """The SHA-256 of a file's bytes as they stand on disk, compressed or not; taken in a thread of its own.

    Only regular files have one, and file objects that are open at their beginning: what else is given is read once, by
    the analysis. Where no digest is wanted, only whether the file changes is seen.
    """

    def __init__(self, source: str | BinaryIO, *, is_wanted: bool = True) -> None:
        self.path = path = source if isinstance(source, str) else _path_of(source)
        self._stopped = False
        self._is_file = path != STANDARD_INPUT and Path(path).is_file()
        self._state = file_state(path) if self._is_file else None
        self._thread: threading.Thread | None = None
        if self._is_file and is_wanted:
            import hashlib  # which takes longer than reading a small capture

            self._hash = hashlib.sha256()
            self._thread = threading.Thread(target=self._run, name=f"digest of {path}", daemon=True)
            self._thread.start()

    def hexadecimal(self) -> str | None:
        """The digest, once it is ready; None where there is none, and of a file that changed since."""
        if self._thread is None or self.changed():
            return None
        return self._hash.hexdigest()

    def changed(self) -> bool:
        """Whether the file is not what it was when the digest was begun: a capture that is still being written."""
        if not self._is_file:
            return False
        if self._thread is not None:
            self._thread.join()
        return self._state is None or file_state(self.path) != self._state

    def stop(self) -> None:
        """Stop reading; the thread closes the file."""
        self._stopped = True

    def _run(self) -> None:
        try:
            piece = memoryview(bytearray(_PIECE_BYTES))
            with Path(self.path).open("rb", buffering=0) as file:
                while not self._stopped and (count := file.readinto(piece)):
                    self._hash.update(piece[:count])
        except OSError:
            self._state = None  # what reads the packets says what is wrong with the file


def _path_of(source: BinaryIO) -> str:
    """The file that an object reads from its beginning; standard input's name where there is none."""
    name = getattr(source, "name", None)
    try:
        whole = isinstance(name, str) and source.tell() == 0
    except (OSError, ValueError, AttributeError):
        whole = False
    return name if whole and isinstance(name, str) else STANDARD_INPUT


def file_state(path: str) -> tuple[int, int] | None:
    """Size and time of the last change of a file; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None
