"""Make a campaign of one-ended networks (as root, on Linux).

`python -m benchmarks.one_ended --seed N --networks K --out DIR`

A network that is there and was not late is left as it is: run again to make what is missing. Keep seeds apart: what a
detector was developed on says nothing about it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.one_ended.network import run
from benchmarks.one_ended.plan import draw

if TYPE_CHECKING:
    from benchmarks.one_ended.plan import Plan


def _is_done(plan: Plan, target: Path) -> bool:
    written = target / plan.name / "truth.json"
    return written.exists() and not json.loads(written.read_text())["late"]


def _attempt(plan: Plan, target: Path) -> bool:
    try:
        made = run(plan, target)
    except Exception as error:
        print(f"{plan.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return False
    print(
        f"{plan.name}: {made['wall_s']} s, late by {made['lateness_p99_s'] * 1e3:.2f} ms, woken late by"
        f" {made['waking_p99_s'] * 1e3:.2f} ms{' LATE' if made['late'] else ''};"
        f" done {sum(made['done'].values())}, errors {sum(made['errors'].values())}",
        flush=True,
    )
    return not made["late"]


def main() -> int:
    """Make what is missing, a few networks at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="what everything is drawn from")
    parser.add_argument("--networks", type=int, default=24, help="how many")
    parser.add_argument("--out", type=Path, required=True, help="directory of the campaign")
    parser.add_argument("--only", help="only networks whose name holds this")
    parser.add_argument("--at-once", type=int, default=3, help="networks that run at the same time")
    parser.add_argument("--rounds", type=int, default=2, help="how often late and failed networks are tried")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plans = [draw(arguments.seed, index) for index in range(arguments.networks)]
    plans = [plan for plan in plans if not arguments.only or arguments.only in plan.name]
    begun = time.monotonic()
    for _ in range(arguments.rounds):
        missing = [plan for plan in plans if not _is_done(plan, arguments.out)]
        with ThreadPoolExecutor(arguments.at_once) as pool:
            list(pool.map(lambda plan: _attempt(plan, arguments.out), missing))
    missing = [plan for plan in plans if not _is_done(plan, arguments.out)]
    print(f"{len(plans) - len(missing)} of {len(plans)} networks, {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
