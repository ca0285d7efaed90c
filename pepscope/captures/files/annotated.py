"""Copies of captures as pcapng with comments, for Wireshark: on frames, on interfaces and on the file's sections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pepscope
from pepscope import _core
from pepscope.captures.files.digest import file_state
from pepscope.errors import CaptureError, PepscopeError
from pepscope.whole_file import whole_path

#: How often the copy's progress is looked at.
_BETWEEN_REPORTS_S = 0.1


@dataclass(frozen=True, slots=True)
class Comments:
    """What to write into a copy; `frames` by frame number, from 1."""

    section: str
    interface: str
    frames: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied: frames, the numbers of those whose block has no room for a comment, and a sentence on damage at
    which the capture, and so the copy, ends."""

    frames: int
    without_room: tuple[int, ...]
    damage: str | None


def write_annotated(
    path: str,
    destination: Path,
    comments: Comments,
    state: tuple[int, int] | None,
    progress: Callable[[int, int], object] | None = None,
) -> Copied:
    """Copy a capture (pcap or pcapng, plain or compressed) to an uncompressed pcapng file with comments.

    Frames keep their bytes, times, lengths and order; of a pcapng file all blocks and options are kept. `state` is what
    `file_state` gave when the capture was judged. `progress` is called with bytes written and the size of the capture's
    file.

    Raises CaptureError where the capture cannot be read or changed since, PepscopeError where the copy cannot be
    written.
    """
    try:
        with whole_path(destination) as partial:
            copied = _copied(path, partial, comments, progress)
            if file_state(path) != state:
                raise CaptureError(
                    f"{path} changed since it was judged: run pepscope again on the capture as it is now"
                )
    except OSError as error:
        raise PepscopeError(f"{destination} cannot be written: {error.strerror or error}") from error
    return copied


def _copied(path: str, partial: Path, comments: Comments, progress: Callable[[int, int], object] | None) -> Copied:
    made: list[tuple[int, list[int], tuple[int, str] | None]] = []
    failed: list[BaseException] = []

    def copy() -> None:
        try:
            made.append(
                _core.copy_with_comments(
                    path,
                    str(partial),
                    comments.section,
                    comments.interface,
                    dict(comments.frames),
                    f"pepscope {pepscope.__version__}",
                )
            )
        except BaseException as error:  # raised again in the thread that waits
            failed.append(error)

    thread = threading.Thread(target=copy, name=f"copying {path}", daemon=True)
    thread.start()
    size = Path(path).stat().st_size
    while thread.is_alive():
        thread.join(_BETWEEN_REPORTS_S)
        if progress is not None:
            progress(min(partial.stat().st_size, size), size)
    if failed:
        raise failed[0]
    ((frames, without_room, broken),) = made
    damage = None if broken is None else f"{path} is damaged at byte {broken[0]}: {broken[1]}; the copy ends there"
    return Copied(frames, tuple(without_room), damage)
