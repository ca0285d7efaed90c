"""Many connections of many kinds in one capture at either end: half of them split, as the simulator makes them.

The runs are those of the campaign `detector-validation`: regular ones with boxes that rewrite, relays, stores, window
adaptation, over wires and cells, with losses, of very different length. Each gets a client address of its own and
starts a little later than the one before. The server's capture has a clock that drifts and is set once, the mobile's
capture lacks some packets.
"""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.metamorphic.clocks import drifting, stepping
from benchmarks.metamorphic.losses import lost
from benchmarks.metamorphic.pairs import sources
from benchmarks.metamorphic.records import Records
from benchmarks.metamorphic.simulated import make_simulated
from benchmarks.metamorphic.writing import write

if TYPE_CHECKING:
    from pathlib import Path

MIXED_CONNECTIONS = 300
START_INTERVAL_NS = 200_000_000
SERVER_DRIFT_PPM = 30.0
SERVER_STEP_S = 0.6
MOBILE_LOST_SHARE = 0.01

_FIRST_SEED = 5_000_000
_FIRST_ADDRESS = (10 << 24) + 1
_SOURCE, _DESTINATION = 12, 16


def make_mixed(directory: Path, connections: int = MIXED_CONNECTIONS) -> tuple[Path, Path]:
    """Write `mixed.server.pcap` and `mixed.mobile.pcap`; the simulated runs stay in `mixed/` with their truth."""
    runs = directory / "mixed"
    make_simulated(runs, connections, os.cpu_count() or 1, _FIRST_SEED)
    parts: dict[str, list[Records]] = {"server": [], "mobile": []}
    for number, source in enumerate(sources([runs])):
        for side, records in source.read().records.items():
            parts[side].append(_placed(records, number))
    server = stepping(drifting(_merged(parts["server"]), SERVER_DRIFT_PPM), [(0.5, SERVER_STEP_S)])
    mobile = lost(_merged(parts["mobile"]), MOBILE_LOST_SHARE, np.random.default_rng(_FIRST_SEED))
    paths = directory / "mixed.server.pcap", directory / "mixed.mobile.pcap"
    for path, records in zip(paths, (server, mobile), strict=True):
        write(path, records, "raw")
    return paths


def _placed(records: Records, number: int) -> Records:
    """One run with its own start and, for IPv4, its own client address."""
    address, is_4 = _FIRST_ADDRESS + number, records.version == 4
    placed = records.put(_SOURCE, 4, address, records.is_up & is_4).put(_DESTINATION, 4, address, ~records.is_up & is_4)
    return replace(placed, time_ns=records.time_ns + number * START_INTERVAL_NS)


def _merged(parts: list[Records]) -> Records:
    """All records in the order of their times."""
    every = Records(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Records)))
    return every.take(np.argsort(every.time_ns, kind="stable"))
