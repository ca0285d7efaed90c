"""What a terminal is shown: colours where it has them, and no text that would steer it."""

from __future__ import annotations

import os
from typing import TextIO


def is_coloured(stream: TextIO) -> bool:
    """Colours on a terminal only, and not where NO_COLOR (no-color.org) is set or the terminal is dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Replace control characters, which a path or a capture may hold, so that they cannot steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
