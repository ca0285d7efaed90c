"""Hu's statements, tables, figures and assumptions, from the measurements."""

from __future__ import annotations

from pathlib import Path

from papers.experiment import Measurements
from papers.hu.assumptions import assumptions
from papers.hu.charts import charts
from papers.hu.quantities import quantities
from papers.hu.tables import tables
from papers.results import Assessment
from papers.statements.evaluation import evaluate

STATEMENTS = Path(__file__).with_name("statements.toml")


def assess(measurements: Measurements) -> Assessment:
    """Statements with their outcomes, tables, charts and assumptions."""
    choices = assumptions(measurements)
    statements = evaluate(STATEMENTS, quantities(measurements), choices)
    return Assessment(statements, tables(measurements), charts(measurements), choices)
