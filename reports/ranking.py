"""Which connections a reader should see first, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pepscope.results import GroupResult, Kind, PairResult

#: Splits first, then what could not be decided, then what is in order.
ATTENTION = {Kind.SPLIT_TCP: 0, Kind.TCP_PROXY: 0, Kind.INCONCLUSIVE: 1, Kind.REGULAR: 2}

#: Order in which counts by verdict are told.
KINDS_IN_ORDER = (Kind.SPLIT_TCP, Kind.TCP_PROXY, Kind.INCONCLUSIVE, Kind.REGULAR)


def by_attention(pairs: Sequence[PairResult]) -> list[int]:
    """Indices of `pairs`, split connections first, regular ones last, larger transfers first within a verdict."""

    def key(index: int) -> tuple[int, int, int]:
        pair = pairs[index]
        return (ATTENTION[pair.verdict], -(pair.payload_bytes_up + pair.payload_bytes_down), index)

    return sorted(range(len(pairs)), key=key)


def groups_by_attention(groups: Sequence[GroupResult]) -> list[GroupResult]:
    """The groups of several connections, split ones first, regular ones last, larger groups first within a verdict."""
    several = [group for group in groups if len(group.pairs) > 1]
    return sorted(several, key=lambda group: (ATTENTION[group.verdict], -len(group.pairs)))


def count_by_verdict(pairs: Iterable[PairResult]) -> dict[Kind, int]:
    """Number of connections of each verdict that occurs, in the order of `KINDS_IN_ORDER`."""
    counts = Counter(pair.verdict for pair in pairs)
    return {kind: counts[kind] for kind in KINDS_IN_ORDER if counts[kind]}


def verdict_probability(judged: PairResult | GroupResult) -> float | None:
    """Probability of the verdict, in [0, 1]; none where the verdict is inconclusive."""
    return None if judged.verdict is Kind.INCONCLUSIVE else float(judged.probability.get(judged.verdict, 0.0))
