"""The curves of a validation: ROC and reliability, with a line a detector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pepscope.results.charts import Chart, Line

if TYPE_CHECKING:
    from detector.corpora.validation.results import DetectorScore

_label = "{:.0%}".format


def roc_chart(scores: Sequence[DetectorScore]) -> Chart:
    """Splits found against false alarms, from each threshold of the probability of a split on."""
    lines = [Line("chance", (0.0, 1.0), (0.0, 1.0), is_dense=True)]
    for score in scores:
        curve = score.roc
        if curve.area is not None:
            lines.append(Line(f"{score.name}, area {curve.area:.4f}", curve.false_alarm, curve.found, is_dense=True))
    unknown = sum(score.roc.unknown for score in scores)
    return Chart(
        "roc", "ROC of the probability of a split", "regular labels at or above the threshold",
        "split labels at or above the threshold", tuple(lines),
        caption="A label without a probability counts as 50 %." if unknown else "",
        x_label=_label, y_label=_label,
    )  # fmt: skip


def reliability_chart(scores: Sequence[DetectorScore]) -> Chart:
    """How many were split of those that a probability was given for, with Wilson intervals."""
    lines = [Line("said = true", (0.0, 1.0), (0.0, 1.0), is_dense=True)]
    for score in scores:
        bins = score.claims.bins()
        lines.append(
            Line(
                f"{score.name} ({len(score.claims.said)})", [each.mean_said for each in bins],
                [each.held.value or 0.0 for each in bins], interval=[each.held.interval for each in bins],
            )
        )  # fmt: skip
    return Chart(
        "reliability", "Reliability of the probability of a split", "mean probability said", "share that is split",
        tuple(lines), caption="Bars are Wilson intervals of 95 %.", x_label=_label, y_label=_label,
    )  # fmt: skip
