"""Simulated captures as a corpus: scenarios of the campaign `detector-validation`, and a manifest of their truth."""

from __future__ import annotations

import json
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.validation.simulated import CAMPAIGN, expectation
from pepscope.results.verdicts import Verdict
from reference_sim.library import campaign_path
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from reference_sim.sweep import Campaign

_CLASS = {Verdict.REGULAR: "regular", Verdict.SPLIT_TCP: "split", Verdict.TCP_PROXY: "proxy"}

#: Seeds that no validation draws: its campaigns have the first ones.
_FIRST_SEED, _SEED_STEP = 1_000_000, 1_000


def make_simulated(directory: Path, count: int, workers: int, first_seed: int = _FIRST_SEED) -> None:
    """Simulate `count` runs into `directory`, evenly from the family, unless they are there already.

    `first_seed` is the seed of the first campaign drawn from; those after it have seeds of their own.
    """
    manifest = directory / "manifest.json"
    if manifest.exists() and len(json.loads(manifest.read_text())["runs"]) >= count:
        return
    directory.mkdir(parents=True, exist_ok=True)
    family = _family(count, first_seed)
    step = len(family) / count
    chosen = [family[int(place * step)] for place in range(count)]
    with ProcessPoolExecutor(workers) as pool:
        jobs = [(number, str(directory), *point) for number, point in enumerate(chosen)]
        runs = [run for run in pool.map(_simulated, jobs, chunksize=4) if run["flows"]]
    manifest.write_text(json.dumps({"corpus": "simulated", "runs": runs}, indent=1))


def _family(least: int, first_seed: int) -> list[tuple[str, str]]:
    """Variant and scenario (JSON) of whole campaigns, at least so many."""
    campaign = Campaign.from_toml(campaign_path(CAMPAIGN))
    family: list[tuple[str, str]] = []
    while len(family) < least:
        drawn = replace(campaign, seed=first_seed + _SEED_STEP * len(family))
        family += [(point.variant, point.scenario.to_json()) for point in drawn.points()]
    return family


def _simulated(job: tuple[int, str, str, str]) -> dict[str, Any]:
    number, target, variant, text = job
    name = f"{number:04d}-{variant}"
    with tempfile.TemporaryDirectory(prefix="pepscope-") as scratch:
        scenario = Scenario.from_mapping(json.loads(text)).with_values({"record.one_way_delays": True})
        run = simulate(scenario, scratch)
        files = {}
        for side in ("server", "mobile"):
            path = Path(target) / f"{name}.{side}{Path(run.captures[side]).suffix}"
            shutil.copyfile(run.captures[side], path)
            files[side] = {"name": path.name}
        flows = [_flow(run, flow) for flow in run.truth["flows"]]
    return {"id": name, "variant": None, "files": files, "flows": flows}


def _flow(run: Run, flow: dict[str, Any]) -> dict[str, Any]:
    right = expectation(run, flow).right - {Verdict.INCONCLUSIVE}
    made = {"class": _CLASS[Verdict(flow["class"])], "acceptable_kinds": sorted(_CLASS[kind] for kind in right)}
    for side in ("server", "mobile"):
        ends = flow["addresses"][side]
        mobile, server = (f"{ends[end]['address']}:{ends[end]['port']}" for end in ("mobile", "server"))
        made[f"{side}_capture"] = f"{mobile} > {server}"
    return made
