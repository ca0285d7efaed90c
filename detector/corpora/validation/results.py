"""What a validation came to, as types and as the JSON contract `validate-1`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import pepscope
from detector.corpora.validation.calibration import Bin, Claims, Roc, roc
from detector.corpora.validation.factors import FactorRow, by_factor
from detector.corpora.validation.intervals import Share, share_document
from detector.corpora.validation.judging import Answered, JudgedRun
from detector.corpora.validation.labels import Case
from detector.corpora.validation.scoring import Judgement, confusion, rates

SCHEMA_VERSION = 1

#: What reports and baselines call our own detector.
OWN_NAME = "pepscope"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds that a detector took: in all, by run, and by connection that it spoke of, the median and 95 of 100."""

    total_s: float
    run_median_s: float
    run_p95_s: float
    connection_median_s: float | None
    connection_p95_s: float | None


@dataclass(frozen=True)
class DetectorScore:
    """One detector's scores. `judgements` are in the order of the validation's cases."""

    name: str
    cases: Sequence[Case]
    judgements: Sequence[Judgement]
    answers: Sequence[Answered]

    @cached_property
    def rates(self) -> Mapping[str, Share]:
        """By name."""
        return rates(self.cases, self.judgements)

    @cached_property
    def confusion(self) -> Mapping[str, Mapping[str, int]]:
        """By truth, then by what was said."""
        return confusion(self.cases, self.judgements)

    @cached_property
    def roc(self) -> Roc:
        """Of the probability of a split."""
        return roc([each.split_probability for each in self.judgements], [case.truth.is_split for case in self.cases])

    @cached_property
    def claims(self) -> Claims:
        """The probabilities of a split that were given."""
        known = [
            (judged.split_probability, case.truth.is_split)
            for case, judged in zip(self.cases, self.judgements, strict=True)
            if judged.split_probability is not None
        ]
        return Claims("split", tuple(said for said, _ in known), tuple(held for _, held in known))

    @cached_property
    def by_factor(self) -> list[FactorRow]:
        """The rates by circumstance."""
        return by_factor(self.cases, self.judgements)

    @cached_property
    def timing(self) -> Timing:
        """How long it took, by a clock on the wall: runs share the machine."""
        seconds = [answer.seconds for answer in self.answers]
        each = [answer.seconds / answer.connections for answer in self.answers if answer.connections]
        return Timing(
            float(sum(seconds)), *(float(np.quantile(seconds, share)) for share in (0.5, 0.95)),
            *((float(np.quantile(each, share)) if each else None) for share in (0.5, 0.95)),
        )  # fmt: skip

    @property
    def errors(self) -> int:
        """Cases of which the opposite of the truth was said."""
        return sum(judged.score.is_error for judged in self.judgements)

    @property
    def unlabelled(self) -> tuple[int, int]:
        """Connections that it spoke of without a label, and how many of them it called split."""
        return sum(each.unlabelled for each in self.answers), sum(each.unlabelled_split for each in self.answers)

    def failures(self) -> Counter[str]:
        """Why it failed, and at how many runs."""
        return Counter(each.failure for each in self.answers if each.failure is not None)


