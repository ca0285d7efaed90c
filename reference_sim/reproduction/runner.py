"""Running a paper again and writing down what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from reference_sim.campaign import run_campaign
from reference_sim.reproduction.experiment import Effort, Measurements, Paper
from reference_sim.reproduction.library import load_paper
from reference_sim.reproduction.results import Reproduction, Table
from reference_sim.simulation import write_whole

RESULT_FILE = "reproduction.json"


def reproduce(
    paper: Paper | str,
    directory: str | Path,
    *,
    effort: Effort = Effort.QUICK,
    processes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Reproduction:
    """Run what of a paper's experiments is not there yet, judge its statements, and write tables into `directory`.

    Tables go to `directory/tables` as CSV, and as Parquet where pyarrow is installed, the statements with their
    verdicts to `directory/reproduction.json`. `progress` gets runs done and in all.

    Raises ScenarioError, SimulationError, UsageError (another campaign's runs in the way), OSError.
    """
    started_s = time.monotonic()
    if isinstance(paper, str):
        paper = load_paper(paper)
    directory = Path(directory)
    experiments = tuple(paper.experiments(effort))
    total = sum(experiment.campaign.runs for experiment in experiments)
    before = 0
    results = {}
    ran: list[int] = []
    for experiment in experiments:

        def tell(done: int, _runs: int, before: int = before) -> None:
            ran.append(done)
            if progress is not None:
                progress(before + done, total)

        results[experiment.name] = run_campaign(
            experiment.campaign,
            directory / f"runs-{effort}" / experiment.name,
            processes=processes,
            progress=tell,
            measure=experiment.measure,
        )
        before += experiment.campaign.runs
    story = paper.assess(Measurements(effort, results))
    wall_s = time.monotonic() - started_s
    result = Reproduction(paper.name, paper.title, paper.source, str(effort), story, total, len(ran), wall_s)
    _write(result, directory)
    return result


def _write(result: Reproduction, directory: Path) -> None:
    tables = directory / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    for table in result.story.tables:
        _write_table(table, tables)
    write_whole(directory / RESULT_FILE, json.dumps(result.to_dict(), indent=1) + "\n")


def _write_table(table: Table, directory: Path) -> None:
    write_whole(directory / f"{table.name}.csv", table.frame.to_csv(index=False))
    if find_spec("pyarrow") is not None:
        table.frame.to_parquet(directory / f"{table.name}.parquet", index=False)
