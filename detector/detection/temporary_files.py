"""What went through temporary files."""

from __future__ import annotations

from collections.abc import Sequence

from pepscope.captures.capture import Capture
from pepscope.results.verdicts import TemporaryBytes


def temporary_bytes(captures: Sequence[Capture], read_elsewhere: int = 0) -> TemporaryBytes:
    """What the captures wrote to temporary files and read from them."""
    written, read = (sum(counts) for counts in zip(*(each.temporary_bytes for each in captures), strict=True))
    return TemporaryBytes(written, read + read_elsewhere)
