"""Labels of simulated and emulated runs, from the `truth.json` beside their captures.

A directory of one run (`pepscope simulate SCENARIO -o DIR`) or of a campaign that kept its captures (`pepscope simulate
--campaign`, with `captures = true`).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from detector.corpora.validation.labels import Case, Ends, Factor, LabelError, LabelledRun, end_point
from detector.corpora.validation.manifest import as_factor
from pepscope.results.verdicts import Verdict

TRUTH, CAMPAIGN = "truth.json", "campaign.json"
_RUNS, _RESULTS = "runs", "results.csv"

#: What `results.csv` has of each run before the fields that the campaign varied.
_LABELS = ("index", "scenario", "variant", "repeat", "seed")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def read_simulated(directory: Path) -> list[LabelledRun]:
    """The labelled runs of a directory that holds one run or a campaign. Raises LabelError."""
    if (directory / TRUTH).is_file():
        return [_run(directory, directory.name, {})]
    varied = _results(directory / _RESULTS)
    found = [
        _run(path.parent, f"{directory.name}/{path.parent.name}", varied.get(path.parent.name, {}))
        for path in sorted((directory / _RUNS).glob(f"*/{TRUTH}"))
    ]
    if not found:
        raise LabelError(f"{directory} must hold runs with captures, got none: the campaign needs `captures = true`")
    return found


def _results(path: Path) -> dict[str, dict[str, str]]:
    """The rows of all runs by the names of their directories; none where the campaign did not end."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return {f"{int(row['index']):06d}": row for row in csv.DictReader(stream)}
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise LabelError(f"{path} must be the results of a campaign: {error}") from None


def _run(directory: Path, name: str, varied: Mapping[str, str]) -> LabelledRun:
    path = directory / TRUTH
    try:
        truth = json.loads(path.read_text(encoding="utf-8"))
        taps = {str(each["tap"]): directory / str(each["file"]) for each in truth["captures"]}
        of_run = {**_of_captures(truth), **_varied(varied, truth["scenario"])}
        cases = tuple(_case(flow, tuple(taps), of_run) for flow in truth["flows"])
    except OSError as error:
        raise LabelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise LabelError(f"{path} must be the truth of a simulated run: {type(error).__name__} {error}") from None
    if not 1 <= len(taps) <= 2 or not cases:
        raise LabelError(f"{path} must have flows and one or two captures, got {len(cases)} and {len(taps)}")
    if missing := [str(capture) for capture in taps.values() if not capture.is_file()]:
        raise LabelError(f"{path}: its captures must be there, {missing[0]} does not exist")
    return LabelledRun(name, tuple(taps.values()), cases)


def _case(flow: Mapping[str, Any], taps: tuple[str, ...], of_run: Mapping[str, Factor]) -> Case:
    kind = Verdict(flow["class"])
    addresses = flow["addresses"]
    ends = [_ends(addresses[tap]) if tap in addresses else None for tap in taps]
    size = sum(int(flow[end]["read_bytes"]) for end in ("server", "mobile"))
    factors: dict[str, Factor] = {"size_bytes": float(size), "flow": str(flow["kind"]), **of_run}
    if (ratio := _leg_ratio(flow.get("legs", ()))) is not None:
        factors["leg_ratio"] = ratio
    # A relay and a store that hold little look alike: the other kind is counted apart, and is no error.
    return Case(kind, frozenset({kind}), (ends[0], ends[1] if len(ends) > 1 else None), None, None, factors)


def _ends(addresses: Mapping[str, Mapping[str, Any]]) -> Ends:
    def text(side: str) -> str:
        address, port = addresses[side]["address"], addresses[side]["port"]
        return end_point(f"{address}:{port}")

    return Ends(text("mobile"), text("server"))


def _leg_ratio(legs: Any) -> float | None:
    """Least round trip of the leg at the server as a multiple of all others'; None of a path that is one leg."""
    least = [sum(leg[f"one_way_delay_{way}"]["minimum_s"] for way in ("down", "up")) for leg in legs]
    return least[0] / sum(least[1:]) if len(least) > 1 and sum(least[1:]) > 0 else None


def _of_captures(truth: Any) -> dict[str, Factor]:
    """Circumstances of a run: what was lost on the path and in the captures, clocks, and what captures keep."""
    hops = [hop[way] for hop in truth["hops"] for way in ("down", "up") if isinstance(hop.get(way), Mapping)]
    lost = sum(int(way.get("lost_packets", 0)) + int(way.get("overflowed_packets", 0)) for way in hops)
    offered = max((int(way.get("offered_packets", 0)) for way in hops), default=0)
    written = sum(int(each["written_packets"]) for each in truth["captures"])
    missed = sum(int(each["missed_packets"]) for each in truth["captures"])
    taps = truth["scenario"]["record"]["taps"]
    drifts = [float(tap["clock"]["drift_ppm"]) for tap in taps]
    snaps = [int(tap["snap_bytes"]) for tap in taps if tap.get("snap_bytes")]
    return {
        "scenario": str(truth["scenario"]["name"]),
        "loss_percent": 100.0 * lost / offered if offered else 0.0,
        "missed_in_captures_percent": 100.0 * missed / (missed + written) if written else 0.0,
        "drift_ppm": max(drifts, default=0.0) - min(drifts, default=0.0),
        "clock_steps": "yes" if any(tap["clock"]["steps"] for tap in taps) else "no",
        "snap_length_bytes": float(min(snaps)) if snaps else "whole headers",
    }


def _varied(row: Mapping[str, str], scenario: Mapping[str, Any]) -> dict[str, Factor]:
    """The variant, and the fields that the campaign varied: columns whose names are fields of the scenario."""
    found: dict[str, Factor] = {"variant": row["variant"]} if row.get("variant") else {}
    for name, text in row.items():
        if name not in _LABELS and text and _is_field(name.split(",")[0].strip(), scenario):
            found[name] = as_factor(text)
    return found


def _is_field(name: str, scenario: Any) -> bool:
    place = scenario
    try:
        for step in _steps(name):
            place = place[step]
    except (LookupError, TypeError):
        return False
    return True


def _steps(name: str) -> Iterator[str | int]:
    for found in _STEP.finditer(name):
        yield found[1] if found[1] is not None else int(found[2])
