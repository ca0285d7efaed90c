"""What a capture may be given as: a name, a path, or a file object that is open for reading bytes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TypeAlias

from pepscope.errors import UsageError

CaptureFile: TypeAlias = str | os.PathLike[str] | BinaryIO

#: Name of a capture that comes from standard input.
STANDARD_INPUT = "-"

#: Numbers of file objects without a name, in the order in which they were given.
_UNNAMED = itertools.count(1)


def capture_name(source: CaptureFile) -> str | BinaryIO:
    """A path as text; file objects stay what they are. Raises UsageError for anything else."""
    if isinstance(source, (str, os.PathLike)):
        return os.fsdecode(source)
    if not callable(getattr(source, "read", None)):
        raise UsageError(f"a capture must be a path or a binary file object, got {type(source).__name__}")
    return source


@contextmanager
def readable_path(source: str | BinaryIO) -> Iterator[tuple[str, str]]:
    """The file to read and the name to show of a capture.

    What a file object holds from its position on is copied to a temporary file, because a capture may be read twice.
    Raises UsageError for a file object that gives text, OSError where there is no room for the copy.
    """
    if isinstance(source, str):
        yield source, source
        return
    name = getattr(source, "name", None)
    import shutil
    import tempfile

    shown = name if isinstance(name, str) and name else f"unnamed-{next(_UNNAMED)}"
    with tempfile.NamedTemporaryFile(prefix="pepscope-") as copy:
        try:
            shutil.copyfileobj(source, copy)
        except TypeError as error:
            raise UsageError(f"the file object {shown} must be open for bytes (mode 'rb'): {error}") from error
        copy.flush()
        yield copy.name, shown
