"""A connection that only one of two captures holds: what the other capture holds instead, or when it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from detector.method import Absent
from detector.options import ClockMode, DetectOptions
from detector.pair import Pair
from detector.pairing.candidates import have_an_address_in_common
from detector.pairing.captures import PairedCaptures
from detector.pairing.confidence import CONTENT
from detector.pairing.match import Ground, Match
from detector.pairing.starts.clock_bounds import CONTRADICTION_NATS
from detector.vantage.watching import SeenConnections, Watch, Watched
from pepscope.captures.capture import Capture
from pepscope.captures.connections import Connection
from pepscope.captures.tables.texts import SlicedTexts

#: Pairs on these grounds may be none, so that they do not relate the clocks.
_DOUBTFUL = frozenset(
    {
        Ground.END_POINTS_OTHER_TIME,
        Ground.PAYLOAD_OTHER_TIME,
        Ground.LENGTHS,
        Ground.LENGTHS_OTHER_TIME,
        Ground.LAST_LEFT,
        Ground.ALONE,
    }
)

#: Counts of packets that a capture holds and that could not be read.
_UNREADABLE = ("unknown_link_type", "cut_short", "malformed", "too_deep", "encrypted", "unfinished_datagrams")

#: `Watch` reads the columns of so many connections at a time, some megabytes.
_TOGETHER = 4096


class Absence:
    """Asks of either of two captures why it lacks a connection of the other; what that takes is made when needed."""

    def __init__(
        self,
        captures: Sequence[Capture],
        paired: PairedCaptures,
        options: DetectOptions,
        is_split: Callable[[Pair], bool | None],
    ) -> None:
        """`is_split` judges a pair; it is None where that is undecided."""
        self._captures = captures
        self._paired = paired
        self._options = options
        self._judge = is_split
        self._watches: dict[tuple[bool, bool], Watch] = {}
        self._boxes: dict[str, float] = {}
        self._whole: dict[tuple[str, str], bool] = {}
        self._judged: dict[tuple[str, str, int], bool | None] = {}

    def of(self, match: Match, alone: Pair) -> Absent:
        """What is known of `alone`, the connection of `match`, which one of the two captures lacks."""
        in_first = match.first is not None
        lacking = self._captures[1 if in_first else 0]
        if lacking.tcp_packet_count == 0:
            return Absent(Watched(False, holds_instead(lacking)), (), lambda _: False, lambda: 0.0, lambda: False)
        connection = alone.vantages[0].connection
        watched = self._watch(in_first, alone.client_side is not None).was_watching(connection)
        earlier = self._paired.earlier_with_same_answer(alone)
        return Absent(
            watched,
            earlier,
            lambda pair: self._is_split(pair) is True,
            lambda: 0.0 if self._arrives_whole(connection) else self._box_before(connection.server),
            lambda: self._arrives_whole(connection),
        )

    def _is_split(self, pair: Pair) -> bool | None:
        """Whether a pair is split by its own verdict, None where that is open; many connections ask it of the same
        few."""
        connection = pair.vantages[0].connection
        key = connection.client, connection.server, connection.first_time_ns
        if key not in self._judged:
            self._judged[key] = self._judge(pair)
        return self._judged[key]

    def _arrives_whole(self, client: Connection) -> bool:
        """Whether another connection of this client to this server is end to end: no middlebox ends all of them."""
        key = client.client_address, client.server
        if key not in self._whole:
            self._whole[key] = any(self._is_split(pair) is False for pair in self._paired.identified(client))
        return self._whole[key]

    def _box_before(self, server: str) -> float:
        """How sure it is that a middlebox splits connections to this server; 0 unless all that are decided are split.

        Where some arrive whole, one of several machines behind the server's address was captured, rather. A middlebox
        that clients address themselves, such as a SOCKS proxy, may go on to any server, so that nothing is known of
        others.
        """
        if server not in self._boxes:
            judged = [
                (self._is_split(pair), pair.pairing_confidence)
                for pair in self._paired.to_server(server)
                if all(vantage.connection.server == server for vantage in pair.vantages)
            ]
            split = [confidence for is_split, confidence in judged if is_split]
            whole = any(is_split is False for is_split, _ in judged)
            self._boxes[server] = 0.0 if whole else max(split, default=0.0)
        return self._boxes[server]

    def _watch(self, in_first: bool, at_client: bool) -> Watch:
        """What the capture that lacks a connection was watching."""
        key = (in_first, at_client)
        if key not in self._watches:
            here, there = self._captures if in_first else reversed(self._captures)
            both = _sure_pairs(self._captures, self._paired.matches)
            if not in_first:
                both = [(second, first) for first, second in both]
            self._watches[key] = Watch(
                there.time_span_ns,
                _seen_by_both(here, there, both),
                asker_at_client=at_client,
                unreadable=sum(there.counts[name] for name in _UNREADABLE),
                filtered_out=there.counts["filtered_out"],
                drift_limit=self._options.drift_limit_ppm * 1e-6,
                same_clock=self._options.clocks is ClockMode.SYNCHRONISED,
            )
        return self._watches[key]


def _sure_pairs(captures: Sequence[Capture], matches: Sequence[Match]) -> list[tuple[int, int]]:
    """The connections of both captures of which it is sure enough that they are one. What they say is no sign of that
    where they have no address in common: others may say it, too."""
    sure, said = list[tuple[int, int]](), list[tuple[int, int]]()
    begin = 0
    for match in matches:
        if match.first is None or match.second is None or match.sides_swapped or match.ground in _DOUBTFUL:
            continue
        if match.one_transfer_nats <= CONTRADICTION_NATS:
            continue
        (said if match.ground in CONTENT else sure).append((match.first, match.second))
    for here, there in _seen_by_both(captures[0], captures[1], said):
        part = said[begin : begin + len(here.clients)]
        begin += len(part)
        ends = zip(here.clients, here.servers, there.clients, there.servers, strict=True)
        sure += [numbers for numbers, each in zip(part, ends, strict=True) if have_an_address_in_common(*each)]
    return sure


def _seen_by_both(
    here: Capture, there: Capture, numbers: Sequence[tuple[int, int]]
) -> Iterator[tuple[SeenConnections, SeenConnections]]:
    """Connections of both captures as these show them, some at a time."""
    for begin in range(0, len(numbers), _TOGETHER):
        of_here, of_there = zip(*numbers[begin : begin + _TOGETHER], strict=True)
        yield _seen_by(here, of_here), _seen_by(there, of_there)


def _seen_by(capture: Capture, numbers: Sequence[int]) -> SeenConnections:
    columns, end_points, _ = capture.summaries(numbers)
    clients, servers = (SlicedTexts.behind_each_other(*texts) for texts in end_points)
    return SeenConnections(columns, clients, servers)


def holds_instead(capture: Capture) -> str:
    """What a capture without TCP holds, as one sentence."""
    flows = sorted(capture.datagram_flows, key=lambda flow: -sum(flow.payload_bytes))
    if not flows:
        return f"The other capture cannot be used: {'; '.join(capture.warnings)}."
    count = sum(sum(flow.datagrams) for flow in flows)
    ends = " and ".join(flows[0].end_point(side) for side in (0, 1))
    return (
        f"The other capture holds no TCP but {_counted(count, 'UDP datagram')} in {_counted(len(flows), 'flow')}, the "
        f"largest with {sum(flows[0].payload_bytes)} bytes between {ends}. None of them shows this connection's bytes: "
        "a tunnel or another protocol may carry them."
    )


def nothing_in_common(captures: Sequence[Capture]) -> str:
    """The warning for two captures without a common connection, of which at least one holds connections."""
    without = [capture for capture in captures if capture.tcp_packet_count == 0]
    why = "they show different transfers, or a middlebox changes all content"
    if without:
        why = "one of them holds no TCP"
    return f"the captures have no connection in common: {_apart(captures)}{why}"


def _apart(captures: Sequence[Capture]) -> str:
    """How far apart in time the captures are, where they are."""
    spans = [capture.time_span_ns for capture in captures]
    begins, ends = [span[0] for span in spans if span], [span[1] for span in spans if span]
    gap_ns = max(begins) - min(ends) if len(begins) == len(captures) else 0
    if gap_ns < 1e9:
        return ""
    return f"by their clocks one begins {gap_ns / 1e9:.0f} s after the other ends; "


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
