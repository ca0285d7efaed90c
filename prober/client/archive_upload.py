"""Uploads an archive to the server that measured it: in parts, from wherever an earlier upload was cut.

The archive's digest is its name at the server, so that nothing must be remembered here: who uploads a second time finds
how much is there.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from prober.client.control_client import FIRST_PAUSE_S, LONGEST_PAUSE_S, ControlClient
from prober.errors import ControlError, UnreachableError
from prober.protocol.control_messages import MOST_PART_BYTES, ArchiveState

#: The first part is small, later ones take about so long: a cut loses little, and the server's answer is soon there.
FIRST_PART_BYTES = 256 << 10
_LEAST_PART_BYTES = 16 << 10
_PART_S = 5.0

#: In all of an upload; what the server does not take then, it will not take.
_MOST_REFUSALS = 2

_PIECE_BYTES = 1 << 20
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Uploaded:
    """An archive that is at the server, whole and on its disk."""

    sha256: str
    size_bytes: int
    #: What was there before this upload; all where it had been uploaded already.
    found_bytes: int


def upload_archive(
    control: ControlClient, path: Path, patience_s: float, progress: Callable[[int, int], object] | None = None
) -> Uploaded:
    """Have all of an archive at the server; `progress` gets bytes done and in all.

    Interruptions only take time, as long as something arrives every `patience_s`. Raises OSError where the file cannot
    be read, ControlError where the server refuses it, UnreachableError.
    """
    with path.open("rb") as file:
        upload = _Upload(control, file, _sent_name(path), patience_s, progress or (lambda _done, _total: None))
        return upload.run()


class _Upload:
    def __init__(
        self,
        control: ControlClient,
        file: IO[bytes],
        name: str,
        patience_s: float,
        progress: Callable[[int, int], object],
    ) -> None:
        self._control, self._file, self._name = control, file, name
        self._patience_s, self._progress = patience_s, progress
        self._part_bytes = FIRST_PART_BYTES
        digest = hashlib.sha256()
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
        self._sha256, self._size_bytes = digest.hexdigest(), file.tell()

    def run(self) -> Uploaded:
        """Offer, send, and offer again wherever a part was cut, until all is there."""
        if not self._size_bytes:
            raise ControlError("an archive must have at least one byte, got an empty file")
        state = self._offer()
        found_bytes = state.stored_bytes
        moved_s, pause_s, refusals = time.monotonic(), FIRST_PAUSE_S, 0
        while not state.is_whole:
            self._progress(state.stored_bytes, self._size_bytes)
            try:
                after = self._send(state.stored_bytes)
            except UnreachableError:
                self._part_bytes = max(_LEAST_PART_BYTES, self._part_bytes // 2)
                if time.monotonic() - moved_s > self._patience_s:
                    raise
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                after = self._offer()
            except ControlError:
                # The server may have another state than we think: it dropped what was there, or it was damaged.
                refusals += 1
                if refusals > _MOST_REFUSALS:
                    raise
                after = self._offer()
            if after.stored_bytes > state.stored_bytes:
                moved_s, pause_s = time.monotonic(), FIRST_PAUSE_S
            elif not after.is_whole and time.monotonic() - moved_s > self._patience_s:
                raise UnreachableError(f"for {self._patience_s:g} s the server stored nothing more of the archive")
            state = after
        self._progress(self._size_bytes, self._size_bytes)
        return Uploaded(self._sha256, self._size_bytes, found_bytes)

    def _offer(self) -> ArchiveState:
        offer = {"sha256": self._sha256, "size_bytes": self._size_bytes, "name": self._name}
        return self._understood(ArchiveState.from_json(self._control.ask("POST", "archives", offer)))

    def _send(self, offset: int) -> ArchiveState:
        self._file.seek(offset)
        part = self._file.read(min(self._part_bytes, self._size_bytes - offset))
        # Where all arrived, an empty part has the server store it: it may have been killed before it did.
        if not part and offset < self._size_bytes:
            raise ControlError("the archive became shorter while it was uploaded")
        began_s = time.monotonic()
        answer = self._control.send_part(f"archives/{self._sha256}?offset={offset}", part)
        took_s = time.monotonic() - began_s
        fitting = self._part_bytes * min(2.0, _PART_S / max(took_s, 1e-3))
        self._part_bytes = int(min(MOST_PART_BYTES, max(_LEAST_PART_BYTES, fitting)))
        return self._understood(ArchiveState.from_json(answer))

    def _understood(self, state: ArchiveState) -> ArchiveState:
        if state.sha256 != self._sha256 or state.stored_bytes > self._size_bytes:
            raise ControlError("the server's answer is about another archive")
        return state


def _sent_name(path: Path) -> str:
    """The file's name as the server takes it."""
    plain = _NOT_OF_A_NAME.sub("_", path.name)[-_LONGEST_NAME:]
    return plain if plain[:1].isalnum() else f"archive{plain}"[-_LONGEST_NAME:]
