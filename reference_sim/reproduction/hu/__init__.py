"""Hu, "Optimizing TCP Performance over UMTS with Split Proxy": paper and slides (seeds 000 and 001)."""

from reference_sim.reproduction.experiment import Paper
from reference_sim.reproduction.hu.assessment import assess
from reference_sim.reproduction.hu.experiments import experiments

PAPER = Paper(
    name="hu",
    title="A split proxy at the gateway between UMTS dedicated channels and the Internet",
    source="Liang Hu, Optimizing TCP Performance over UMTS with Split Proxy, paper and slides, Technical University of "
    "Denmark",
    experiments=experiments,
    assess=assess,
)
