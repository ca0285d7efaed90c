"""Files that appear under their name only when they are whole and on the disk."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """Write a file; where that ends by an error nothing is left of it. Raises OSError."""
    # Always the same name: what a killed process left goes with the next try.
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Have what was renamed in a directory survive a loss of power."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    except OSError as error:
        # Memory cards of phones know no such thing (fsync(2)); what was renamed is whole all the same.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(number)
