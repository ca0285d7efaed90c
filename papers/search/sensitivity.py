"""Sensitivity of each verdict to each open parameter: one changed at a time, the statements judged again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from papers.results import OtherVerdict, Statement
from papers.run_count import RunCount
from papers.search.searching import FINAL_SEED, evaluate_settings
from papers.search.space import ONE_SETTING, Search
from papers.statements.evaluation import Judged

#: Verdicts of a statement under other values, by where it is made and its words.
Verdicts = Mapping[tuple[str, str], tuple[OtherVerdict, ...]]


def runs_of(search: Search) -> int:
    """Runs that the sensitivity of one search takes."""
    repeats = search.sensitivity_repeats
    every = [search.chosen, *(settings for _, _, settings in search.one_at_a_time())]
    make = (search.experiments, search.further_experiments)
    return sum(one.campaign.runs for settings in every for some in make for one in some(settings, repeats, FINAL_SEED))


def sensitivity(
    search: Search,
    directory: Path,
    *,
    processes: int | None = None,
    count: RunCount | None = None,
) -> Verdicts:
    """Verdicts with the values of the reproduction, which come first, and with each other value of one parameter.

    What `directory` holds already is not run again; `count` counts the runs. Raises what `evaluate_settings`
    raises.
    """

    def judged(place: str, settings: Mapping[str, str | int | float]) -> Sequence[Judged]:
        return evaluate_settings(
            search,
            settings,
            repeats=search.sensitivity_repeats,
            seed=FINAL_SEED,
            directory=directory / place,
            processes=processes,
            count=count,
            is_further=True,
        )

    found: dict[tuple[str, str], list[OtherVerdict]] = {}
    for one in judged("as-chosen", search.chosen):
        found[one.key] = [OtherVerdict("", "", one.outcome, one.comparisons)]
    for number, (parameter, value, settings) in enumerate(search.one_at_a_time()):
        for one in judged(f"change-{number:02d}", settings):
            verdict = OtherVerdict(parameter.name, f"{value}", one.outcome, one.comparisons)
            found.setdefault(one.key, []).append(verdict)
    return {key: tuple(verdicts) for key, verdicts in found.items()}


def verdicts_of(statement: Statement, verdicts: Verdicts) -> tuple[OtherVerdict, ...]:
    """Those of a statement; a search that has one setting where the paper's text allows several calls its place so."""
    exact = verdicts.get((statement.where, statement.published))
    if exact is not None:
        return exact
    for (where, published), others in verdicts.items():
        place, _, rest = where.partition(", ")
        if rest == ONE_SETTING and published == statement.published and statement.where.startswith(f"{place}, "):
            return others
    return ()
