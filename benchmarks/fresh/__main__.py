"""Make fresh captures with known truth: `python -m benchmarks.fresh -o DIR` (as root, on Linux).

Every experiment draws its rates, delays, sizes and clocks from the seed. The directory gets the captures and a
`manifest.json` of the form that `tests/corpus` has, which `python -m benchmarks.validation --corpus DIR` scores, and
the same labels as a `manifest.csv` for `pepscope validate DIR`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.fresh import acknowledging, hosts, regular, rewriting, split, vantage_points
from benchmarks.fresh.experiment import report_failure, run
from benchmarks.fresh.scenario import Scenario, UnavailableError
from benchmarks.validation.labels import write_labels

_PARTS = (regular, split, acknowledging, rewriting, hosts, vantage_points)


def scenarios(seed: str, only: list[str] | None) -> Mapping[str, Scenario]:
    """Every experiment by its name, drawn from the seed."""
    drawn = {f"reg-{name}": draw for part in _PARTS for name, draw in getattr(part, "REGULAR", {}).items()}
    drawn |= {f"spl-{name}": draw for part in _PARTS for name, draw in getattr(part, "SPLIT", {}).items()}
    wanted = [name for name in drawn if not only or any(part in name for part in only)]
    return {name: drawn[name](random.Random(f"{seed}/{name}")) for name in wanted}


def main() -> int:
    """Run all experiments, a few at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory for captures and manifest")
    parser.add_argument("--seed", default="1", help="what everything is drawn from")
    parser.add_argument("--only", action="append", help="only experiments whose name holds this; may be repeated")
    parser.add_argument("--at-once", type=int, default=4, help="experiments that run at the same time")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    wanted = scenarios(arguments.seed, arguments.only)
    left_out = {name: missing for name, s in wanted.items() if (missing := [n for n in s.programs if _missing(n)])}
    for name, missing in left_out.items():
        print(f"{name}: left out, needs {', '.join(missing)}", file=sys.stderr)

    def attempt(numbered: tuple[int, str]) -> dict[str, Any] | None:
        number, name = numbered
        try:
            return run(name, wanted[name], number, f"{arguments.seed}/{name}", arguments.output)
        except UnavailableError as error:
            print(f"{name}: left out, needs {error}", file=sys.stderr)
            left_out[name] = [str(error)]
            return None
        except Exception as error:
            report_failure(name, error)
            return None

    chosen = [name for name in wanted if name not in left_out]
    with ThreadPoolExecutor(arguments.at_once) as pool:
        runs = [entry for entry in pool.map(attempt, enumerate(chosen)) if entry is not None]
    manifest = {"corpus": "fresh", "seed": arguments.seed, "left_out": left_out, "runs": runs}
    (arguments.output / "manifest.json").write_text(json.dumps(manifest, indent=1))
    write_labels(arguments.output)
    flows = sum(len(entry["flows"]) for entry in runs)
    print(f"{len(runs)} runs, {flows} flows, {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return 0 if len(runs) + len(left_out) == len(wanted) else 1


def _missing(program: str) -> bool:
    return shutil.which(program, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin") is None


if __name__ == "__main__":
    sys.exit(main())
