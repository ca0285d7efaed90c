"""Why a report cannot be written, in one sentence."""

from __future__ import annotations

from pathlib import Path

from pepscope.errors import PepscopeError
from pepscope.whole_file import STANDARD_OUTPUT


class ReportError(PepscopeError, OSError):
    """A report cannot be written or read; the message gives the remedy."""


def cannot_write(path: str | Path, error: OSError) -> OSError:
    """The sentence for a file that the system refuses to write; of standard output the error itself, since a reader
    that has gone is none (`pepscope.command_line.failures`)."""
    if str(path) == STANDARD_OUTPUT:
        return error
    return ReportError(f"{path} cannot be written: {error.strerror or error}.")
