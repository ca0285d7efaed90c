"""Which connections a reader should see first, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import GroupResult, PairResult, Verdict

#: Splits first, then what could not be decided, then what is in order.
ATTENTION = {Verdict.SPLIT_TCP: 0, Verdict.TCP_PROXY: 0, Verdict.INCONCLUSIVE: 1, Verdict.REGULAR: 2}

#: Order in which counts by verdict are shown.
KINDS_IN_ORDER = (Verdict.SPLIT_TCP, Verdict.TCP_PROXY, Verdict.INCONCLUSIVE, Verdict.REGULAR)


def by_attention(pairs: Sequence[PairResult]) -> list[int]:
    """Indices of `pairs`, split connections first, regular ones last, larger transfers first within a verdict."""
    table = PairTable.of(pairs)
    return sorted(range(len(table)), key=lambda index: (ATTENTION[table.verdict(index)], -table.payload_bytes(index)))


def groups_by_attention(groups: Sequence[GroupResult]) -> list[GroupResult]:
    """The groups of several connections, split ones first, regular ones last, larger groups first within a verdict."""
    several = [group for group in groups if len(group.pairs) > 1]
    return sorted(several, key=lambda group: (ATTENTION[group.verdict], -len(group.pairs)))


def count_by_verdict(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """Number of connections of each verdict that occurs, in the order of `KINDS_IN_ORDER`."""
    counts = Counter(verdicts)
    return {kind: counts[kind] for kind in KINDS_IN_ORDER if counts[kind]}


def verdict_probability(judged: PairResult | GroupResult) -> float | None:
    """Probability of the verdict, in [0, 1]; none where the verdict is inconclusive."""
    return None if judged.verdict is Verdict.INCONCLUSIVE else float(judged.probability.get(judged.verdict, 0.0))
