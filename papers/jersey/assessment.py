"""Statements on TCP-Jersey, tables, figures and assumptions, from the measurements."""

from __future__ import annotations

from pathlib import Path

from papers.experiment import Effort, Measurements
from papers.jersey import experiments as runs_of
from papers.jersey import figures
from papers.jersey.assumptions import assumptions
from papers.jersey.estimates import estimate_quantities
from papers.jersey.quantities import quantities_of
from papers.results import Assessment
from papers.statements.evaluation import evaluate, joined
from papers.statements.grouping import rows_of

STATEMENTS = Path(__file__).with_name("statements.toml")


def assess(measurements: Measurements) -> Assessment:
    """Statements with their outcomes, tables, charts and assumptions."""
    goodput = rows_of(measurements[runs_of.GOODPUT].runs)
    errors = rows_of(measurements[runs_of.LINK_ERRORS].runs)
    fairness = rows_of(measurements[runs_of.FAIRNESS].runs)
    warning = rows_of(measurements[runs_of.WARNING].runs)
    open_parameters = (
        [] if measurements.effort is Effort.REDUCED else rows_of(measurements[runs_of.OPEN_PARAMETERS].runs)
    )
    tables = [
        figures.goodput_table(goodput),
        figures.errors_table(errors),
        figures.fairness_table(fairness),
        figures.warning_table(warning),
    ]
    if open_parameters:
        tables.append(figures.open_parameters_table(open_parameters))
    found = joined(
        quantities_of(goodput, errors, fairness, open_parameters),
        estimate_quantities(rows_of(measurements[runs_of.ESTIMATES].runs)),
    )
    choices = assumptions(warning, open_parameters)
    return Assessment(
        statements=evaluate(STATEMENTS, found, choices),
        tables=tuple(tables),
        charts=(figures.gain_chart(goodput), figures.errors_chart(errors), figures.fairness_chart(fairness)),
        assumptions=choices,
    )
