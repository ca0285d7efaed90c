"""Labelled captures to scores: read, judged over processes, counted, and compared."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from detector.corpora.validation.comparing import beside, compare, read_baseline
from detector.corpora.validation.judging import JudgedRun, RunWork, judge_run
from detector.corpora.validation.labels import LabelError, LabelledRun
from detector.corpora.validation.manifest import MANIFEST, read_manifest
from detector.corpora.validation.other_detector import OtherDetector
from detector.corpora.validation.results import OWN_NAME, Validation
from detector.corpora.validation.simulated_truth import CAMPAIGN, TRUTH, read_simulated
from detector.options import DECISION_PROBABILITY
from pepscope._core import usable_processors
from pepscope.errors import PepscopeError, UsageError
from pepscope.processes.workers import over_workers

#: A difference that chance makes less often than this is none of chance.
SIGNIFICANCE = 0.05

#: How long another detector may take for the captures of one run.
DETECTOR_TIMEOUT_S = 600.0


def validate(
    corpora: Sequence[str | Path],
    *,
    detector: str | None = None,
    detector_timeout_s: float = DETECTOR_TIMEOUT_S,
    against: str | Path | None = None,
    unpaired: bool = False,
    significance: float = SIGNIFICANCE,
    least_probability: float = DECISION_PROBABILITY,
    memory_bytes: int | None = None,
    processes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Validation:
    """Score verdicts on captures whose truth is known.

    Each of `corpora` is a directory with a `manifest.csv` (or such a file), the output of `pepscope simulate` for one
    scenario, or for a campaign that kept its captures. `detector` is the command of another detector, which is scored,
    too: it gets one or two captures as its last arguments, writes `detect-2` JSON, and may take `detector_timeout_s`
    for them; where it does not, that counts against it. `against` is an earlier validation (`Validation.to_dict` as
    JSON): each rate is tested at `significance`, on the captures that both have, or, `unpaired`, on other ones.
    `processes` (default: one a usable core) share the work; `progress` gets the runs done and in all.

    Raises LabelError for labels and baselines that cannot be used, UsageError for options that do not fit, CaptureError
    for a capture that cannot be read where the label is of all that it holds.
    """
    if unpaired and against is None:
        raise UsageError("unpaired is for a comparison: give a baseline, too")
    others = () if detector is None else (OtherDetector.from_command(detector, detector_timeout_s),)
    runs = read_corpora(corpora)
    # Read before hours of work, too.
    baseline = None if against is None else read_baseline(against)
    work = [
        RunWork(run, tuple(str(path.absolute()) for path in run.captures), others, least_probability, memory_bytes)
        for run in runs
    ]
    judged = _judged(work, processes or usable_processors(), progress or (lambda *_: None))
    names = (OWN_NAME, *(each.name for each in others))
    found = Validation(tuple(map(str, corpora)), tuple(judged), names)
    if not found.cases:
        raise LabelError(f"{' and '.join(found.corpora)} must have a label of at least one connection, got none")
    if others:
        found = replace(found, beside=beside(found, significance))
    if baseline is not None:
        found = replace(found, comparison=compare(found, baseline, significance, unpaired=unpaired))
    return found


def read_corpora(corpora: Sequence[str | Path]) -> list[LabelledRun]:
    """The labelled runs of all corpora. Raises LabelError."""
    runs: list[LabelledRun] = []
    for corpus in corpora:
        path = Path(corpus)
        if path.is_file():
            runs += read_manifest(path)
        elif (path / MANIFEST).is_file():
            runs += read_manifest(path / MANIFEST)
        elif (path / TRUTH).is_file() or (path / CAMPAIGN).is_file():
            runs += read_simulated(path)
        else:
            there = "holds none of them" if path.is_dir() else "does not exist"
            raise LabelError(f"a corpus must be a directory with {MANIFEST}, {TRUTH} or {CAMPAIGN}; {path} {there}")
    return runs


def _judged(work: Sequence[RunWork], processes: int, progress: Callable[[int, int], object]) -> list[JudgedRun]:
    outcomes: dict[int, JudgedRun] = {}
    with contextlib.closing(over_workers(judge_run, work, processes=processes, scheduler=None)) as judged:
        for place, outcome in judged:
            if isinstance(outcome, PepscopeError | OSError):
                raise UsageError(f"{work[place].run.name} cannot be judged: {outcome}") from None
            if isinstance(outcome, Exception):
                raise outcome
            outcomes[place] = outcome
            progress(len(outcomes), len(work))
    return [outcomes[place] for place in range(len(work))]
