"""What a campaign runs: every combination of its values, drawn values, and repeats with other seeds.

A field of `grid` or `random` may name several, `"path[1].count, traffic[1].count"`, which then have the same value; the
value `"absent"` takes a field out.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from pepscope.errors import ScenarioError
from pepscope.settings import read_settings
from pepscope.strict_reading import LARGEST_INTEGER, Table, WholeNumber, between, read_as
from reference_sim.library import load_scenario
from reference_sim.scenario import Scenario, read_toml

_MOST_RUNS = 10_000_000
ABSENT = "absent"


_Count: TypeAlias = Annotated[int, between(1, LARGEST_INTEGER)]


class _VariantDocument(Table, frozen=True):
    """One of a campaign's variants as its file writes it."""

    name: str
    values: dict[str, Any] = msgspec.field(default_factory=dict)


class _CampaignDocument(Table, frozen=True):
    """A campaign as its file writes it; distributions are checked where values are drawn."""

    scenarios: Annotated[tuple[str, ...], Meta(min_length=1)]
    name: str | None = None
    description: str = ""
    repeats: _Count = 1
    seed: WholeNumber = 1
    captures: bool = False
    grid: dict[str, Annotated[list[Any], Meta(min_length=1)]] = msgspec.field(default_factory=dict)
    random: dict[str, Any] = msgspec.field(default_factory=dict)
    variants: tuple[_VariantDocument, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """Values that belong together, under one name."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a campaign."""

    #: Its place in the campaign, from 0.
    index: int
    scenario_name: str
    variant: str
    #: The values that the campaign varies, by field.
    values: Mapping[str, Any]
    repeat: int
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Campaign:
    """A sweep as its file describes it."""

    name: str
    description: str
    scenarios: Mapping[str, Scenario]
    variants: tuple[Variant, ...]
    #: Lists of values by field: every combination is run.
    grid: Mapping[str, tuple[Any, ...]]
    #: Distributions by field: each of `draws` runs draws one value of each.
    distributions: Mapping[str, Mapping[str, Any]]
    draws: int
    #: Runs of each point, with seeds counted on from `seed`: the same seeds for every point.
    repeats: int
    seed: int
    #: Whether each run writes its captures.
    captures: bool

    @classmethod
    def from_toml(cls, path: str | Path) -> Campaign:
        """Read a campaign file. Raises ScenarioError with the field and what is allowed; OSError."""
        read = read_settings(_CampaignDocument, read_toml(path), ScenarioError)
        distributions = dict(read.random)
        draws = distributions.pop("draws", 1 if not distributions else 100)
        return cls(
            name=Path(path).stem if read.name is None else read.name,
            description=read.description,
            scenarios=_scenarios(read.scenarios, Path(path).parent),
            variants=tuple(Variant(item.name, item.values) for item in read.variants) or (Variant("", {}),),
            grid={name: tuple(values) for name, values in read.grid.items()},
            distributions=distributions,
            draws=read_as(_Count, draws, ScenarioError, place="random.draws"),
            repeats=read.repeats,
            seed=read.seed,
            captures=read.captures,
        )

    @property
    def runs(self) -> int:
        """How many runs there are."""
        combinations = math.prod(len(values) for values in self.grid.values())
        return len(self.scenarios) * len(self.variants) * combinations * self.draws * self.repeats

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that vary, in order."""
        return (*self.grid, *self.distributions)

    def points(self) -> Iterator[Point]:
        """All runs, in order; the same ones each time. Raises ScenarioError for values that are refused."""
        if self.runs > _MOST_RUNS:
            raise ScenarioError(f"the campaign must have at most {_MOST_RUNS:,} runs, got {self.runs:,}")
        index = 0
        for (name, base), variant in itertools.product(self.scenarios.items(), self.variants):
            for number, values in enumerate(self._values()):
                scenario = base.with_values(_single({**variant.values, **values}))
                for repeat in range(self.repeats):
                    seed = self.seed + repeat + (number * self.repeats if self.distributions else 0)
                    yield Point(index, name, variant.name, values, repeat, scenario.with_seed(seed))
                    index += 1

    def _values(self) -> Iterator[dict[str, Any]]:
        for combination in itertools.product(*self.grid.values()):
            given = dict(zip(self.grid, combination, strict=True))
            for draw in range(self.draws):
                yield {**given, **self._drawn(draw)}

    def _drawn(self, draw: int) -> dict[str, Any]:
        source = random.Random(f"{self.seed}/{draw}")
        return {name: _draw(name, spec, source) for name, spec in self.distributions.items()}


def _single(values: Mapping[str, Any]) -> dict[str, Any]:
    """One entry a field; None takes a field out."""
    return {
        name.strip(): None if value == ABSENT else value for names, value in values.items() for name in names.split(",")
    }


def _draw(name: str, spec: Mapping[str, Any], source: random.Random) -> Any:
    """One value of `{uniform = [a, b]}`, `{log_uniform = [a, b]}` (whole ends: whole values) or `{choice = [...]}`."""
    kinds: dict[str, Callable[[list[Any]], Any]] = {
        "uniform": lambda ends: _like(ends, source.uniform(ends[0], ends[1])),
        "log_uniform": lambda ends: _like(ends, math.exp(source.uniform(math.log(ends[0]), math.log(ends[1])))),
        "choice": lambda values: values[source.randrange(len(values))],
    }
    allowed = "one of {uniform = [a, b]}, {log_uniform = [a, b]}, {choice = [...]}"
    if not isinstance(spec, Mapping) or len(spec) != 1 or next(iter(spec)) not in kinds:
        raise ScenarioError(f"random.{name} must be {allowed}, got {spec!r}")
    kind, values = next(iter(spec.items()))
    if not isinstance(values, list) or not values or (kind != "choice" and len(values) != 2):
        raise ScenarioError(f"random.{name}.{kind} must be {allowed}, got {values!r}")
    try:
        return kinds[kind](values)
    except (TypeError, ValueError):
        raise ScenarioError(f"random.{name}.{kind} must have ends that make such a range, got {values!r}") from None


def _like(ends: list[Any], value: float) -> float | int:
    """The value, whole where both ends are."""
    return round(value) if all(isinstance(end, int) for end in ends) else value


def _scenarios(names: Sequence[str], directory: Path) -> dict[str, Scenario]:
    beside = {name: directory / name for name in names}
    return {path.stem: load_scenario(path if path.is_file() else name) for name, path in beside.items()}
