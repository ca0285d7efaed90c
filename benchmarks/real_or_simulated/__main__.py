"""Tell simulated captures from real ones: `python -m benchmarks.real_or_simulated --set-ups 48 --seed 1 -o DIRECTORY`.

Each set-up runs between real kernels in network namespaces (root; kept in DIRECTORY/real-SEED and not run again) and in
virtual time. The area under the ROC curve of a gradient-boosted classifier on set-ups that it has not seen is 0.5 where
nothing tells the two apart. `--ends` gives further fields of the simulated ends, as TOML. With `--learn N` N further
set-ups run between kernels, by turns with those that are scored; the machine's times are measured in them, and the
score is given with these times, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real_or_simulated.features import inspected, is_time, of_packets
from benchmarks.real_or_simulated.learning import learn
from benchmarks.real_or_simulated.runs import Captures, real_runs, simulated_runs
from benchmarks.real_or_simulated.score import Score, Table, alone, score
from benchmarks.real_or_simulated.set_ups import set_ups

#: What the classifier is given: what `inspect` reports, and that with the packets.
KINDS: dict[str, tuple[Callable[[Path], dict[int, dict[str, float]]], ...]] = {
    "inspect": (inspected,),
    "packets": (inspected, of_packets),
}
#: How fine times are: as captured, and without what a machine's speed decides.
STEPS_NS = (1, 1_000_000)
VANTAGE_POINTS = ("server", "mobile")


def table(real: Sequence[Captures], simulated: Sequence[Captures], kind: str, step_ns: int = 1) -> Table:
    """The connections of both as one table, times rounded down to whole steps. A connection gives a row at each vantage
    point."""
    rows: list[dict[str, float]] = []
    labels: list[tuple[int, bool]] = []
    for is_simulated, runs in ((False, real), (True, simulated)):
        for number, captures in enumerate(runs):
            for place, vantage in enumerate(VANTAGE_POINTS):
                numbers = [read(captures[vantage]) for read in KINDS[kind]]
                for port in numbers[0]:
                    merged = {"vantage point": float(place)}
                    for part in numbers:
                        merged |= part[port]
                    rows.append(merged)
                    labels.append((number, is_simulated))
    names = tuple(rows[0])
    values = np.array([[row[name] for name in names] for row in rows])
    times = [is_time(name) for name in names]
    values[:, times] -= values[:, times] % step_ns
    varies = [len(np.unique(column[~np.isnan(column)])) > 1 for column in values.T]
    set_up, is_simulated_row = zip(*labels, strict=True)
    return Table(
        tuple(name for name, kept in zip(names, varies, strict=True) if kept),
        values[:, varies], np.array(set_up), np.array(is_simulated_row),
    )  # fmt: skip


def text(kind: str, result: Score, single: Sequence[tuple[str, float]]) -> str:
    """For a terminal."""
    low, high = result.interval
    lines = [f"{kind}: area {result.area:.3f} ({low:.3f} to {high:.3f}), {result.rows} connections"]
    lines += [f"  {name:48} shuffled: -{lost:.3f}" for name, lost in result.features]
    lines += [f"  {name:48} alone: {area:.3f}" for name, area in single]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, learn, score, print."""
    options = _options(arguments)
    drawn = set_ups(options.set_ups, options.seed)
    unscored = set_ups(options.learn, options.learn_seed)
    real, known = real_runs(
        [(drawn, options.output / f"real-{options.seed}"), (unscored, options.output / f"real-{options.learn_seed}")],
        _progress,
    )
    ends = tomllib.loads(options.ends)
    document: dict[str, Any] = {"set_ups": len(drawn), "seed": options.seed, "ends": options.ends}
    simulated = simulated_runs(drawn, options.output / "simulated", ends)
    document["scores"] = _scored("usual times", real, simulated)
    if unscored:
        learned = learn(unscored, known)
        document["learned"] = {"set_ups": len(unscored), "seed": options.learn_seed, **learned.document()}
        simulated = simulated_runs(drawn, options.output / "simulated-learned", ends, learned.scenario)
        document["scores_learned"] = _scored("measured times", real, simulated)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory of captures")
    parser.add_argument("--set-ups", type=int, default=48, help="how many (default 48)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ends", default="", help="of the simulated ends, as in 'host = \"ideal\"'")
    parser.add_argument("--learn", type=int, default=0, help="measure times in so many further set-ups (default 0)")
    parser.add_argument("--learn-seed", type=int, help="of these (default 1000 more than --seed)")
    parser.add_argument("--json", type=Path, help="write the scores to this file")
    options = parser.parse_args(arguments)
    if options.learn_seed is None:
        options.learn_seed = options.seed + 1000
    if options.learn_seed == options.seed:
        parser.error("--learn-seed must be another than --seed: times must not be measured in what is scored")
    if options.learn and tomllib.loads(options.ends).get("host", "ideal") == "ideal":
        parser.error("--learn measures what hosts take, and ideal hosts take no time: --ends 'host=\"linux\"'")
    return options


def _scored(label: str, real: Sequence[Captures], simulated: Sequence[Captures]) -> dict[str, Any]:
    """The scores of each kind, printed."""
    scores = {}
    for kind, step_ns in ((kind, step_ns) for kind in KINDS for step_ns in STEPS_NS):
        rows = table(real, simulated, kind, step_ns)
        result = score(rows)
        name = f"{kind}, times in steps of {step_ns:,} ns"
        scores[name] = result.document()
        print(text(f"{label}: {name}", result, alone(rows)), flush=True)
    return scores


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} set-ups ran between kernels", end="\n" if done == total else "", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
