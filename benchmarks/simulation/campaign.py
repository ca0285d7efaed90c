"""What a second core gives a campaign, and whether memory grows with simulated time."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.speed.measure import run_once
from reference_sim.campaign import run_campaign
from reference_sim.sweep import Campaign

CAMPAIGN = """
name = "delays"
scenarios = ["bulk-100mbit-40ms"]
repeats = {repeats}
[grid]
"path[0].down.delay_s" = [0.005, 0.01, 0.02, 0.04]
"""
#: Sixteen pages and more are what allocators differ by from run to run.
ALLOWED_GROWTH_BYTES = 1 << 20


def campaign_s(campaign: Campaign, processes: int) -> float:
    with tempfile.TemporaryDirectory() as work:
        begun = time.perf_counter()
        run_campaign(campaign, Path(work) / "results", processes=processes)
        return time.perf_counter() - begun


def both_cores(repeats: int, repetitions: int) -> None:
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "delays.toml"
        path.write_text(CAMPAIGN.format(repeats=repeats))
        campaign = Campaign.from_toml(path)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repetitions):
        for processes, seen in times.items():
            seen.append(campaign_s(campaign, processes))
    one, two = (statistics.median(seen) for seen in times.values())
    print(
        f"campaign of {campaign.runs} runs: {one:.2f} s with one process, {two:.2f} s with two: {one / two:.2f} times"
    )
    print("wanted: >= 1.8 times")


def memory(core: int) -> None:
    variable = ("variable_rate", "0.2", "0.02")
    commands: dict[str, Sequence[str]] = {
        "bulk, 100 Mbit/s": ("bulk", "sack"),
        "variable rate": (*variable, "0", "1000"),
        "variable rate, split": (*variable, "1", "1000"),
    }
    for name, (program, *drawn) in commands.items():
        command = [sys.executable, "-m", f"benchmarks.simulation.simulate_{program}", *drawn]
        short, long = (run_once([*command, seconds], core).peak_bytes for seconds in ("10", "1000"))
        verdict = "holds" if long - short <= ALLOWED_GROWTH_BYTES else "FAILS"
        print(f"peak memory, {name}: {short / 2**20:.1f} MiB for 10 s, {long / 2**20:.1f} MiB for 1000 s: {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=6, help="seeds of each of the four points")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    chosen = parser.parse_args()
    memory(chosen.core)
    both_cores(chosen.repeats, chosen.repetitions)


if __name__ == "__main__":
    main()
