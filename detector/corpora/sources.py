"""Where captures are: files, directories, globs, archives, and addresses of object stores and web servers."""

from __future__ import annotations

import bz2
import errno
import glob
import gzip
import hashlib
import io
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from detector.corpora.remote import copied
from pepscope.captures.opening.names import is_called_a_capture
from pepscope.errors import UsageError
from pepscope.whole_file import whole_file

#: First bytes of what `pepscope.captures` reads: pcap in both orders and units, Kuznetzov's, pcapng, snoop.
_MAGIC = {
    bytes.fromhex(text)
    for text in ("d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "34cdb2a1", "a1b2cd34", "0a0d0d0a", "736e6f6f")
}  # fmt: skip
_COMPRESSED: dict[bytes, Callable[[IO[bytes]], Any] | None] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
    b"\x28\xb5\x2f\xfd": None,  # zstd and lz4: by the name
    b"\x04\x22\x4d\x18": None,
}
_LONGEST_MAGIC = 6
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
#: What broken or encrypted archives and compressed files raise.
_UNREADABLE = (
    OSError, EOFError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error,
)  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class CaptureFile:
    """A capture by the name that its user knows, and where it can be read."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be read or judged, in a sentence."""

    name: str
    reason: str

    @property
    def sentence(self) -> str:
        """The reason with the name, which many reasons have in them."""
        return self.reason if self.name in self.reason else f"{self.name}: {self.reason}"


def find_captures(sources: Sequence[str], scratch: Path) -> tuple[list[CaptureFile], list[Failure]]:
    """The captures of all sources, each once, by name, and what went wrong with a source or a file; members of archives
    and remote files are copied to `scratch`.

    A file that is given itself counts as a capture whatever it holds; in directories and globs what begins like one, or
    is called so; in archives what begins like one. Raises UsageError for a source that does not exist, and where a
    package is missing, OSError where there is no room for copies.
    """
    found: dict[Path, CaptureFile] = {}
    failures: list[Failure] = []
    for source in sources:
        try:
            for each in _of_source(source, scratch):
                if isinstance(each, Failure):
                    failures.append(each)
                else:
                    found.setdefault(each.path.resolve(), each)
        except _UNREADABLE as error:
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise
            failures.append(Failure(source, f"{source} cannot be read: {error}"))
    return sorted(found.values()), failures


def _of_source(source: str, scratch: Path) -> Iterator[CaptureFile | Failure]:
    if "://" in source:
        yield from _remote(source, scratch)
        return
    path = Path(source)
    if path.is_dir():
        yield from _below(path, scratch)
    elif path.exists():
        yield from _of_file(path, source, scratch) or [CaptureFile(source, path)]
    elif any(mark in source for mark in "*?["):
        matches = sorted(glob.glob(source, recursive=True))  # noqa: PTH207  # absolute patterns too
        if not matches:
            raise UsageError(f"no file matches {source}")
        for match in matches:
            place = Path(match)
            yield from _below(place, scratch) if place.is_dir() else _of_file(place, match, scratch)
    else:
        raise UsageError(f"{source} does not exist: give files, directories, patterns or addresses such as s3://...")


def _below(directory: Path, scratch: Path) -> Iterator[CaptureFile | Failure]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(directory).parts):
            try:
                yield from _of_file(path, str(path), scratch)
            except _UNREADABLE as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    raise
                yield Failure(str(path), f"{path} cannot be read: {error}")


def _of_file(path: Path, name: str, scratch: Path) -> list[CaptureFile]:
    """The file if it begins like a capture; of an archive its members that do."""
    with path.open("rb") as stream:
        if begins_like_capture(stream, name):
            return [CaptureFile(name, path)]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = [(info.filename, archive.open(info)) for info in archive.infolist() if not info.is_dir()]
            return [each for member, content in members for each in _member(name, member, content, scratch)]
    if tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            streams = ((each.name, archive.extractfile(each)) for each in archive if each.isfile())
            return [
                each for member, content in streams if content for each in _member(name, member, content, scratch)
            ]  # fmt: skip
    return [CaptureFile(name, path)] if is_called_a_capture(name) else []


def _member(archive: str, member: str, content: IO[bytes], scratch: Path) -> Iterator[CaptureFile]:
    with content:
        start = content.read(1 << 16)
        if not begins_like_capture(io.BytesIO(start), member):
            return
        name = f"{archive}/{member}"
        target = _place(name, scratch)
        with whole_file(target) as stream:
            stream.write(start)
            shutil.copyfileobj(content, stream)
    yield CaptureFile(name, target)


def _remote(address: str, scratch: Path) -> Iterator[CaptureFile | Failure]:
    for name, found in copied(address, begins_like_capture, lambda name: _place(name, scratch)):
        yield CaptureFile(name, found) if isinstance(found, Path) else Failure(name, _cannot_be_read(name, found))


def _cannot_be_read(name: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{name} does not exist, or nothing is there"
    words = " ".join(str(error).split()) or type(error).__name__
    return f"{name} cannot be read: {words}"


def _place(name: str, scratch: Path) -> Path:
    """A path of its own for each name; endings tell compression."""
    scratch.mkdir(parents=True, exist_ok=True)
    return scratch / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}-{Path(name).name}"


def begins_like_capture(stream: IO[bytes], name: str) -> bool:
    """Whether a stream at its beginning is a capture's; of zstd the name decides."""
    start = stream.read(_LONGEST_MAGIC)
    if start[:4] in _MAGIC:
        return True
    for magic, opened in _COMPRESSED.items():
        if start.startswith(magic):
            if opened is None:
                return is_called_a_capture(name)
            stream.seek(0)
            try:
                start = opened(stream).read(4)
                return start in _MAGIC
            except _UNREADABLE:
                return is_called_a_capture(name)
    return False
