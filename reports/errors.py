"""Why a report cannot be written, in one sentence."""

from __future__ import annotations

from pathlib import Path

from pepscope.errors import PepscopeError


class ReportError(PepscopeError, OSError):
    """A report cannot be written or read; the message gives the remedy."""


def cannot_write(path: str | Path, error: OSError) -> ReportError:
    """The sentence for a file that the system refuses to write."""
    return ReportError(f"{path} cannot be written: {error.strerror or error}.")
