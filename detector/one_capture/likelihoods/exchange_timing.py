"""The excess of every exchange: what its answer took beyond a round trip of the transport.

An exchange is a burst of data (the question) and the first new byte of the other side that acknowledges all of it (the
answer). The *near leg* reaches from the capture to whatever acknowledges; its least round trip, of the same
connection's handshake or of data that a packet without payload acknowledged, is taken from the exchange's time. What is
left is the application's time, what the path varies, and the round trip of a hidden leg. It is at least zero: an answer
that comes sooner than the transport's round trip found a faster path. An acknowledgement that rides on an answer is the
exchange itself: where nothing else times the transport, an exchange says nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.likelihoods.exchange_nats import connection_weights
from detector.one_capture.likelihoods.timing_tables import CLASSES, OPENING, Floats, excess_bin
from detector.one_capture.likelihoods.unread_words import unread_numbers
from detector.one_capture.likelihoods.waiting_handshakes import waits
from detector.one_capture.members import Ints, pooled_quantiles, quantiles
from detector.one_capture.networks import Places
from pepscope.captures.exchanges import ANSWERED_BEFORE, ExchangeKind, Exchanges, RoundTripColumns
from pepscope.captures.packets import Direction

#: Fewer round trips do not say how much they vary.
FEWEST_ROUND_TRIPS = 4

#: Least and 60 % round trips bound what a path varies: the dearer part is what the connection's own load adds.
_LOW, _MIDDLE = 0.1, 0.6

#: A quantile of few samples is surely no higher than one that lies so many standard errors of its share above.
_SURELY = 2.0

#: Acknowledgements that receivers delay come later by so much and more (Linux: 40 ms, at 100 to 1,000 ticks a second).
_SHORTEST_DELAY_S = 0.036

#: Nothing but a timer delays an acknowledgement by so many times what round trips vary.
_TIMES_VARIATION = 4.0

#: Where answers come sooner than the handshake, by more than this (s), something held the handshake up (a radio that
#: wakes up, a SYN that waits): it no longer says how near the near end is. Where data come so much later than
#: handshakes, something nearer answers these.
_HELD_UP_S = 0.01

#: A question leaves as its connection opens within this time of the handshake's end (s): where a split point connects
#: once its client has, nearly all of the far handshake is still to come.
_AT_ONCE_S = 0.002

#: Share and number of connections that two clocks timed from which the times of none tell anything.
_UNTIMED_SHARE, _FEWEST_UNTIMED = 0.05, 3

#: The table that each kind of exchange is looked up in; what is not causal has none.
_CLASS_OF = {
    ExchangeKind.TLS_HELLO: "handshake",
    ExchangeKind.TLS_FINISHED: "handshake",
    ExchangeKind.TLS_SECOND_FINISHED: "handshake",
    ExchangeKind.GREETING: "line",
    ExchangeKind.COMMAND: "line",
    ExchangeKind.HTTP_REQUEST: "http",
    ExchangeKind.HTTP_NEXT_REQUEST: "http",
    ExchangeKind.PROXY_CONNECT: "http",
    ExchangeKind.PROXY_REQUEST: "http",
    ExchangeKind.ABSOLUTE_REQUEST: "http",
    ExchangeKind.TLS_DATA: "encrypted",
    ExchangeKind.TURN: "turn",
    ExchangeKind.UNREAD: "turn",
    ExchangeKind.SOCKS_REQUEST: "turn",
    ExchangeKind.PROXY_HEADER: "turn",
}
_NOT_CAUSAL = -1
_CLASS_CODES = np.asarray(
    [CLASSES.index(_CLASS_OF[kind]) if kind in _CLASS_OF else _NOT_CAUSAL for kind in ExchangeKind], np.int64
)
_LINE = CLASSES.index("line")


class ExchangeTiming(Struct, frozen=True, dict=True):
    """The exchanges that far hosts answered, in the order of their members, and what the members' paths are like.

    Times are in seconds, NaN where the capture does not show them.
    """

    # One element an exchange:
    row: Ints  # in the capture's exchanges
    connection: Ints
    member: Ints
    kind: Ints  # a class of `TimingTables`
    excess_s: Floats  # beyond the connection's least round trip
    weight: Floats
    at_once: npt.NDArray[np.bool_]  # whether it is asked as its connection opens
    unread: Ints  # its number where its words were not captured (`unread_words`)
    # One element a member:
    near_s: Floats  # the least round trip, of what kind ever
    data_s: Floats  # the least of data, whatever acknowledges them
    plain_s: Floats  # the least of data that packets without payload acknowledge
    prompt_s: Floats  # the least low quantile of those that no timer delays
    handshake_s: Floats  # the least handshake
    variation_s: Floats  # how far middling round trips lie above low ones
    handshake_variation_s: Floats  # the same of handshakes alone
    round_trips: Floats  # how many show `variation_s`
    handshakes: Floats  # how many there are (0 where none is)
    acknowledgements: Floats  # how many, with payload or without
    timed_connections: Ints  # how many by handshakes or data
    # One element a connection:
    base_s: Floats  # the round trip that the excess is beyond

    @cached_property
    def bins(self) -> Ints:
        """The bin of each excess, as timing tables have them."""
        return excess_bin(self.excess_s)

    def of_groups(self, values: Floats, member_group: Ints, groups: int) -> Floats:
        """The middle value of the members of each group; NaN where none is known."""
        return quantiles(values, member_group, groups, 0.5)


def exchange_timing(
    exchanges: Exchanges, places: Places, *, at_client: bool, opened_ns: Ints | None = None
) -> ExchangeTiming:
    """The exchanges of one side with their excess. `opened_ns` is when the handshake of each connection ended, negative
    where that was not seen."""
    asked = (Direction.UP if at_client else Direction.DOWN).value
    measured = _Measured.of(exchanges.round_trips, asked, connections=len(places.member))
    member, members = places.member, len(places.member_group)
    prompt, handshakes, every = samples = measured.samples()
    variation_s, round_trips = _variation_s(samples, member, members)
    base_s = _known_base_s(exchanges.round_trips, measured, places, variation_s, at_client=at_client)
    rows = _timed_rows(exchanges, asked, places, base_s)
    connection = exchanges.connection[rows].astype(np.int64)
    took_s = (exchanges.answered_ns[rows] - exchanges.question_ns[rows]) / 1e9
    kind = _CLASS_CODES[exchanges.kind[rows]]
    opening = exchanges.first[rows] & (kind != _LINE) if at_client else np.zeros(len(rows), np.bool_)
    least_s = np.fmin(measured.data_s, measured.handshake_s)
    return ExchangeTiming(
        row=rows,
        connection=connection,
        member=member[connection],
        kind=kind + OPENING * opening,
        excess_s=np.maximum(took_s - base_s[connection], 0.0),
        weight=connection_weights(connection),
        at_once=opening & _are_at_once(exchanges, rows, opened_ns),
        unread=unread_numbers(exchanges, asked, rows),
        near_s=quantiles(least_s, member, members, 0.0),
        data_s=quantiles(measured.data_s, member, members, 0.0),
        plain_s=quantiles(measured.plain_s, member, members, 0.0),
        prompt_s=quantiles(prompt.low_s, member, members, 0.0),
        handshake_s=quantiles(measured.handshake_s, member, members, 0.0),
        variation_s=variation_s,
        handshake_variation_s=handshakes.variation_s(member, members),
        round_trips=round_trips,
        handshakes=handshakes.of(member, members),
        acknowledgements=every.of(member, members),
        timed_connections=np.bincount(member[~np.isnan(least_s)], minlength=members),
        base_s=base_s,
    )


class _Measured(Struct, frozen=True):
    """Round trips to the far host by connection, in seconds, NaN where none was seen, and how many there are."""

    data_s: Floats  # the least of data, whatever acknowledged them
    plain_s: Floats  # the least of data that packets without payload acknowledged
    handshake_s: Floats
    plain_60_s: Floats  # the 60 % quantile of `plain_s`
    prompt_10_s: Floats  # the 10 and 60 % quantiles of those with prompt acknowledgements
    prompt_60_s: Floats
    count: Floats  # of all acknowledgements
    prompt_count: Floats

    @classmethod
    def of(cls, round_trips: RoundTripColumns, asked: int, *, connections: int) -> _Measured:
        """Those of the direction that was `asked` in."""
        trips = np.flatnonzero(round_trips.asked == asked)
        count, prompt_count = np.zeros((2, connections))
        count[round_trips.connection[trips]] = round_trips.count[trips]
        prompt_count[round_trips.connection[trips]] = round_trips.prompt_count[trips]

        def by_connection(times_ns: Ints) -> Floats:
            return _by_connection(times_ns, round_trips.connection, trips, connections)

        return cls(
            data_s=by_connection(round_trips.least_of_all_ns),
            plain_s=by_connection(round_trips.least_ns),
            handshake_s=by_connection(round_trips.handshake_ns),
            plain_60_s=by_connection(round_trips.quantile_60_ns),
            prompt_10_s=by_connection(round_trips.prompt_10_ns),
            prompt_60_s=by_connection(round_trips.prompt_60_ns),
            count=count,
            prompt_count=prompt_count,
        )

    def samples(self) -> tuple[_Samples, _Samples, _Samples]:
        """Prompt acknowledgements, handshakes, and all acknowledgements (middling ones of those without payload)."""
        return (
            _Samples(self.prompt_10_s, self.prompt_60_s, self.prompt_count),
            _Samples(self.handshake_s, self.handshake_s, (~np.isnan(self.handshake_s)).astype(np.float64)),
            _Samples(self.data_s, self.plain_60_s, self.count),
        )


def _timed_rows(exchanges: Exchanges, asked: int, places: Places, base_s: Floats) -> Ints:
    """The exchanges asked in this direction that are causal and of connections whose base is known, by member."""
    rows = np.flatnonzero(
        (exchanges.asked == asked)
        & (_CLASS_CODES[exchanges.kind] != _NOT_CAUSAL)
        & (exchanges.strict | (exchanges.kind != ExchangeKind.GREETING))
        & ~exchanges.repeated
        & ~exchanges.crossed
    )
    rows = rows[~np.isnan(base_s[exchanges.connection[rows]])]
    return rows[np.argsort(places.member[exchanges.connection[rows]], kind="stable")]


def _known_base_s(
    round_trips: RoundTripColumns, measured: _Measured, places: Places, variation_s: Floats, *, at_client: bool
) -> Floats:
    """The round trip that exchanges of each connection are compared with (`_base_s`), NaN where nothing tells it, two
    clocks timed it, or a timer may have. At the client's side handshakes of hosts that let them wait tell none;
    `variation_s` is by member."""
    member, members = places.member, len(places.member_group)
    data_s, timed_s = measured.data_s, measured.handshake_s
    may_be_delayed = np.zeros(len(member), np.bool_)
    if at_client:
        timed_s, may_be_delayed = _without_waiting(measured, variation_s, member)
    apart_s = np.fmin(measured.plain_s, timed_s)
    is_untimed = _are_untimed(round_trips, ~np.isnan(np.fmin(data_s, apart_s)))
    data_s, apart_s = (np.where(is_untimed, np.nan, each) for each in (data_s, apart_s))
    return np.where(is_untimed | may_be_delayed, np.nan, _base_s(data_s, apart_s, member, members))


def _are_at_once(exchanges: Exchanges, rows: Ints, opened_ns: Ints | None) -> npt.NDArray[np.bool_]:
    """Of these exchanges, which are asked as their connection opens."""
    if opened_ns is None:
        return np.zeros(len(rows), np.bool_)
    opened_ns = opened_ns[exchanges.connection[rows]]
    began_ns = exchanges.question_ns[rows] - np.maximum(exchanges.question_span_ns[rows], 0)
    return np.asarray((opened_ns >= 0) & (began_ns - opened_ns < _AT_ONCE_S * 1e9))


def _base_s(data_s: Floats, apart_s: Floats, member: Ints, members: int) -> Floats:
    """The transport's round trip that exchanges of each connection are compared with; NaN where nothing tells it.

    `apart_s` are round trips that hold no exchange: of handshakes, and of acknowledgements without payload. One that
    rides on an answer (all of these are in `data_s`) is as late as the answer, and would hide any leg. Where a
    connection has none of its own, or answers came sooner, its host's others stand for it.
    """
    in_time = ~(data_s < apart_s - _HELD_UP_S)
    own_s = np.where(in_time, apart_s, np.nan)
    others_s = quantiles(apart_s, member, members, 0.0)[member]
    usable = ~(data_s < others_s - _HELD_UP_S)
    base_s = np.where(np.isnan(own_s), np.where(usable, others_s, np.nan), own_s)
    # An answer that came sooner by less tells the same: the sooner of both is nearer to what the path takes.
    return np.where(np.isnan(base_s), base_s, np.fmin(base_s, data_s))


def _are_untimed(round_trips: RoundTripColumns, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Connections that two clocks timed; all, where they are more than a few of those whose round trips are `known`."""
    found = np.zeros(len(known), np.bool_)
    found[round_trips.connection[round_trips.handshake_ns == ANSWERED_BEFORE]] = True
    most = max(_FEWEST_UNTIMED - 1, _UNTIMED_SHARE * np.count_nonzero(known | found))
    return np.asarray(found | (np.count_nonzero(found) > most))


