"""What an experiment of a check is: it measures places one by one, and reads findings off what it measured at a port.

As those of an audit, an experiment is one file with one class and one line of the registry; another package adds its
own by an entry point in the group `pepscope.check_experiments`. `measure` uses the network and concludes nothing,
`examine` concludes and uses no network. Both need the standard library alone, so that the single-file client runs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from prober.check.finding import CheckFinding
from prober.check.given import Given
from prober.check.probes.distances import Distance
from prober.check.targets import Place

Measured = TypeVar("Measured")
Wanted = TypeVar("Wanted")


@dataclass(frozen=True, slots=True)
class Cost:
    """What an experiment sends at most, at one port of one host."""

    connections: int = 0
    datagrams: int = 0
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """All that a measurement may look at."""

    place: Place
    distance: Distance
    given: Given
    #: What earlier experiments measured at this place, by their names.
    earlier: Mapping[str, object] = field(default_factory=dict)

    def measured_by(self, name: str, kind: type[Wanted]) -> Wanted | None:
        """What an earlier experiment measured here; None where it did not."""
        found = self.earlier.get(name)
        return found if isinstance(found, kind) else None


@dataclass(frozen=True, slots=True)
class PlaceObservation:
    """What experiments measured at one port of one address, by their names."""

    place: Place
    distance: Distance
    measured: Mapping[str, object] = field(default_factory=dict)
    #: Why nothing was measured; else empty.
    error: str = ""
    #: Why single experiments measured nothing, by their names.
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Its name as the user gave it."""
        return self.place.target.host


@dataclass(frozen=True, slots=True)
class PortMaterial:
    """All places with one version of IP and one port, and what is known of the way out of this host."""

    family: int
    port: int
    places: Sequence[PlaceObservation]
    #: The device of a tunnel that the way to the hosts takes; None where it takes none.
    tunnel: str | None = None

    def of(self, name: str, kind: type[Wanted]) -> Iterator[tuple[PlaceObservation, Wanted]]:
        """Places at which an experiment measured, with what it measured; those that failed are left out."""
        for each in self.places:
            found = each.measured.get(name)
            if not each.error and isinstance(found, kind):
                yield each, found


class CheckExperiment(ABC, Generic[Measured]):
    """One file in `prober/check/experiments` and one line in `prober/check/registry.py`."""

    #: As JSON writes it.
    name: ClassVar[str]
    #: As reports write it.
    title: ClassVar[str]
    #: One line for lists.
    summary: ClassVar[str]
    #: What `measure` returns; others' values are not examined.
    measured: type[Measured]

    def subjects(self, places: Sequence[Place], given: Given) -> Iterable[Place]:  # noqa: ARG002
        """Where it measures: everywhere, unless a class says otherwise."""
        return places

    @abstractmethod
    def cost(self) -> Cost:
        """The most that it sends at one subject."""

    @abstractmethod
    def measure(self, asked: Asked) -> Measured | None:
        """Measure at one place; None where there is nothing to measure. Raises OSError."""

    @abstractmethod
    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """Findings at one port."""

    @abstractmethod
    def document(self, measured: Measured) -> Mapping[str, Any]:
        """What was measured, for JSON."""

    def observed(self, port: PortMaterial) -> Iterator[tuple[PlaceObservation, Measured]]:
        """What this experiment measured at a port."""
        return port.of(self.name, self.measured)
