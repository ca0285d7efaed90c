"""Result of a simulation: truth, captures, series, arrivals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pepscope.extras import needed
from reference_sim.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity over time."""

    #: `server`, `mobile`, or the name of a hop.
    place: str
    #: The flow it belongs to, if it belongs to one.
    flow: int | None
    #: What it is, with its unit.
    name: str
    #: One value a sample; not a number where the quantity did not exist.
    values: Float64Array


@dataclass(frozen=True, slots=True)
class Series:
    """Quantities sampled at the same times."""

    #: True seconds since the start.
    time_s: Float64Array
    quantities: tuple[Quantity, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row a sample and quantity: `time_s`, `place`, `flow` (-1 for none), `quantity`, `value`."""
        with needed("simulate"):
            import pandas as pd

        samples = len(self.time_s)
        return pd.DataFrame(
            {
                "time_s": np.tile(self.time_s, len(self.quantities)),
                "place": np.repeat([quantity.place for quantity in self.quantities], samples),
                "flow": np.repeat([-1 if q.flow is None else q.flow for q in self.quantities], samples),
                "quantity": np.repeat([quantity.name for quantity in self.quantities], samples),
                "value": np.concatenate([q.values for q in self.quantities]) if self.quantities else self.time_s[:0],
            }
        ).dropna(subset=["value"], ignore_index=True)


@dataclass(frozen=True, slots=True)
class Run:
    """A scenario that has run."""

    scenario: Scenario
    #: `finished` (all flows did) or `time-is-up`.
    ending: str
    simulated_s: float
    #: What the engine took, building its parts left out.
    wall_s: float
    events: int
    #: What really happened; see docs/scenarios.md.
    truth: Mapping[str, Any]
    #: Capture files by the name of their tap; none if captures were off.
    captures: Mapping[str, Path]
    series: Series
    #: Every segment that arrived at an end of a leg (`record.one_way_delays`): arrays `leg`, `flow`, `is_up`,
    #: `sequence`, `payload_bytes`, `sent_ns`, `arrived_ns`, in order of arrival; true times.
    arrivals: Mapping[str, npt.NDArray[Any]]

    def summary(self) -> dict[str, Any]:
        """What was delivered and lost, and what it took: the fields of `pepscope simulate --json`."""
        flows = self.truth["flows"]
        ends = [flow[end] for flow in flows for end in ("server", "mobile")]
        tcp = [end["tcp"] for end in ends]
        return {
            "scenario": self.scenario.name,
            "seed": self.scenario.seed,
            "class": flows[0]["class"] if flows else None,
            "ending": self.ending,
            "simulated_s": self.simulated_s,
            "wall_s": self.wall_s,
            "events": self.events,
            "flows": len(flows),
            "finished_flows": sum(flow["mobile"]["outcome"] == "closed" for flow in flows),
            "delivered_bytes": sum(end["read_bytes"] for end in ends),
            "goodput_bit_s": 8 * sum(end["read_bytes"] for end in ends) / self.simulated_s if self.simulated_s else 0.0,
            "data_packets": sum(totals["data_segments_sent"] for totals in tcp),
            "retransmitted_packets": sum(totals["retransmitted_segments"] for totals in tcp),
            "timeouts": sum(totals["timeouts"] for totals in tcp),
            "hops": [self._hop(index, hop) for index, hop in enumerate(self.truth["hops"])],
            "captures": {name: str(path) for name, path in self.captures.items()},
        }

    def _hop(self, index: int, hop: Mapping[str, Any]) -> dict[str, Any]:
        settings = self.scenario.path[index]
        entry: dict[str, Any] = {"name": hop["name"], "kind": settings["kind"]}
        for direction in ("down", "up"):
            counts = hop[direction]
            entry[direction] = {
                "delivered_packets": counts["delivered_packets"],
                "delivered_bytes": counts["delivered_bytes"],
                "overflowed_packets": counts["overflowed_packets"],
                "lost_packets": counts["lost_packets"],
                "utilisation": self._utilisation(settings.get(direction), counts),
            }
        return entry

    def _utilisation(self, line: Any, counts: Mapping[str, Any]) -> float | None:
        """Share of the link's capacity that was used; `None` where the hop has no stated capacity."""
        capacity_bits = counts.get("capacity_bits")
        if capacity_bits is None and isinstance(line, Mapping) and line.get("rate_bit_s"):
            capacity_bits = line["rate_bit_s"] * self.simulated_s
        return 8 * counts["delivered_bytes"] / capacity_bits if capacity_bits else None
