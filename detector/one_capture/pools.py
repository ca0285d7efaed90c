"""Pools of exchanges in figures: a group, a far host or a connection, as sentences and JSON state it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.legs import common_leg_nats, leg_estimates
from detector.one_capture.likelihoods.timing_tables import CLASSES, OPENING, Floats
from detector.one_capture.members import Ints, quantiles
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.results.verdicts import GroupSide

#: Answers that take longer beyond the transport (s) are people's doing as often as not.
PEOPLE_S = 0.2

#: Share of answers that are as fast as the fast ones, or faster.
_FAST = 0.2


class Pools(Struct, frozen=True):
    """Figures by pool; times in seconds, NaN where nothing was measured.

    `dialogues` are the exchanges of TLS handshakes and line protocols. `fast_excess_s` is the 20 % quantile of what
    automatic answers took beyond the transport's round trip; of groups `least_fast_s` and `most_fast_s` are its range
    over members. `handshake_s` and `plain_s` are those of the member where they differ most, `reference_s` that of the
    member where it exceeds the transport's round trip most. `leg_s` and its interval hold if there is a hidden leg.
    """

    exchanges: Ints
    dialogues: Ints
    connections: Ints
    near_s: Floats
    handshake_s: Floats
    plain_s: Floats
    reference_s: Floats
    fast_excess_s: Floats
    least_fast_s: Floats
    most_fast_s: Floats
    leg_s: Floats
    leg_low_s: Floats
    leg_high_s: Floats


def of_members(posteriors: SidePosteriors) -> Pools:
    """A pool a member."""
    places, timing = posteriors.places, posteriors.timing
    count = len(places.member_group)
    fast_s = _fast_s(posteriors, timing.member, count)
    return Pools(
        np.bincount(timing.member, minlength=count), _dialogues(timing, timing.member, count),
        np.bincount(places.member, minlength=count), timing.near_s,
        timing.handshake_s, timing.plain_s, posteriors.reference_s, fast_s, fast_s, fast_s,
        *leg_estimates(posteriors.groups.leg_nats),
    )  # fmt: skip


def of_groups(posteriors: SidePosteriors, members: Pools) -> Pools:
    """A pool a group. At the server's side its leg is one that all clients have, at the client's the middle one of its
    servers' legs."""
    places, timing = posteriors.places, posteriors.timing
    group, count = places.member_group, len(places.network)

    def least(values: Floats) -> Floats:
        return quantiles(values, group, count, 0.0)

    if posteriors.side is GroupSide.SERVER:
        legs = leg_estimates(common_leg_nats(posteriors.groups.leg_nats, group, count))
    else:
        timed = [
            np.where(members.exchanges > 0, each, np.nan)
            for each in (members.leg_s, members.leg_low_s, members.leg_high_s)
        ]
        legs = (
            quantiles(timed[0], group, count, 0.5),
            least(timed[1]),
            quantiles(timed[2], group, count, 1.0),
        )  # fmt: skip
    later = _where_most(members.plain_s - members.handshake_s, group, count)
    longer = _where_most(members.reference_s - members.near_s, group, count)
    return Pools(
        np.bincount(group[timing.member], minlength=count), _dialogues(timing, group[timing.member], count),
        np.bincount(group[places.member], minlength=count),
        least(members.near_s), _taken(members.handshake_s, later), _taken(members.plain_s, later),
        _taken(members.reference_s, longer), _fast_s(posteriors, group[timing.member], count),
        least(members.fast_excess_s), quantiles(members.fast_excess_s, group, count, 1.0), *legs,
    )  # fmt: skip


def of_connections(posteriors: SidePosteriors, members: Pools) -> Pools:
    """A pool a connection; round trips are its far host's."""
    timing, member = posteriors.timing, posteriors.places.member
    count = len(member)
    fast_s = _fast_s(posteriors, timing.connection, count)
    return Pools(
        np.bincount(timing.connection, minlength=count), _dialogues(timing, timing.connection, count),
        np.ones(count, np.int64), members.near_s[member],
        members.handshake_s[member], members.plain_s[member], members.reference_s[member], fast_s, fast_s, fast_s,
        *(estimate[posteriors.connection_kind] for estimate in leg_estimates(posteriors.alone.leg_nats)),
    )  # fmt: skip


def _fast_s(posteriors: SidePosteriors, pool: Ints, count: int) -> Floats:
    """Of the answers that no person seems to have given, or else of all."""
    excess_s = posteriors.timing.excess_s
    automatic_s = quantiles(np.where(excess_s < PEOPLE_S, excess_s, np.nan), pool, count, _FAST)
    return np.where(np.isnan(automatic_s), quantiles(excess_s, pool, count, _FAST), automatic_s)


def _dialogues(timing: ExchangeTiming, pool: Ints, count: int) -> Ints:
    counts = np.isin(timing.kind % OPENING, [CLASSES.index(kind) for kind in ("handshake", "line")])
    return np.bincount(pool[counts], minlength=count)


def _where_most(values: Floats, group: Ints, groups: int) -> Ints:
    """The member of each group whose value is the greatest; -1 where none is known."""
    place = np.full(groups, -1)
    order = np.lexsort((values, group))
    order = order[~np.isnan(values[order])]
    place[group[order]] = order
    return place


def _taken(values: Floats, members: Ints) -> Floats:
    return np.where(members >= 0, values[members], np.nan)
