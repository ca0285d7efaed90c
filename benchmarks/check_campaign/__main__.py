"""Score `pepscope check` on paths with delays: `python -m benchmarks.check_campaign --runs 1000 --seed 1 --results F`.

Root. Each run draws delays of eight hosts and of the access line, puts one kind of box, or none, on the path, and
checks two ports of each host. Results go to a file, a JSON line each; runs that it holds are not made again, so that a
campaign can be interrupted, bounded in time, and continued. What is called split and is not counts against it; found is
a split called split.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.check_campaign.kinds import KINDS, let_users_echo
from benchmarks.check_campaign.world import HOSTS, World, targets, world
from detector.corpora.validation.intervals import Share

_SAYINGS = ("split-tcp", "regular", "inconclusive")


def main() -> int:
    """Print the table; 1 where anything was called split that is not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=len(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, required=True, help="where results are kept, a JSON line each")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no run after so many")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--only", help="kinds whose names hold these words")
    options = parser.parse_args()
    done = {(each["seed"], each["number"]) for each in _read(options.results)}
    numbers = [
        number for number in range(options.runs)
        if (options.seed, number) not in done and (options.only or "") in _kind(number)
    ]  # fmt: skip
    end = time.time() + 60 * options.minutes
    shares = [numbers[first :: options.at_once] for first in range(options.at_once)]
    if numbers:
        with ProcessPoolExecutor(options.at_once) as pool:
            list(pool.map(_series, shares, *zip(*[(options.seed, end, options.results)] * len(shares), strict=True)))
    return _print([each for each in _read(options.results) if each["seed"] == options.seed])


def _kind(number: int) -> str:
    return list(KINDS)[number % len(KINDS)]


def _read(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def _series(numbers: Sequence[int], seed: int, end: float, file: Path) -> None:
    """Some runs, one after the other in one world."""
    with world() as made:
        for number in numbers:
            if time.time() > end:
                return
            try:
                found = one_run(made, number, seed)
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                sys.stderr.write(f"{number} {_kind(number)} failed, and counts as not made: {error}\n")
                continue
            with file.open("a", encoding="utf-8") as results:
                results.write(json.dumps(found) + "\n")
            sys.stderr.write(f"{number} {found['kind']}: {found['said']} {found['seconds']:.0f} s\n")


def one_run(made: World, number: int, seed: int) -> dict[str, Any]:
    """Put the kind of this number on the path, check, and take it away again."""
    chance = random.Random(f"{seed}/{number}")
    kind = KINDS[_kind(number)]
    delays_s = [math.exp(chance.uniform(math.log(0.003), math.log(0.08))) for _ in HOSTS]
    begun = time.monotonic()
    try:
        for host, delay_s in enumerate(delays_s):
            made.line(f"host{host}", delay_s=delay_s)
        made.line("access", delay_s=chance.uniform(0.002, 0.04))
        made.think([(0.0, 0.0)] * len(HOSTS))
        if chance.random() < 0.5:
            let_users_echo(made)
        kind.put(made, chance)
        is_captured = chance.random() < 0.5
        said = made.check(targets(ipv6=kind.ipv6), is_captured)
    finally:
        made.stack.close()
    return {
        "seed": seed, "number": number, "kind": _kind(number), "split": sorted(map(list, kind.split)),
        "said": {f"{each['family']}/{each['port']}": each["verdict"] for each in said["ports"]},
        "reasons": {f"{each['family']}/{each['port']}": each["reason"] for each in said["ports"]},
        "causes": {f"{each['family']}/{each['port']}": each["causes"] for each in said["ports"]},
        "captured": is_captured, "shown": {
            f"{each['family']}/{each['port']}": [
                found["name"] for found in each["findings"] if found["name"].startswith("capture-")
            ]
            for each in said["ports"]
        },
        "delays_s": delays_s, "seconds": time.monotonic() - begun, "load": os.getloadavg()[0],
    }  # fmt: skip


def _print(rows: Iterable[dict[str, Any]]) -> int:
    counts: Counter[tuple[str, bool, str]] = Counter()
    shown: Counter[tuple[bool, str]] = Counter()
    captured: Counter[bool] = Counter()
    runs = 0
    for row in rows:
        runs += 1
        for name, said in row["said"].items():
            is_split = list(map(int, name.split("/"))) in row["split"]
            counts[row["kind"], is_split, said] += 1
            captured[is_split] += row["captured"]
            shown.update((is_split, each) for each in set(row["shown"][name]))
    print("| path | ports split | called split | called regular | inconclusive | ports not split | called split "
          "| called regular | inconclusive |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for kind in KINDS:
        cells = [[counts[kind, truth, said] for said in _SAYINGS] for truth in (True, False)]
        print(f"| {kind} | {' | '.join(f'{sum(row)} | ' + ' | '.join(map(str, row)) for row in cells)} |")
    alarms = 0
    for truth, what, wanted in (
        (True, "splits found", "split-tcp"), (True, "splits called regular", "regular"),
        (False, "falsely called split", "split-tcp"), (False, "regular ports called so", "regular"),
    ):  # fmt: skip
        of = sum(count for (_, split, _), count in counts.items() if split is truth)
        said = sum(count for (_, split, verdict), count in counts.items() if split is truth and verdict == wanted)
        alarms += said if what == "falsely called split" else 0
        print(f"\n{what}: {Share(said, of)}")
    for name in ("capture-shows-hidden-leg", "capture-shows-one-stack"):
        for truth, what in ((True, "split"), (False, "not split")):
            print(f"\n{name} of captured ports that are {what}: {Share(shown[truth, name], captured[truth])}")
    print(f"\n{runs} runs")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
