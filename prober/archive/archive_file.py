"""A run in one file: a zip of plan, observations, captures of both ends and metadata; written whole or not at all.

An archive may come from an untrusted source. Every part of it is checked before it is used: names are matched
against the few that there are, sizes are counted while they are unpacked, and every digest must be right.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import re
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import msgspec

import pepscope
from pepscope.whole_file import whole_file
from prober.archive.observation_json import (
    LongText,
    Text,
    UnixNs,
    json_bytes,
    parse_document,
    read_document,
    read_observation,
    write_observation,
)
from prober.errors import ArchiveError, PlanError
from prober.measurement.task import Observation
from prober.plan import Plan
from prober.protocol.json_documents import Json

SCHEMA = "pepscope-run-1"
SUFFIX = ".pepscope.zip"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What reading an archive may cost."""

    members: int = 20_000
    #: Of a member that is parsed as JSON, and of all members together, unpacked.
    document_bytes: int = 16 << 20
    total_bytes: int = 8 << 30
    #: Unpacked bytes for a packed one, where a member is larger than `ratio_from_bytes`: random payload does not
    #: compress, headers and text rarely beyond 20.
    ratio: int = 200
    ratio_from_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run was."""

    run_id: str
    plan: Plan
    started_unix_ns: int
    ended_unix_ns: int
    #: Whether every task of the plan was completed; otherwise the reason.
    complete: bool
    reason: str = ""
    #: The version of pepscope that measured.
    version: str = pepscope.__version__
    #: By experiment, the distributions that offered those of other parties.
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Archive:
    """A run as read back; the captures are files in the directory that the caller gave."""

    manifest: Manifest
    observations: tuple[Observation, ...]
    metadata: Mapping[str, Json]
    #: By their names within the archive, as observations give them.
    captures: Mapping[str, Path]


def capture_name(key: str, end: str) -> str:
    """The name within the archive of the capture that a task took at an end, `mobile` or `server`."""
    return f"captures/{key}.{end}.pcap"


def is_archive(path: str | Path) -> bool:
    """Whether a file looks like a run's archive rather than a capture."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


# ---- writing


def write_archive(
    path: str | Path,
    manifest: Manifest,
    observations: Iterable[Observation],
    metadata: Mapping[str, Json],
    captures: Mapping[str, Path],
) -> None:
    """Write a run; `captures` maps names within the archive to files. Raises ArchiveError, OSError.

    The file appears under its name only when it is whole and on the disk.
    """
    with whole_file(Path(path), durable=True) as stream:
        _write_members(stream, manifest, observations, metadata, captures)


def _write_members(
    stream: IO[bytes],
    manifest: Manifest,
    observations: Iterable[Observation],
    metadata: Mapping[str, Json],
    captures: Mapping[str, Path],
) -> None:
    digests: dict[str, str] = {}
    with zipfile.ZipFile(stream, "w") as archive:
        for observation in observations:
            name = f"observations/{observation.task.key}.json"
            if name in digests:
                raise ArchiveError(f"{observation.task.key} was observed twice")
            digests[name] = _write_member(archive, name, [write_observation(observation)])
        for name, source in captures.items():
            if _NAME.fullmatch(name) is None:
                raise ArchiveError(f"a capture in an archive must have the name of its task, got {name!r}")
            with source.open("rb") as capture:
                digests[name] = _write_member(archive, name, iter(lambda: capture.read(_CHUNK_BYTES), b""))
        digests["facts.json"] = _write_member(archive, "facts.json", [json_bytes(dict(metadata))])
        _write_member(archive, "manifest.json", [json_bytes(_manifest_document(manifest, digests))])


_CHUNK_BYTES = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)


def _write_member(archive: zipfile.ZipFile, name: str, chunks: Iterable[bytes]) -> str:
    # One time for all members: equal runs make equal archives.
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    digest = hashlib.sha256()
    with archive.open(info, "w", force_zip64=True) as member:
        for chunk in chunks:
            digest.update(chunk)
            member.write(chunk)
    return digest.hexdigest()


