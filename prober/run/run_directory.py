"""An unfinished run on disk: each finished task is stored, so that an interrupted run can be resumed.

A task's directory appears under its name by one rename, when its captures and its observation are whole and on the
disk. Other files there are of an interrupted task, and are removed when the run is resumed.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

import pepscope
from pepscope.errors import UsageError
from pepscope.whole_file import sync_directory, write_whole
from prober.archive.archive_file import Manifest, capture_name, write_archive
from prober.archive.observation_json import (
    Text,
    UnixNs,
    parse_document,
    read_document,
    read_observation,
    write_observation,
)
from prober.errors import ArchiveError
from prober.experiments.registry import offering_package
from prober.measurement.task import Observation
from prober.plan import Plan
from prober.protocol.json_documents import Json
from prober.run.run_metadata import ClockSample

SCHEMA = "pepscope-unfinished-run-1"
_ENDS = ("mobile", "server")
#: More than what libpcap keeps back before it writes.
_TRIAL_BYTES = 1 << 16


class _Beginning(msgspec.Struct, frozen=True):
    """What is written once, when a run begins."""

    run_id: Text
    version: Text
    started_unix_ns: UnixNs


class _ClocksDocument(msgspec.Struct, frozen=True):
    samples: tuple[ClockSample, ...]


class RunDirectory:
    """The directory of one run, for one process at a time; a context that holds its lock."""

    def __init__(self, output: Path, plan: Plan, *, restart: bool = False) -> None:
        """Begin a run of `plan` below `output`, or take up one that was interrupted, unless `restart` throws it away.

        Raises UsageError where another process runs it, or another version began it; OSError.
        """
        self.plan = plan
        self.path = output / f"run-{plan.digest}"
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = self._locked()
        try:
            if restart:
                self._clear()
            self._beginning = self._read_beginning() or self._begin()
            self._sweep()
            self.observations = self._read_observations()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def run_id(self) -> str:
        """The run's name: when it began, and a few letters by chance."""
        return self._beginning.run_id

    @property
    def started_unix_ns(self) -> int:
        """When the run began, not when it was taken up again."""
        return self._beginning.started_unix_ns

    def begin(self, key: str) -> Path:
        """A new, empty directory for what a task measures; nothing of an earlier try is in it."""
        partial = self._partial / key
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        return partial

    def capture_path(self, key: str, end: str) -> Path:
        """Where a task's capture at an end goes while it is measured."""
        return self._partial / key / f"{end}.pcap"

    def commit(self, observation: Observation) -> Observation:
        """Store a task: the captures in its directory, and the observation, which then names them."""
        key = observation.task.key
        partial = self._partial / key
        partial.mkdir(parents=True, exist_ok=True)
        names = {end: capture_name(key, end) if (partial / f"{end}.pcap").exists() else "" for end in _ENDS}
        observation = replace(observation, mobile_capture=names["mobile"], server_capture=names["server"])
        data = write_observation(observation)
        for end in _ENDS:
            if names[end]:
                _sync_file(partial / f"{end}.pcap")
        write_whole(partial / "observation.json", data, durable=True)
        target = self._tasks / key
        if target.exists():
            # Of an earlier try that failed; if we die between the two renames the task is simply not done.
            target.rename(self._partial / f"{key}.earlier")
        partial.rename(target)
        sync_directory(self._tasks)
        shutil.rmtree(self._partial / f"{key}.earlier", ignore_errors=True)
        self.observations[key] = observation
        return observation

    def drop(self, key: str) -> None:
        """Throw away what an interrupted task left."""
        shutil.rmtree(self._partial / key, ignore_errors=True)

    def try_writing(self) -> None:
        """Write and remove something of the size of a capture's buffer. Raises OSError where the disk is full."""
        trial = self.path / ".trial"
        try:
            write_whole(trial, bytes(_TRIAL_BYTES), durable=True)
        finally:
            trial.unlink(missing_ok=True)

    def clocks(self) -> list[ClockSample]:
        """The clock samples of all sessions of this run."""
        try:
            document = parse_document((self.path / "clocks.json").read_bytes(), "clocks.json")
            return list(read_document(_ClocksDocument, document, "clocks.json").samples)
        except (FileNotFoundError, ArchiveError):
            return []

    def metadata(self) -> dict[str, Json]:
        """The stored circumstances; empty where none are."""
        try:
            return parse_document((self.path / "facts.json").read_bytes(), "facts.json")
        except (FileNotFoundError, ArchiveError):
            return {}

    def keep_metadata(self, document: Mapping[str, Json]) -> None:
        """Store the circumstances of the latest session."""
        write_whole(self.path / "facts.json", json.dumps(dict(document)).encode(), durable=True)

    def keep_clocks(self, samples: list[ClockSample]) -> None:
        """Store clock samples."""
        write_whole(self.path / "clocks.json", msgspec.json.encode(_ClocksDocument(tuple(samples))), durable=True)

    def write_archive(
        self, path: Path, metadata: Mapping[str, Json], *, complete: bool, reason: str, keys: list[str]
    ) -> None:
        """Write what there is of the tasks of these names. Raises OSError."""
        observations = [self.observations[key] for key in keys if key in self.observations]
        captures = {
            name: self._tasks / item.task.key / f"{end}.pcap"
            for item in observations
            for end, name in (("mobile", item.mobile_capture), ("server", item.server_capture))
            if name
        }
        manifest = Manifest(
            self.run_id,
            self.plan,
            self.started_unix_ns,
            time.time_ns(),
            complete=complete,
            reason=reason,
            packages={name: package for name in self.plan.experiments if (package := offering_package(name))},
        )
        write_archive(path, manifest, observations, metadata, captures)

    def remove(self) -> None:
        """The run is in its archive: nothing of it is needed any more."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Let another process take the run up."""
        self._lock.close()

    @property
    def _tasks(self) -> Path:
        return self.path / "tasks"

    @property
    def _partial(self) -> Path:
        return self.path / "partial"

    def _locked(self) -> IO[bytes]:
        lock = (self.path / "lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise UsageError(f"another process is running this plan in {self.path}") from None
        except OSError as error:
            lock.close()
            raise OSError(error.errno, f"it cannot be locked: {error.strerror}", str(self.path)) from None
        return lock

    def _clear(self) -> None:
        for name in ("run.json", "clocks.json", "facts.json"):
            (self.path / name).unlink(missing_ok=True)
        shutil.rmtree(self._tasks, ignore_errors=True)

    def _sweep(self) -> None:
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir()
        self._tasks.mkdir(exist_ok=True)

    def _read_beginning(self) -> _Beginning | None:
        try:
            document = parse_document((self.path / "run.json").read_bytes(), "run.json")
            beginning = read_document(_Beginning, document, "run.json")
            is_known = document.get("schema") == SCHEMA
        except FileNotFoundError:
            return None
        except ArchiveError:
            is_known = False
        if not is_known or beginning.version != pepscope.__version__:
            raise UsageError(f"the run in {self.path} was begun by another version of pepscope; --restart begins anew")
        return beginning

    def _begin(self) -> _Beginning:
        # Files without the run's first file belong to no run.
        self._clear()
        started = time.time_ns()
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(started / 1e9))
        beginning = _Beginning(f"{stamp}-{secrets.token_hex(3)}", pepscope.__version__, started)
        document = {
            "schema": SCHEMA,
            "run_id": beginning.run_id,
            "version": beginning.version,
            "started_unix_ns": beginning.started_unix_ns,
            "plan": self.plan.to_mapping(),
        }
        write_whole(self.path / "run.json", json.dumps(document, indent=1).encode(), durable=True)
        return beginning

    def _read_observations(self) -> dict[str, Observation]:
        found = {}
        for directory in sorted(self._tasks.iterdir()):
            observation = _whole_observation(directory)
            if observation is None:
                shutil.rmtree(directory, ignore_errors=True)
            else:
                found[directory.name] = observation
        return found


def _whole_observation(directory: Path) -> Observation | None:
    """What a task's directory holds; `None` where a failing disk took something from it."""
    try:
        observation = read_observation((directory / "observation.json").read_bytes(), directory.name)
    except (OSError, ArchiveError):
        return None
    for end, name in (("mobile", observation.mobile_capture), ("server", observation.server_capture)):
        if name and not (directory / f"{end}.pcap").is_file():
            return None
    return observation if observation.task.key == directory.name else None


def _sync_file(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
