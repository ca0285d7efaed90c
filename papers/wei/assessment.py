"""Wei et al.'s statements, tables, figures and assumptions, from the measurements."""

from __future__ import annotations

from pathlib import Path

from papers.experiment import Measurements
from papers.results import Assessment
from papers.statements.evaluation import evaluate
from papers.wei.assumptions import assumptions
from papers.wei.characteristics import SCENARIOS, characteristics
from papers.wei.charts import charts
from papers.wei.quantities import quantities
from papers.wei.tables import tables

STATEMENTS = Path(__file__).with_name("statements.toml")


def assess(measurements: Measurements) -> Assessment:
    """Statements with their outcomes, tables, charts and assumptions."""
    drawn = {kind: characteristics(kind) for kind in SCENARIOS}
    choices = assumptions(measurements)
    return Assessment(
        evaluate(STATEMENTS, quantities(measurements, drawn), choices),
        tables(measurements),
        charts(measurements, drawn),
        choices,
    )
