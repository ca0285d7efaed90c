"""The search: trials by Optuna's tree-structured Parzen estimator, resumed where it was interrupted.

Every trial has the same seeds, so that trials differ by their settings alone. The best few are run again with fresh
seeds and more repeats, and the best of these is scored on seeds that chose nothing, beside the settings of the
reproduction and the leads.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from papers.run_count import RunCount
from papers.search.outcome import Candidate, SearchResult
from papers.search.scoring import held, score
from papers.search.space import OpenParameter, Search, Settings, Value, rounded
from papers.statements.evaluation import Judged, judged
from pepscope.errors import UsageError
from pepscope.extras import needed
from pepscope.whole_file import write_whole

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

#: First seeds of trials, of the choice among the best, and of the final score.
SEARCH_SEED, CHOICE_SEED, FINAL_SEED = 1001, 2001, 3001
#: Trials that are run again before one is chosen.
FINALISTS = 3
#: Random trials, after the starts, before the estimator proposes.
_RANDOM_TRIALS = 10
FILE = "evaluations.jsonl"
#: Of the form of that file.
_FORM = 1


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Statements under some settings; `stage` is trial, choice or final."""

    stage: str
    origin: str
    settings: dict[str, Value]
    score: float
    statements: tuple[Judged, ...]


def evaluate_settings(
    search: Search,
    settings: Settings,
    *,
    repeats: int,
    seed: int,
    directory: Path,
    processes: int | None = None,
    count: RunCount | None = None,
    is_further: bool = False,
) -> tuple[Judged, ...]:
    """Run a search's experiments in `directory` and judge the statements that they measure; `count` counts the runs.

    With `is_further` those of further statements run, too.

    Raises ScenarioError, SimulationError, StatementError, UsageError (another campaign's runs in the way), OSError.
    """
    experiments = list(search.experiments(settings, repeats, seed))
    if is_further:
        experiments += search.further_experiments(settings, repeats, seed)
    results = (count or RunCount(0)).run(experiments, directory, processes)
    return judged(search.statements, search.quantities(settings, results))


def run_search(
    search: Search,
    directory: Path,
    *,
    trials: int,
    processes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> SearchResult:
    """Search for the settings under which most statements hold at once; what `directory` holds is not run again.

    Raises UsageError for a directory that holds another search, and what `evaluate_settings` raises.
    """
    record = _Record(search, directory, processes)
    starts = search.starts()
    total = max(trials, len(starts)) + FINALISTS + len(starts) + 1

    def report() -> None:
        if progress is not None:
            progress(len(record.done), total)

    tried: list[Evaluation] = []
    for origin, settings in starts.items():
        tried.append(record.evaluation("trial", origin, settings, search.repeats[0], SEARCH_SEED))
        report()
    while len(tried) < trials:
        settings = _proposal(search, tried)
        tried.append(record.evaluation("trial", "search", settings, search.repeats[0], SEARCH_SEED))
        report()
    finalists = []
    for one in _best(tried, FINALISTS):
        finalists.append(record.evaluation("choice", one.origin, one.settings, search.repeats[1], CHOICE_SEED))
        report()
    best = _best(finalists, 1)[0]
    candidates = []
    for origin, settings in {**starts, "found": best.settings}.items():
        final = record.evaluation("final", origin, settings, search.repeats[2], FINAL_SEED)
        candidates.append(Candidate(origin, final.settings, final.statements))
        report()
    return SearchResult(search, len(tried), tuple(candidates))


def _best(evaluations: list[Evaluation], count: int) -> list[Evaluation]:
    """Those of the highest score, each settings once."""
    ordered = sorted(evaluations, key=lambda one: (-one.score, -held(one.statements)))
    found: list[Evaluation] = []
    for one in ordered:
        if one.settings not in [other.settings for other in found]:
            found.append(one)
    return found[:count]


def _proposal(search: Search, tried: list[Evaluation]) -> dict[str, Value]:
    """The next settings: the same after the same trials, whether the search was interrupted or not."""
    with needed("search"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions = {parameter.name: _distribution(parameter) for parameter in search.parameters}
    sampler = optuna.samplers.TPESampler(seed=SEARCH_SEED + len(tried), n_startup_trials=_RANDOM_TRIALS)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.add_trials(
        [
            optuna.trial.create_trial(params=dict(one.settings), distributions=distributions, value=one.score)
            for one in tried
        ]
    )
    proposed = study.ask(fixed_distributions=distributions).params
    return {parameter.name: _within(parameter, proposed[parameter.name]) for parameter in search.parameters}


def _distribution(parameter: OpenParameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if parameter.range is None:
        return CategoricalDistribution((parameter.chosen, *parameter.others))
    low, high = parameter.range
    if parameter.is_whole:
        return IntDistribution(int(low), int(high), log=parameter.is_logarithmic)
    return FloatDistribution(low, high, log=parameter.is_logarithmic)


def _within(parameter: OpenParameter, value: Any) -> Value:
    if parameter.range is None or parameter.is_whole:
        admitted: Value = value
        return admitted
    return min(max(rounded(float(value)), parameter.range[0]), parameter.range[1])


class _Record:
    """Evaluations of a search in a file, a line each: what is there is not run again."""

    def __init__(self, search: Search, directory: Path, processes: int | None) -> None:
        self._search, self._processes = search, processes
        self._directory = directory
        self._path = directory / FILE
        directory.mkdir(parents=True, exist_ok=True)
        head = _identity(search)
        if not self._path.is_file():
            write_whole(self._path, json.dumps(head) + "\n")
        lines = _whole_lines(self._path)
        if not lines or lines[0] != head:
            raise UsageError(f"{self._path} holds another search: give another directory")
        self.done = [msgspec.convert(line, Evaluation) for line in lines[1:]]

    def evaluation(self, stage: str, origin: str, settings: Settings, repeats: int, seed: int) -> Evaluation:
        """The evaluation of these settings at this stage, from the file or made now."""
        for one in self.done:
            if (one.stage, one.settings) == (stage, dict(settings)):
                return one
        with tempfile.TemporaryDirectory(dir=self._directory, prefix="runs-") as runs:
            statements = evaluate_settings(
                self._search, settings, repeats=repeats, seed=seed, directory=Path(runs), processes=self._processes
            )
        made = Evaluation(stage, origin, dict(settings), score(statements), statements)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(made) + b"\n")
        self.done.append(made)
        return made


def _identity(search: Search) -> dict[str, Any]:
    """What must be the same for evaluations to belong together."""
    return {
        "form": _FORM,
        "search": search.name,
        "parameters": {one.name: one.in_words() for one in search.parameters},
        "chosen": search.chosen,
        "repeats": list(search.repeats),
        "seeds": [SEARCH_SEED, CHOICE_SEED, FINAL_SEED],
    }


def _whole_lines(path: Path) -> list[Mapping[str, Any]]:
    """Lines of the file; a last line that an interruption cut off is removed from it."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        write_whole(path, whole.decode())
    try:
        return [msgspec.json.decode(line, type=dict[str, Any]) for line in whole.splitlines()]
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} must hold a JSON object a line, got {error}") from error
