"""Which connections a reader should see first, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from pepscope.results.attention import ATTENTION, group_attention
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import (
    SPLIT_VERDICTS,
    DetectionResult,
    GroupResult,
    HostResult,
    PairResult,
    VantageName,
    Verdict,
)

#: Order in which counts by verdict are shown.
KINDS_IN_ORDER = (Verdict.SPLIT_TCP, Verdict.TCP_PROXY, Verdict.INCONCLUSIVE, Verdict.REGULAR)


class ListedConnection(Struct, frozen=True):
    """What a line of a table says of a connection: its evidence, which takes longest to make, is no part of it."""

    vantage: VantageName
    verdict: Verdict
    probability: Mapping[Verdict, float]
    payload_bytes: int

    @classmethod
    def of(cls, table: PairTable, place: int) -> ListedConnection:
        """The connection at a place."""
        return cls(table.vantages(place)[0], table.verdict(place), table.probability(place), table.payload_bytes(place))


#: What has a verdict and its probability.
Judged: TypeAlias = PairResult | GroupResult | HostResult | ListedConnection


def by_attention(pairs: Sequence[PairResult]) -> list[int]:
    """Indices of `pairs`, split connections first, regular ones last, larger transfers first within a verdict."""
    table = PairTable.of(pairs)
    places = np.arange(len(table))
    codes, verdicts = table.coded_verdicts()
    attention = np.asarray([ATTENTION[verdict] for verdict in verdicts], np.int64)[codes]
    order: list[int] = np.lexsort((-table.sizes_bytes(places), attention)).tolist()
    return order


def judged_alone(result: DetectionResult) -> bool:
    """Whether one vantage point was judged: its groups carry the verdicts, connections follow from them."""
    return any(group.by_host for group in result.groups)


def groups_by_attention(groups: Sequence[GroupResult]) -> list[GroupResult]:
    """The groups to show, split ones first, regular ones last, larger groups first within a verdict.

    A group of one connection says what its connection says, but for one vantage point, where groups are what is judged.
    """
    return sorted((group for group in groups if len(group.pairs) > 1 or group.by_host), key=group_attention)


def hosts_by_attention(group: GroupResult) -> list[HostResult]:
    """The far hosts of a group, split ones first, regular ones last, those with more exchanges first."""
    return sorted(group.by_host, key=lambda host: (ATTENTION[host.verdict], -host.exchanges, -host.connections))


def count_by_verdict(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """Number of connections of each verdict that occurs, in the order of `KINDS_IN_ORDER`."""
    counts = Counter(verdicts)
    return {kind: counts[kind] for kind in KINDS_IN_ORDER if counts[kind]}


def counts_by_verdict(pairs: Sequence[PairResult]) -> dict[Verdict, int]:
    """The same of pairs, whose verdicts are not listed for it."""
    codes, verdicts = PairTable.of(pairs).coded_verdicts()
    counts = dict(zip(verdicts, np.bincount(codes, minlength=len(verdicts)).tolist(), strict=True))
    return {kind: counts[kind] for kind in KINDS_IN_ORDER if counts.get(kind)}


def verdict_probability(judged: Judged) -> float | None:
    """Probability of the verdict, in [0, 1]; none where the verdict is inconclusive."""
    return None if judged.verdict is Verdict.INCONCLUSIVE else float(judged.probability.get(judged.verdict, 0.0))


def stated_probability(judged: Judged, *, one_vantage: bool) -> float | None:
    """The probability that reports give: of the class where one vantage point was captured, else of the verdict."""
    return class_probability(judged) if one_vantage else verdict_probability(judged)


def class_probability(judged: Judged) -> float | None:
    """Probability of the verdict's class, end to end or split in any way; none where the verdict is inconclusive.

    One vantage point does not show how a split works: what counts is that there is one.
    """
    if not judged.verdict.is_split:
        return verdict_probability(judged)
    return sum(float(judged.probability.get(kind, 0.0)) for kind in SPLIT_VERDICTS)
