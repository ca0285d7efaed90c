"""What a validation came to, as types and as the JSON contract `validate-1`."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from detector.corpora.validation.calibration import Claims, Roc, roc
from detector.corpora.validation.factors import FactorRow, by_factor
from detector.corpora.validation.intervals import Share
from detector.corpora.validation.judging import Answered, JudgedRun
from detector.corpora.validation.labels import Case
from detector.corpora.validation.scoring import Judgement, confusion, rates
from pepscope.extras import needed
from pepscope.plugins import writer

if TYPE_CHECKING:
    import pandas as pd

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


@dataclass(frozen=True, repr=False)
class Validation:
    """Scores of one or two detectors on labelled captures."""

    corpora: tuple[str, ...]
    runs: tuple[JudgedRun, ...]
    detector_names: tuple[str, ...]
    comparison: Comparison | None = None
    #: The other detector beside ours, on the same captures; empty where there is one.
    beside: tuple[Change, ...] = ()

    def __repr__(self) -> str:
        alarms, turned = (self.detectors[0].rates[name] for name in ("false-alarm", "reversed"))
        return (
            f"<Validation of {len(self.cases)} labels in {len(self.runs)} runs: {alarms.count} of {alarms.of} regular "
            f"called split, {turned.count} of {turned.of} splits called regular>"
        )

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

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the page of `validate --html`. Raises ReportError, where the file cannot be written."""
        writer("validation-html")(self, path)

    def to_frame(self) -> pd.DataFrame:
        """One row a label and detector: both names, what is true, what was said, and `by_...` of each circumstance."""
        with needed():
            import pandas as pd

        runs = [run.name for run in self.runs for _ in run.cases]
        return pd.DataFrame(
            [
                {
                    "detector": score.name, "run": run, "label": case.name, "truth": case.truth.value,
                    "verdict": judged.said, "score": judged.score.value,
                    "split_probability": judged.split_probability, "reason": judged.reason,
                    **{f"by_{name}": value for name, value in case.factors.items()},
                }
                for score in self.detectors
                for run, case, judged in zip(runs, self.cases, score.judgements, strict=True)
            ]
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `validate-1` (see `pepscope/schemas`)."""
        from detector.corpora.validation.encode import validation_document

        return validation_document(self)


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
