"""Shares that were counted in so many cases, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_Z = 1.96  # 95 % of a normal distribution


def wilson(count: int, of: int) -> tuple[float, float]:
    """The interval that holds a share with 95 % (Wilson 1927)."""
    if of == 0:
        return 0.0, 1.0
    share, square = count / of, _Z * _Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    # At the ends exactly, whatever rounding makes of it.
    low, high = (middle - half if count else 0.0), (middle + half if count < of else 1.0)
    return max(0.0, low), min(1.0, high)


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    def __str__(self) -> str:
        if not self.of:
            return "-"
        low, high = self.interval
        return f"{self.count} of {self.of}: {self.count / self.of:.1%} ({low:.1%} to {high:.1%})"

    @classmethod
    def that(cls, held: Iterable[bool]) -> Share:
        """How many of these hold."""
        values = list(held)
        return cls(sum(values), len(values))

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, of 95 %."""
        return wilson(self.count, self.of)

    def document(self) -> dict[str, float | int | None]:
        """For JSON."""
        low, high = self.interval
        return {"count": self.count, "of": self.of, "share": self.value, "wilson_low": low, "wilson_high": high}


def share_document(name: str, share: Share) -> dict[str, Any]:
    """A named share for JSON."""
    return {"rate": name, **share.document()}
