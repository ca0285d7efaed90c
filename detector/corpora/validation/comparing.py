"""What became worse, beyond chance: each rate beside a baseline's, or one detector beside another.

Connections of one capture share path, clocks and kernels, so that the unit of both tests is the run. On the same
captures: the exact McNemar test (McNemar 1947), one-sided, on runs in which more, or fewer, labels fail than before; of
n runs that differ, so many or more are worse with the probability of a fair coin. On other captures: Fisher's exact
test (Fisher 1935), one-sided, on the runs in which any label fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from detector.corpora.validation.encode import SCHEMA_VERSION
from detector.corpora.validation.intervals import Share
from detector.corpora.validation.labels import CLASSES, Case, LabelError
from detector.corpora.validation.results import Change, Comparison, DetectorScore, Validation
from detector.corpora.validation.scoring import RATES, SAYINGS, Rate, Score, score_of
from pepscope.results.verdicts import SplitPlace, Verdict
from pepscope.strict_reading import read_as, shown

MCNEMAR, FISHER = "mcnemar", "fisher"


class _Judgement(Struct, frozen=True):
    verdict: str
    where: SplitPlace | None = None


class _Detector(Struct, frozen=True):
    name: str
    judgements: list[_Judgement]


class _Case(Struct, frozen=True):
    id: str
    run: int
    truth: Verdict
    accepted: list[Verdict]
    where: SplitPlace | None = None


class _Baseline(Struct, frozen=True):
    cases: list[_Case]
    detectors: list[_Detector]


@dataclass(frozen=True, slots=True)
class Baseline:
    """An earlier validation, as far as it is compared: verdicts of each detector by case."""

    path: str
    cases: Mapping[str, Case]
    runs: Mapping[str, int]
    said: Mapping[str, Mapping[str, _Judgement]]


def read_baseline(path: str | Path) -> Baseline:
    """The output of `pepscope validate --json`. Raises LabelError."""
    try:
        document: Any = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise LabelError(f"{path} cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise LabelError(f"{path} must be JSON, the output of `pepscope validate --json`") from None
    version = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or "cases" not in document or "detectors" not in document:
        raise LabelError(f"{path} must be the output of `pepscope validate --json`, got another document")
    if version != SCHEMA_VERSION:
        raise LabelError(f"{path} must be of version {SCHEMA_VERSION}, got {shown(version)}: write the baseline anew")
    read = read_as(_Baseline, document, LabelError, place=str(path))
    for each in read.detectors:
        if len(each.judgements) != len(read.cases):
            raise LabelError(
                f"{path}: {shown(each.name)} must have {len(read.cases)} judgements, got {len(each.judgements)}"
            )
        if unknown := [judged.verdict for judged in each.judgements if judged.verdict not in SAYINGS]:
            raise LabelError(f"{path}: a verdict must be one of {', '.join(SAYINGS)}, got {shown(unknown[0])}")
    if any(case.truth not in CLASSES for case in read.cases):
        raise LabelError(f"{path}: a truth must be one of {', '.join(CLASSES)}, got {shown('inconclusive')}")
    ids = [case.id for case in read.cases]
    return Baseline(
        str(path),
        {case.id: Case(case.truth, frozenset(case.accepted), where=case.where) for case in read.cases},
        {case.id: case.run for case in read.cases},
        {each.name: dict(zip(ids, each.judgements, strict=True)) for each in read.detectors},
    )


def compare(validation: Validation, baseline: Baseline, significance: float, *, unpaired: bool) -> Comparison:
    """Each rate of each detector that both have. `unpaired` compares other captures.

    Verdicts of the baseline are scored by the labels of now, where the captures are the same. Raises LabelError where
    nothing can be compared.
    """
    names = [each for each in validation.detectors if each.name in baseline.said]
    if not names:
        raise LabelError(
            f"{baseline.path} must have scores of {' or '.join(each.name for each in validation.detectors)}, got those "
            f"of {', '.join(baseline.said) or 'none'}"
        )
    now = validation.case_ids
    common = [place for place, name in enumerate(now) if name in baseline.cases]
    if not common and not unpaired:
        raise LabelError(
            f"{baseline.path} must be of the same captures, got none of these: --unpaired compares other captures"
        )
    changes = [
        change
        for score in names
        for change in (
            _unpaired(score, validation, baseline, significance)
            if unpaired
            else _paired(
                score.name, validation, common, [judged.score for judged in score.judgements],
                _earlier(score, validation, baseline), significance,
            )
        )
    ]  # fmt: skip
    return Comparison(
        baseline.path, FISHER if unpaired else MCNEMAR, significance, len(common), len(now) - len(common),
        len(baseline.cases.keys() - set(now)), tuple(changes),
    )  # fmt: skip


def beside(validation: Validation, significance: float) -> tuple[Change, ...]:
    """The other detectors beside ours, on the same captures: `before` is ours."""
    own, *others = validation.detectors
    everything = range(len(validation.cases))
    scores = dict(enumerate(judged.score for judged in own.judgements))
    return tuple(
        change
        for other in others
        for change in _paired(
            other.name, validation, everything, [judged.score for judged in other.judgements], scores, significance
        )
    )


def _earlier(score: DetectorScore, validation: Validation, baseline: Baseline) -> dict[int, Score]:
    """The scores of the baseline's verdicts by the labels of now, by place."""
    said = baseline.said[score.name]
    return {
        place: score_of(case, said[name].verdict, said[name].where)
        for place, (name, case) in enumerate(zip(validation.case_ids, validation.cases, strict=True))
        if name in said
    }


