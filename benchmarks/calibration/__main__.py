"""Calibration of the detector: `python -m benchmarks.calibration --train DIR... --score DIR... [--simulated N] ...`.

Prints Brier scores and reliability tables on the scored material, and what a fit on the training material would make of
the table of weights. Training and scored material must come from different seeds; simulated captures come from
campaigns whose seeds nothing else draws. `--write` puts the section into a page, `--diagram` the reliability diagram
into a file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.calibration.fit import fit
from benchmarks.calibration.material import Flow, of_corpora, of_metamorphic
from benchmarks.calibration.report import claims, diagram, fitted_table, table
from benchmarks.metamorphic.simulated import make_simulated
from benchmarks.validation.marked_sections import write_section
from detector.corpora.validation.calibration import Claims
from pepscope.results.finding import VERSION

#: Seed of the first simulated campaign: beyond those of the validation and of the metamorphic tests.
SIMULATED_SEED = 50_000_000

ROOT = Path(__file__).parents[2]
SECTION = "calibration"


def main() -> None:
    """Gather, score, fit, and write."""
    arguments = _arguments()
    workers = len(os.sched_getaffinity(0))
    material: dict[str, list[Flow]] = {}
    if arguments.score:
        material["fresh captures"] = of_corpora(arguments.score, (), workers)
    if arguments.simulated:
        directory = arguments.work / f"simulated-{SIMULATED_SEED}-{arguments.simulated}"
        make_simulated(directory, arguments.simulated, workers, SIMULATED_SEED)
        material["simulated captures"] = of_corpora([directory], (), workers)
    for path in arguments.metamorphic:
        material["changed captures"] = of_metamorphic(path)
    parts = [f"Table of weights, version {VERSION}."]
    drawn = []
    for name, flows in material.items():
        for made in claims(flows):
            drawn.append(made if len(material) == 1 else _named(made, name))
            parts.append(
                f"**{name}: {made.name}**, Brier score {made.brier:.4f}, {len(made.said)} flows\n\n{table(made)}"
            )
    if arguments.train:
        training = of_corpora(arguments.train, arguments.variant, workers)
        parts.append(f"**Fit on {len(training)} training flows**\n\n{fitted_table(fit(training))}")
    text = "\n\n".join(parts)
    print(text)
    if arguments.write is not None:
        write_section(arguments.write, SECTION, text)
    if arguments.diagram is not None:
        arguments.diagram.write_text(diagram(drawn), encoding="utf-8")


def _named(made: Claims, name: str) -> Claims:
    return Claims(f"{name}: {made.name}", made.said, made.held)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    several: Sequence[Path] = ()
    parser.add_argument("--train", type=Path, nargs="*", default=several, help="corpora to fit the weights to")
    parser.add_argument("--variant", nargs="*", default=(), help="variants of the training captures to add")
    parser.add_argument("--score", type=Path, nargs="*", default=several, help="corpora that nothing was fitted to")
    parser.add_argument("--simulated", type=int, default=0, metavar="N", help="also score N simulated runs")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "calibration", help="for what is simulated")
    parser.add_argument("--metamorphic", type=Path, nargs="*", default=several, help="results of metamorphic runs")
    parser.add_argument("--write", type=Path, help="a page with the marked section")
    parser.add_argument("--diagram", type=Path, help="an SVG file for the reliability diagram")
    return parser.parse_args()


if __name__ == "__main__":
    main()