def _manifest_document(manifest: Manifest, digests: Mapping[str, str]) -> dict[str, Json]:
    return {
        "schema": SCHEMA,
        "run_id": manifest.run_id,
        "version": manifest.version,
        "plan": manifest.plan.to_mapping(),
        "plan_digest": manifest.plan.digest,
        "started_unix_ns": manifest.started_unix_ns,
        "ended_unix_ns": manifest.ended_unix_ns,
        "complete": manifest.complete,
        "reason": manifest.reason,
        "digests": dict(digests),
        **({"packages": dict(manifest.packages)} if manifest.packages else {}),
    }


class _ManifestDocument(msgspec.Struct, frozen=True, kw_only=True):
    run_id: Text
    version: Text
    plan: dict[str, Any]
    started_unix_ns: UnixNs
    ended_unix_ns: UnixNs
    complete: bool
    reason: LongText
    #: By the name of the member; each is checked when its member is read.
    digests: dict[str, Any]
    packages: dict[Text, Text] = {}


# ---- reading

_NAME = re.compile(
    r"manifest\.json|facts\.json|observations/[A-Za-z0-9_.=\-]{1,180}\.json|captures/[A-Za-z0-9_.=\-]{1,180}\.pcap"
)
_RUN_ID = re.compile(r"[A-Za-z0-9\-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
#: pcap in both byte orders, with micro- and nanoseconds, and pcapng.
_CAPTURE_MAGICS = frozenset(
    bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")
)
#: A pcap file header; a pcapng section header is longer.
_LEAST_CAPTURE_BYTES = 24
#: What the zip module raises at damaged or hostile files, beside OSError.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)


@contextlib.contextmanager
def open_archive(path: str | Path, bounds: Bounds | None = None) -> Iterator[Archive]:
    """Read an archive, its captures in a temporary directory that goes at the end. Raises ArchiveError, OSError."""
    with tempfile.TemporaryDirectory(prefix="pepscope-") as directory:
        yield read_archive(path, directory, bounds)


def read_archive(path: str | Path, directory: str | Path, bounds: Bounds | None = None) -> Archive:
    """Check an archive and unpack its captures into `directory`, which must be there.

    Raises ArchiveError, with what is wrong in one sentence, and OSError where the file or the directory cannot be used.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _Reader(archive, Path(directory), bounds or Bounds()).read()
    except ArchiveError as error:
        raise ArchiveError(f"{path}: {error}") from None
    except OSError as error:
        # In a damaged file the zip module may seek to a position before the start.
        if error.errno != errno.EINVAL:
            raise
        raise ArchiveError(f"{path} is a damaged archive: its members are not at the listed positions") from None
    except _DAMAGE as error:
        raise ArchiveError(f"{path} must be an archive of a run: {str(error)[:200]}") from None


class _Reader:
    """One archive while it is read."""

    def __init__(self, archive: zipfile.ZipFile, directory: Path, bounds: Bounds) -> None:
        self._archive = archive
        self._directory = directory
        self._bounds = bounds
        self._left_bytes = bounds.total_bytes
        self._members = self._listed()

    def read(self) -> Archive:
        document = self._manifest_document()
        manifest, digests = _manifest(document), document.digests
        self._compare_members(digests)
        observations, captures = [], {}
        metadata: dict[str, Json] = {}
        for name in sorted(digests):
            if name.startswith("captures/"):
                captures[name] = self._unpack(name, digests[name])
                continue
            data = self._take(name, digests[name])
            if name == "facts.json":
                metadata = parse_document(data, name)
            else:
                observations.append(_named(read_observation(data, name), name))
        _compare_captures(observations, captures)
        observations.sort(key=lambda item: (item.started_unix_ns, item.task.key))
        return Archive(manifest, tuple(observations), MappingProxyType(metadata), MappingProxyType(captures))

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        listed = self._archive.infolist()
        if len(listed) > self._bounds.members:
            raise ArchiveError(f"it must have at most {self._bounds.members} members, got {len(listed)}")
        for info in listed:
            shown = info.orig_filename[:80]
            if info.orig_filename != info.filename or _NAME.fullmatch(info.filename) is None:
                raise ArchiveError(f"a member must have the name of a part of a run, got {shown!r}")
            if info.filename in members:
                raise ArchiveError(f"members must have different names, got {shown!r} twice")
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise ArchiveError(f"the member {shown!r} must be a plain file")
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ArchiveError(f"the member {shown!r} must be deflated or stored, and not encrypted")
            members[info.filename] = info
        return members

    def _manifest_document(self) -> _ManifestDocument:
        if "manifest.json" not in self._members:
            raise ArchiveError("it must have a manifest.json")
        document = parse_document(self._take("manifest.json", None), "manifest.json")
        schema = document.get("schema")
        if schema != SCHEMA:
            raise ArchiveError(f"its schema must be {SCHEMA!r}, got {repr(schema)[:60]}")
        return read_document(_ManifestDocument, document, "manifest.json")

    def _compare_members(self, digests: Mapping[str, Json]) -> None:
        present = set(self._members) - {"manifest.json"}
        for name in sorted(present ^ set(digests)):
            is_there = "is there but not" if name in present else "is not there but"
            raise ArchiveError(f"the member {name[:80]!r} {is_there} in the manifest")
        if "facts.json" not in digests:
            raise ArchiveError("it must have a facts.json")

    def _chunks(self, name: str, digest: Json) -> Iterator[bytes]:
        """A member's bytes, counted while they are unpacked: the sizes in the zip are not trusted."""
        info = self._members[name]
        hashed, unpacked = hashlib.sha256(), 0
        with self._archive.open(info) as member:
            while chunk := member.read(_CHUNK_BYTES):
                unpacked += len(chunk)
                self._left_bytes -= len(chunk)
                if self._left_bytes < 0:
                    raise ArchiveError(f"it must unpack to at most {self._bounds.total_bytes} bytes")
                if unpacked > max(self._bounds.ratio_from_bytes, self._bounds.ratio * info.compress_size):
                    raise ArchiveError(
                        f"the member {name!r} must unpack to at most {self._bounds.ratio} times its size"
                    )
                hashed.update(chunk)
                yield chunk
        if digest is not None and hashed.hexdigest() != digest:
            raise ArchiveError(f"the member {name!r} must have the digest that the manifest lists")

    def _take(self, name: str, digest: Json) -> bytes:
        if digest is not None and (not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None):
            raise ArchiveError(f"the manifest's digest of {name!r} must be a SHA-256")
        data = bytearray()
        for chunk in self._chunks(name, digest):
            data += chunk
            if len(data) > self._bounds.document_bytes:
                raise ArchiveError(f"the member {name!r} must have at most {self._bounds.document_bytes} bytes")
        return bytes(data)

    def _unpack(self, name: str, digest: Json) -> Path:
        target = self._directory / name.removeprefix("captures/")
        if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
            raise ArchiveError(f"the manifest's digest of {name!r} must be a SHA-256")
        head = b""
        # Exclusively, so that no existing file or link is overwritten.
        with target.open("xb") as stream:
            for chunk in self._chunks(name, digest):
                head = head or chunk[:_LEAST_CAPTURE_BYTES]
                stream.write(chunk)
        if len(head) < _LEAST_CAPTURE_BYTES or head[:4] not in _CAPTURE_MAGICS:
            raise ArchiveError(f"the member {name!r} must be a capture")
        return target


def _manifest(document: _ManifestDocument) -> Manifest:
    if _RUN_ID.fullmatch(document.run_id) is None:
        raise ArchiveError(f"manifest.json: run_id must be the name of a run, got {document.run_id[:80]!r}")
    try:
        plan = Plan.from_archive(document.plan)
    except PlanError as error:
        raise ArchiveError(f"manifest.json: the plan cannot be used: {error}") from None
    return Manifest(
        run_id=document.run_id,
        plan=plan,
        started_unix_ns=document.started_unix_ns,
        ended_unix_ns=document.ended_unix_ns,
        complete=document.complete,
        reason=document.reason,
        version=document.version,
        packages=document.packages,
    )


def _named(observation: Observation, name: str) -> Observation:
    if name != f"observations/{observation.task.key}.json":
        raise ArchiveError(f"the member {name!r} is about another task, {observation.task.key[:80]!r}")
    return observation


def _compare_captures(observations: Iterable[Observation], captures: Mapping[str, Path]) -> None:
    for observation in observations:
        for name in (observation.mobile_capture, observation.server_capture):
            if name and name not in captures:
                raise ArchiveError(f"the capture {name[:80]!r} of {observation.task.key} is missing")
