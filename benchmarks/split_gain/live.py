"""Cells of the campaigns between real kernels: the scenario's own traffic, with and without a real proxy at its box."""

from __future__ import annotations

import math
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.split_gain.gains import gain_of
from pepscope.captures.capture import open_capture
from reference_sim.library import load_scenario
from reference_sim.live_path import LiveSettings, emulate
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

#: A cell agrees where live and simulated quotients of throughput differ by less than this factor. Each is a quotient of
#: two runs whose goodputs `pepscope emulate --compare` accepts within 10 %.
AGREEMENT = 1.2

_PORTS = "80,5001"
_BUFFER_BYTES = 4 << 20
_LISTEN = "0.0.0.0:8888"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a campaign."""

    access: str
    server_control: str
    box: str
    #: Of the object; 0 for a line, whose downloads take `LINE_S`.
    size_bytes: int = 0
    #: Further values of the line.
    values: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The cell in words."""
        if not self.values:
            size = f"{self.size_bytes / 1e6:g} MB" if self.size_bytes >= 1e6 else f"{self.size_bytes / 1e3:g} kB"
            return f"{self.access}, {size}"
        loss = self.values["path[2].down.loss.probability"]
        return f"{self.access}, {2e3 * self.values['path[0].down.delay_s']:g} ms, {loss:.1%} lost"

    def scenario(self, *, is_split: bool) -> Scenario:
        """The cell's scenario, end to end or split."""
        changes: dict[str, Any] = {"server.control": self.server_control, **(self.values or {})}
        if self.size_bytes:
            changes["traffic[0].bytes"] = self.size_bytes
        else:
            changes |= {"duration_s": LINE_S, "traffic[0].duration_s": LINE_S}
        if is_split:
            leg = {"control": self.box, "recovery": "rack", "byte_counting_limit_segments": 1000}
            opening = "with-data" if self.size_bytes else "at-once"
            changes["path[1]"] = {
                "kind": "split-proxy", "name": "box", "opening": opening, "buffer_bytes": _BUFFER_BYTES,
                "server_leg": {"receive_buffer_bytes": _BUFFER_BYTES}, "mobile_leg": leg,
            }  # fmt: skip
        return load_scenario(f"split-gain-{self.access}").with_values(changes)


#: Live downloads over lines, and the simulated ones that they are compared with.
LINE_S = 6.0


def _line(server_delay_s: float, loss_probability: float) -> dict[str, Any]:
    return {"path[0].down.delay_s": server_delay_s, "path[2].down.loss.probability": loss_probability}


CELLS = (
    Cell("lte", "cubic", "cubic", 1_000_000),
    Cell("lte", "bbr", "bbr", 1_000_000),
    Cell("satellite", "cubic", "bbr", 100_000),
    Cell("satellite", "cubic", "cubic", 1_000_000),
    Cell("satellite", "bbr", "bbr", 1_000_000),
    Cell("wlan", "cubic", "cubic", 100_000),
    Cell("wlan", "cubic", "cubic", 10_000_000),
    Cell("wlan", "bbr", "bbr", 10_000_000),
    Cell("wlan", "bbr", "cubic", 10_000_000),
    Cell("line", "cubic", "bbr", values=_line(0.025, 0.001)),
    Cell("line", "bbr", "cubic", values=_line(0.025, 0.001)),
    Cell("line", "cubic", "cubic", values=_line(0.025, 0.01)),
    Cell("line", "bbr", "bbr", values=_line(0.125, 0.01)),
)


