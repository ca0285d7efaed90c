"""What Wei et al.'s experiments say of each published statement."""

from __future__ import annotations

from reference_sim.reproduction.experiment import Measurements
from reference_sim.reproduction.results import Story
from reference_sim.reproduction.wei.characteristics import SCENARIOS, characteristics
from reference_sim.reproduction.wei.charts import charts
from reference_sim.reproduction.wei.choices import choices
from reference_sim.reproduction.wei.statements import statements
from reference_sim.reproduction.wei.tables import tables


def assess(measurements: Measurements) -> Story:
    """Statements with verdicts, tables, charts and choices."""
    drawn = {kind: characteristics(kind) for kind in SCENARIOS}
    return Story(
        statements(measurements, drawn), tables(measurements), charts(measurements, drawn), choices(measurements)
    )
