"""What is said of a connection that only one of two captures holds: what the other holds instead, or when it ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from detector.match import Ground, Match
from detector.methods import content
from detector.pair import ClockMode, DetectOptions, Pair
from detector.pairing import PairedCaptures
from detector.watching import Watch, Watched
from pepscope.capture import Capture
from pepscope.results import Evidence

#: Pairs on these grounds may be none, so that they do not relate the clocks.
_DOUBTFUL = frozenset({Ground.PAYLOAD_OTHER_TIME, Ground.LENGTHS, Ground.LAST_LEFT, Ground.ALONE})

#: Counts of packets that a capture holds and that could not be read.
_UNREADABLE = ("unknown_link_type", "cut_short", "malformed", "too_deep", "encrypted", "unfinished_datagrams")


class Absence:
    """Asks of either of two captures why it lacks a connection of the other; what that takes is made when needed."""

    def __init__(
        self,
        captures: Sequence[Capture],
        paired: PairedCaptures,
        options: DetectOptions,
        is_split: Callable[[Pair], bool],
    ) -> None:
        """`is_split` judges a pair."""
        self._captures = captures
        self._paired = paired
        self._options = options
        self._is_split = is_split
        self._watches: dict[tuple[bool, bool], Watch] = {}

    def examine(self, match: Match, alone: Pair) -> Evidence:
        """The evidence on `alone`, the connection of `match`, which one of the two captures lacks."""
        in_first = match.first is not None
        lacking = self._captures[1 if in_first else 0]
        if lacking.tcp_packet_count == 0:
            return content.examine_unpaired(alone, (), Watched(False, holds_instead(lacking)), self._is_split)
        connection = alone.vantages[0].connection
        watched = self._watch(in_first, alone.client_side is not None).was_watching(connection)
        earlier = self._paired.earlier_with_same_answer(alone)
        return content.examine_unpaired(alone, earlier, watched, self._is_split)

    def _watch(self, in_first: bool, at_client: bool) -> Watch:
        """What the capture that lacks a connection was watching."""
        key = (in_first, at_client)
        if key not in self._watches:
            here, there = self._captures if in_first else reversed(self._captures)
            sure = [match for match in self._paired.matches if match.ground not in _DOUBTFUL and not match.turned]
            both = [(m.first, m.second) for m in sure if m.first is not None and m.second is not None]
            self._watches[key] = Watch(
                there.time_span_ns,
                (
                    (here.connections[one], there.connections[two])
                    for one, two in (pair if in_first else pair[::-1] for pair in both)
                ),
                asker_at_client=at_client,
                unreadable=sum(there.counts[name] for name in _UNREADABLE),
                filtered_out=there.counts["filtered_out"],
                drift_limit=self._options.drift_limit_ppm * 1e-6,
                same_clock=self._options.clocks is ClockMode.SYNCHRONISED,
            )
        return self._watches[key]


def holds_instead(capture: Capture) -> str:
    """What a capture without TCP holds, as one sentence."""
    flows = sorted(capture.datagram_flows, key=lambda flow: -sum(flow.payload_bytes))
    if not flows:
        return f"The other capture is of no use here: {'; '.join(capture.warnings)}."
    count = sum(sum(flow.datagrams) for flow in flows)
    ends = " and ".join(flows[0].end_point(side) for side in (0, 1))
    return (
        f"The other capture holds no TCP but {_counted(count, 'UDP datagram')} in {_counted(len(flows), 'flow')}, the "
        f"largest with {sum(flows[0].payload_bytes)} bytes between {ends}, and nothing in them shows this connection's "
        "bytes: a tunnel or another protocol may carry them."
    )


def nothing_in_common(captures: Sequence[Capture]) -> str:
    """What to say of two captures that have no connection in common, one of which holds connections."""
    without = [capture for capture in captures if capture.tcp_packet_count == 0]
    why = "they show different transfers, or something in between changes all content"
    if without:
        why = "one of them holds no TCP"
    return f"the captures have no connection in common: {_apart(captures)}{why}"


def _apart(captures: Sequence[Capture]) -> str:
    """How far apart in time the captures are, where they are."""
    spans = [capture.time_span_ns for capture in captures]
    begins, ends = [span[0] for span in spans if span], [span[1] for span in spans if span]
    gap_ns = max(begins) - min(ends) if len(begins) == len(captures) else 0
    return f"by their clocks {gap_ns / 1e9:.0f} s lie between them; " if gap_ns >= 1e9 else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
