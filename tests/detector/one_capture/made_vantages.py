"""One vantage point made by hand: connections with their hosts, exchanges and round trips, and how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from detector.one_capture import pools
from detector.one_capture.columns import VantageColumns
from detector.one_capture.judging import JudgedPools, group_results, judged_connections, judged_groups
from detector.one_capture.networks import NetworkTable
from detector.one_capture.side_posteriors import SidePosteriors, weigh_side
from detector.options import DECISION_PROBABILITY
from pepscope.captures.exchanges import ExchangeKind
from pepscope.captures.packets import Direction
from pepscope.captures.references import References
from pepscope.results.verdicts import GroupResult, GroupSide
from tests.detector.one_capture.made_exchanges import Asked, Trips, addresses, exchanges, references
from tests.detector.one_capture.senders.made_senders import senders

HERE = "10.0.0.1"
_LAST_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Talk:
    """A connection with a far host: what its exchanges took beyond the least round trip, by kind, in milliseconds.

    `round_trip_ms` is the transport's, of its handshake and its data alike unless `handshake_ms` is given. At the
    server's side the client closes `close_ms` later than a round trip after the server's last byte, if that is given.
    Where `rides`, all acknowledgements ride on answers, so that only the handshake times the transport; where
    `unanswered` its SYN was not answered, and nothing does; where `begun` the capture began after its handshake.
    """

    host: str = "192.0.2.1"
    excess_ms: Sequence[tuple[ExchangeKind, float]] = ()
    round_trip_ms: float = 20.0
    handshake_ms: float | None = None
    middle_ms: float | None = None
    near: str = HERE
    port: int = 80
    round_trips: int = 8
    more: Sequence[Asked] = field(default=())
    close_ms: float | None = None
    rides: bool = False
    unanswered: bool = False
    begun: bool = False

    def asked(self, connection: int, way: Direction) -> list[Asked]:
        """Its exchanges; acknowledgements take one round trip."""
        made = [
            Asked(
                connection, self.round_trip_ms + beyond, min(self.round_trip_ms, self.round_trip_ms + beyond),
                kind, way, 1000.0 * place,
            )
            for place, (kind, beyond) in enumerate(self.excess_ms)
        ]  # fmt: skip
        return made + [replace(each, connection=connection) for each in self.more]

    def trips(self) -> Trips:
        """Its round trips to the far host."""
        if self.unanswered:
            return Trips()
        handshake = self.round_trip_ms if self.handshake_ms is None else self.handshake_ms
        if self.begun:
            return Trips(self.round_trip_ms, None, self.middle_ms, None, self.round_trips)
        return Trips(None if self.rides else self.round_trip_ms, None, self.middle_ms, handshake, self.round_trips)


def of_library_and_program(late_ms: Sequence[float]) -> list[tuple[ExchangeKind, float]]:
    """Exchanges that take so long, in turn answered by a TLS library and by a program: a leg delays both."""
    kinds = (ExchangeKind.TLS_FINISHED, ExchangeKind.TLS_DATA)
    return [(kinds[place % 2], late) for place, late in enumerate(late_ms)]


def vantage(talks: Sequence[Talk], *, at_client: bool, pings: Sequence[tuple[str, float]] = ()) -> VantageColumns:
    """The columns of a capture that holds these connections, and pings of hosts in milliseconds."""
    way = Direction.UP if at_client else Direction.DOWN
    asked = [each for number, talk in enumerate(talks) for each in talk.asked(number, way)]
    far, here = [talk.trips() for talk in talks], [Trips(0.05, handshake_ms=0.05)] * len(talks)
    up, down = (far, here) if at_client else (here, far)
    made = exchanges(asked, up, down, connections=len(talks))
    return VantageColumns(
        captures=(),
        columns=_columns(talks, at_client=at_client),
        capture=np.zeros(len(talks), np.int64),
        exchanges=made,
        references=references([host for host, _ in pings], [time for _, time in pings]) if pings else nothing(),
        senders=senders(len(talks), way.reverse),
    )


def nothing() -> References:
    """No references."""
    return references(["192.0.2.1"], [1.0]).of(np.zeros(1, np.bool_))


def judged(talks: Sequence[Talk], *, at_client: bool, pings: Sequence[tuple[str, float]] = ()) -> SidePosteriors:
    """How these connections are judged at one side."""
    side = GroupSide.CLIENT if at_client else GroupSide.SERVER
    return weigh_side(vantage(talks, at_client=at_client, pings=pings), side, NetworkTable())


def results(talks: Sequence[Talk], *, at_client: bool, pings: Sequence[tuple[str, float]] = ()) -> list[GroupResult]:
    """Results by group, at the probability that is asked for by default."""
    found = judged(talks, at_client=at_client, pings=pings)
    members = pools.of_members(found)
    groups = judged_groups(found, members, DECISION_PROBABILITY)
    group = found.places.member_group[found.places.member]
    places = [np.flatnonzero(group == number).tolist() for number in range(len(found.places.network))]
    return group_results(found, members, groups, places)


def together_and_alone(found: SidePosteriors) -> tuple[JudgedPools, JudgedPools]:
    """How connections are judged, given the others of their groups, and each by itself."""
    members = pools.of_members(found)
    groups = judged_groups(found, members, DECISION_PROBABILITY)
    return judged_connections(found, members, DECISION_PROBABILITY, groups)


def _columns(talks: Sequence[Talk], *, at_client: bool) -> dict[str, npt.NDArray[Any]]:
    far, near = addresses([talk.host for talk in talks]), addresses([talk.near for talk in talks])
    shaken_ms = [talk.trips().handshake_ms for talk in talks]
    to_far = np.asarray([-1 if each_ms is None else round(each_ms * 1e6) for each_ms in shaken_ms], np.int64)
    to_near = np.full(len(talks), 50_000)
    closes = [None if talk.close_ms is None else talk.round_trip_ms + talk.close_ms for talk in talks]
    fin_ns = [-1 if took_ms is None else _LAST_NS + round(took_ms * 1e6) for took_ms in closes]
    return {
        "client_address": near if at_client else far,
        "server_address": far if at_client else near,
        "server_port": np.asarray([talk.port for talk in talks], np.uint16),
        **{f"{way}_options_captured": np.zeros(len(talks), np.bool_) for way in ("up", "down")},
        **{f"{way}_maximum_segment_size": np.full(len(talks), -1) for way in ("up", "down")},
        **{f"{way}_window_scale": np.full(len(talks), -1) for way in ("up", "down")},
        "first_time_ns": np.arange(len(talks), dtype=np.int64),
        "last_time_ns": np.full(len(talks), _LAST_NS + 1),
        "up_last_data_time_ns": np.full(len(talks), _LAST_NS - 1),
        "up_fin_time_ns": np.asarray(fin_ns, np.int64),
        "down_last_data_time_ns": np.full(len(talks), _LAST_NS),
        "down_fin_time_ns": np.full(len(talks), -1),
        "down_reset_time_ns": np.full(len(talks), -1),
        "down_retransmitted_packets": np.zeros(len(talks), np.int64),
        "handshake_syn_ack_ns": to_far if at_client else to_near,
        "handshake_ack_ns": to_near if at_client else to_far,
        "up_round_trip_time_min_ns": to_far if at_client else to_near,
        "down_round_trip_time_min_ns": to_near if at_client else to_far,
    }
