"""The archives of a state directory: which there are, who may add how much, and what is deleted.

An offer that is accepted has room for all of its announced bytes, so that no upload is refused in its middle for what
others upload. Everything is found again from the files alone, after any kill.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pepscope.whole_file import sync_directory
from prober.protocol.control_messages import ArchiveOffer, ArchiveState
from prober.server.archives.retention import overdue
from prober.server.archives.running_time import RunningTime
from prober.server.archives.stored_archive import (
    DIRECTORY,
    ArchiveRecord,
    archive_path,
    delete_archive,
    part_path,
    stored_archives,
    unfinished_parts,
    write_record,
)
from prober.server.archives.upload import Upload
from prober.server.keys.client_key import ClientKey
from prober.server.refusal import RefusedError
from prober.server.settings import ArchivesTable, RetentionTable

logger = logging.getLogger("prober")

#: How often the rules are applied: deleting is no hurry.
_APPLY_EVERY_S = 10.0

#: How long a connection waits for another one that stores the same archive.
_STORING_S = 10.0

#: Client and digest: each client has its archives for itself, even if another one has the same.
_Name = tuple[str, str]


class ArchiveStore:
    """Used by many threads; one for a state directory."""

    def __init__(
        self,
        state: Path,
        limits: ArchivesTable,
        rules: RetentionTable,
        clock: Callable[[], float] = time.monotonic,
        running: RunningTime | None = None,
    ) -> None:
        """Find what is there. Raises ServerError, OSError."""
        self.root = state / DIRECTORY
        self._limits, self._rules, self._clock = limits, rules, clock
        self._running = running or RunningTime(state)
        self._lock = threading.Lock()
        self._whole: dict[_Name, ArchiveRecord] = {}
        self._coming: dict[_Name, Upload] = {}
        #: When an upload was begun or taken up, or had a piece appended.
        self._moved_s: dict[_Name, float] = {}
        self._applied_s = clock()
        if limits.archive_bytes:
            self.root.mkdir(mode=0o700, exist_ok=True)
        for record in stored_archives(self.root):
            self._whole[record.client, record.sha256] = record
        for client, sha256, size_bytes, path in unfinished_parts(self.root):
            if (client, sha256) in self._whole:
                path.unlink()
                continue
            self._coming[client, sha256] = Upload(path, sha256, size_bytes)
            self._moved_s[client, sha256] = clock()
        self._number = max((record.number for record in self._whole.values()), default=0)

    def offer(self, key: ClientKey, offered: ArchiveOffer) -> ArchiveState:
        """Begin an upload, or take one up; what is there of it. Raises RefusedError."""
        name = (key.name, offered.sha256)
        with self._lock:
            if record := self._stored(name):
                return _state(offered.sha256, record.size_bytes, None)
            upload = self._coming.get(name)
            if upload is None:
                self._check_room(key, offered.size_bytes)
                upload = self._begin(key.name, offered)
            elif upload.size_bytes != offered.size_bytes:
                raise RefusedError(409, f"this archive was announced with {upload.size_bytes} bytes")
            upload.name = offered.name
            self._moved_s[name] = self._clock()
        return _state(offered.sha256, upload.size_bytes, upload)

    def append(self, key: ClientKey, sha256: str, offset: int, piece: bytes) -> None:
        """Store a piece; nothing where the archive is whole. Raises RefusedError."""
        upload = self._announced(key, sha256)
        if isinstance(upload, ArchiveRecord):
            return
        if shutil.disk_usage(self.root).free < self._limits.free_disk_bytes + len(piece):
            raise RefusedError(507, "the server's disk is nearly full")
        upload.append(offset, piece)
        self._moved_s[key.name, sha256] = self._clock()

    def finish(self, key: ClientKey, sha256: str, network: str) -> ArchiveState:
        """Store the archive where all of it is there; what is there of it. Raises RefusedError, ServerError."""
        upload = self._announced(key, sha256)
        if isinstance(upload, ArchiveRecord):
            return _state(sha256, upload.size_bytes, None)
        if upload.stored_bytes == upload.size_bytes and not self._finish(key.name, upload, network):
            # Another connection stores it, which takes as long as the disk needs.
            upload.settled.wait(_STORING_S)
        return _state(sha256, upload.size_bytes, None if (key.name, sha256) in self._whole else upload)

    def withdraw(self, key: ClientKey, sha256: str) -> None:
        """Delete an archive of this client, or what came of it so far. Raises RefusedError, OSError."""
        name = (key.name, sha256)
        with self._lock:
            upload = self._coming.get(name)
        why = "its client withdrew it"
        if upload is not None:
            if upload.drop():
                self._forget(key.name, sha256, upload)
                _log("upload-dropped", key.name, sha256, why=why)
                return
            upload.settled.wait(_STORING_S)
        with self._lock:
            record = self._stored(name)
        if record is None:
            raise RefusedError(404, "the server has no such archive of this key")
        self._delete(record, why)

    def sweep(self) -> None:
        """Apply the rules, and drop uploads that went on no more for long. Raises ServerError, OSError."""
        now = self._clock()
        if now - self._applied_s < _APPLY_EVERY_S:
            return
        self._applied_s = now
        self._running.store()
        with self._lock:
            for name in list(self._whole):
                self._stored(name)
            over = list(overdue(self._whole.values(), self._rules, self._running()))
            stale = [
                (name, upload)
                for name, upload in self._coming.items()
                if now - self._moved_s.get(name, now) > self._limits.unfinished_s
            ]
        for record, why in over:
            self._delete(record, why)
        for (client, sha256), upload in stale:
            if upload.drop():
                self._forget(client, sha256, upload)
                _log("upload-dropped", client, sha256, why="no bytes came for long")

    def close(self) -> None:
        """Write down how long it ran. Raises ServerError."""
        self._running.store(now=True)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Archives of each client: how many, and their bytes."""
        with self._lock:
            records = list(self._whole.values())
        found: dict[str, tuple[int, int]] = {}
        for record in records:
            count, size_bytes = found.get(record.client, (0, 0))
            found[record.client] = count + 1, size_bytes + record.size_bytes
        return found

    @property
    def uploads(self) -> int:
        """How many are coming in."""
        return len(self._coming)

    def _finish(self, client: str, upload: Upload, network: str) -> bool:
        """Store a complete upload; whether this call did it. Raises RefusedError, ServerError."""
        try:
            if not upload.finish():
                return False
        except RefusedError as error:
            if error.status != 507:
                self._forget(client, upload.sha256, upload)
                upload.settled.set()
            raise
        try:
            self._store(client, upload, network)
        except BaseException:
            # It can be taken up again, as after a kill.
            self._take_up_again(client, upload)
            raise
        finally:
            upload.settled.set()
        return True

    def _announced(self, key: ClientKey, sha256: str) -> Upload | ArchiveRecord:
        """The upload, or the archive where it is whole. Raises RefusedError."""
        with self._lock:
            if record := self._stored((key.name, sha256)):
                return record
            upload = self._coming.get((key.name, sha256))
        if upload is None:
            raise RefusedError(404, "no such archive was announced; it may have been dropped")
        return upload

    def _stored(self, name: _Name) -> ArchiveRecord | None:
        """A whole archive; none where others deleted its file. To be called with the lock held."""
        record = self._whole.get(name)
        if record is not None and not archive_path(self.root, record).is_file():
            del self._whole[name]
            return None
        return record

    def _check_room(self, key: ClientKey, size_bytes: int) -> None:
        limits = self._limits
        if not limits.archive_bytes:
            raise RefusedError(403, "this server takes no archives (archives.archive_bytes is 0)")
        if size_bytes > limits.archive_bytes:
            raise RefusedError(413, f"an archive must have at most {limits.archive_bytes} bytes")
        own = sum(client == key.name for client, _ in self._coming)
        if own >= limits.unfinished:
            raise RefusedError(409, f"a key must have at most {limits.unfinished} unfinished uploads")
        most = limits.client_bytes if key.quotas.archive_bytes is None else key.quotas.archive_bytes
        if self._taken_bytes(key.name) + size_bytes > most:
            raise RefusedError(507, f"the archives of the key {key.name} must take at most {most} bytes")
        if self._taken_bytes(None) + size_bytes > limits.total_bytes:
            raise RefusedError(507, "the server has as many archives as it may store")
        missing = sum(upload.size_bytes - upload.stored_bytes for upload in self._coming.values())
        if shutil.disk_usage(self.root).free < limits.free_disk_bytes + missing + size_bytes:
            raise RefusedError(507, "the server's disk is nearly full")

    def _taken_bytes(self, client: str | None) -> int:
        """What archives of a client, or of all, take when all are whole."""
        whole = sum(r.size_bytes for r in self._whole.values() if client in (None, r.client))
        return whole + sum(u.size_bytes for (name, _), u in self._coming.items() if client in (None, name))

    def _begin(self, client: str, offered: ArchiveOffer) -> Upload:
        path = part_path(self.root, client, offered.sha256, offered.size_bytes)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            upload = Upload(path, offered.sha256, offered.size_bytes)
        except OSError as error:
            raise RefusedError(507, f"the server cannot store the archive: {error.strerror}") from None
        self._coming[client, offered.sha256] = upload
        _log("upload", client, offered.sha256, size_bytes=offered.size_bytes)
        return upload

    def _store(self, client: str, upload: Upload, network: str) -> None:
        with self._lock:
            self._number += 1
            record = ArchiveRecord(
                schema=1,
                client=client,
                sha256=upload.sha256,
                size_bytes=upload.size_bytes,
                name=upload.name,
                number=self._number,
                received_unix_s=max(0, int(time.time())),
                received_running_s=self._running(),
                network=network,
            )
        write_record(self.root, record)
        upload.path.replace(archive_path(self.root, record))
        # The rename is on the disk, too, before the client is told that it needs its own copy no more.
        sync_directory(upload.path.parent)
        with self._lock:
            self._whole[client, upload.sha256] = record
            self._coming.pop((client, upload.sha256), None)
            self._moved_s.pop((client, upload.sha256), None)
        _log("archive", client, upload.sha256, size_bytes=record.size_bytes, name=upload.name)

    def _take_up_again(self, client: str, upload: Upload) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._coming[client, upload.sha256] = Upload(upload.path, upload.sha256, upload.size_bytes)

    def _forget(self, client: str, sha256: str, upload: Upload) -> None:
        with self._lock:
            if self._coming.get((client, sha256)) is upload:
                del self._coming[client, sha256]
                self._moved_s.pop((client, sha256), None)

    def _delete(self, record: ArchiveRecord, why: str) -> None:
        delete_archive(self.root, record)
        with self._lock:
            self._whole.pop((record.client, record.sha256), None)
        _log("archive-deleted", record.client, record.sha256, why=why)


def _state(sha256: str, size_bytes: int, upload: Upload | None) -> ArchiveState:
    """`upload` is `None` where the archive is whole."""
    return ArchiveState(
        sha256, size_bytes, size_bytes if upload is None else upload.stored_bytes, is_whole=upload is None
    )


def _log(event: str, client: str, sha256: str, **fields: object) -> None:
    logger.info(event, extra={"fields": {"event": event, "key": client, "archive": sha256[:12], **fields}})
