"""What measurements of one cell that disagree have to say: which ones they are, and what sets the two camps apart.

One thing can set them apart and be a rule of the network all the same: a box that begins only after so many bytes, so
that short transfers are end to end and longer ones are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from detector.verdict import weight_of
from pepscope.audit_results import AuditConnection
from pepscope.packets import Direction
from pepscope.results import Evidence, Kind, Mechanism, Outcome, PairResult

SPLIT = (Kind.SPLIT_TCP, Kind.TCP_PROXY)

#: Connections that each camp needs before a size is called a rule: one may be misjudged.
LEAST_OF_CAMP = 2
#: By how much the shortest split one must be larger than the longest regular one: headers, compression and lost
#: captures change a size by less, and sizes of a plan differ by more (as `LARGEST_SHARE` of `prober.cells`).
LEAST_STEP = 2.0

#: Findings that say that a box makes acknowledgements, early or not.
_MADE_BY_A_BOX = frozenset({"acks-nobody-sent", "acks-not-from-receiver"})

#: Names listed; the rest is counted.
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class LateStart:
    """A box that splits connections beyond a size."""

    #: The longest transfer that is end to end, and the shortest that is split, in bytes.
    regular_bytes: int
    split_bytes: int

    def sentence(self) -> str:
        """As a reason says it."""
        return (
            f"The box begins late: transfers of up to {size_text(self.regular_bytes)} are end to end, those from "
            f"{size_text(self.split_bytes)} on are split."
        )


def camps(connections: Sequence[AuditConnection]) -> tuple[list[AuditConnection], list[AuditConnection]]:
    """Those that are split, and those that are end to end and so contradict them.

    A connection whose data arrive as they left, but whose acknowledgements a box makes, does not contradict local
    acknowledgement: that none came early was not seen, or could not be in a transfer without a queue.
    """
    split = [item for item in connections if item.pair.verdict in SPLIT]
    regular = [item for item in connections if item.pair.verdict is Kind.REGULAR]
    if all(item.pair.mechanism is Mechanism.LOCAL_ACKNOWLEDGEMENT for item in split):
        regular = [item for item in regular if _MADE_BY_A_BOX.isdisjoint(one.finding for one in item.pair.evidence)]
    return split, regular


def late_start(connections: Sequence[AuditConnection], direction: Direction) -> LateStart | None:
    """Where what each connection carried in `direction` sets the camps apart, short ones regular; else `None`."""
    split, regular = camps(connections)
    if min(len(split), len(regular)) < LEAST_OF_CAMP:
        return None
    longest = max(payload_bytes(item.pair, direction) for item in regular)
    shortest = min(payload_bytes(item.pair, direction) for item in split)
    return LateStart(longest, shortest) if shortest >= LEAST_STEP * longest > 0 else None


def payload_bytes(pair: PairResult, direction: Direction) -> int:
    """What a connection carried in one direction."""
    return pair.payload_bytes_up if direction is Direction.UP else pair.payload_bytes_down


def begins_within(evidence: Sequence[Evidence]) -> int | None:
    """After how many bytes of a connection its split begins, by the earliest that a finding says; `None` without one.

    Findings say so by their number `from_bytes`; one that holds from the first byte says nothing of it.
    """
    told = [item.numbers.get("from_bytes") for item in evidence if item.outcome is Outcome.SPLIT]
    counts = [
        int(value) for value in told if isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    ]
    return min(counts, default=None)


def contradiction(counting: Sequence[AuditConnection]) -> str:
    """Which connections disagree, and what the two camps say for themselves."""
    split, regular = camps(counting)
    return (
        f"The connections disagree: {_counted(len(regular))} end to end and {_counted(len(split))} split"
        f"{_apart(split, regular)}. Split, in {_names(split)}: {split[0].pair.reason} "
        f"End to end, in {_names(regular)}: {regular[0].pair.reason}"
    )


def both_sides(counting: Sequence[AuditConnection], active: Sequence[Evidence], reason: str) -> str:
    """The strongest that speaks for a split and the strongest that speaks against, each with where it was found.

    Then what `reason`, the sentence without places, says beyond these two; nothing else where nothing speaks at all.
    """
    voices = [(item.task, evidence) for item in counting for evidence in item.pair.evidence]
    voices += [(evidence.method, evidence) for evidence in active]
    split = [voice for voice in voices if voice[1].outcome is Outcome.SPLIT]
    intact = [voice for voice in voices if voice[1].outcome is Outcome.INTACT]
    if not split and not intact:
        return reason
    leading = max(split, key=_split_weight, default=None), min(intact, key=_split_weight, default=None)
    told = [_side(name, voice) for name, voice in zip(("a split", "end to end"), leading, strict=True)]
    return " ".join([*told, _beyond(reason, [voice[1].summary for voice in leading if voice])]).strip()


def _split_weight(voice: tuple[str, Evidence]) -> float:
    return weight_of(voice[1]).split


def _side(name: str, voice: tuple[str, Evidence] | None) -> str:
    return f"Nothing speaks for {name}." if voice is None else f"For {name} speaks {voice[0]}: {voice[1].summary}"


def _beyond(reason: str, told: Sequence[str]) -> str:
    """What follows the summaries that were told already; nothing of a sentence that is made around one of them."""
    for summary in told:
        reason = reason.removeprefix(summary)
    return "" if any(summary in reason for summary in told) else reason.strip()


def _apart(split: Sequence[AuditConnection], regular: Sequence[AuditConnection]) -> str:
    """Whether an experiment, a size or the time sets the two camps apart."""
    if {item.experiment for item in split}.isdisjoint(item.experiment for item in regular):
        names = ", ".join(sorted({item.experiment for item in split}))
        return f", the split ones all in {names}"
    totals = [
        sorted(item.pair.payload_bytes_up + item.pair.payload_bytes_down for item in camp) for camp in (split, regular)
    ]
    if totals[0][0] > totals[1][-1]:
        return ", all split ones larger than the others"
    if totals[0][-1] < totals[1][0]:
        return ", all split ones smaller than the others"
    times = [sorted(item.started_unix_ns for item in camp) for camp in (split, regular)]
    if times[0][0] > times[1][-1]:
        return ", all split ones later than the others"
    if times[0][-1] < times[1][0]:
        return ", all split ones earlier than the others"
    return ""


def _names(camp: Sequence[AuditConnection]) -> str:
    names = list(dict.fromkeys(item.task for item in camp))
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown


def _counted(count: int) -> str:
    return "one" if count == 1 else str(count)


def size_text(count: int) -> str:
    """A number of bytes as a reason says it."""
    for unit, factor in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"
