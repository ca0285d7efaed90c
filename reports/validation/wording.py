"""Scores in words: what is counted, what was said, and what a comparison found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from detector.corpora.validation.comparing import FISHER
from detector.corpora.validation.intervals import Share
from detector.corpora.validation.labels import Case
from detector.corpora.validation.results import Change, Comparison, DetectorScore, Validation
from detector.corpora.validation.scoring import RATES, Judgement, Score
from reports.page_parts import counted
from reports.quantities import format_count

#: What each rate counts.
MEANINGS = {rate.name: rate.meaning for rate in RATES}

SCORE_NAMES = {
    Score.RIGHT: "right",
    Score.OTHER_KIND: "split of the other kind",
    Score.NOT_FOUND: "not found",
    Score.FALSE_ALARM: "false alarm",
    Score.REVERSED: "split called regular",
}


@dataclass(frozen=True, slots=True)
class Wrong:
    """A judgement that is not right, with what it is about."""

    detector: str
    run: str
    captures: tuple[str, ...]
    case: Case
    case_id: str
    judgement: Judgement

    @property
    def sentence(self) -> str:
        """What was said of what is true, and why."""
        return sentence(self.case, self.judgement)


def sentence(case: Case, judged: Judgement) -> str:
    """What was said of what is true, and why; without full stop."""
    reason = judged.reason.strip().removesuffix(".")
    return f"{SCORE_NAMES[judged.score]}: {case.truth.value}, said {judged.said}" + (f": {reason}" if reason else "")


def wrong(validation: Validation, score: DetectorScore) -> list[Wrong]:
    """Every judgement that is not right, errors first."""
    runs = [run for run in validation.runs for _ in run.cases]
    found = [
        Wrong(score.name, run.name, run.captures, case, name, judged)
        for run, case, name, judged in zip(
            runs, validation.cases, validation.case_ids, score.judgements, strict=True
        )
        if judged.score is not Score.RIGHT
    ]  # fmt: skip
    return sorted(found, key=lambda each: not each.judgement.score.is_error)


def percent(share: float) -> str:
    """With one decimal, and with as many as a share near none or all needs."""
    distance = 100 * min(share, 1 - share)
    decimals = 1 if distance >= 0.05 or distance <= 0 else min(12, -math.floor(math.log10(distance)))
    return f"{100 * share:.{decimals}f} %"


def share_text(share: Share) -> str:
    """A count with its share and interval; a dash of nothing."""
    if share.value is None:
        return "-"
    low, high = share.interval
    return (
        f"{format_count(share.count)} of {format_count(share.of)}: {percent(share.value)} "
        f"({percent(low)} to {percent(high)})"
    )


def headline(validation: Validation) -> str:
    """The own detector's score in one sentence, and whether anything became worse."""
    own = validation.detectors[0]
    alarm, missed, reversed_ = (own.rates[name] for name in ("false-alarm", "missed", "reversed"))
    parts = []
    if alarm.of:
        parts.append(f"{_none(alarm.count)} of {counted(alarm.of, 'regular label')} {_was(alarm.count)} called split")
    if missed.of:
        found = missed.of - missed.count
        parts.append(
            f"{format_count(found)} of {counted(missed.of, 'split')} {_was(found)} found and "
            f"{_none(reversed_.count).lower()} called regular"
        )
    text = "; ".join(parts)
    if validation.comparison is not None:
        text += "; worse than the baseline" if validation.is_worse else "; no worse than the baseline"
    return text[:1].upper() + text[1:] + "."


def _none(count: int) -> str:
    return format_count(count) if count else "None"


def _was(count: int) -> str:
    return "was" if count in (0, 1) else "were"


def test_sentence(comparison: Comparison) -> str:
    """How was compared, with what."""
    if comparison.test == FISHER:
        how = "Fisher's exact test, one-sided, on the runs in which any label fails"
    else:
        how = "exact McNemar test, one-sided, on the runs in which more or fewer labels fail"
    kept = f"{counted(comparison.in_common, 'label')} in common"
    if comparison.test == FISHER:
        kept = "other captures"
    rest = f"{format_count(comparison.only_now)} only now, {format_count(comparison.only_before)} only in the baseline"
    return f"{kept}, {rest}; {how}; worse below p = {comparison.significance:g}"


def change_text(change: Change) -> str:
    """One rate before and now, with the test."""
    runs = "" if change.worse is None else f"{counted(change.worse, 'run')} worse, {change.better} better, "
    return f"{_short(change.before)} -> {_short(change.now)}, {runs}p = {change.p_value:.3g}"


def _short(share: Share) -> str:
    return f"{format_count(share.count)} of {format_count(share.of)}"


def failure_lines(validation: Validation) -> Iterator[str]:
    """Why detectors failed, and how often."""
    for score in validation.detectors:
        for reason, count in score.failures().most_common():
            yield f"{score.name} failed at {counted(count, 'run')}: {reason.strip().removesuffix('.')}"


_UNITS = {"_percent": " (%)", "_bytes": " (bytes)", "_ppm": " (ppm)", "_s": " (s)"}


def factor_title(name: str) -> str:
    """A circumstance's name with its unit behind it."""
    ending = next((each for each in _UNITS if name.endswith(each)), "")
    return name.removesuffix(ending).replace("_", " ") + _UNITS.get(ending, "")
