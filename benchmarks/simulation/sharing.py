"""Long flows that share a link, here and in ns-3 (Debian's `libns3-dev` and `g++`): RED, CoDel, round trips, CUBIC.

`python -m benchmarks.simulation.sharing [--seeds N]` prints the table of docs/models/links.md: medians, least and most.
Two flows share 10 Mbit/s; what they get and lose is counted in the last three quarters of 120 s. Both begin at random
within the first second, by the seed.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

PROGRAM = Path(__file__).parent / "peers" / "sharing.cc"
LIBRARIES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
SECONDS = 120.0
#: Queues as our scenarios have them; the ns-3 program has the same numbers.
QUEUES: dict[str, dict[str, Any]] = {
    "drop-tail": {"kind": "drop-tail", "packets": 51},
    "red": {
        "kind": "red", "packets": 200, "least_packets": 10, "most_packets": 30, "most_probability": 0.02,
        "weight": 0.002,
    },
    "codel": {"kind": "codel", "packets": 1000},
}  # fmt: skip
CONTROLS = {"reno": "NewReno", "cubic": "Cubic"}
#: Queue, control and the one-way delays of both flows (ms), 1 ms of the shared link left out.
CELLS = (
    ("drop-tail", "reno", (9, 9)),
    ("red", "reno", (9, 9)),
    ("codel", "reno", (9, 9)),
    ("red", "cubic", (9, 9)),
    ("codel", "cubic", (9, 9)),
    ("red", "reno", (9, 49)),
    ("red", "cubic", (9, 49)),
)


@dataclass(frozen=True, slots=True)
class Shared:
    """What one run gave."""

    bit_s: tuple[float, float]
    drops: float
    queue_packets: float


def ours(queue: str, control: str, delays_ms: tuple[int, int], seed: int) -> Shared:
    """One simulated run."""
    chance = random.Random(seed)
    link = {"rate_bit_s": 10_000_000, "delay_s": 0.001}
    terminals = [{"down": {"rate_bit_s": 1_000_000_000, "delay_s": delay / 1e3}} for delay in delays_ms]
    flows = [
        {"kind": "download", "duration_s": SECONDS, "start_s": chance.random(), "user": user}
        for user in range(len(delays_ms))
    ]
    scenario = Scenario.from_mapping(
        {
            "name": "sharing",
            "seed": seed,
            "duration_s": SECONDS,
            "server": {"control": control, "recovery": "rack"},
            "mobile": {"receive_buffer_bytes": 4 << 20, "quick_acknowledgements": 0},
            "path": [
                {
                    "kind": "managed", "name": "shared", "down": {**link, "queue": QUEUES[queue]},
                    "up": {**link, "queue": QUEUES["codel"]},
                },
                {"kind": "branches", "name": "own", "terminals": terminals},
            ],
            "traffic": flows,
            "record": {"series_interval_s": 0.01},
        }
    )  # fmt: skip
    run = simulate(scenario, captures=False)
    late = run.series.time_s >= SECONDS / 4
    values = {(one.place, one.flow, one.name): one.values for one in run.series.quantities}
    rates = []
    for flow in range(len(delays_ms)):
        read = values["mobile", flow, "delivered_bytes"]
        rates.append(8.0 * (read[-1] - read[late][0]) / (0.75 * SECONDS))
    waiting = values["shared", None, "down_queue_packets"][late]
    # A shorter run is the beginning of a longer one.
    beginning = simulate(scenario.with_values({"duration_s": SECONDS / 4}), captures=False)
    whole, early = (one.truth["hops"][0]["down"]["overflowed_packets"] for one in (run, beginning))
    drops = whole - early
    return Shared((rates[0], rates[1]), drops, float(waiting.mean()))


def theirs(program: Path, queue: str, control: str, delays_ms: tuple[int, int], seed: int) -> Shared:
    """One run of ns-3."""
    words = [str(program), queue, CONTROLS[control], str(SECONDS), str(seed), *map(str, delays_ms)]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    first, second, drops, waiting = map(float, printed)
    return Shared((first, second), drops, waiting)


def rows(seeds: int) -> Iterator[str]:
    """The table."""
    yield "| queue | control | one-way ms | | Mbit/s together | share of the first | drops | mean queue |"
    yield "|---|---|---|---|---:|---:|---:|---:|"
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "sharing"
        libraries = [f"-lns3-{name}" for name in LIBRARIES]
        subprocess.run(["g++", "-O2", "-o", str(program), str(PROGRAM), *libraries], check=True)
        for queue, control, delays_ms in CELLS:
            both = {
                "ours": [ours(queue, control, delays_ms, seed) for seed in range(1, seeds + 1)],
                "ns-3": [theirs(program, queue, control, delays_ms, seed) for seed in range(1, seeds + 1)],
            }
            for who, runs in both.items():
                together = _median([sum(run.bit_s) / 1e6 for run in runs], 2)
                share = _median([100 * run.bit_s[0] / sum(run.bit_s) for run in runs], 0)
                drops, waiting = (
                    _median([run.drops for run in runs], 0),
                    _median([run.queue_packets for run in runs], 1),
                )
                where = f"{queue} | {control} | {delays_ms[0] + 1}, {delays_ms[1] + 1}"
                yield f"| {where} | {who} | {together} | {share} % | {drops} | {waiting} |"


def _median(values: list[float], digits: int) -> str:
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), median(values), max(values)))
    return f"{middle} ({low} to {high})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Long flows that share a link, here and in ns-3.")
    parser.add_argument("--seeds", type=int, default=10)
    for row in rows(parser.parse_args().seeds):
        print(row, flush=True)
