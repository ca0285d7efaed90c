"""The papers that can be run again, by name."""

from __future__ import annotations

from importlib import import_module

from papers.experiment import Paper
from pepscope.errors import UsageError

#: Modules with a `PAPER`, in the order in which they run.
_MODULES = {
    "hu": "papers.hu",
    "jersey": "papers.jersey",
    "ren-lin": "papers.ren_lin",
    "wei": "papers.wei",
}

PAPERS = tuple(_MODULES)


def load_paper(name: str) -> Paper:
    """The paper of that name. Raises UsageError."""
    if name not in _MODULES:
        raise UsageError(f"a paper must be one of {', '.join(PAPERS)}, got {name}")
    paper = import_module(_MODULES[name]).PAPER
    assert isinstance(paper, Paper)
    return paper
