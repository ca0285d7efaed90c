"""Runs of set-ups in virtual time and between real kernels, with captures at both ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.real_or_simulated.set_ups import scenario
from reference_sim.live_path.emulation import LiveSettings, live_path
from reference_sim.simulation import simulate

#: Ends of the real runs: a kernel as it comes, whatever this machine's own settings.
REAL_ENDS = {"host": "linux"}

#: The captures of a run, by vantage point.
Captures = dict[str, Path]


def real_runs(set_ups: list[dict[str, Any]], directory: Path, progress: Callable[[int, int], object]) -> list[Captures]:
    """Run each set-up between kernels, unless its captures are in `directory` already. Needs root."""
    runs = []
    for number, set_up in enumerate(set_ups):
        runs.append(_real_run(set_up, directory / set_up["name"]))
        progress(number + 1, len(set_ups))
    return runs


def _real_run(set_up: dict[str, Any], directory: Path) -> Captures:
    captures = {place: directory / f"{place}.pcap" for place in ("server", "mobile")}
    note = directory / "set-up.json"
    wanted = json.dumps(set_up, sort_keys=True)
    if note.exists() and note.read_text(encoding="utf-8") == wanted:
        return captures
    note.unlink(missing_ok=True)
    with live_path(scenario(set_up, REAL_ENDS), directory, LiveSettings()) as emulation:
        emulation.run_scenario_traffic()
        emulation.result()
    note.write_text(wanted, encoding="utf-8")
    return captures


def simulated_runs(set_ups: list[dict[str, Any]], directory: Path, ends: Mapping[str, Any]) -> list[Captures]:
    """Simulate each set-up with these further fields for the TCP of both ends."""
    runs = []
    for set_up in set_ups:
        run = simulate(scenario(set_up, dict(ends)), directory / set_up["name"])
        runs.append(dict(run.captures))
    return runs
