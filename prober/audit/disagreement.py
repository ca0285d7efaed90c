"""Measurements of one cell that disagree: which ones they are, and how split and regular ones differ.

One difference can still be one rule of the network: a middlebox that begins only after so many bytes, so that short
transfers are end to end and longer ones are split; or one that takes some of the connections, as where a balancer deals
them to several ways and one has a middlebox.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from detector import groups
from detector.groups import JudgedConnection, distinction
from detector.verdict.weighing import weight_of
from pepscope.captures.direction import Direction
from pepscope.results.audits import AuditConnection
from pepscope.results.verdicts import Evidence, Outcome, PairResult, Verdict

#: Split connections, and regular ones, that are needed before a size is called a rule: one may be misjudged.
LEAST_OF_EACH = 2
#: By how much the shortest split one must be larger than the longest regular one: headers, compression and lost
#: captures change a size by less, and sizes of a plan differ by more (as `LARGEST_SHARE` of `prober.audit.matrix`).
LEAST_STEP = 2.0

#: Changes between split and regular, in time, from which on the middlebox takes turns: one change is a beginning or an
#: end, two are an interruption.
_LEAST_TURNS = 3

#: Names listed; the rest is counted.
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class LateStart:
    """A middlebox that splits connections beyond a size."""

    #: The longest transfer that is end to end, and the shortest that is split, in bytes.
    regular_bytes: int
    split_bytes: int

    def sentence(self) -> str:
        """The late start as a sentence of a verdict's reason."""
        return (
            f"The middlebox begins late: transfers of up to {size_text(self.regular_bytes)} are end to end, those from "
            f"{size_text(self.split_bytes)} on are split."
        )


@dataclass(frozen=True, slots=True)
class TakenShare:
    """A middlebox that splits some of the connections that are alike in experiment and size."""

    split: int
    regular: int

    def sentence(self) -> str:
        """The share as a sentence of a verdict's reason."""
        return (
            f"The middlebox takes some connections only: of {self.split + self.regular} that are alike, {self.split} "
            f"are split and {self.regular} end to end, by turns."
        )


def split_and_regular(connections: Sequence[AuditConnection]) -> tuple[list[AuditConnection], list[AuditConnection]]:
    """The split connections, and the end-to-end connections that contradict them."""
    return groups.split_and_regular(connections, lambda item: item.pair)


def late_start(connections: Sequence[AuditConnection], direction: Direction) -> LateStart | None:
    """The sizes between which splitting begins, if every split transfer in `direction` is larger; else `None`."""
    split, regular = split_and_regular(connections)
    if min(len(split), len(regular)) < LEAST_OF_EACH:
        return None
    longest = max(payload_bytes(item.pair, direction) for item in regular)
    shortest = min(payload_bytes(item.pair, direction) for item in split)
    return LateStart(longest, shortest) if shortest >= LEAST_STEP * longest > 0 else None


def taken_share(connections: Sequence[AuditConnection], direction: Direction) -> TakenShare | None:
    """How many connections a middlebox takes, if neither size nor time sets them apart; else `None`.

    Split and regular connections must be mixed within one experiment and size, and follow each other by turns: what
    began or ended while the plan ran, changes once.
    """
    split, regular = split_and_regular(connections)
    if min(len(split), len(regular)) < LEAST_OF_EACH:
        return None
    is_split = {id(item): True for item in split} | {id(item): False for item in regular}
    largest = max(payload_bytes(item.pair, direction) for item in (*split, *regular))
    alike: dict[tuple[str, int], set[bool]] = {}
    for item in (*split, *regular):
        size = payload_bytes(item.pair, direction)
        step = 0 if not size or not largest else int(math.log(largest / size, LEAST_STEP))
        alike.setdefault((item.experiment, step), set()).add(is_split[id(item)])
    timed = sorted((*split, *regular), key=lambda item: item.started_unix_ns)
    turns = sum(is_split[id(a)] is not is_split[id(b)] for a, b in pairwise(timed))
    mixed = any(len(found) == 2 for found in alike.values())
    return TakenShare(len(split), len(regular)) if mixed and turns >= _LEAST_TURNS else None