@dataclass(frozen=True, slots=True)
class LiveRow:
    """A cell, live beside simulated."""

    cell: str
    server_control: str
    box: str
    live_runs: int
    simulated_runs: int
    live_end_to_end_bit_s: float
    simulated_end_to_end_bit_s: float
    live_split_bit_s: float
    simulated_split_bit_s: float
    live_gain: float
    live_low: float
    live_high: float
    simulated_gain: float
    simulated_low: float
    simulated_high: float

    @property
    def quotient(self) -> float:
        """What a live split gives over what a simulated one gives; 1 where both gains are the same."""
        return (1.0 + self.live_gain) / (1.0 + self.simulated_gain)

    @property
    def verdict(self) -> str:
        """`agrees`, `differs`, or `undecided` where the quotient is too far off but the intervals meet."""
        if abs(math.log(self.quotient)) <= math.log(AGREEMENT):
            return "agrees"
        meets = self.live_low <= self.simulated_high and self.simulated_low <= self.live_high
        return "undecided" if meets else "differs"


def live_rows(repeats: int, seeds: int, cells: Sequence[Cell], progress: Callable[[str], object]) -> list[LiveRow]:
    """Every cell `repeats` times live, end to end and split in turn, and with `seeds` seeds simulated. Needs root."""
    return [_row(cell, repeats, seeds, progress) for cell in cells]


def _row(cell: Cell, repeats: int, seeds: int, progress: Callable[[str], object]) -> LiveRow:
    live: dict[bool, list[float]] = {False: [], True: []}
    simulated: dict[bool, list[float]] = {False: [], True: []}
    for repeat in range(1, repeats + 1):
        for is_split in (False, True):
            progress(f"{cell.name}, {cell.server_control} to {cell.box}: live run {repeat}, split: {is_split}")
            live[is_split].append(_live_bit_s(cell, repeat, is_split=is_split))
    for seed in range(1, seeds + 1):
        for is_split in (False, True):
            run: Run = simulate(cell.scenario(is_split=is_split), captures=False, seed=seed)
            simulated[is_split].append(_rate_bit_s(run.truth, cell, 0.0))
    here = gain_of(live[False], live[True], are_times=False)
    there = gain_of(simulated[False], simulated[True], are_times=False)
    return LiveRow(
        cell.name, cell.server_control, cell.box, here.runs, there.runs,
        _mean(live[False]), _mean(simulated[False]), _mean(live[True]), _mean(simulated[True]),
        here.gain, here.low, here.high, there.gain, there.low, there.high,
    )  # fmt: skip


def _live_bit_s(cell: Cell, seed: int, *, is_split: bool) -> float:
    scenario = cell.scenario(is_split=is_split).with_seed(seed)
    settings = LiveSettings(middle_command=_proxy(cell.box)) if is_split else LiveSettings()
    with tempfile.TemporaryDirectory(prefix="pepscope-split-gain-") as directory:
        run = emulate(scenario, (), directory, settings=settings)
        started_ns = open_capture(str(run.captures["mobile"])).connections[0].first_time_ns
    # The proxy starts first: the scenario's own time begins before it.
    return _rate_bit_s(run.truth, cell, (started_ns - run.truth["live"]["started_unix_ns"]) * 1e-9)


def _proxy(control: str) -> tuple[str, ...]:
    """The reference proxy as the box, its rules before it; its windows are large at once, as simulated ones."""
    words = [
        sys.executable, "-m", "pepscope", "proxy", "split", "--interception", "transparent",
        "--device", "pepscope-cell", "--ports", _PORTS, "--listen", _LISTEN, "--log-level", "error",
        "--set", f"buffer_bytes={_BUFFER_BYTES}", "--set", f"mobile.congestion_control={control}",
    ]  # fmt: skip
    run = shlex.join(words)
    windows = f"sysctl -qw net.ipv4.tcp_rmem='4096 {2 * _BUFFER_BYTES} {2 * _BUFFER_BYTES}'"
    return ("sh", "-c", f"{windows} && {run} --setup && exec {run}")


def _rate_bit_s(truth: Mapping[str, Any], cell: Cell, started_s: float) -> float:
    """What the mobile read, from its SYN to its last byte."""
    end = truth["flows"][0]["mobile"]
    if cell.size_bytes and end["outcome"] != "closed":
        raise ValueError(f"every transfer must finish, got {end['outcome']} in {cell.name}")
    return float(8 * end["read_bytes"] / (end["last_read_s"] - started_s))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
