"""Wei, Zhang, Zang, Kurose and Towsley on split connections in cellular networks (seed 004)."""

from papers.experiment import Paper
from papers.wei.assessment import assess
from papers.wei.experiments import experiments
from papers.wei.search import SEARCH

PAPER = Paper(
    name="wei",
    title="Split-TCP and TCP proxies in CDMA2000 networks",
    source="Wei, Zhang, Zang, Kurose and Towsley, Inference and Evaluation of Split-Connection Approaches in Cellular "
    "Data Networks, UMass technical report 2005-59",
    experiments=experiments,
    assess=assess,
    searches=(SEARCH,),
)
