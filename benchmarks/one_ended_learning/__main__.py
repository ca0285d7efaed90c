"""Learn the densities of `detector/one_capture/likelihoods/timing_tables.json` from networks whose truth is known.

    python -m benchmarks.one_ended_learning DIRECTORY... [--output FILE]

A directory holds networks as `benchmarks.one_ended` and `benchmarks.one_ended_simulated` make them. Networks of other
seeds choose constants and score (docs/methods/exchange_timing.md); clients and servers that think before they answer
are left out, because lateness is a hypothesis of its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.one_ended_learning.tables import learned, of_side, rounded, samples, shift_natures
from pepscope.results.verdicts import GroupSide


def main() -> None:
    """Learn and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, default=Path("detector/one_capture/likelihoods/timing_tables.json"))
    parser.add_argument("--shift-natures", action="store_true", help="learn these alone, keep the others")
    arguments = parser.parse_args()
    found = [sample for directory in arguments.directories for sample in samples(directory)]
    if arguments.shift_natures:
        content = json.loads(arguments.output.read_text("ascii"))
        content["sides"][GroupSide.SERVER.value]["shift_natures"] = shift_natures(of_side(found, GroupSide.SERVER))
    else:
        content = learned(found)
    text = json.dumps(rounded(content), separators=(",", ":"))
    arguments.output.write_text(text + "\n", "ascii")


if __name__ == "__main__":
    main()
