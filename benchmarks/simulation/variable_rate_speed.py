"""How fast the run of seed 003's Fig. 8 is beside ns-2 and ns-3: `python -m benchmarks.simulation.variable_rate_speed`.

Whole processes on one core, in turn, medians, less a run of one simulated millisecond. 300 s take milliseconds, which
would drown in the start of an interpreter: 3000 s are simulated and a tenth is told.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.simulation.variable_rate_run import Setup, build_ns3, ns2_command
from benchmarks.speed.measure import compare

LONG_S, TOLD_S, START_S = 3000.0, 300.0, 0.001
GOAL = 10.0


def _commands(setup: Setup, directory: Path, ns3: Path, simulated_s: float) -> dict[str, list[str]]:
    """The command of each simulator for this long a part of the set-up."""
    drawn = [str(setup.period_s), str(setup.delay_s), str(int(setup.is_split)), str(setup.duration_s)]
    peers = setup.words(directory, simulated_s)
    return {
        "pepscope": [sys.executable, "-m", "benchmarks.simulation.simulate_variable_rate", *drawn, str(simulated_s)],
        "ns-2": [*ns2_command(), *peers],
        "ns-3": [str(ns3), *peers],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--period", type=float, default=0.2, metavar="SECONDS")
    chosen = parser.parse_args()
    print("| TCP | simulator | wall s for 300 s | processor s | times pepscope's (wall, processor) |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        directory = Path(work)
        ns3 = build_ns3(directory)
        for is_split in (False, True):
            setup = Setup(chosen.period, 0.02, is_split, seed=1, duration_s=LONG_S)
            lines = _commands(setup, directory, ns3, LONG_S)
            starts = {f"{name}: start": line for name, line in _commands(setup, directory, ns3, START_S).items()}
            medians = compare(lines | starts, chosen.repetitions, chosen.core)
            share = TOLD_S / LONG_S
            times = {
                name: (
                    share * (medians[name].wall_s - medians[f"{name}: start"].wall_s),
                    share * (medians[name].processor_s - medians[f"{name}: start"].processor_s),
                )
                for name in lines
            }
            ours = times["pepscope"]
            for name, (wall_s, processor_s) in times.items():
                what = "split" if is_split else "end to end"
                ratios = f"{wall_s / ours[0]:.1f}, {processor_s / ours[1]:.1f}"
                print(f"| {what} | {name} | {wall_s:.4f} | {processor_s:.4f} | {ratios} |", flush=True)
    print(f"\nGoal against ns-2: {GOAL:g}.")


if __name__ == "__main__":
    main()
