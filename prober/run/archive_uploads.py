"""Archives to the server: what `probe upload` and the option `--upload` do, for both clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pepscope.errors import PepscopeError, UsageError
from pepscope.sizes import format_bytes
from prober.archive.archive_file import SUFFIX, is_archive
from prober.client.archive_upload import Uploaded, upload_archive
from prober.client.control_client import ControlClient
from prober.plan import Plan
from prober.protocol.json_documents import Json
from prober.run.server_address import connect, plan_key, reach

SCHEMA = "pepscope-probe-upload-1"

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class UploadOutcome:
    """One archive, uploaded or not."""

    archive: Path
    uploaded: Uploaded | None
    #: Why it is not at the server, one sentence; empty where it is.
    reason: str = ""

    def to_json(self) -> dict[str, Json]:
        """An entry of the contract `pepscope-probe-upload-1`."""
        done = self.uploaded
        return {
            "archive": str(self.archive),
            "uploaded": done is not None,
            "sha256": None if done is None else done.sha256,
            "size_bytes": None if done is None else done.size_bytes,
            "found_bytes": None if done is None else done.found_bytes,
            "reason": self.reason,
        }

    def sentence(self) -> str:
        """For people."""
        if self.uploaded is None:
            return f"{self.archive.name} was not uploaded: {self.reason}"
        if self.uploaded.found_bytes == self.uploaded.size_bytes:
            return f"{self.archive.name} is at the server already ({format_bytes(self.uploaded.size_bytes)})"
        found = self.uploaded.found_bytes
        rest = f", {format_bytes(found)} of it from an earlier upload" if found else ""
        return f"{self.archive.name} is at the server ({format_bytes(self.uploaded.size_bytes)}{rest})"


def archives_to_upload(paths: Sequence[str | Path]) -> list[Path]:
    """Archives as files, and all archives in directories. Raises UsageError for what is neither."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"{path} holds no archive of a run (*{SUFFIX})")
        for each in inside:
            if not each.exists():
                raise UsageError(f"{each} does not exist")
            if not is_archive(each):
                raise UsageError(f"{each} must be an archive of a run")
        found += inside
    return found


def upload_all(plan: Plan, archives: Sequence[Path], progress: Progress | None = None) -> Iterator[UploadOutcome]:
    """Upload archives to the plan's server, one after the other, the later ones too where one is refused.

    Raises PlanError, UnreachableError where the server cannot be reached at all.
    """
    plan_key(plan)
    address = reach(plan.server.host, plan.server.control_port)
    with connect(plan, address) as control:
        for place, path in enumerate(archives):
            yield _uploaded(control, path, plan.limits.patience_s, _share(progress, place, len(archives)))


def upload_after_run(plan: Plan, archive: Path, progress: Progress | None = None) -> UploadOutcome:
    """Upload the archive of a run that was just made; a server that is gone is an outcome, not an error."""
    try:
        (outcome,) = upload_all(plan, [archive], progress)
    except PepscopeError as error:
        return UploadOutcome(archive, None, str(error))
    return outcome


def outcomes_document(outcomes: Sequence[UploadOutcome]) -> dict[str, Json]:
    """The contract `pepscope-probe-upload-1`."""
    return {"schema": SCHEMA, "archives": [outcome.to_json() for outcome in outcomes]}


def _uploaded(control: ControlClient, path: Path, patience_s: float, progress: Progress | None) -> UploadOutcome:
    try:
        return UploadOutcome(path, upload_archive(control, path, patience_s, progress))
    except PepscopeError as error:
        return UploadOutcome(path, None, str(error))
    except OSError as error:
        return UploadOutcome(path, None, f"it cannot be read: {error.strerror}")


def _share(progress: Progress | None, place: int, count: int) -> Progress | None:
    """In thousandths of all archives."""
    if progress is None:
        return None
    return lambda done, total: progress(1000 * place + 1000 * done // max(1, total), 1000 * count)
