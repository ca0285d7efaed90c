"""What a method can find: an enum for each method, whose members carry their weight and the reason for it.

A weight states how badly each hypothesis explains the finding: the natural logarithm of P(finding | hypothesis),
relative to the hypothesis that explains it best (0). The four numbers of a row stand for end to end, a relay (two
concurrent connections, Split-TCP), a store (a proxy that takes the data first and forwards them afterwards) and local
acknowledgement (a middlebox that acknowledges before the receiver has the data and passes the segments on, RFC 3135,
section 3.1.2). No row exceeds `CERTAIN`: beyond that a wrong model is likelier than a wrong hypothesis.

`VERSION` counts the versions of all rows together; docs/methods/findings.md shows them as one table.
`benchmarks/calibration` fits the values on training draws and reports how well the probabilities that follow from them
hold on others; docs/validation/calibration.md has the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, Self

from msgspec import Struct

from pepscope.results.hypotheses import Hypothesis
from pepscope.results.verdicts import Evidence, Mechanism, Number, Outcome

VERSION = 5

#: The largest charge of one finding against a hypothesis: one in three thousand.
CERTAIN = -8.0


_PLACES = {hypothesis: place for place, hypothesis in enumerate(Hypothesis)}


class Weight(Struct, frozen=True):
    """The charge of a finding at strength 1 against each hypothesis (nats, 0 or below), and the finding's family.

    `mechanism` is the one that the finding names, if it names one.
    """

    family: str
    end: float
    relay: float
    store: float
    local: float
    reason: str
    mechanism: Mechanism | None = None

    @property
    def nats(self) -> tuple[float, float, float, float]:
        """The nats of each hypothesis, in the order of `Hypothesis`."""
        return self.end, self.relay, self.store, self.local

    def of(self, hypothesis: Hypothesis) -> float:
        """The nats of one hypothesis."""
        return self.nats[_PLACES[hypothesis]]

    def scaled(self, share: float) -> Weight:
        """The weight of a finding of this strength."""
        if share == 1.0:
            return self
        end, relay, store, local = self.nats
        return Weight(
            self.family, end * share, relay * share, store * share, local * share, self.reason, self.mechanism
        )

    @property
    def split(self) -> float:
        """For a split of whichever mechanism against end to end, positive for a split."""
        return max(self.relay, self.store, self.local) - self.end

    @property
    def proxy(self) -> float:
        """For a TCP proxy against Split-TCP, positive for the proxy."""
        return self.store - max(self.relay, self.local)


class Row(Struct, frozen=True):
    """One finding as it is declared: its key in JSON, its outcome, and its weight where it has one."""

    key: str
    outcome: Outcome
    weight: Weight | None
    is_missing: bool


def split(key: str, weight: Weight) -> Row:
    """A finding that a split explains better than an end-to-end connection."""
    return Row(key, Outcome.SPLIT, weight, is_missing=False)


def intact(key: str, weight: Weight) -> Row:
    """A finding of segments that pass as they were sent, or of timing that an end-to-end connection has."""
    return Row(key, Outcome.INTACT, weight, is_missing=False)


def inapplicable(key: str, *, is_missing: bool = False) -> Row:
    """The method could not decide; with `is_missing` its sentence names what an inconclusive verdict lacks."""
    return Row(key, Outcome.INAPPLICABLE, None, is_missing)


def unweighed(key: str, outcome: Outcome) -> Row:
    """A finding that speaks for an outcome and is only shown: harmless explanations are about as likely."""
    return Row(key, outcome, None, is_missing=False)


class Finding(StrEnum):
    """Base of every method's findings; a member is its key, and is declared by its row."""

    row: Row

    def __new__(cls, row: Row) -> Self:
        """Make a member from its row."""
        member = str.__new__(cls, row.key)
        member._value_ = row.key
        member.row = row
        return member

    @property
    def weight(self) -> Weight:
        """The weight; raises ValueError for a finding that decides nothing."""
        if self.row.weight is None:
            raise ValueError(f"the finding {self.value} has no weight: it decides nothing")
        return self.row.weight

    def evidence(
        self,
        method: str,
        strength: float,
        summary: str,
        numbers: Mapping[str, Number] | None = None,
        caveats: Sequence[str] = (),
    ) -> Evidence:
        """This finding as evidence of `method`; `strength` is in [0, 1]."""
        return Evidence(method, self.row.outcome, self, strength, summary, numbers or {}, tuple(caveats))

    def undecided(
        self, method: str, summary: str, numbers: Mapping[str, Number] | None = None, caveats: Sequence[str] = ()
    ) -> Evidence:
        """This finding, which decides nothing, as evidence of strength 0."""
        return self.evidence(method, 0.0, summary, numbers, caveats)


def weighted_findings(kinds: Iterable[type[Finding]]) -> dict[str, Finding]:
    """Every finding of these enums that has a weight, by its key in JSON.

    Raises ValueError where two enums declare one key.
    """
    found: dict[str, Finding] = {}
    for kind in dict.fromkeys(kinds):
        for finding in kind:
            if finding.row.weight is not None and found.setdefault(finding.value, finding) is not finding:
                raise ValueError(f"two findings have the key {finding.value}: {found[finding.value]!r} and {finding!r}")
    return found


class Weighable(Protocol):
    """What a method found, as it is weighed: evidence, or a piece of it that is not put into words yet."""

    @property
    def method(self) -> str:
        """The method's name."""

    @property
    def outcome(self) -> Outcome:
        """What the finding means."""

    @property
    def finding(self) -> str:
        """What was found."""

    @property
    def strength(self) -> float:
        """How firmly."""

    @property
    def summary(self) -> str:
        """What is said of it."""


def finding_of(evidence: Weighable) -> Finding:
    """The declared finding of this evidence; raises TypeError where it was made from a bare key."""
    if not isinstance(evidence.finding, Finding):
        raise TypeError(f"the finding {evidence.finding!r} of {evidence.method} is a bare key, not a Finding")
    return evidence.finding


def is_missing(evidence: Weighable) -> bool:
    """Whether this undecided evidence names what an inconclusive verdict lacks."""
    return isinstance(evidence.finding, Finding) and evidence.finding.row.is_missing
