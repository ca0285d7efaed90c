"""Captures of several files: the parts of a rotated series, given one by one or as their directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pepscope import _core
from pepscope.captures.opening.names import is_called_a_capture
from pepscope.errors import MalformedCaptureError, UnreadableCaptureError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def capture_files(given: Sequence[str]) -> list[str]:
    """The files of one capture: the parts that are given, and of a directory what is a capture in it.

    In a directory (not below it) counts what begins like a capture or is called so, hidden and empty files aside: a
    tool that rotates files may have just begun one. Raises UnreadableCaptureError for a directory without captures,
    UsageError where standard input is one of several parts and where there are none.
    """
    if not given:
        raise UsageError("a capture must have at least one file, got none")
    files = [file for each in given for file in (_of_directory(each) if os.path.isdir(each) else [each])]
    if "-" in files and len(files) > 1:
        raise UsageError("standard input must be the only part of its capture, got further files")
    return files


def parts_name(given: Sequence[str]) -> str:
    """What a capture of several parts is called in results."""
    return f"{given[0]} and {len(given) - 1} more" if len(given) > 1 else given[0]


def check_order(name: str, core: _core.Capture) -> None:
    """Raise MalformedCaptureError where parts of a capture ran at the same time: connections would run backwards."""
    for part, part_before, by_ns in core.part_overlaps:
        raise MalformedCaptureError(
            f"the parts of {name} must follow each other, but {part} begins {by_ns / 1e9:.1f} s before {part_before} "
            "ends: give captures that ran at the same time one by one"
        )


def _of_directory(given: str) -> list[str]:
    from pathlib import Path

    directory = Path(given)
    try:
        found = [str(file) for file in sorted(directory.iterdir()) if _is_capture(file)]
    except OSError as error:
        raise UnreadableCaptureError(
            f"cannot read the directory {directory}: {(error.strerror or '').lower()}"
        ) from error
    if not found:
        raise UnreadableCaptureError(f"the directory {directory} must hold a capture, got none that can be read")
    return found


def _is_capture(file: Path) -> bool:
    if not file.is_file() or file.name.startswith(".") or file.stat().st_size == 0:
        return False
    return is_called_a_capture(file.name) or _core.begins_like_capture(str(file))
