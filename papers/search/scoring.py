"""How many statements hold at once under some settings, for the search and for its report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from papers.results import Comparison, StatementOutcome
from papers.statements.evaluation import Judged

#: Of the score of a statement, what its comparisons give one by one: a statement with several holds only if all do, and
#: a search from afar needs a slope to follow.
_SINGLE = 0.2
#: Half widths are those of 95 % intervals.
_HALF_WIDTH_DEVIATIONS = 1.96


def held(statements: Sequence[Judged]) -> int:
    """Statements that are reproduced by the rule."""
    return sum(one.outcome is StatementOutcome.REPRODUCED for one in statements)


def score(statements: Sequence[Judged]) -> float:
    """Expected number of statements that hold at once, with a slope towards those that do not.

    A trial has few repeats, so its intervals decide little; the share of the normal distribution around a mean that is
    accepted says how probably more of them would. The least share of a statement's comparisons counts most.
    """
    return math.fsum(_score(statement.comparisons) for statement in statements)


def _score(comparisons: Sequence[Comparison]) -> float:
    shares = [_share_accepted(one) for one in comparisons]
    single = [(share + _nearness(one)) / 2.0 for share, one in zip(shares, comparisons, strict=True)]
    return (1.0 - _SINGLE) * min(shares) + _SINGLE * math.fsum(single) / len(single)


def _share_accepted(one: Comparison) -> float:
    """Of the distribution of the mean, the part within the accepted bounds."""
    if not one.half_width:
        return 1.0 if _distance(one) == 0.0 else 0.0
    deviation = one.half_width / _HALF_WIDTH_DEVIATIONS
    low = -math.inf if one.lowest is None else one.lowest
    high = math.inf if one.highest is None else one.highest
    return _below((high - one.mean) / deviation) - _below((low - one.mean) / deviation)


def _below(value: float) -> float:
    """Standard normal distribution."""
    return 0.5 * (1.0 + math.erf(value / math.sqrt(2.0)))


def _nearness(one: Comparison) -> float:
    """1 inside, falling with the distance in units of what is accepted, or of the mean where a bound is 0."""
    bounds = [bound for bound in (one.lowest, one.highest) if bound is not None]
    scale = max(map(abs, bounds), default=0.0) or abs(one.mean) or 1.0
    return 1.0 / (1.0 + _distance(one) / scale)


def _distance(one: Comparison) -> float:
    """Of the mean from what is accepted."""
    below = 0.0 if one.lowest is None else one.lowest - one.mean
    above = 0.0 if one.highest is None else one.mean - one.highest
    return max(0.0, below, above)
