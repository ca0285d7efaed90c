"""Change labelled captures at random and count verdicts that no change allows: `python -m benchmarks.metamorphic`.

Case I depends on the seed, on I and on the given corpora alone; `--case I` judges it again and keeps its captures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.metamorphic.case import draw_case, judge_case
from benchmarks.metamorphic.pairs import Source, sources
from benchmarks.metamorphic.report import SECTION, failures, section
from benchmarks.metamorphic.run import score, scored_detector
from benchmarks.metamorphic.simulated import make_simulated
from benchmarks.validation.marked_sections import write_section

ROOT = Path(__file__).parents[2]
CORPORA = (ROOT / "tests" / "corpus", ROOT / "tests" / "fresh")


def main() -> int:
    """Score, and fail on a verdict that no change allows; or show one case."""
    arguments = _arguments()
    directories = [*(arguments.corpus or CORPORA)]
    if arguments.simulated:
        directory = arguments.work / f"simulated-{arguments.simulated}"
        make_simulated(directory, arguments.simulated, arguments.jobs)
        directories.append(directory)
    all_sources = sources(directories)
    if arguments.case is not None:
        return _show(arguments.seed, arguments.case, all_sources, arguments.work)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    scored = score(
        arguments.seed, all_sources, arguments.judgements, arguments.jobs, arguments.output, scored_detector()
    )
    text = section(scored)
    print(text)
    print("\n## What no change allows\n\n" + failures(scored))
    if arguments.write is not None:
        write_section(arguments.write, SECTION, text)
    return int(any(j.false_alarm or j.called_regular or j.crashed for one in scored for j in one.judgements))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--corpus", type=Path, action="append",
        help="directory with manifest.json and captures, as benchmarks.fresh makes it; may be given several times",
    )  # fmt: skip
    parser.add_argument("--simulated", type=int, default=0, metavar="N", help="also N simulated pairs")
    parser.add_argument("--judgements", type=int, default=100_000, help="how many judgements of changed captures")
    parser.add_argument("--seed", default="1", help="what everything is drawn from")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("-o", "--output", type=Path, default=Path("metamorphic.jsonl"), help="results, a line a case")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "metamorphic", help="for what is made and kept")
    parser.add_argument("--write", type=Path, help="a page with the marked section")
    parser.add_argument("--case", type=int, help="judge this case alone and keep its captures")
    return parser.parse_args()


def _show(seed: str, number: int, all_sources: list[Source], work: Path) -> int:
    case = draw_case(seed, number, all_sources)
    directory = work / f"case-{seed}-{number}"
    directory.mkdir(parents=True, exist_ok=True)
    print(f"case {number} of seed {seed}: {case.source.name}")
    for step in case.steps:
        print(f"  {step.change} ({step.place}): {json.dumps(step.parameters)}")
    wrong = False
    for one in judge_case(case, directory):
        wrong |= one.false_alarm or one.called_regular or one.crashed
        shown = one.probability and ", ".join(f"{value:.3f}" for value in one.probability)
        print(f"{one.flow} ({one.truth}, may be {', '.join(sorted(one.acceptable))}): {one.verdict} ({shown})")
        print(f"  {one.reason}")
    print(f"captures: {directory}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
