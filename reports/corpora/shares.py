"""Shares of split connections, how sure they are, and whether two of them differ by more than chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

from detector.corpora.validation.intervals import wilson

#: How often chance alone may pass for a difference.
SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True)
class Share:
    """So many split connections of those that were decided."""

    split: int
    decided: int

    def __add__(self, other: Share) -> Share:
        return Share(self.split + other.split, self.decided + other.decided)

    @property
    def value(self) -> float:
        """In [0, 1]; 0 where nothing was decided."""
        return self.split / self.decided if self.decided else 0.0

    def interval(self) -> tuple[float, float]:
        """The interval that holds the share with 95 % (Wilson 1927); all of [0, 1] for nothing decided."""
        return wilson(self.split, self.decided)


def difference(later: Share, earlier: Share) -> tuple[float, float]:
    """How much greater the later share is, with 95 %: Newcombe's hybrid of two Wilson intervals (Statistics in Medicine
    17, 1998, method 10). Both have decided connections."""
    (low, high), (earlier_low, earlier_high) = later.interval(), earlier.interval()
    apart = later.value - earlier.value
    return (
        apart - math.hypot(later.value - low, earlier_high - earlier.value),
        apart + math.hypot(high - later.value, earlier.value - earlier_low),
    )


def is_beyond_chance(later: Share, earlier: Share, comparisons: int = 1) -> bool:
    """Whether two shares differ by more than chance, by Fisher's exact test: right for few connections, too.

    With several `comparisons` each is held to a level at which all of them together show chance as a difference as
    rarely as one alone would (Bonferroni).
    """
    if not (later.decided and earlier.decided):
        return False
    from scipy.stats import fisher_exact

    counts = [[each.split, each.decided - each.split] for each in (later, earlier)]
    return bool(fisher_exact(counts).pvalue <= SIGNIFICANCE / max(comparisons, 1))


def interval_text(share: Share) -> str:
    """The interval in whole percent, which hold all of it: `9–15 %`."""
    low, high = share.interval()
    return f"{math.floor(100 * low)}–{math.ceil(100 * high)} %"
