"""Side by side with tcptrace, tshark and a minimal C program, in one run: `make bench`.

`python -m benchmarks.speed [NAME...]` runs all comparisons or the named ones. Ratios are what counts: machines are
noisy, so the processor time stands beside the wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.speed import captures
from benchmarks.speed.comparisons import BENCHMARKS, TSHARK_PACKETS, Bench, Claim

if TYPE_CHECKING:
    from benchmarks.speed.measure import Median

RESULTS = Path(__file__).parents[1] / "results" / "latest.json"


def prepare(work: Path) -> None:
    """Make the captures that are not there yet."""
    work.mkdir(parents=True, exist_ok=True)
    captures.make_missing(work)
    cut = work / "cut.pcap"
    if not cut.exists():
        subprocess.run(
            ["editcap", "-F", "nsecpcap", "-r", work / "bulk.sender.pcap", cut, f"1-{TSHARK_PACKETS}"], check=True
        )


def main() -> int:
    """Run the named benchmarks (all by default), print the table, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--work", type=Path, default=captures.WORK)
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    prepare(arguments.work)
    bench = Bench(arguments.work, arguments.repetitions, arguments.core)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    everything_holds = True
    for name in arguments.names or BENCHMARKS:
        medians, claims = BENCHMARKS[name](bench)
        _print(name, medians, claims)
        results[name] = {
            "medians": {command: asdict(median) for command, median in medians.items()},
            "claims": [asdict(claim) for claim in claims],
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        everything_holds &= all(claim.holds for claim in claims)
    return 0 if everything_holds else 1


def _size(median: Median) -> str:
    """Peak memory; values below the launcher's own size cannot be distinguished."""
    sign = "<" if median.peak_bytes <= median.floor_bytes else " "
    return f"{sign}{median.peak_bytes / 2**20:8.1f} MiB"


def _print(name: str, medians: dict[str, Median], claims: list[Claim]) -> None:
    print(f"\n{name}")
    for command, median in medians.items():
        print(
            f"  {command:14} wall {median.wall_s:8.3f} s   processor {median.processor_s:8.3f} s"
            f"   peak {_size(median)}   of {median.runs} runs"
        )
    for claim in claims:
        mark = "holds" if claim.holds else "FAILS"
        print(f"  {claim.what:28} {claim.value:9.3f} {claim.unit:4} wanted {claim.wanted:9} {mark}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