@dataclass(frozen=True, slots=True)
class Change:
    """One rate of one detector beside the baseline's (or ours beside another detector's), tested.

    `worse` and `better` are runs with more and with fewer failures, for the paired test; None for the unpaired.
    """

    detector: str
    rate: str
    before: Share
    now: Share
    worse: int | None
    better: int | None
    p_value: float
    is_worse: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed since a baseline. `in_common` cases were compared, the others are only counted."""

    baseline: str
    test: str  # "mcnemar" or "fisher"
    significance: float
    in_common: int
    only_now: int
    only_before: int
    changes: tuple[Change, ...]

    @property
    def is_worse(self) -> bool:
        """Whether any rate became worse beyond chance."""
        return any(change.is_worse for change in self.changes)


@dataclass(frozen=True)
class Validation:
    """Scores of one or two detectors on labelled captures."""

    corpora: tuple[str, ...]
    runs: tuple[JudgedRun, ...]
    detector_names: tuple[str, ...]
    comparison: Comparison | None = None
    #: The other detector beside ours, on the same captures; empty where there is one.
    beside: tuple[Change, ...] = ()

    @cached_property
    def cases(self) -> list[Case]:
        """Of all runs."""
        return [case for run in self.runs for case in run.cases]

    @cached_property
    def case_ids(self) -> list[str]:
        """The same for the same content of captures and the same label, whatever files are called."""
        return [name for run in self.runs for name in case_ids(run)]

    @cached_property
    def detectors(self) -> list[DetectorScore]:
        """Ours first."""
        return [
            DetectorScore(
                name, self.cases, [judged for run in self.runs for judged in run.answers[place].judgements],
                [run.answers[place] for run in self.runs],
            )
            for place, name in enumerate(self.detector_names)
        ]  # fmt: skip

    @property
    def is_worse(self) -> bool:
        """Whether a rate became worse than the baseline's beyond chance."""
        return self.comparison is not None and self.comparison.is_worse

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `validate-1` (see `pepscope/schemas`)."""
        return {
            "schema": SCHEMA_VERSION,
            "pepscope": pepscope.__version__,
            "corpora": list(self.corpora),
            "runs": [
                {
                    "name": run.name,
                    "id": run_id(run),
                    "captures": [
                        {"path": path, "sha256": digest} for path, digest in zip(run.captures, run.digests, strict=True)
                    ],
                    "cases": len(run.cases),
                }
                for run in self.runs
            ],
            "cases": list(self._case_documents()),
            "detectors": [_detector_document(each) for each in self.detectors],
            "beside": [_change_document(each) for each in self.beside],
            "against": None if self.comparison is None else _comparison_document(self.comparison),
        }

    def _case_documents(self) -> Iterator[dict[str, Any]]:
        places = [number for number, run in enumerate(self.runs) for _ in run.cases]
        for place, case, name in zip(places, self.cases, self.case_ids, strict=True):
            yield {
                "id": name,
                "run": place,
                "label": case.name,
                "truth": case.truth.value,
                "accepted": sorted(verdict.value for verdict in case.accepted),
                "where": None if case.where is None else case.where.value,
                "factors": dict(case.factors),
            }


def run_id(run: JudgedRun) -> str:
    """The same for the same content of captures, in whatever order."""
    return hashlib.sha256("/".join(sorted(run.digests)).encode()).hexdigest()[:16]


def case_ids(run: JudgedRun) -> Iterator[str]:
    """Of each case of a run; of labels with one name the second gets a number."""
    seen: Counter[str] = Counter()
    for case in run.cases:
        seen[case.name] += 1
        number = "" if seen[case.name] == 1 else f" #{seen[case.name]}"
        yield f"{run_id(run)} {case.name}{number}"


def _detector_document(score: DetectorScore) -> dict[str, Any]:
    timing, claims, curve = score.timing, score.claims, score.roc
    unlabelled, unlabelled_split = score.unlabelled
    return {
        "name": score.name,
        "rates": [share_document(name, share) for name, share in score.rates.items()],
        "confusion": score.confusion,
        "roc": {
            "false_alarm": list(curve.false_alarm), "found": list(curve.found), "threshold": list(curve.threshold),
            "area": curve.area, "without_probability": curve.unknown,
        },
        "calibration": {
            "brier": claims.brier if claims.said else None,
            "bins": [_bin_document(each) for each in claims.bins()],
        },
        "by_factor": [
            {
                "factor": row.factor, "value": row.value, "cases": row.cases,
                "rates": [share_document(name, share) for name, share in row.rates.items()],
            }
            for row in score.by_factor
        ],
        "timing": {
            "total_s": timing.total_s, "run_median_s": timing.run_median_s, "run_p95_s": timing.run_p95_s,
            "connection_median_s": timing.connection_median_s, "connection_p95_s": timing.connection_p95_s,
        },
        "unlabelled": {"connections": unlabelled, "called_split": unlabelled_split},
        "runs": [
            {"seconds": answer.seconds, "connections": answer.connections, "failure": answer.failure}
            for answer in score.answers
        ],
        "judgements": [
            {
                "verdict": judged.said, "score": judged.score.value, "split_probability": judged.split_probability,
                "where": None if judged.where is None else judged.where.value, "reason": judged.reason,
            }
            for judged in score.judgements
        ],
    }  # fmt: skip


def _bin_document(each: Bin) -> dict[str, Any]:
    return {"low": each.low, "high": each.high, "mean_said": each.mean_said, **each.held.document()}


def _change_document(change: Change) -> dict[str, Any]:
    return {
        "detector": change.detector, "rate": change.rate, "before": change.before.document(),
        "now": change.now.document(), "runs_worse": change.worse, "runs_better": change.better,
        "p_value": change.p_value, "is_worse": change.is_worse,
    }  # fmt: skip


def _comparison_document(comparison: Comparison) -> dict[str, Any]:
    return {
        "baseline": comparison.baseline, "test": comparison.test, "significance": comparison.significance,
        "in_common": comparison.in_common, "only_now": comparison.only_now, "only_before": comparison.only_before,
        "is_worse": comparison.is_worse, "changes": [_change_document(each) for each in comparison.changes],
    }  # fmt: skip
