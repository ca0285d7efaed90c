"""A directory that grows, as a source of slices: each capture in it once, when it is whole.

A capture is known by its path and its beginning, so that one under a name that is used again is new, and one that was
renamed or packed since is not. One that grew after it was taken for whole is read again, for what began since.
"""

from __future__ import annotations

import hashlib
import lzma
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from detector.corpora.joining import unpacked
from detector.corpora.matching import series_pattern
from detector.corpora.sources import begins_like_capture
from detector.corpora.watch.sources import Slice
from pepscope.captures.opening.names import is_called_a_capture
from pepscope.errors import UsageError

#: A file that did not change for so long is whole; sooner where the next one of its series has begun.
SETTLED_S, SETTLED_BESIDE_NEXT_S = 30.0, 2.0

#: Between two looks at the directory.
_BETWEEN_LOOKS_S = 1.0

#: Bytes, unpacked, by which a capture is known: they hold the times of its first packets.
_BEGINNING_BYTES = 4096

#: Beginnings that are remembered of files that are gone.
_MOST_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class _Known:
    """A file that was judged: the digest of its beginning and of how many bytes, its size, when it was written last,
    its latest packet."""

    digest: str
    digested_bytes: int
    size_bytes: int
    changed_s: float
    last_ns: int | None


class DirectorySource:
    """The captures in a directory and below it."""

    counts = None
    lost_slices = 0
    may_wait = True

    def __init__(self, directory: str, *, settled_s: float = SETTLED_S, state: Mapping[str, Any] | None = None) -> None:
        """`state` is what an earlier run left. Raises UsageError where the directory is none or cannot be read."""
        self.name = directory
        self.failure: Exception | None = None
        self._root = Path(directory)
        if not self._root.is_dir():
            raise UsageError(f"{directory} must be a directory of captures, and is none")
        self._settled_s = settled_s
        self._known: dict[str, _Known] = {}
        for path, values in (state or {}).get("files", {}).items():
            self._known[path] = _Known(*values)
        self._beginnings = {each.digest for each in self._known.values()}
        self._queue: list[Slice] = []
        self._look_again_s = 0.0
        self._ended = False
        self._seen: dict[Path, tuple[int, float]] = {}
        self._look()
        if self.failure is not None:
            raise self.failure

    @property
    def waiting(self) -> int:
        """Captures that are whole and not taken yet."""
        return len(self._queue)

    def take(self, timeout_s: float) -> Slice | None:
        """The next capture, the one first that was written first."""
        if not self._queue and not self._ended:
            time.sleep(min(max(self._look_again_s - time.monotonic(), 0.0), timeout_s))
            if time.monotonic() >= self._look_again_s:
                self._look()
        return self._queue.pop(0) if self._queue else None

    def judged(self, of: Slice, last_ns: int | None) -> None:
        """Remember a capture."""
        try:
            digest, digested_bytes = _beginning(of.path, _BEGINNING_BYTES)
        except OSError:
            return  # removed since
        self._known[str(of.path)] = _Known(digest, digested_bytes, *self._seen[of.path], last_ns)
        self._beginnings.add(digest)
        if len(self._known) > _MOST_REMEMBERED:
            gone = next((path for path in self._known if not Path(path).exists()), None)
            if gone is not None:
                self._beginnings.discard(self._known.pop(gone).digest)

    def finish(self) -> None:
        """What waits is for the next run."""
        self._queue.clear()
        self._ended = True

    def state(self) -> dict[str, object]:
        """The captures that were judged."""
        return {
            "files": {
                path: [each.digest, each.digested_bytes, each.size_bytes, each.changed_s, each.last_ns]
                for path, each in self._known.items()
            }
        }

    def _look(self) -> None:
        """Queue what is whole and new."""
        begun_s = time.monotonic()
        try:
            files = list(self._files())
        except OSError as error:
            self.failure = UsageError(f"the directory {self.name} cannot be read: {error.strerror}")
            return
        newest: dict[str, float] = {}
        for path, (_, changed_s) in files:
            series = series_pattern(str(path))
            newest[series] = max(newest.get(series, 0.0), changed_s)
        now_s = time.time()
        self._seen = dict(files)
        for path, (size, changed_s) in sorted(files, key=lambda each: (each[1][1], each[0])):
            series = series_pattern(str(path))
            settled_s = min(self._settled_s, SETTLED_BESIDE_NEXT_S) if newest[series] > changed_s else self._settled_s
            if now_s - changed_s >= settled_s and size:
                found = self._new(Slice(path, series), size, changed_s)
                if found is not None:
                    self._queue.append(found)
        # A large directory is looked at less often.
        self._look_again_s = time.monotonic() + max(_BETWEEN_LOOKS_S, 10 * (time.monotonic() - begun_s))

    def _files(self) -> Iterator[tuple[Path, tuple[int, float]]]:
        next(self._root.iterdir(), None)  # raises where the directory is gone, which a pattern does not
        for path in self._root.rglob("*"):
            if any(part.startswith(".") for part in path.relative_to(self._root).parts) or not path.is_file():
                continue
            status = path.stat()
            yield path, (status.st_size, status.st_mtime)

    def _new(self, found: Slice, size: int, changed_s: float) -> Slice | None:
        """The slice if it was not judged yet, or what it grew by."""
        known = self._known.get(str(found.path))
        if known is not None and (known.size_bytes, known.changed_s) == (size, changed_s):
            return None
        try:
            if known is not None and _beginning(found.path, known.digested_bytes)[0] == known.digest:
                if size > known.size_bytes:
                    return replace(found, after_ns=known.last_ns)
                self._known[str(found.path)] = replace(known, size_bytes=size, changed_s=changed_s)
                return None
            with found.path.open("rb") as stream:
                if not (begins_like_capture(stream, found.path.name) or is_called_a_capture(found.path.name)):
                    return None
            digest, digested_bytes = _beginning(found.path, _BEGINNING_BYTES)
        except OSError:
            return None  # gone since, or not to be read: the next look shows
        if digest in self._beginnings:
            self._known[str(found.path)] = _Known(digest, digested_bytes, size, changed_s, None)
            return None
        return found


def _beginning(path: Path, size: int) -> tuple[str, int]:
    """Digest of the first bytes, unpacked, and how many there are. Raises OSError."""
    try:
        with unpacked(path) as stream:
            content = stream.read(size)
    except (EOFError, lzma.LZMAError):
        content = path.read_bytes()[:size]
    return hashlib.sha256(content).hexdigest(), len(content)