def _without_waiting(measured: _Measured, variation_s: Floats, member: Ints) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Handshakes by connection, NaN for those of hosts whose data are acknowledged sooner than any of them; and of
    such hosts the connections whose data a timer may have acknowledged: later than the host's least by what timers
    delay, by more than its round trips vary (by member), and never more than a segment at once.

    Nothing times these. That the path to them is the host's least, and all beyond it a leg, would take a radio link
    that is slow for short connections for one.
    """
    plain_s, handshake_s = measured.plain_s, measured.handshake_s
    least_s, nearest_s = (quantiles(each, member, len(variation_s), 0.0) for each in (handshake_s, plain_s))
    waiting = waits(least_s, nearest_s)[member]
    delay_s = np.maximum(_SHORTEST_DELAY_S, _TIMES_VARIATION * variation_s)[member]
    may_be_delayed = waiting & (plain_s - nearest_s[member] > delay_s) & np.isnan(measured.prompt_10_s)
    return np.where(waiting, np.nan, handshake_s), may_be_delayed


class _Samples(Struct, frozen=True):
    """Low and middling round trips of one sort by connection, and how many there are."""

    low_s: Floats
    middle_s: Floats
    count: Floats

    def of(self, member: Ints, members: int) -> Floats:
        """How many there are by member."""
        known = member >= 0
        return np.bincount(member[known], weights=self.count[known], minlength=members).astype(np.float64)

    def variation_s(self, member: Ints, members: int, *, surely: float = 0.0) -> Floats:
        """By member, how far the middling ones lie above the low ones; NaN where they are few. With `surely` they vary
        by no more than that, so many standard errors sure (of independent samples)."""
        measured = self.of(member, members)
        error = np.sqrt(_MIDDLE * (1 - _MIDDLE) / np.maximum(measured, 1))
        share = np.minimum(_MIDDLE + surely * error, 1.0)
        middle_s = pooled_quantiles(self.middle_s, self.count, member, members, share)
        varies_s = middle_s - quantiles(self.low_s, member, members, _LOW)
        return np.where(measured >= FEWEST_ROUND_TRIPS, np.maximum(varies_s, 0.0), np.nan)


def _variation_s(samples: tuple[_Samples, _Samples, _Samples], member: Ints, members: int) -> tuple[Floats, Floats]:
    """What paths vary, by member, and how many round trips show it; where they are few, how many there are of all.

    Prompt acknowledgements and handshakes are delayed by no receiver. Both have what the path varies, and may have
    more: long transfers queue behind themselves, and radio that sleeps wakes up for handshakes. So it varies by no more
    than the least of both, unless handshakes are answered nearer than data. Of few handshakes some are alike by chance,
    on radio as well, so that against data only what they surely do not exceed counts. Delayed acknowledgements make a
    wire behind a split point vary like a radio link, so that where there is nothing else only less than the shortest
    usual delay counts.
    """
    varies_s = [each.variation_s(member, members) for each in samples]
    count = [each.of(member, members) for each in samples]
    nearest_s = [quantiles(each.low_s, member, members, 0.0) for each in samples]
    (prompt_s, handshake_s, every_s), (prompt, handshakes, every) = varies_s, count
    most_s = samples[1].variation_s(member, members, surely=_SURELY)
    are_steadier = (most_s < prompt_s) & ~(nearest_s[1] < nearest_s[0] - _HELD_UP_S)
    alone = np.isnan(prompt_s)
    by_handshakes = alone | are_steadier
    undelayed_s = np.select([alone, are_steadier], [handshake_s, most_s], prompt_s)
    every_s = np.where(every_s < _SHORTEST_DELAY_S, every_s, np.nan)
    known = ~np.isnan(undelayed_s)
    return np.where(known, undelayed_s, every_s), np.where(known, np.where(by_handshakes, handshakes, prompt), every)


def _by_connection(times_ns: Ints, connection: npt.NDArray[Any], rows: Ints, connections: int) -> Floats:
    """Seconds by connection; NaN where nothing was seen."""
    found = np.full(connections, np.nan)
    seen = rows[times_ns[rows] >= 0]
    found[connection[seen]] = times_ns[seen] / 1e9
    return found
