"""Run a paper's experiments again, evaluate its statements, write the results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from papers.experiment import Effort, Measurements, Paper
from papers.library import load_paper
from papers.results import Reproduction, Table
from papers.statement_page import statements_text
from pepscope.whole_file import write_whole
from reference_sim.campaign import run_campaign

RESULT_FILE = "reproduction.json"
STATEMENTS_FILE = "statements.md"


def reproduce(
    paper: Paper | str,
    directory: str | Path,
    *,
    effort: Effort = Effort.QUICK,
    processes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Reproduction:
    """Run what of a paper's experiments is not there yet, evaluate its statements, and write tables into `directory`.

    Tables go to `directory/tables` as CSV, and as Parquet where pyarrow is installed, the statements with their
    outcomes to `directory/reproduction.json` and `directory/statements.md`. `progress` gets runs done and in all.

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

        def report(done: int, _runs: int, before: int = before) -> None:
            ran.append(done)
            if progress is not None:
                progress(before + done, total)

        results[experiment.name] = run_campaign(
            experiment.campaign,
            directory / f"runs-{effort}" / experiment.name,
            processes=processes,
            progress=report,
            measure=experiment.measure,
        )
        before += experiment.campaign.runs
    assessment = paper.assess(Measurements(effort, results))
    wall_s = time.monotonic() - started_s
    result = Reproduction(paper.name, paper.title, paper.source, str(effort), assessment, total, len(ran), wall_s)
    _write(result, directory)
    return result


def _write(result: Reproduction, directory: Path) -> None:
    tables = directory / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    for table in result.assessment.tables:
        _write_table(table, tables)
    write_whole(directory / STATEMENTS_FILE, statements_text(result))
    write_whole(directory / RESULT_FILE, json.dumps(result.to_dict(), indent=1) + "\n")


def _write_table(table: Table, directory: Path) -> None:
    write_whole(directory / f"{table.name}.csv", table.frame.to_csv(index=False))
    if find_spec("pyarrow") is not None:
        table.frame.to_parquet(directory / f"{table.name}.parquet", index=False)
