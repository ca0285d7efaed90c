"""Verdicts on stored archives: each archive is judged once, by `pepscope audit` in a process of its own.

Archives come from anywhere. Whatever one of them does to its judge, it does to a process that may take only so long and
so much memory, and that no page waits for; the dashboard reads the JSON that comes of it, by its contract.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pepscope
from pepscope.results.audits import AuditRun
from pepscope.results.finding import VERSION
from pepscope.whole_file import write_whole
from prober.errors import ServerError
from prober.server.archives.stored_archive import DIRECTORY, ArchiveRecord, archive_path, stored_archives
from prober.server.dashboard.stored_runs import StoredRun, StoredRuns, UnknownRunError, run_from_document

logger = logging.getLogger("prober")

#: What judging one archive may take.
MOST_TIME_S = 900.0
MOST_MEMORY_BYTES = 4 << 30
#: Pages of runs that are kept; the others are made again when a reader asks for them.
MOST_PAGE_BYTES = 1 << 30
_MOST_SUMMARY_BYTES = 16 << 20
_SCHEMA = "pepscope-judged-1"


class JudgedArchives:
    """Judges what is not judged yet, the latest first; used by many threads."""

    def __init__(self, state: Path, directory: Path) -> None:
        """`directory` is for verdicts and pages; it may be thrown away. Raises OSError."""
        self._root, self._directory = (state / DIRECTORY).resolve(), directory.resolve()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        #: Verdicts of another version are made again.
        self._version = f"{pepscope.__version__}-{VERSION}"
        self._known: dict[tuple[str, str], tuple[AuditRun | None, str]] = {}
        self._wanted: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._is_ending = False
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="pepscope-judge", daemon=True)

    def start(self) -> None:
        """Begin to judge."""
        self._thread.start()

    def close(self) -> None:
        """Judge no more."""
        self._is_ending = True
        self._news.set()
        with self._lock:
            if self._process is not None:
                self._process.kill()
        self._thread.join(60)

    def runs(self, client: str | None = None) -> StoredRuns:
        """What is stored of a client, or of all; what is not judged yet has no run. Raises ServerError, OSError."""
        records = [record for record in stored_archives(self._root) if client in (None, record.client)]
        return StoredRuns(tuple(map(self._stored, records)))

    def archive(self, client: str, sha256: str) -> tuple[ArchiveRecord, Path] | None:
        """A stored archive's record and file. Raises ServerError, OSError."""
        found = next((r for r in stored_archives(self._root) if (r.client, r.sha256) == (client, sha256)), None)
        return None if found is None else (found, archive_path(self._root, found))

    def page(self, client: str, sha256: str) -> bytes | None:
        """The page of a run; `None` where it is made now. Raises OSError."""
        path = self._path(client, sha256, "html")
        with contextlib.suppress(FileNotFoundError):
            return path.read_bytes()
        with self._lock:
            if (client, sha256) not in self._wanted:
                self._wanted.append((client, sha256))
        self._news.set()
        return None

    def look(self) -> None:
        """See whether there is something to judge."""
        self._news.set()

    def _stored(self, record: ArchiveRecord) -> StoredRun:
        run, fault = self._verdict(record) or (None, "")
        return StoredRun(
            client=record.client,
            sha256=record.sha256,
            name=record.name,
            size_bytes=record.size_bytes,
            number=record.number,
            received_unix_s=record.received_unix_s,
            uploaded_from=record.network,
            run=run,
            fault=fault,
        )

    def _verdict(self, record: ArchiveRecord) -> tuple[AuditRun | None, str] | None:
        name = (record.client, record.sha256)
        if name not in self._known:
            path = self._path(*name, "json")
            try:
                document = json.loads(path.read_bytes()) if path.stat().st_size <= _MOST_SUMMARY_BYTES else {}
                if document.get("schema") != _SCHEMA:
                    return None
                self._known[name] = run_from_document(document["run"], record.name), ""
            except (OSError, ValueError, LookupError, AttributeError, UnknownRunError):
                return None
        return self._known[name]

    def _path(self, client: str, sha256: str, suffix: str) -> Path:
        return self._directory / f"{client}.{sha256}.{self._version}.{suffix}"

    def _run(self) -> None:
        while not self._is_ending:
            self._news.clear()
            try:
                record, is_wanted = self._next()
                if record is not None:
                    self._judge(record, is_wanted=is_wanted)
                    continue
                self._sweep()
            except (OSError, ServerError) as error:
                logger.warning("%s", error, extra={"fields": {"event": "not-judged"}})
            self._news.wait()

    def _next(self) -> tuple[ArchiveRecord | None, bool]:
        """What to judge next, and whether a reader asked for its page."""
        records = sorted(stored_archives(self._root), key=lambda record: -record.number)
        with self._lock:
            wanted = [r for r in records if (r.client, r.sha256) in self._wanted]
            self._wanted = [(r.client, r.sha256) for r in wanted[1:]]
        if wanted:
            return wanted[0], True
        return next((record for record in records if self._verdict(record) is None), None), False

    def _judge(self, record: ArchiveRecord, *, is_wanted: bool) -> None:
        with tempfile.TemporaryDirectory(dir=self._directory) as scratch:
            run, fault = self._audit(record, Path(scratch))
            page = Path(scratch) / "page.html"
            if self._is_ending:
                return
            name = (record.client, record.sha256)
            if fault:
                # Tried once more at the next start: the reason may have been this host, such as a full disk.
                self._known[name] = None, fault
                logger.warning(fault, extra={"fields": {"event": "not-judged", "archive": record.sha256[:12]}})
                return
            self._known.pop(name, None)
            document = {"schema": _SCHEMA, "run": run}
            write_whole(self._path(*name, "json"), json.dumps(document), mode=0o600)
            if page.exists():
                page.chmod(0o600)
                page.replace(self._path(*name, "html"))
        self._keep_pages(self._path(record.client, record.sha256, "html") if is_wanted else None)

    def _audit(self, record: ArchiveRecord, scratch: Path) -> tuple[dict[str, Any] | None, str]:
        """The run of the contract `audit-1`, shortened, or why it cannot be judged."""
        archive = scratch / record.name
        archive.symlink_to(archive_path(self._root, record).resolve())
        words = ["audit", str(archive), "--json", str(scratch / "audit.json"), "--html", str(scratch / "page.html")]
        # One thread: the machine's work is to serve measurements.
        variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TMPDIR": str(scratch)}
        errors = scratch / "errors"
        with errors.open("wb") as stream, self._lock:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pepscope", *words], env=variables, cwd=scratch, preexec_fn=_bounded,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream,
            )  # fmt: skip
        try:
            status = self._process.wait(MOST_TIME_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None, f"it could not be judged within {MOST_TIME_S:g} s"
        finally:
            with self._lock:
                self._process = None
        if status != 0:
            said = errors.read_bytes()[-2000:].decode("utf-8", "replace").strip().splitlines()
            sentence = said[-1].removeprefix("pepscope: ") if said else f"its judge ended with status {status}"
            return None, sentence.replace(f"{scratch}/", "")[:500]
        try:
            (run,) = json.loads((scratch / "audit.json").read_bytes())["runs"]
            run_from_document(run, record.name)
            return _shortened(run), ""
        except (OSError, ValueError, LookupError, TypeError, UnknownRunError) as error:
            return None, f"its verdicts cannot be read: {error}"[:500]

    def _keep_pages(self, wanted: Path | None) -> None:
        """Delete the pages that were made first where they take too much, never the one that a reader waits for."""
        pages = [(path.stat(), path) for path in self._directory.glob("*.html")]
        total = sum(state.st_size for state, _ in pages)
        for state, path in sorted(pages, key=lambda page: page[0].st_mtime_ns):
            if total <= MOST_PAGE_BYTES:
                return
            if path != wanted:
                path.unlink(missing_ok=True)
                total -= state.st_size

    def _sweep(self) -> None:
        """Forget what is not stored any more, and what another version made."""
        kept = {(record.client, record.sha256) for record in stored_archives(self._root)}
        names = {self._path(*name, suffix) for name in kept for suffix in ("json", "html")}
        for path in self._directory.iterdir():
            if path.suffix in (".json", ".html") and path not in names:
                path.unlink(missing_ok=True)
        self._known = {name: known for name, known in self._known.items() if name in kept}


def _shortened(run: dict[str, Any]) -> dict[str, Any]:
    """Without what only the run's own page shows."""
    cells = [{**cell, "evidence": [], "connections": []} for cell in run["cells"]]
    return {**run, "cells": cells, "facts": [], "not_measured": []}


def _bounded() -> None:
    """In the judge, before it begins: it gives way to what is served, and has its bounds."""
    os.nice(10)
    for kind, most in (
        (resource.RLIMIT_AS, MOST_MEMORY_BYTES),
        (resource.RLIMIT_CPU, math.ceil(MOST_TIME_S)),
        (resource.RLIMIT_FSIZE, MOST_MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
