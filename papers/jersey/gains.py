"""Goodput of senders in the same drops."""

from __future__ import annotations

from collections.abc import Sequence

from papers.statements.grouping import Row, chosen, ratio_gain, values_of
from reference_sim.intervals import Interval

NAMES = {"tahoe": "Tahoe", "reno": "Reno", "new-reno": "NewReno", "sack": "SACK", "jersey": "Jersey"}


def goodput_of(rows: Sequence[Row], variant: str) -> list[float]:
    """Goodput in kbit/s of each drop, in the order of the seeds."""
    return values_of(chosen(rows, variant=variant), "goodput_kbit_s")


def gain_of_jersey(rows: Sequence[Row], base: str, *, instead: str = "jersey") -> Interval:
    """What Jersey (or another sender `instead`) gains over `base` in mean goodput over the same drops, in percent."""
    return ratio_gain(goodput_of(rows, instead), goodput_of(rows, base))


def judged_wrong(rows: Sequence[Row]) -> tuple[int, int]:
    """Losses that Jersey took for link errors, and all losses on which it had to decide."""
    wrong, right = (round(sum(row[name] for row in rows)) for name in ("corruption_retransmits", "fast_retransmits"))
    return wrong, wrong + right
