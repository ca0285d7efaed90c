"""The registry of a check's experiments: one file each, one line here; other packages add theirs by entry point."""

from __future__ import annotations

from functools import cache
from typing import Any

from pepscope.errors import UsageError
from pepscope.plugins import loaded
from prober.check.experiment import CheckExperiment
from prober.check.experiments.certificates import Certificates
from prober.check.experiments.documentation_addresses import DocumentationAddresses
from prober.check.experiments.echo_service import EchoExperiment
from prober.check.experiments.hop_limits import HopLimitExperiment
from prober.check.experiments.odd_requests import OddRequests
from prober.check.experiments.questions import OrdinaryQuestions
from prober.check.experiments.round_trips import RoundTripReferences
from prober.check.experiments.slow_reader import SlowReaderUpload

GROUP = "pepscope.check_experiments"

#: In the order in which they measure one place; what decides comes first, since time may run out.
BUILT_IN: tuple[CheckExperiment[Any], ...] = (
    OrdinaryQuestions(),
    HopLimitExperiment(),
    DocumentationAddresses(),
    RoundTripReferences(),
    OddRequests(),
    Certificates(),
    EchoExperiment(),
    SlowReaderUpload(),
)


@cache
def check_experiments() -> tuple[CheckExperiment[Any], ...]:
    """All experiments in the order in which they measure: our own, then those of other packages by name.

    Raises PepscopeError for an entry point that cannot be used.
    """
    taken = {each.name for each in BUILT_IN}
    others = []
    for kind in loaded(GROUP, type):
        if not (issubclass(kind, CheckExperiment) and kind.name not in taken):
            raise UsageError(
                f"plug-ins of {GROUP} must be subclasses of CheckExperiment with a name of their own, "
                f"got {kind.__module__}.{kind.__qualname__}"
            )
        taken.add(kind.name)
        others.append(kind())
    return (*BUILT_IN, *others)
