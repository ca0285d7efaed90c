"""Runs that a server stores for its clients, judged: what a page about many of them shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pepscope.captures.direction import Direction
from pepscope.errors import PepscopeError
from pepscope.results.audits import AuditCell, AuditResult, AuditRun
from pepscope.results.verdicts import Mechanism, Verdict


class UnknownRunError(PepscopeError, ValueError):
    """A document that is no run of the JSON contract `audit-1`."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One archive of a client, with the verdicts on it."""

    client: str
    sha256: str
    #: What the client called the file.
    name: str
    size_bytes: int
    #: Rises with every archive that came, whatever the clock said.
    number: int
    received_unix_s: int
    #: The /24 or /48 that it was uploaded from.
    uploaded_from: str
    #: `None` until it is judged, or where it cannot be.
    run: AuditRun | None = None
    #: Why it cannot be judged, one sentence.
    fault: str = ""

    @property
    def network(self) -> str:
        """The network that was measured, as its client's note `operator` names it, else where the archive came from."""
        notes = {} if self.run is None else self.run.circumstances.get("notes")
        operator = notes.get("operator") if isinstance(notes, Mapping) else None
        return operator if isinstance(operator, str) and operator.strip() else self.uploaded_from


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """All that one reader may see."""

    runs: tuple[StoredRun, ...]

    def clients(self) -> dict[str, tuple[StoredRun, ...]]:
        """Runs by client, the client with the latest one first."""
        return _grouped(self.runs, lambda stored: stored.client)

    def networks(self) -> dict[str, tuple[StoredRun, ...]]:
        """Runs by network, judged or not, the network with the latest one first."""
        return _grouped(self.runs, lambda stored: stored.network)

    @property
    def waiting(self) -> int:
        """How many are not judged yet."""
        return sum(stored.run is None and not stored.fault for stored in self.runs)


def audit_of(runs: Iterable[StoredRun]) -> AuditResult | None:
    """Those that are judged, in order of time, each run once; `None` where none is."""
    judged: dict[str, AuditRun] = {}
    for stored in runs:
        if stored.run is not None:
            judged.setdefault(str(stored.run.circumstances.get("run", stored.sha256)), stored.run)
    ordered = sorted(judged.values(), key=lambda run: run.started_unix_ns)
    return AuditResult(tuple(ordered)) if ordered else None


def run_from_document(document: Mapping[str, Any], source: str) -> AuditRun:
    """A run of the contract `audit-1` as far as matrices and their history need it: without connections and evidence.

    Raises UnknownRunError.
    """
    try:
        return AuditRun(
            source=source,
            started_unix_ns=int(document["started_unix_ns"]),
            duration_s=float(document["duration_s"]),
            server=str(document["server"]),
            plan_digest=str(document["plan_digest"]),
            cells=tuple(map(_cell, document["cells"])),
            circumstances={
                name: document["circumstances"][name]
                for name in ("run", "version", "notes")
                if name in document["circumstances"]
            },
            warnings=tuple(map(str, document["warnings"])),
            tasks_done=int(document["tasks_done"]),
            tasks=int(document["tasks"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UnknownRunError(
            f"a run must be of the contract audit-1, but a field is missing or wrong ({error})"
        ) from None


def _cell(document: Mapping[str, Any]) -> AuditCell:
    mechanism = document["mechanism"]
    return AuditCell(
        application=str(document["application"]),
        direction=Direction[str(document["direction"]).upper()],
        verdict=Verdict(document["verdict"]),
        probability={Verdict(name): float(share) for name, share in document["probability"].items()},
        reason=str(document["reason"]),
        tasks_done=int(document["tasks_done"]),
        tasks=int(document["tasks"]),
        from_bytes=document["from_bytes"],
        mechanism=None if mechanism is None else Mechanism(mechanism),
    )


def _grouped(runs: Sequence[StoredRun], name: Any) -> dict[str, tuple[StoredRun, ...]]:
    found: dict[str, list[StoredRun]] = {}
    for stored in sorted(runs, key=lambda stored: -stored.number):
        found.setdefault(name(stored), []).append(stored)
    return {each: tuple(some) for each, some in found.items()}
