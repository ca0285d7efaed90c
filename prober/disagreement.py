"""What measurements of one cell that disagree have to say: which ones they are, and what sets the two camps apart.

One thing can set them apart and be a rule of the network all the same: a box that begins only after so many bytes, so
that short transfers are end to end and longer ones are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from detector import groups
from detector.groups import Stand, apart
from detector.verdict import weight_of
from pepscope.audit_results import AuditConnection
from pepscope.packets import Direction
from pepscope.results import Evidence, Outcome, PairResult

#: Connections that each camp needs before a size is called a rule: one may be misjudged.
LEAST_OF_CAMP = 2
#: By how much the shortest split one must be larger than the longest regular one: headers, compression and lost
#: captures change a size by less, and sizes of a plan differ by more (as `LARGEST_SHARE` of `prober.cells`).
LEAST_STEP = 2.0

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
    """Those that are split, and those that are end to end and so contradict them."""
    return groups.camps(connections, lambda item: item.pair)


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
        f"{apart([*map(_stand, split)], [*map(_stand, regular)])}. Split, in {_names(split)}: {split[0].pair.reason} "
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


def _stand(item: AuditConnection) -> Stand:
    """A connection as groups see it; an experiment may set connections apart."""
    size = item.pair.payload_bytes_up + item.pair.payload_bytes_down
    return Stand(item.task, item.pair.reason, size, item.started_unix_ns, (f"in {item.experiment}",))


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
