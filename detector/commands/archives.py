"""Archives of measurements instead of captures: the room that made them judges them, found by entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pepscope.captures.opening.names import is_called_a_capture
from pepscope.errors import UsageError
from pepscope.plugins import find

GROUP = "pepscope.archives"

#: How a zip file begins that has at least one member (PKWARE APPNOTE 6.3.9, section 4.3.7).
_ZIP = b"PK\x03\x04"


def is_archive(path: str) -> bool:
    """Whether the file is a zip; standard input, pipes and what cannot be read are none."""
    if path == "-" or not Path(path).is_file():
        return False
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_ZIP)) == _ZIP
    except OSError:
        return False


def _holds_captures_alone(path: str) -> bool:
    """Whether a zip is, by its members' names, a collection of captures and no archive of a run. False where it is
    damaged: the room that reads archives says how."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False
    return "manifest.json" not in members and any(map(is_called_a_capture, members))


def detect_archives(
    paths: Sequence[str],
    of_captures: Sequence[str],
    files: Mapping[str, str | None],
    fail_on: frozenset[str] | None,
) -> None:
    """Judge archives and write the matrix; `of_captures` are the given options that only captures take.

    Raises UsageError, and what the plug-in raises.
    """
    from pepscope.command_line.audit_output import audit_fails, write_audit
    from pepscope.command_line.progress import Progress

    for path in paths:
        if _holds_captures_alone(path):
            raise UsageError(
                f"{path} is a zip archive, but not one of `pepscope probe run`: unpack it, and give the captures in it"
            )
    if of_captures:
        raise UsageError(f"{of_captures[0]} must not be given with an archive, which records how it was measured")
    entry = find(GROUP, "run")
    if entry is None:
        raise UsageError(f"{paths[0]} is an archive, and the room that reads those (prober) is not installed")
    with Progress("judging") as progress:
        result = entry.load()(paths, series=files.get("html") is not None, progress=progress)
    write_audit(result, files)
    if fail_on is not None and audit_fails(result, fail_on):
        raise SystemExit(1)