def _paired(
    detector: str,
    validation: Validation,
    places: Sequence[int],
    now: Sequence[Score],
    before: Mapping[int, Score],
    significance: float,
) -> list[Change]:
    run_of = [number for number, run in enumerate(validation.runs) for _ in run.cases]
    changes = []
    for rate in RATES:
        counted = [place for place in places if rate.is_of(validation.cases[place])]
        if not counted:
            continue
        shift: dict[int, int] = {}
        for place in counted:
            more = int(rate.fails(now[place])) - int(rate.fails(before[place]))
            shift[run_of[place]] = shift.get(run_of[place], 0) + more
        worse, better = sum(each > 0 for each in shift.values()), sum(each < 0 for each in shift.values())
        p_value = mcnemar(worse, better)
        changes.append(
            Change(
                detector, rate.name, Share.that(rate.fails(before[place]) for place in counted),
                Share.that(rate.fails(now[place]) for place in counted), worse, better, p_value, p_value < significance,
            )
        )  # fmt: skip
    return changes


def _unpaired(score: DetectorScore, validation: Validation, baseline: Baseline, significance: float) -> list[Change]:
    said = baseline.said[score.name]
    run_of = [number for number, run in enumerate(validation.runs) for _ in run.cases]
    changes = []
    for rate in RATES:
        now = _failing(rate, zip(run_of, validation.cases, (judged.score for judged in score.judgements), strict=True))
        before = _failing(
            rate,
            (
                (baseline.runs[name], case, score_of(case, said[name].verdict, said[name].where))
                for name, case in baseline.cases.items()
            ),
        )
        if now.of and before.of:
            p_value = fisher(before, now)
            changes.append(
                Change(score.name, rate.name, before, now, None, None, p_value, p_value < significance)
            )  # fmt: skip
    return changes


def _failing(rate: Rate, scored: Any) -> Share:
    """Runs in which any case fails, of those that the rate is of."""
    failing: dict[int, bool] = {}
    for run, case, score in scored:
        if rate.is_of(case):
            failing[run] = failing.get(run, False) or rate.fails(score)
    return Share.that(failing.values())


def mcnemar(worse: int, better: int) -> float:
    """The probability that of so many changed runs so many or more are worse, where either way is as likely."""
    changed = worse + better
    return sum(comb(changed, count) for count in range(worse, changed + 1)) / int(1 << changed)


def fisher(before: Share, now: Share) -> float:
    """The probability of so many or more failures now, where both have the same rate, given all that fail."""
    total, failing = before.of + now.of, before.count + now.count
    most = min(now.of, failing)
    ways = sum(comb(now.of, count) * comb(before.of, failing - count) for count in range(now.count, most + 1))
    return ways / comb(total, failing)
