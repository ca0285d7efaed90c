"""The registry of experiments: one file each, one line here; other packages add theirs by entry point."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from pepscope.plugins import find, names
from pepscope.results.finding import Finding, weighted_findings
from prober.errors import ArchiveError, PlanError
from prober.experiments.abort import Abort
from prober.experiments.cache import Cache
from prober.experiments.dead_port import DeadPort
from prober.experiments.delayed_ack import DelayedAck
from prober.experiments.gain import Gain
from prober.experiments.handshake_rtt import HandshakeRtt
from prober.experiments.odd_requests import OddRequests
from prober.experiments.options import Options
from prober.experiments.recompress import Recompress
from prober.experiments.slow_reader import SlowReader
from prober.experiments.transfers import Transfers
from prober.experiments.ttl_syn import TtlSyn
from prober.experiments.uplink_buffer import UplinkBuffer
from prober.experiments.window import Window
from prober.measurement.experiment import Experiment

GROUP = "pepscope.experiments"

#: In the order in which a plan runs them.
BUILT_IN: tuple[Experiment[Any, Any], ...] = (
    Transfers(),
    DelayedAck(),
    SlowReader(),
    TtlSyn(),
    DeadPort(),
    HandshakeRtt(),
    Options(),
    OddRequests(),
    Cache(),
    Recompress(),
    Abort(),
    Window(),
    UplinkBuffer(),
    Gain(),
)


@cache
def experiments() -> tuple[Experiment[Any, Any], ...]:
    """All experiments in the order in which a plan runs them: our own, then those of other packages by name.

    Raises PlanError for an entry point that cannot be used.
    """
    taken = {item.name for item in BUILT_IN}
    return (*BUILT_IN, *(_load(name, taken) for name in names(GROUP)))


def _load(name: str, taken: Collection[str]) -> Experiment[Any, Any]:
    entry = find(GROUP, name)
    where = f"the entry point {name} of {GROUP}"
    if entry is None or name in taken:
        raise PlanError(f"{where} must have a name that no experiment of pepscope has")
    try:
        made = entry.load()()
    except Exception as error:
        raise PlanError(f"{where}, {entry.value}, cannot be loaded ({type(error).__name__}: {error})") from error
    if not isinstance(made, Experiment) or made.name != name:
        raise PlanError(f"{where} must be a subclass of Experiment whose name is {name!r}, got {entry.value}")
    return made


def findings() -> dict[str, Finding]:
    """Every finding of an experiment that has a weight, by its key in JSON."""
    return weighted_findings(kind for known in experiments() for kind in known.findings)


def experiment(name: str) -> Experiment[Any, Any] | None:
    """The experiment of that name; `None` where there is none."""
    return next((known for known in experiments() if known.name == name), None)


def offering_package(name: str) -> str:
    """The distribution of another party that offers an experiment; empty for our own and for unknown ones."""
    entry = None if any(ours.name == name for ours in BUILT_IN) else find(GROUP, name)
    return "" if entry is None else entry.package


def rule_for(name: str, version: int, package: str = "") -> Experiment[Any, Any]:
    """The experiment that judges what this version of it measured; `package` is what offered it to the run.

    Raises ArchiveError, one sentence, where no rule is installed.
    """
    known = experiment(name)
    if known is None:
        offer = f"the package {package}" if package else f"the package that offers {name} in the group {GROUP}"
        raise ArchiveError(
            f"{name} is an experiment that is not installed here, so what it measured is left out: install {offer}"
        )
    rule = known if version == known.version else known.earlier.get(version)
    if rule is None:
        versions = ", ".join(map(str, sorted({*known.earlier, known.version})))
        raise ArchiveError(
            f"{name} was measured by version {version} of that experiment, and this pepscope judges {versions}; "
            "its measurements are left out"
        )
    return rule
