"""The papers that can be run again, by name."""

from __future__ import annotations

from importlib import import_module

from pepscope.errors import UsageError
from reference_sim.reproduction.experiment import Paper

#: Modules with a `PAPER`, in the order in which they run.
_MODULES = {
    "hu": "reference_sim.reproduction.hu",
    "jersey": "reference_sim.reproduction.jersey",
    "ren-lin": "reference_sim.reproduction.ren_lin",
    "wei": "reference_sim.reproduction.wei",
}

PAPERS = tuple(_MODULES)


def load_paper(name: str) -> Paper:
    """The paper of that name. Raises UsageError."""
    if name not in _MODULES:
        raise UsageError(f"{name} is no paper that can be run again; there are {', '.join(PAPERS)}")
    paper = import_module(_MODULES[name]).PAPER
    assert isinstance(paper, Paper)
    return paper
