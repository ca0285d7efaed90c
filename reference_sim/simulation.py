"""Run a scenario in virtual time and write its captures, truth and series."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pepscope import _core
from pepscope.errors import PepscopeError, SimulationError, UsageError
from pepscope.extras import needed
from pepscope.whole_file import whole_file, whole_files, write_whole
from reference_sim.library import load_scenario
from reference_sim.plug_ins import PlugIns
from reference_sim.run import Quantity, Run, Series
from reference_sim.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

TRUTH_FILE = "truth.json"
SERIES_FILE = "series.parquet"
ARRIVALS_FILE = "arrivals.parquet"


def simulate(
    scenario: Scenario | str | Path,
    directory: str | Path | None = None,
    *,
    seed: int | None = None,
    captures: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Run:
    """Run a scenario, given as such, by its name or as a TOML file.

    With a `directory`, captures (unless `captures` is false), `truth.json` and, where the scenario records them,
    `series.parquet` and `arrivals.parquet` are written there when the run has ended; `truth.json` comes last, so a
    directory without one holds no finished run. Without a directory nothing is written. `seed` replaces the scenario's
    own. `progress` gets simulated milliseconds, done and in all.

    Raises ScenarioError for a scenario that cannot be run, SimulationError for a run that failed, OSError.
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    if seed is not None:
        scenario = scenario.with_values({"seed": seed})
    if directory is None:
        return _run(scenario, None, progress)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with whole_files(directory) as place:
        try:
            run = _run(scenario, place if captures else None, progress)
        except SimulationError as error:
            raise SimulationError(str(error).replace(str(place), str(directory))) from error
        _write_tables(run, place)
        (directory / TRUTH_FILE).unlink(missing_ok=True)
    write_whole(directory / TRUTH_FILE, json.dumps(run.truth, indent=1, sort_keys=True) + "\n")
    return replace(run, captures={name: directory / path.name for name, path in run.captures.items()})


def _run(scenario: Scenario, directory: Path | None, progress: Callable[[int, int], object] | None) -> Run:
    total_ms = round(scenario.duration_s * 1e3)

    def report(now_s: float, _events: int) -> None:
        if progress is not None:
            progress(round(now_s * 1e3), total_ms)

    target = None if directory is None else str(directory)
    plug_ins = PlugIns()
    try:
        simulated = _core.simulate(scenario.to_json(), target, report, plug_ins)
    except PepscopeError:
        raise
    except Exception as error:
        if not plug_ins.wanted:
            raise
        names = ", ".join(dict.fromkeys(plug_ins.wanted))
        raise SimulationError(f"a plug-in ({names}) raised {type(error).__name__}: {error}") from error
    columns = simulated.series_columns()
    return Run(
        scenario=scenario,
        ending=simulated.ending,
        simulated_s=simulated.simulated_s,
        wall_s=simulated.wall_s,
        events=simulated.events,
        truth=json.loads(simulated.truth_json),
        captures={name: Path(path) for name, path in simulated.captures},
        series=Series(simulated.series_times(), tuple(Quantity(*column) for column in columns)),
        arrivals=simulated.arrivals(),
    )


def _write_tables(run: Run, directory: Path) -> None:
    if run.series.quantities:
        write_parquet(run.series.to_frame(), directory / SERIES_FILE)
    if len(run.arrivals["flow"]):
        with needed("simulate"):
            import pandas as pd

        write_parquet(pd.DataFrame(dict(run.arrivals)), directory / ARRIVALS_FILE)


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, as a `whole_file`. Raises UsageError where pyarrow is missing, OSError."""
    try:
        with whole_file(path) as stream:
            frame.to_parquet(stream, index=False)
    except ImportError:
        raise UsageError("series as Parquet need the package pyarrow: pip install 'pepscope[parquet]'") from None
