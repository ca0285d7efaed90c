"""What Hu's experiments say of each published statement."""

from __future__ import annotations

from reference_sim.reproduction.experiment import Measurements
from reference_sim.reproduction.hu.charts import charts
from reference_sim.reproduction.hu.choices import choices
from reference_sim.reproduction.hu.statements import statements
from reference_sim.reproduction.hu.tables import tables
from reference_sim.reproduction.results import Story


def assess(measurements: Measurements) -> Story:
    """Statements with verdicts, tables, charts and choices."""
    return Story(statements(measurements), tables(measurements), charts(measurements), choices(measurements))
