"""Score the detector on captures whose truth is known: `make validate`.

Every flow of the corpus, and of variants made from it, counts once. A regular flow called split is a false alarm and
fails the run; so does a split flow called regular. `--write docs/validation/corpus.md` puts the report into its page.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.validation.askings import AS_RECORDED, ASKINGS
from benchmarks.validation.marked_sections import write_section
from benchmarks.validation.report import report
from benchmarks.validation.score import CORPUS, cases, score_case
from benchmarks.validation.variants import VARIANTS

SECTION = "corpus"


def main() -> int:
    """Score, print the report, and fail on a false alarm or on a split called regular."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="directory with manifest.json and its captures")
    parser.add_argument("--askings", action="store_true", help="also ask in other ways: order, one capture, clocks")
    parser.add_argument("--as-recorded", action="store_true", help="leave the variants out")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="only these variants")
    parser.add_argument("--only", help="only runs whose name holds this")
    parser.add_argument("--output", type=Path, help="also write the report to this file")
    parser.add_argument("--write", type=Path, help="a page with the marked section")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    variants = [] if arguments.as_recorded else arguments.variant or list(VARIANTS)
    askings = [name for name in ASKINGS if name != AS_RECORDED] if arguments.askings else []
    chosen = cases(arguments.corpus, variants, askings, arguments.only)
    with ProcessPoolExecutor(arguments.workers) as pool:
        scores = [score for scored in pool.map(score_case, chosen) for score in scored]
    text = report(scores)
    print(text)
    if arguments.output is not None:
        arguments.output.write_text(text)
    if arguments.write is not None:
        write_section(arguments.write, SECTION, text)
    return 1 if any(score.false_alarm or score.called_regular for score in scores) else 0


if __name__ == "__main__":
    sys.exit(main())
