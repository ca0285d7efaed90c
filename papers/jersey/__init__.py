"""Dong et al., TCP-Jersey over HSDPA (seed 002)."""

from papers.experiment import Paper
from papers.jersey.assessment import assess
from papers.jersey.experiments import experiments
from papers.jersey.search import SEARCH

PAPER = Paper(
    name="jersey",
    title="TCP-Jersey over HSDPA",
    source="Dong et al., performance of TCP-Jersey over High Speed Downlink Packet Access",
    experiments=experiments,
    assess=assess,
    searches=(SEARCH,),
)
