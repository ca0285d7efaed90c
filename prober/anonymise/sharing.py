"""An archive to one that can be shared, and proof that its verdicts are the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from pepscope.captures.direction import Direction
from pepscope.results.audits import AuditRun
from pepscope.results.verdicts import Verdict
from prober.anonymise.capture_rewriting import CaptureRewriter, RewritingCounts
from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.http_heads import HeadHider
from prober.anonymise.keys import SecretKey
from prober.anonymise.texts import TextHider
from prober.archive.archive_file import Archive, Manifest, capture_name, open_archive, write_archive
from prober.audit.judging import judge_run
from prober.errors import ArchiveError
from prober.measurement.task import Observation

#: Keys tried before it is given up: methods look at few places of a stream, chosen by its bytes, so that another key
#: may find what one key hid.
KEYS_TRIED = 4


@dataclass(frozen=True, slots=True)
class Shared:
    """What was written."""

    path: Path
    counts: RewritingCounts
    cells: int


def anonymise_archive(
    source: str | Path,
    target: str | Path,
    *,
    secret: bytes | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Shared:
    """Write the archive `source`, anonymised, to `target`.

    Both are judged; where a verdict would change, another key is tried, unless `secret` gives one that is to be used.
    Nothing is written where no key keeps the verdicts. Raises ArchiveError, OSError.
    """
    target = Path(target)
    with open_archive(source) as archive:
        before = _verdicts(judge_run(archive, str(source), progress=progress))
        changed: list[str] = []
        for _ in range(1 if secret is not None else KEYS_TRIED):
            partial = target.with_name(f".{target.name}.candidate")
            try:
                counts = _rewrite(archive, partial, SecretKey(secret))
                with open_archive(partial) as hidden:
                    after = _verdicts(judge_run(hidden, str(target), progress=progress))
                changed = _differences(before, after)
                if not changed:
                    partial.replace(target)
                    return Shared(target, counts, len(before))
            finally:
                partial.unlink(missing_ok=True)
    raise ArchiveError(
        f"{source} cannot be anonymised so that it gives the same verdicts: {'; '.join(changed)}; nothing was written"
    )


def _rewrite(archive: Archive, target: Path, key: SecretKey) -> RewritingCounts:
    addresses, heads = CryptoPan(key.derived("addresses")), HeadHider(key)
    texts = TextHider(key, addresses, heads, [archive.manifest.plan.server.host])
    rewriter = CaptureRewriter(key, addresses, heads)
    with tempfile.TemporaryDirectory(prefix="pepscope-") as directory:
        observations: list[Observation] = []
        captures: dict[str, Path] = {}
        for observation in archive.observations:
            hidden = _observation(observation, texts)
            observations.append(hidden)
            for before, after in (
                (observation.mobile_capture, hidden.mobile_capture),
                (observation.server_capture, hidden.server_capture),
            ):
                if before:
                    captures[after] = Path(directory) / f"{len(captures)}.pcap"
                    rewriter.rewrite(archive.captures[before], captures[after])
        metadata = texts.json(dict(archive.metadata))
        write_archive(target, _manifest(archive.manifest, key, texts), observations, metadata, captures)
    return rewriter.counts


def _observation(observation: Observation, texts: TextHider) -> Observation:
    task = replace(observation.task, parameters=texts.json(dict(observation.task.parameters)))
    return replace(
        observation,
        task=task,
        reason=texts.text(observation.reason),
        capture_note=texts.text(observation.capture_note),
        measurement=replace(observation.measurement, values=texts.json(dict(observation.measurement.values))),
        mobile_capture=capture_name(task.key, "mobile") if observation.mobile_capture else "",
        server_capture=capture_name(task.key, "server") if observation.server_capture else "",
    )


def _manifest(manifest: Manifest, key: SecretKey, texts: TextHider) -> Manifest:
    plan = manifest.plan
    unread = {name: replace(table, settings=texts.json(dict(table.settings))) for name, table in plan.unread.items()}
    server = msgspec.structs.replace(plan.server, host=texts.host(plan.server.host), key="")
    return replace(
        manifest,
        run_id=f"anonymous-{key.hashed('run', manifest.run_id.encode(), 8).hex()}",
        plan=replace(plan, server=server, unread=unread),
        reason=texts.text(manifest.reason),
    )


def _verdicts(run: AuditRun) -> dict[tuple[str, Direction], Verdict]:
    return {(cell.application, cell.direction): cell.verdict for cell in run.cells}


def _differences(
    before: dict[tuple[str, Direction], Verdict], after: dict[tuple[str, Direction], Verdict]
) -> list[str]:
    return [
        f"{application} {direction.name.lower()} would become {after.get((application, direction), 'nothing')} "
        f"instead of {kind}"
        for (application, direction), kind in before.items()
        if after.get((application, direction)) is not kind
    ]
