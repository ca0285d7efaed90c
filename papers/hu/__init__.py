"""Hu, "Optimizing TCP Performance over UMTS with Split Proxy": paper and slides (seeds 000 and 001)."""

from papers.experiment import Paper
from papers.hu.assessment import assess
from papers.hu.experiments import experiments
from papers.hu.search import SEARCH

PAPER = Paper(
    name="hu",
    title="A split proxy at the gateway between UMTS dedicated channels and the Internet",
    source="Liang Hu, Optimizing TCP Performance over UMTS with Split Proxy, paper and slides, Technical University of "
    "Denmark",
    experiments=experiments,
    assess=assess,
    searches=(SEARCH,),
)
