"""Run a paper's experiments again, evaluate its statements, write the results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from papers.experiment import Effort, Measurements, Paper
from papers.library import load_paper
from papers.results import Assessment, Reproduction, Table
from papers.run_count import RunCount
from papers.search.sensitivity import Verdicts, runs_of, sensitivity, verdicts_of
from papers.statements.page import statements_text
from pepscope.whole_file import whole_file, write_whole

RESULT_FILE = "reproduction.json"
STATEMENTS_FILE = "statements.md"


def reproduce(
    paper: Paper | str,
    directory: str | Path,
    *,
    effort: Effort = Effort.QUICK,
    has_sensitivity: bool | None = None,
    processes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Reproduction:
    """Run what of a paper's experiments is not there yet, evaluate its statements, and write tables into `directory`.

    Tables go to `directory/tables` as CSV, and as Parquet where pyarrow is installed, the statements with their
    outcomes to `directory/reproduction.json` and `directory/statements.md`. `progress` gets runs done and in all.

    `has_sensitivity` says whether each open parameter is changed alone, too; by default with full effort.

    Raises ScenarioError, SimulationError, UsageError (another campaign's runs in the way), OSError.
    """
    started_s = time.monotonic()
    if isinstance(paper, str):
        paper = load_paper(paper)
    directory = Path(directory)
    experiments = tuple(paper.experiments(effort))
    searches = paper.searches if has_sensitivity or (has_sensitivity is None and effort is Effort.FULL) else ()
    total = sum(experiment.campaign.runs for experiment in experiments)
    total += sum(runs_of(search) for search in searches)
    count = RunCount(total, progress)
    runs = directory / f"runs-{effort}"
    assessment = paper.assess(Measurements(effort, count.run(experiments, runs, processes)))
    for search in searches:
        verdicts = sensitivity(search, directory / "runs-sensitivity" / search.name, processes=processes, count=count)
        assessment = _with_verdicts(assessment, verdicts)
    wall_s = time.monotonic() - started_s
    result = Reproduction(paper.name, paper.title, paper.source, str(effort), assessment, total, count.made, wall_s)
    _write(result, directory)
    return result


def _with_verdicts(assessment: Assessment, verdicts: Verdicts) -> Assessment:
    """The assessment with the verdicts that its statements have under other values of open parameters."""
    statements = [replace(one, elsewhere=verdicts_of(one, verdicts) or one.elsewhere) for one in assessment.statements]
    return replace(assessment, statements=tuple(statements))


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
        with whole_file(directory / f"{table.name}.parquet") as stream:
            table.frame.to_parquet(stream, index=False)
