"""Archives to one audit: each run judged, in order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pepscope.errors import UsageError
from pepscope.results.audits import AuditResult, AuditRun
from prober.archive.archive_file import SUFFIX, is_archive, open_archive
from prober.audit.judging import judge_run


def judge_archives(
    paths: Sequence[str], *, series: bool = False, progress: Callable[[int, int], object] | None = None
) -> AuditResult:
    """Judge archives, and all archives in directories; a run that is given twice counts once.

    With `series` the latest run's connections carry what a page draws. Raises ArchiveError, OSError, and UsageError for
    what is no archive and for directories that hold none.
    """
    runs: dict[str, AuditRun] = {}
    files = archive_files(paths)
    alone = len(files) == 1
    for place, path in enumerate(files):
        with open_archive(path) as archive:
            name = archive.manifest.run_id
            if name not in runs:
                reported = _share(progress, place, files)
                runs[name] = judge_run(archive, str(path), series=series and alone, progress=reported)
    ordered = in_order(runs.values())
    if series and not alone:
        with open_archive(ordered[-1].source) as archive:
            ordered[-1] = judge_run(archive, ordered[-1].source, series=True)
    return AuditResult(with_warnings(ordered))


def archive_files(paths: Iterable[str]) -> list[Path]:
    """Archives as files; of a directory all archives in it. Raises UsageError."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(path.glob(f"*{SUFFIX}"))
            if not inside:
                raise UsageError(f"{path} holds no archive of a run (*{SUFFIX})")
            found += inside
        elif not path.exists():
            raise UsageError(f"{path} does not exist")
        elif is_archive(path):
            found.append(path)
        else:
            raise UsageError(f"{path} must be an archive of a run: give archives only, or a single plan")
    return found


def in_order(runs: Iterable[AuditRun]) -> list[AuditRun]:
    """Runs in order of time."""
    return sorted(runs, key=lambda run: (run.started_unix_ns, run.source))


def with_warnings(runs: Sequence[AuditRun]) -> tuple[AuditRun, ...]:
    """The runs; the last one warns where others are of another server, so that changes may be the servers'."""
    servers = dict.fromkeys(run.server for run in runs)
    if len(servers) < 2:
        return tuple(runs)
    text = f"The runs are to different servers ({', '.join(servers)}), so what changed may not be the network."
    return (*runs[:-1], replace(runs[-1], warnings=(*runs[-1].warnings, text)))


def _share(
    progress: Callable[[int, int], object] | None, place: int, files: Sequence[Path]
) -> Callable[[int, int], object] | None:
    if progress is None:
        return None

    def tell(done: int, total: int) -> object:
        # In thousandths of all archives, whatever their sizes.
        return progress(1000 * place + 1000 * done // max(total, 1), 1000 * len(files))

    return tell
