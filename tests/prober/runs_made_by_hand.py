"""Plans, observations and archives without any network, for tests of what is kept of a run."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from prober.archive.archive_file import Manifest, capture_name, write_archive
from prober.client.capabilities import Capability
from prober.client.transfer import Flow
from prober.measurement.task import Measurement, Observation, Status, Task
from prober.plan import Plan
from prober.protocol.application import Application

#: A pcap file header (nanoseconds, Ethernet) and nothing more.
EMPTY_CAPTURE = bytes.fromhex("4d3cb2a1 0200 0400 00000000 00000000 00000400 01000000".replace(" ", ""))


def plan(**tables: Any) -> Plan:
    return Plan.from_mapping({"server": {"host": "192.0.2.1"}, "experiments": {"transfers": {}}, **tables})


def task(application: Application = Application.FTP, repeat: int = 1, **fields: Any) -> Task:
    return Task("transfers", repeat, application, Direction.DOWN, {"size_bytes": 1000}, **fields)


def observation(of: Task | None = None, *, captured: bool = False, **fields: Any) -> Observation:
    of = of or task()
    values: dict[str, Any] = {
        "status": Status.DONE,
        "reason": "",
        "started_unix_ns": 1_700_000_000_000_000_000,
        "duration_s": 1.5,
        "measurement": Measurement({"total_s": 1.25}, (Flow(40_000, 21), Flow(40_001, 2021, "data")), 0.5),
    }
    if captured:
        values["mobile_capture"] = capture_name(of.key, "mobile")
    return Observation(of, **{**values, **fields})


def archive(path: Path, *observations: Observation) -> Path:
    capture = path.with_suffix(".capture")
    capture.write_bytes(EMPTY_CAPTURE)
    names = [name for item in observations for name in (item.mobile_capture, item.server_capture) if name]
    manifest = Manifest("20260101T000000Z-abcdef", plan(), 1, 2, complete=True)
    write_archive(path, manifest, observations, {"schema": 1, "notes": {}}, dict.fromkeys(names, capture))
    return path


def whole_run(path: Path) -> Path:
    """Three observations of all kinds, one with a capture."""
    wanting = task(Application.TCP, requires=frozenset({Capability.SERVER_HOLD}))
    return archive(
        path,
        observation(captured=True),
        observation(task(repeat=2), status=Status.FAILED, reason="the path went away", measurement=Measurement()),
        observation(wanting, status=Status.IMPOSSIBLE, reason="no netfilter", measurement=Measurement()),
    )


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None], *, fresh_digests: bool = True) -> Path:
    """The archive with other members; digests are made to fit, so that what is refused is refused for itself."""
    import hashlib

    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    if fresh_digests and "manifest.json" in members:
        manifest = json.loads(members["manifest.json"])
        if isinstance(manifest, dict) and "digests" in manifest:
            others = {name: data for name, data in members.items() if name != "manifest.json"}
            manifest["digests"] = {name: hashlib.sha256(data).hexdigest() for name, data in others.items()}
            members["manifest.json"] = json.dumps(manifest).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            new.writestr(name, data)
    path.write_bytes(buffer.getvalue())
    return path


def captured_ports(path: Path) -> set[int]:
    """The clients' ports of all connections in a capture."""
    return {int(item.client.rpartition(":")[2]) for item in open_capture(str(path)).connections}
