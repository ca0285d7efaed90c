"""Members of groups made by hand."""

from __future__ import annotations

from detector.groups.membership import GroupKey, Member
from detector.options import LEAST_PAIRING_CONFIDENCE
from detector.verdict.weighing import judge
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import Evidence, GroupSide, PairResult, VantageName

KEY = GroupKey(GroupSide.BOTH, "192.0.2.0/24", 443)


def member(
    *evidence: Evidence,
    size: int = 1000,
    host: str = "203.0.113.1",
    client: str = "192.0.2.7:40001",
    started_ns: int = 0,
    confidence: float = 1.0,
    key: GroupKey = KEY,
) -> Member:
    judged = judge(evidence)
    names = (VantageName("m", client, f"{host}:443"), VantageName("s", client, f"{host}:443"))
    result = PairResult(
        names, judged.verdict, judged.probability, judged.reason, evidence, 10, size // 10, size - size // 10, 1.0,
        pairing_confidence=confidence,
    )  # fmt: skip
    return Member(
        PairTable((result,)), 0, key, host, started_ns, 40_000_000, 15_000_000, confidence < LEAST_PAIRING_CONFIDENCE
    )  # fmt: skip
