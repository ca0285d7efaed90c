"""Archives made of the corpus: each of its runs stands for one task, with hand-made observations."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pepscope.captures.packets import Direction
from prober.archive.archive_file import Manifest, capture_name, write_archive
from prober.client.transfer import Flow
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.plan import Plan, ServerTable
from prober.protocol.application import Application
from tests.detector.corpus import CORPUS, RUNS

STARTED_UNIX_NS = 1_700_000_000_000_000_000
PLAN = Plan(server=ServerTable(host="server.example"))


def ports(end_points: str) -> tuple[int, int]:
    """Both ports of `address:port > address:port`."""
    client, server = (end.rpartition(":")[2] for end in end_points.split(" > "))
    return int(client), int(server)


def flows(run_id: str, side: str = "mobile") -> tuple[Flow, ...]:
    """The run's connections as the mobile's kernel would name them."""
    shown = [flow[f"{side}_capture"] for flow in RUNS[run_id]["flows"] if flow.get(f"{side}_capture")]
    return tuple(Flow(*ports(end_points)) for end_points in shown)


def observation(
    run_id: str,
    application: Application = Application.HTTP_DATA,
    direction: Direction | None = None,
    *,
    ends: Sequence[str] = ("mobile", "server"),
    repeat: int = 1,
    **measured: Any,
) -> Observation:
    """One task whose captures are those of a run of the corpus."""
    run = RUNS[run_id]
    if direction is None:
        direction = Direction.UP if run["direction"] == "upload" else Direction.DOWN
    task = Task("transfers", repeat, application, direction, {"run": run_id})
    return Observation(
        task=task,
        status=Status.DONE,
        reason="",
        started_unix_ns=STARTED_UNIX_NS + repeat,
        duration_s=1.0,
        measurement=Measurement(flows=flows(run_id), ack_delay_s=run.get("ack_delay_s"), **measured),
        mobile_capture=capture_name(task.key, "mobile") if "mobile" in ends else "",
        server_capture=capture_name(task.key, "server") if "server" in ends else "",
        capture_note="" if "mobile" in ends else "there are no captures at the mobile without root",
    )


def failed(application: Application, direction: Direction, reason: str, status: Status = Status.FAILED) -> Observation:
    """A task that was not measured."""
    task = Task("transfers", 1, application, direction)
    return Observation(task, status, reason, STARTED_UNIX_NS, 0.5)


def archive(
    path: Path,
    observations: Iterable[Observation],
    *,
    plan: Plan = PLAN,
    started_unix_ns: int = STARTED_UNIX_NS,
    complete: bool = True,
    run_id: str = "run-1",
    facts: dict[str, Any] | None = None,
    packages: dict[str, str] | None = None,
) -> Path:
    """Write an archive at `path` with the observations' captures, unpacked from the corpus."""
    observations = tuple(observations)
    manifest = Manifest(
        run_id=run_id,
        plan=plan,
        started_unix_ns=started_unix_ns,
        ended_unix_ns=started_unix_ns + 60_000_000_000,
        complete=complete,
        reason="" if complete else "the server went away",
        packages=packages or {},
    )
    with tempfile.TemporaryDirectory() as directory:
        write_archive(path, manifest, observations, facts or {}, _unpacked(observations, Path(directory)))
    return path


def _unpacked(observations: Iterable[Observation], directory: Path) -> dict[str, Path]:
    captures = {}
    for item in observations:
        for end, name in (("mobile", item.mobile_capture), ("server", item.server_capture)):
            if name:
                files = RUNS[item.task.parameters["run"]]["files"]
                captures[name] = directory / name.replace("/", "-")
                captures[name].write_bytes(gzip.decompress((CORPUS / files[end]["name"]).read_bytes()))
    return captures
