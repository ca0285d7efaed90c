"""Runs of set-ups in virtual time and between real kernels, with captures at both ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.real_or_simulated.set_ups import scenario
from reference_sim.live_path.emulation import LiveSettings, live_path
from reference_sim.simulation import simulate

#: Ends of the real runs: a kernel as it comes, whatever this machine's own settings.
REAL_ENDS = {"host": "linux"}

#: The captures of a run, by vantage point.
Captures = dict[str, Path]


def real_runs(
    lists: Sequence[tuple[list[dict[str, Any]], Path]], progress: Callable[[int, int], object]
) -> list[list[Captures]]:
    """Run lists of set-ups between kernels, each into its directory, unless its captures are there already. Needs root.

    The lists take turns, so that all of them meet the machine as busy as it is.
    """
    turns = sorted(
        ((number + 0.5) / len(set_ups), which, number)
        for which, (set_ups, _) in enumerate(lists)
        for number in range(len(set_ups))
    )
    runs: list[list[Captures]] = [[] for _ in lists]
    for done, (_, which, number) in enumerate(turns):
        set_ups, directory = lists[which]
        runs[which].append(_real_run(set_ups[number], directory / set_ups[number]["name"]))
        progress(done + 1, len(turns))
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


def simulated_runs(
    set_ups: list[dict[str, Any]],
    directory: Path,
    ends: Mapping[str, Any],
    change: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> list[Captures]:
    """Simulate each set-up, after a `change`, with these further fields for the TCP of both ends."""
    runs = []
    for set_up in set_ups:
        run = simulate(scenario(change(set_up), dict(ends)), directory / set_up["name"])
        runs.append(dict(run.captures))
    return runs
