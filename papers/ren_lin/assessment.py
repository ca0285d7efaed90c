"""Ren and Lin's statements, tables, figures and assumptions, from the measurements."""

from __future__ import annotations

from pathlib import Path

from papers.experiment import Effort, Measurements
from papers.ren_lin import adaptations, model_rows, over_time, scheme_rows, stability, starts, variation
from papers.ren_lin import experiments as runs_of
from papers.ren_lin.assumptions import assumptions
from papers.results import Assessment
from papers.statements.evaluation import evaluate, joined
from papers.statements.grouping import rows_of

STATEMENTS = Path(__file__).with_name("statements.toml")


def assess(measurements: Measurements) -> Assessment:
    """Statements with their outcomes, tables, charts and assumptions."""
    profiles = rows_of(measurements[runs_of.PROFILES].runs)
    ends = rows_of(measurements[runs_of.CELL].runs)
    adapted = rows_of(measurements[runs_of.CELL_ADAPTED].runs)
    buffer = rows_of(measurements[runs_of.CELL_BUFFER].runs)
    periods = rows_of(measurements[runs_of.PERIODS].runs)
    link = rows_of(measurements[runs_of.LINK_CHOICES].runs)
    laws = rows_of(measurements[runs_of.STABILITY].runs)
    is_reduced = measurements.effort is Effort.REDUCED
    loads = [] if is_reduced else rows_of(measurements[runs_of.PROFILE_LOADS].runs)
    driven = scheme_rows.driven_rows(profiles)
    cell = scheme_rows.cell_rows(ends, adapted)
    larger = scheme_rows.cell_rows(buffer, adapted, runs_of.LARGER_BUFFER)
    seen = over_time.run_once()
    quantities = joined(
        model_rows.quantities(profiles),
        over_time.quantities(seen),
        scheme_rows.quantities(driven, cell, larger),
        scheme_rows.jitter(profiles),
        variation.quantities(periods, link),
        stability.quantities(laws),
        starts.quantities(rows_of(measurements[runs_of.STARTS].runs)),
    )
    choices = assumptions(link, adapted, profiles, loads)
    return Assessment(
        statements=evaluate(STATEMENTS, quantities, choices),
        tables=(
            model_rows.profile_table(profiles),
            scheme_rows.scheme_table(driven, cell),
            adaptations.cell_table(adapted, buffer),
            adaptations.driven_table(profiles),
            variation.choices_table(link),
            stability.table(laws),
        ),
        charts=(*over_time.charts(seen), *variation.charts(periods), *over_time.law_charts()),
        assumptions=choices,
    )
