"""Ren and Lin, variable bandwidth and the window-adaptation proxy (seed 003)."""

from papers.experiment import Paper
from papers.ren_lin.assessment import assess
from papers.ren_lin.experiments import experiments
from papers.ren_lin.search import CELL, LINK

PAPER = Paper(
    name="ren-lin",
    title="TCP over cellular links with variable bandwidth, and a proxy that adapts its window",
    source="Ren and Lin, Modeling and Improving TCP Performance over Cellular Link with Variable Bandwidth, IEEE "
    "Transactions on Mobile Computing, 2011",
    experiments=experiments,
    assess=assess,
    searches=(CELL, LINK),
)
