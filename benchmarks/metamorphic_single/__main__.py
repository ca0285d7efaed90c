"""Change labelled captures of one end and count wrong verdicts: `python -m benchmarks.metamorphic_single DIR...`.

DIR holds networks as `benchmarks.one_ended_simulated` or `benchmarks.one_ended` makes them. Case I depends on the seed,
on I and on the networks alone; `--case I` judges it again and keeps its files.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.metamorphic.run import scored_detector
from benchmarks.metamorphic_single.captures import Source, sources
from benchmarks.metamorphic_single.case import draw_case, judge_case
from benchmarks.metamorphic_single.report import SECTION, failures, section, with_recorded
from benchmarks.metamorphic_single.run import score
from benchmarks.validation.marked_sections import write_section


def main() -> int:
    """Score, and fail on a false alarm, on a split called regular that was not so as recorded, and on a crash."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", type=Path, nargs="+", help="networks, or folders that hold networks")
    parser.add_argument("--seed", default="1", help="what everything is drawn from")
    parser.add_argument("--judgements", type=int, default=20_000, help="how many judgements of changed captures")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("-o", "--output", type=Path, default=Path("metamorphic-single.jsonl"), help="a line a case")
    parser.add_argument("--write", type=Path, help="a page with the marked section")
    parser.add_argument("--case", type=int, help="judge this case alone and keep its files in the folder --work")
    parser.add_argument("--work", type=Path, default=Path("build/metamorphic-single"))
    arguments = parser.parse_args()
    all_sources = sources(arguments.directories)
    if not all_sources:
        parser.error(f"no truth.json in or below {', '.join(map(str, arguments.directories))}")
    if arguments.case is not None:
        return _show(arguments.seed, arguments.case, all_sources, arguments.work)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    scored = score(
        arguments.seed, all_sources, arguments.judgements, arguments.jobs, arguments.output, scored_detector()
    )
    text = section(scored)
    print(f"{text}\n\n{failures(scored)}")
    if arguments.write is not None:
        write_section(arguments.write, SECTION, text)
    judged = with_recorded(scored)
    return int(any(each.new_false_alarm or each.newly_regular or each.judgement.crashed for each in judged))


def _show(seed: str, number: int, all_sources: Sequence[Source], work: Path) -> int:
    case = draw_case(seed, number, all_sources)
    directory = work / f"case-{seed}-{number}"
    directory.mkdir(parents=True, exist_ok=True)
    print(f"case {number} of seed {seed}: {case.source.name}")
    for change, parameters in case.steps:
        print(f"  {change}: {json.dumps(parameters)}")
    wrong = False
    for one in judge_case(case, directory):
        is_wrong = one.false_alarm or one.called_regular or one.crashed
        wrong |= is_wrong
        if one.is_group or is_wrong:
            kind = "group" if one.is_group else "connection"
            print(f"{one.side} {kind} {one.members[:8]} ({one.truth}): {one.verdict} {one.split_probability:.3f}")
            print(f"  {one.reason}")
    print(f"files: {directory}")
    return int(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
