"""Members of groups made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detector.groups.membership import Group, GroupKey, Members
from detector.options import LEAST_PAIRING_CONFIDENCE
from detector.verdict.weighing import judge
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import Evidence, GroupSide, PairResult, VantageName

KEY = GroupKey(GroupSide.BOTH, "192.0.2.0/24", 443)


@dataclass(frozen=True)
class Member:
    """One judged connection."""

    result: PairResult
    key: GroupKey
    host: str
    started_ns: int
    is_doubtful: bool


def member(
    *evidence: Evidence,
    size: int = 1000,
    host: str = "203.0.113.1",
    client: str = "192.0.2.7:40001",
    started_ns: int = 0,
    confidence: float = 1.0,
    key: GroupKey = KEY,
) -> Member:
    """A connection with this evidence."""
    judged = judge(evidence)
    names = (VantageName("m", client, f"{host}:443"), VantageName("s", client, f"{host}:443"))
    result = PairResult(
        names, judged.verdict, judged.probability, judged.reason, evidence, 10, size // 10, size - size // 10, 1.0,
        pairing_confidence=confidence,
    )  # fmt: skip
    return Member(result, key, host, started_ns, confidence < LEAST_PAIRING_CONFIDENCE)


def group_of(members: Sequence[Member]) -> Group:
    """Such connections as one group."""
    columns = Members(
        [each.key for each in members],
        [each.host for each in members],
        np.array([each.started_ns for each in members], np.int64),
        np.full(len(members), 40_000_000),
        np.full(len(members), 15_000_000),
        np.array([each.is_doubtful for each in members], np.bool_),
    )
    return Group(PairTable([each.result for each in members]), columns, np.arange(len(members)))
