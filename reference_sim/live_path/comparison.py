"""Virtual against real: one scenario simulated and emulated, measured in the same way from captures of both."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pepscope.captures.capture import open_capture
from pepscope.errors import ScenarioError
from reference_sim.live_path.kernel_settings import quick_acknowledgements

if TYPE_CHECKING:
    from pepscope.captures.packets import PacketColumns
    from reference_sim.live_path.emulation import LiveSettings
    from reference_sim.scenario import Scenario

#: Shares of round trips whose times are compared.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_COMPARED_QUANTILES = (0.5, 0.95)
#: The largest value that a scenario allows: in effect no limit.
_MOST_SEGMENTS = 1000
#: Of a full segment with timestamps behind an MTU of 1500.
_PAYLOAD_BYTES = 1448

#: Throughput may differ by this share: a window that sawtooths between half and all of what the path holds once more
#: or less often in a short run makes as much.
GOODPUT_BOUND = 0.1
#: Round-trip times may differ by this share, and by what a kernel's timers and a busy machine add to short ones.
ROUND_TRIP_BOUND = 0.15
ROUND_TRIP_BOUND_S = 0.003
#: Lost shares may differ by this factor, or by the packets of one window: a slow start that ends in an overshoot loses
#: as many as were under way, one that ends in time (HyStart) none.
LOSS_BOUND = 2.0


@dataclass(frozen=True, slots=True)
class Measures:
    """What one run of a scenario gave."""

    #: Bytes that applications read, from the first flow's start to the last byte read; of pages, in the time of their
    #: answers alone, since the think times between them are random.
    goodput_bit_s: float
    #: One for each segment acknowledged, as the senders' captures show them, so that it does not matter how many an ACK
    #: is for; none for ACKs of anything that was sent again (Karn).
    round_trip_times_s: npt.NDArray[np.float64]
    #: Packets overflowed or lost in the hops, of those that entered the first.
    lost_share: float
    #: Packets that entered the first hop, of either direction.
    packets: int
    #: Data packets sent again, of all data packets.
    retransmitted_share: float

    def round_trip_time_s(self, share: float) -> float:
        """The quantile; not a number where there were no samples."""
        return float(np.quantile(self.round_trip_times_s, share)) if len(self.round_trip_times_s) else float("nan")

    @property
    def window_share(self) -> float:
        """The packets of the largest usual window (95 % quantile of the round trip) as a share of all packets."""
        if not self.packets or not len(self.round_trip_times_s):
            return 0.0
        return self.goodput_bit_s * self.round_trip_time_s(0.95) / (8 * _PAYLOAD_BYTES) / self.packets

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "goodput_bit_s": self.goodput_bit_s,
            "round_trips": len(self.round_trip_times_s),
            "round_trip_time_s": {f"{share:g}": self.round_trip_time_s(share) for share in QUANTILES},
            "lost_share": self.lost_share,
            "retransmitted_share": self.retransmitted_share,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity side by side."""

    name: str
    unit: str
    virtual: float
    live: float
    bound: str
    is_within: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A scenario, simulated and emulated."""

    scenario: str
    description: str
    controls: str
    virtual: Measures
    live: Measures
    #: How late packets left the live path, 99 of 100 no more than that.
    lateness_s: float

    def rows(self) -> tuple[Row, ...]:
        """What is compared, and whether it is within its bounds."""
        virtual, live = self.virtual, self.live
        goodput = Row(
            "goodput", "Mbit/s", virtual.goodput_bit_s * 1e-6, live.goodput_bit_s * 1e-6,
            f"{GOODPUT_BOUND:.0%}",
            abs(live.goodput_bit_s - virtual.goodput_bit_s) <= GOODPUT_BOUND * virtual.goodput_bit_s,
        )  # fmt: skip
        round_trips = tuple(self._round_trip_row(share) for share in _COMPARED_QUANTILES)
        return (goodput, *round_trips, self._loss_row())

    def _round_trip_row(self, share: float) -> Row:
        virtual_s, live_s = self.virtual.round_trip_time_s(share), self.live.round_trip_time_s(share)
        return Row(
            f"round trip, {share:.0%} quantile", "ms", virtual_s * 1e3, live_s * 1e3,
            f"{ROUND_TRIP_BOUND:.0%} + {ROUND_TRIP_BOUND_S * 1e3:g} ms",
            abs(live_s - virtual_s) <= ROUND_TRIP_BOUND * virtual_s + ROUND_TRIP_BOUND_S,
        )  # fmt: skip

    def _loss_row(self) -> Row:
        low, high = sorted((self.virtual.lost_share, self.live.lost_share))
        one_window = self.virtual.window_share
        return Row(
            "packets lost", "%", self.virtual.lost_share * 1e2, self.live.lost_share * 1e2,
            f"factor {LOSS_BOUND:g} or a window, {one_window:.2%}",
            high <= LOSS_BOUND * low or high - low <= one_window,
        )  # fmt: skip

    @property
    def is_within_bounds(self) -> bool:
        """All of them."""
        return all(row.is_within for row in self.rows())

    def table(self) -> str:
        """For a terminal."""
        lines = [f"{self.scenario} ({self.controls}), live packets at most {self.lateness_s * 1e6:,.0f} us late (99 %)"]
        head = f"  {'':28}{'virtual':>12}{'live':>12}        bound"
        lines.append(head)
        for row in self.rows():
            verdict = "within" if row.is_within else "OUTSIDE"
            name = f"{row.name}, {row.unit}"
            lines.append(f"  {name:28}{row.virtual:12,.3f}{row.live:12,.3f}        {row.bound}: {verdict}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "scenario": self.scenario,
            "controls": self.controls,
            "virtual": self.virtual.to_dict(),
            "live": self.live.to_dict(),
            "lateness_s": self.lateness_s,
            "is_within_bounds": self.is_within_bounds,
            "rows": [
                {name: getattr(row, name) for name in ("name", "unit", "virtual", "live", "bound", "is_within")}
                for row in self.rows()
            ],
        }


def as_kernels_do(scenario: Scenario) -> Scenario:
    """The scenario with Linux's behaviour where a simulated endpoint has it as an option, unless the scenario sets it.

    Linux's slow start grows by every segment acknowledged, however few the ACKs (RFC 3465 without its limit), its
    receiver acknowledges one by one while its window grows, and its recovery by SACK is that of `rack`.
    """
    changes: dict[str, Any] = {}
    for place, end in (("server", scenario.server), ("mobile", scenario.mobile)):
        if end["host"] == "linux":
            continue
        given: Any = scenario.given.get(place) or {}
        kernels: dict[str, Any] = {
            "byte_counting_limit_segments": _MOST_SEGMENTS,
            "quick_acknowledgements": quick_acknowledgements(end),
        }
        if end["recovery"] == "sack":
            kernels["recovery"] = "rack"
        changes |= {f"{place}.{name}": value for name, value in kernels.items() if name not in given}
    return scenario.with_values(changes)


def check_comparable(scenario: Scenario, settings: LiveSettings | None = None) -> None:
    """Raises ScenarioError for a scenario that cannot run both ways."""
    from reference_sim.live_path.emulation import LiveEmulation, LiveSettings
    from reference_sim.live_path.traffic import live_flows

    if any("mobile_leg" in hop for hop in scenario.path):
        raise ScenarioError(f"{scenario.name} has a proxy: only paths without one are compared")
    LiveEmulation(scenario, None, settings or LiveSettings())
    live_flows(scenario)


def compare(scenario: Scenario, settings: LiveSettings | None = None) -> Comparison:
    """Run a scenario both ways. Raises ScenarioError, SimulationError, LivePathError, OSError."""
    from reference_sim.live_path.emulation import emulate
    from reference_sim.simulation import simulate

    check_comparable(scenario, settings)
    with tempfile.TemporaryDirectory(prefix="pepscope-compare-") as directory:
        virtual_directory, live_directory = Path(directory, "virtual"), Path(directory, "live")
        live = emulate(scenario, (), live_directory, settings=settings)
        virtual = simulate(as_kernels_do(scenario), virtual_directory)
        return Comparison(
            scenario=scenario.name,
            description=scenario.description,
            controls=f"server {scenario.server['control']}, mobile {scenario.mobile['control']}",
            virtual=measure(virtual.truth, virtual.captures),
            live=measure(live.truth, live.captures),
            lateness_s=live.lateness_s(),
        )


def measure(truth: Mapping[str, Any], captures: Mapping[str, Path]) -> Measures:
    """Measures of a run from its truth and its captures at both ends."""
    flows = truth["flows"]
    ends = [flow[place] for flow in flows for place in ("server", "mobile")]
    read_bytes = sum(end["read_bytes"] for end in ends)
    last_s = max((end["last_read_s"] for end in ends if end["last_read_s"] is not None), default=0.0)
    first_s = min((flow["start_s"] for flow in flows), default=0.0)
    if flows and all(flow["kind"] == "http" for flow in flows):
        first_s, last_s = 0.0, sum(flow["mobile"]["answer_time_s"] for flow in flows)
    entered = lost = 0
    for direction in ("down", "up"):
        hops = [hop[direction] for hop in truth["hops"]]
        if hops:
            entered += hops[0 if direction == "down" else -1]["offered_packets"]
        lost += sum(hop["overflowed_packets"] + hop["lost_packets"] for hop in hops)
    round_trips, data, again = _senders([captures[place] for place in ("server", "mobile")])
    return Measures(
        goodput_bit_s=8 * read_bytes / (last_s - first_s) if last_s > first_s else 0.0,
        round_trip_times_s=round_trips,
        lost_share=lost / entered if entered else 0.0,
        packets=entered,
        retransmitted_share=again / data if data else 0.0,
    )


def _senders(captures: Sequence[Path]) -> tuple[npt.NDArray[np.float64], int, int]:
    """Round trips of data that left beside each capture, in seconds; data packets sent there, and those sent again."""
    times = []
    data = again = 0
    for path, leaves in zip(captures, (1, 0), strict=True):
        capture = open_capture(str(path))
        for connection in capture.connections:
            flow = connection.down if leaves else connection.up
            data += flow.data_packets
            again += flow.retransmitted_packets
            if flow.data_packets > 1:
                times.append(_round_trips(capture.packets(connection.id), leaves))
    return np.concatenate(times) if times else np.empty(0), data, again


def _round_trips(packets: PacketColumns, leaves: int) -> npt.NDArray[np.float64]:
    """Seconds that each segment waited for its ACK, of data that leaves in the direction `leaves`."""
    is_sent = (packets.direction == leaves) & (packets.payload_bytes > 0)
    starts = packets.sequence_offset[is_sent]
    ends = starts + packets.payload_bytes[is_sent]
    is_again = starts < np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])
    again_starts, again_ends = np.sort(starts[is_again]), np.sort(ends[is_again])

    is_answer = packets.direction != leaves
    reached = np.maximum.accumulate(np.maximum(packets.acknowledgement_offset[is_answer], 0))
    before = np.concatenate([[0], reached[:-1]])
    is_clean = np.searchsorted(again_starts, reached, "left") <= np.searchsorted(again_ends, before, "right")
    times_ns = packets.round_trip_time_ns[is_answer]
    is_sample = is_clean & (times_ns >= 0) & (reached > before)
    segments = -(-(reached - before)[is_sample] // _PAYLOAD_BYTES)
    return np.repeat(times_ns[is_sample] * 1e-9, segments)
