"""What the campaigns say of the paper's statements."""

from __future__ import annotations

from reference_sim.reproduction.experiment import Effort, Measurements
from reference_sim.reproduction.grouping import rows_of
from reference_sim.reproduction.ren_lin import adaptations, model_rows, over_time, scheme_rows, stability, variation
from reference_sim.reproduction.ren_lin import experiments as runs_of
from reference_sim.reproduction.ren_lin.choices import choices
from reference_sim.reproduction.results import Story


def assess(measurements: Measurements) -> Story:
    """Verdicts, tables and figures."""
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
    return Story(
        statements=(
            model_rows.profile_statement(profiles),
            *model_rows.model_statements(profiles),
            *over_time.statements(seen),
            *scheme_rows.row_statements(driven, cell),
            *scheme_rows.conclusions(driven, cell, larger),
            *variation.statements(periods, link),
            *stability.statements(laws),
        ),
        tables=(
            model_rows.profile_table(profiles),
            scheme_rows.scheme_table(driven, cell),
            adaptations.cell_table(adapted, buffer),
            adaptations.driven_table(profiles),
            variation.choices_table(link),
            stability.table(laws),
        ),
        charts=(*over_time.charts(seen), *variation.charts(periods), *over_time.law_charts()),
        choices=choices(link, adapted, profiles, loads),
    )
