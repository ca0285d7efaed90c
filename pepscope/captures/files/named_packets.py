"""Packets named by file and frame, and what finds them again: Wireshark's display filters, lines for tshark."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from pepscope.captures.opening.capture_files import STANDARD_INPUT

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pepscope.captures.tables.texts import GivenTexts, SlicedTexts

#: What unpacks the compressed files that tshark does not read, by the end of their names.
_UNPACKED_BY = {".xz": "xz", ".bz2": "bzip2"}


class EvidencePacket(Struct, frozen=True):
    """A packet that shows what a method found.

    `frame` is its number in the file, from 1 as Wireshark counts, `time_ns` its Unix time by that capture's clock.
    `shows` says what it does, and begins with a verb.
    """

    capture: str
    frame: int
    time_ns: int
    shows: str


class Locator(Struct, frozen=True):
    """How packets are found again in one capture: a display filter for Wireshark, and a line for a shell.

    `tshark` is None where the capture came from standard input.
    """

    capture: str
    display_filter: str
    tshark: str | None


def frames_filter(frames: Iterable[int]) -> str:
    """The display filter that selects these frames of their file."""
    return f"frame.number in {{{', '.join(map(str, sorted(set(frames))))}}}"


def connection_filter(client: str, server: str, transport: str, frames: tuple[int, int] | None = None) -> str:
    """The display filter of a connection between two end points (`ip:port`, IPv6 in brackets).

    `frames` are its first and its last frame: between them no other connection of the file has the same end points.
    """
    import numpy as np

    span = None if frames is None else np.array([frames], np.int64)
    return connection_filters([client], [server], [transport], span)[0]


def connection_filters(
    clients: GivenTexts, servers: GivenTexts, transports: GivenTexts, frames: npt.NDArray[np.int64] | None
) -> SlicedTexts:
    """The display filters of many connections, each as `connection_filter` gives it; `frames` is None, or has a row of
    two for each."""
    from pepscope.captures.tables.texts import filters

    return filters(clients, servers, transports, frames)


def locator(capture: str, display_filter: str) -> Locator:
    """How the packets of a display filter are found in a capture."""
    reading = reading_line(capture)
    tshark = None if reading is None else f"{reading} -Y {shlex.quote(display_filter)}"
    return Locator(capture, display_filter, tshark)


@lru_cache(maxsize=64)
def reading_line(capture: str) -> str | None:
    """The beginning of a line for a shell that reads a capture; None where no other program can read it again, as of
    standard input."""
    if capture == STANDARD_INPUT:
        return None
    name = shlex.quote(capture if not capture.startswith("-") else f"./{capture}")
    if unpacked := _UNPACKED_BY.get(PurePath(capture).suffix):
        return f"{unpacked} -dc {name} | tshark -r -"
    return f"tshark -r {name}"


def locators(packets: Sequence[EvidencePacket]) -> list[Locator]:
    """How the packets that show a finding are found again, capture by capture."""
    frames: dict[str, list[int]] = {}
    for packet in packets:
        frames.setdefault(packet.capture, []).append(packet.frame)
    return [_frames_locator(capture, frames_filter(of_capture)) for capture, of_capture in frames.items()]


def _frames_locator(capture: str, display_filter: str) -> Locator:
    """`locator` of a filter that names frames, in which a shell finds nothing to quote but its brackets and spaces."""
    reading = reading_line(capture)
    return Locator(capture, display_filter, None if reading is None else f"{reading} -Y '{display_filter}'")
