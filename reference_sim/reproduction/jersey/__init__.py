"""Dong et al., TCP-Jersey over HSDPA (seed 002)."""

from reference_sim.reproduction.experiment import Paper
from reference_sim.reproduction.jersey.assessment import assess
from reference_sim.reproduction.jersey.experiments import experiments

PAPER = Paper(
    name="jersey",
    title="TCP-Jersey over HSDPA",
    source="Dong et al., performance of TCP-Jersey over High Speed Downlink Packet Access",
    experiments=experiments,
    assess=assess,
)
