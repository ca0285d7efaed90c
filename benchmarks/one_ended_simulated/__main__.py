"""Make networks: `python -m benchmarks.one_ended_simulated --seed 1 --networks 100 --out DIR`."""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.one_ended_simulated.captures import write_capture
from benchmarks.one_ended_simulated.crowds import draw_crowd
from benchmarks.one_ended_simulated.draws import draw_scenario
from benchmarks.one_ended_simulated.run import Simulation
from benchmarks.one_ended_simulated.truth import identity, truth


def make_network(seed: int, directory: Path, number: int, *, crowd: bool = False) -> int:
    """Simulate one network, of many clients at one address if a `crowd`, and write its folder. Gives the packets in its
    captures.
    """
    scenario = draw_crowd(seed, number) if crowd else draw_scenario(seed, number)
    simulation = Simulation(scenario, Random(f"one-ended-run/{seed}/{number}"))
    simulation.run()
    folder = directory / identity(number)
    folder.mkdir(parents=True, exist_ok=True)
    files, packets = {}, 0
    for name, tap in simulation.taps.items():
        file = f"{name}.pcap.gz"
        count = write_capture(folder / file, tap, scenario.recordings[name], Random(f"{seed}/{number}/{name}"))
        packets += count
        if count:
            files[name] = file
        else:
            (folder / file).unlink()
    text = json.dumps(truth(simulation, files), indent=1)
    (folder / "truth.json").write_text(text + "\n", encoding="utf-8")
    return packets


def main() -> None:
    """Make the networks of one seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--networks", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first network")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--crowds", action="store_true", help="networks of many clients at one public address instead")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.networks)
    make = partial(make_network, options.seed, options.out, crowd=options.crowds)
    with ProcessPoolExecutor(options.jobs) as pool:
        packets = sum(pool.map(make, numbers, chunksize=4))
    print(f"{len(numbers)} networks, {packets} packets in {options.out}")


if __name__ == "__main__":
    main()