@dataclass(frozen=True, slots=True)
class RegularReach:
    """Up to which size transfers are end to end, and which larger ones could not be judged, in bytes."""

    regular_bytes: int
    open_bytes: int

    def sentence(self) -> str:
        """The reach as a sentence of a verdict's reason."""
        return (
            f"Transfers of up to {size_text(self.regular_bytes)} are end to end; whether those of "
            f"{size_text(self.open_bytes)} are, could not be judged, and a middlebox may begin between the two."
        )


def regular_reach(connections: Sequence[AuditConnection], direction: Direction) -> RegularReach | None:
    """The largest transfer that is end to end, if the largest one of all is much larger; else `None`."""
    sizes = [payload_bytes(item.pair, direction) for item in connections]
    regular = [payload_bytes(item.pair, direction) for item in connections if item.pair.verdict is Verdict.REGULAR]
    most = max(sizes, default=0)
    return RegularReach(max(regular), most) if regular and most >= LEAST_STEP * max(regular) > 0 else None


def payload_bytes(pair: PairResult, direction: Direction) -> int:
    """What a connection carried in one direction."""
    return pair.payload_bytes_up if direction is Direction.UP else pair.payload_bytes_down


def begins_within(evidence: Sequence[Evidence]) -> int | None:
    """The least number of bytes, by any finding, after which the connection is split; `None` if no finding has it.

    Findings have it as their number `from_bytes`; a finding that holds from the first byte lacks it.
    """
    values = [item.numbers.get("from_bytes") for item in evidence if item.outcome is Outcome.SPLIT]
    counts = [
        int(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    ]
    return min(counts, default=None)


def contradiction(counting: Sequence[AuditConnection]) -> str:
    """Which connections disagree, and a reason of each verdict."""
    split, regular = split_and_regular(counting)
    return (
        f"The connections disagree: {_counted(len(regular))} end to end and {_counted(len(split))} split"
        f"{distinction([*map(_judged, split)], [*map(_judged, regular)])}. Split, in {_names(split)}: "
        f"{split[0].pair.reason} End to end, in {_names(regular)}: {regular[0].pair.reason}"
    )


def both_sides(counting: Sequence[AuditConnection], active: Sequence[Evidence], reason: str) -> str:
    """The strongest evidence for a split and the strongest against it, each with its task or method.

    Then the part of `reason` that these two summaries do not contain; only `reason` if there is no evidence.
    """
    located = [(item.task, evidence) for item in counting for evidence in item.pair.evidence]
    located += [(evidence.method, evidence) for evidence in active]
    split = [item for item in located if item[1].outcome is Outcome.SPLIT]
    intact = [item for item in located if item[1].outcome is Outcome.INTACT]
    if not split and not intact:
        return reason
    leading = max(split, key=_split_weight, default=None), min(intact, key=_split_weight, default=None)
    sides = [_side(name, item) for name, item in zip(("a split", "end to end"), leading, strict=True)]
    return " ".join([*sides, _beyond(reason, [item[1].summary for item in leading if item])]).strip()


def _split_weight(item: tuple[str, Evidence]) -> float:
    return weight_of(item[1]).split


def _side(name: str, item: tuple[str, Evidence] | None) -> str:
    if item is None:
        return f"There is no evidence for {name}."
    return f"Evidence for {name}, from {item[0]}: {item[1].summary}"


def _beyond(reason: str, summaries: Sequence[str]) -> str:
    """The part of `reason` behind these summaries; empty if the rest is a sentence that contains one of them."""
    for summary in summaries:
        reason = reason.removeprefix(summary)
    return "" if any(summary in reason for summary in summaries) else reason.strip()


def _judged(item: AuditConnection) -> JudgedConnection:
    """A connection as groups compare it; connections may differ by their experiment."""
    size = item.pair.payload_bytes_up + item.pair.payload_bytes_down
    return JudgedConnection(item.task, item.pair.reason, size, item.started_unix_ns, (f"in {item.experiment}",))


def _names(connections: Sequence[AuditConnection]) -> str:
    names = list(dict.fromkeys(item.task for item in connections))
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown


def _counted(count: int) -> str:
    return "one" if count == 1 else str(count)


def size_text(count: int) -> str:
    """A number of bytes in words, for a verdict's reason."""
    for unit, factor in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"
