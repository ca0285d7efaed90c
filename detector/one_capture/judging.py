"""One vantage point to results: posteriors of each judged side, as groups with their hosts and as connections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture import pools
from detector.one_capture.classes import (
    ASKING,
    DECISIVE,
    OWN_SITE_S,
    SPLITS,
    WHOLE,
    Classes,
    Explanation,
    as_groups_declare,
    classes,
    of_network,
    with_declared,
)
from detector.one_capture.hypotheses.other_connections import with_other_connections
from detector.one_capture.hypotheses.posteriors import BY_MEMBER, Posterior
from detector.one_capture.likelihoods.exchange_nats import speaks_web
from detector.one_capture.likelihoods.priors import PRIORS
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints
from detector.one_capture.pools import Pools
from detector.one_capture.reasons.evidence import OWN_ENDS_NATS, group_evidence
from detector.one_capture.reasons.sentences import PoolFigures, reason
from detector.one_capture.senders.declared_proxies import are_relays
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.results.hypotheses import PRIOR, Hypothesis
from pepscope.results.pairs.columns import JUDGED
from pepscope.results.verdicts import GroupResult, GroupSide, HostResult, Mechanism, SplitPlace, Verdict

#: Where a split is seen from one end, HTTP does not show whether it stores: the share of stores among splits
#: beforehand. Handshakes of TLS and dialogues take several turns, which nothing can store and forward as one.
_STORED_SHARE = PRIOR[Hypothesis.STORE] / (1 - PRIOR[Hypothesis.END])
_STORED_DIALOGUES = 0.02

#: Answers come at the transport's speed that come within this (s), or within twice what the path varies: hosts compute.
IN_TIME_S = 0.02

_PLACES = {
    Explanation.NETWORK: SplitPlace.NETWORK,
    Explanation.SITE: SplitPlace.SERVER,
    Explanation.DECLARED: SplitPlace.PROXY,
}


class JudgedPools(Struct, frozen=True, dict=True):
    """Pools of one sort with what explains each."""

    side: GroupSide
    pools: Pools
    classes: Classes  # with what is declared
    by_timing: Classes  # without
    late: Floats  # how probable it is that a pool is late end to end
    comes_one_way: npt.NDArray[np.bool_]  # see `networks.come_one_way`
    others: Ints | None = None  # of connections: how many others of its group one needs for what explains it
    own_ends: npt.NDArray[np.bool_] | None = None  # of groups: near ends show that no leg is hidden, and no answers do
    form: Ints | None = None  # in which `ProxyForm` clients ask for a proxy; None where none does
    beside: Ints | None = None  # how many connections to the port of those that do ask for none

    @cached_property
    def relays(self) -> npt.NDArray[np.bool_]:
        """Which are relayed by a proxy that clients ask for: tunnels are relayed as they come."""
        return np.zeros(len(self.late), np.bool_) if self.form is None else are_relays(self.form)

    @cached_property
    def dialogues(self) -> npt.NDArray[np.bool_]:
        """Which are seen, or known, not to be stored and forwarded."""
        return np.asarray((self.pools.dialogues > 0) | self.relays)

    @cached_property
    def shows_leg(self) -> npt.NDArray[np.bool_]:
        """Of which timing shows a leg, whatever is declared."""
        return np.isin(self.by_timing.explanation, SPLITS)

    @cached_property
    def explanations(self) -> Ints:
        """What explains each pool. A split point beside the server is the server's own; further away it may be so too
        where all clients have one address, the split point's."""
        found = self.classes.explanation
        if self.side is GroupSide.CLIENT:
            return found
        elsewhere = np.where(self.comes_one_way, Explanation.NETWORK_OR_SITE, found)
        of_split = np.where(self.pools.near_s < OWN_SITE_S, Explanation.SITE, elsewhere)
        return np.where(np.isin(found, SPLITS), of_split, found)

    def explanation(self, place: int) -> Explanation:
        """What explains a pool."""
        return Explanation(int(self.explanations[place]))

    def figures(self, place: int, hosts: int) -> PoolFigures:
        """A pool in figures."""
        columns = self.figure_columns(slice(place, place + 1), hosts)
        return PoolFigures(self.side, *(column.tolist()[0] for column in columns.values()))

    def figure_columns(self, rows: slice, hosts: int = 1) -> dict[str, npt.NDArray[Any]]:
        """Some pools in figures, of so many hosts each: the fields of `PoolFigures` behind the side as columns."""
        of = self.pools
        late = self.late[rows]
        measured = {
            name: getattr(of, name)[rows]
            for name in (
                "connections", "exchanges", "near_s", "handshake_s", "plain_s", "reference_s", "fast_excess_s",
                "least_fast_s", "most_fast_s", "leg_s", "leg_low_s", "leg_high_s",
            )
        }  # fmt: skip
        return {
            "hosts": np.full(len(late), hosts),
            **measured,
            "split": self.classes.split[rows],
            "late": late,
            "dialogues": of.dialogues[rows],
            "others": np.zeros(len(late), np.int64) if self.others is None else self.others[rows],
            "needed": self.classes.least_split[rows],
            "own_ends": np.zeros(len(late), np.bool_) if self.own_ends is None else self.own_ends[rows],
            "form": np.zeros(len(late), np.int64) if self.form is None else self.form[rows],
            "beside": np.zeros(len(late), np.int64) if self.beside is None else self.beside[rows],
        }


class JudgedSide(Struct, frozen=True):
    """One judged side with its pools, of the connections at `rows` of all (None: all of them)."""

    posteriors: SidePosteriors
    members: Pools
    groups: JudgedPools
    connections: JudgedPools  # given the others of their groups
    alone: JudgedPools  # the same, each by itself
    rows: Ints | None = None

    def spread(self, values: npt.NDArray[Any], count: int, nothing: Any) -> npt.NDArray[Any]:
        """Values of its connections at the places of these among all `count`, and `nothing` at the others."""
        if self.rows is None:
            return values
        spread = np.full(count, nothing, values.dtype)
        spread[self.rows] = values
        return spread

    @property
    def side(self) -> GroupSide:
        """Which one."""
        return self.posteriors.side


def inside(judged: Ints | None, rows: slice) -> slice:
    """Those of the connections at `judged` of all (None: all of them), counted by themselves, that are among `rows`."""
    return rows if judged is None else slice(*np.searchsorted(judged, [rows.start, rows.stop]).tolist())


def judged_groups(posteriors: SidePosteriors, members: Pools, least_probability: float) -> JudgedPools:
    """The groups of a side with what explains each."""
    found = pools.of_groups(posteriors, members)
    answered_in_time = _in_time(found.fast_excess_s, posteriors.variation_s)
    in_time = answered_in_time | (posteriors.near_nats < OWN_ENDS_NATS)
    timed = np.zeros(len(in_time), np.bool_)
    timed[posteriors.places.member_group[~np.isnan(members.handshake_s)]] = True
    split = classes(
        posteriors.groups, found.exchanges, side=posteriors.side, least_probability=least_probability, in_time=in_time,
        handshakes_timed=timed, one_server=_are_of_one_server(posteriors),
    )  # fmt: skip
    form = _group_forms(posteriors)
    return JudgedPools(
        posteriors.side, found, with_declared(split, form, found.exchanges), split, _late(posteriors.groups),
        posteriors.comes_one_way, own_ends=in_time & ~answered_in_time, form=form, beside=_beside(posteriors),
    )  # fmt: skip


def _group_forms(posteriors: SidePosteriors) -> Ints:
    """In which forms the clients of each group ask for a proxy."""
    where = posteriors.places
    form = np.zeros(len(where.network), np.int64)
    np.bitwise_or.at(form, where.member_group[where.member], posteriors.form)
    return form


def _beside(posteriors: SidePosteriors) -> Ints:
    """How many connections to its port ask for none, of each group whose clients ask for a proxy."""
    where = posteriors.places
    number = {
        key: group
        for group, key in enumerate(zip(where.network, where.port.tolist(), where.asks_proxy.tolist(), strict=True))
    }
    size = np.bincount(where.member_group[where.member], minlength=len(where.network))
    found = np.zeros(len(size), np.int64)
    for (network, port, asks_proxy), group in number.items():
        if asks_proxy and (other := number.get((network, port, False))) is not None:
            found[group] = size[other]
    return found


def judged_connections(
    posteriors: SidePosteriors, members: Pools, least_probability: float, groups: JudgedPools
) -> tuple[JudgedPools, JudgedPools]:
    """The connections of a side with what explains each: given the others of their `groups`, and each by itself."""
    found, group = pools.of_connections(posteriors, members), posteriors.places.member_group[posteriors.places.member]
    in_time, one_way = _in_time(found.fast_excess_s, posteriors.variation_s[group]), posteriors.comes_one_way[group]
    one_server = _are_of_one_server(posteriors)[group]

    def explained(posterior: Posterior, others: Ints | None = None) -> JudgedPools:
        split = classes(
            posterior, found.exchanges, side=posteriors.side, least_probability=least_probability, in_time=in_time,
            handshakes_timed=~np.isnan(found.handshake_s), one_host=True, one_server=one_server,
        )  # fmt: skip
        declared = as_groups_declare(split, posteriors.form, groups.classes, group)
        return JudgedPools(
            posteriors.side, found, declared, split, _late(posterior), one_way, others, form=posteriors.form
        )

    others = _other_connections(found.exchanges, group)
    alone = explained(_by_connection(posteriors.alone, posteriors))
    together = explained(_given_others(posteriors, others > 0))
    differ = (together.explanations != alone.explanations) & ~(_is_open(together) & _is_open(alone))
    return replace(together, others=np.where(differ, others, 0)), alone


def _late(posterior: Posterior) -> Floats:
    return posterior.late + posterior.fleet


def _are_of_one_server(posteriors: SidePosteriors) -> npt.NDArray[np.bool_]:
    """Which groups are of one server alone; at the server's side none is, since clients are judged there."""
    hosts = np.bincount(posteriors.places.member_group, minlength=len(posteriors.places.network))
    return np.asarray((hosts == 1) & (posteriors.side is GroupSide.CLIENT))


def _is_open(judged: JudgedPools) -> npt.NDArray[np.bool_]:
    return np.isin(judged.explanations, (Explanation.UNDECIDED, Explanation.LATE_OR_SPLIT))


def _other_connections(exchanges: Ints, group: Ints) -> Ints:
    """How many other connections of its group show anything, of each connection that does so itself."""
    answered = exchanges > 0
    return np.where(answered, np.bincount(group, weights=answered).astype(np.int64)[group] - 1, 0)


def _given_others(posteriors: SidePosteriors, follows: npt.NDArray[np.bool_]) -> Posterior:
    """The posterior of each connection, given the others of its group where it follows them."""
    where, kind, kinds = posteriors.places, posteriors.connection_kind, len(posteriors.alone.split)
    of_web = speaks_web(posteriors.timing.kind, posteriors.timing.connection, len(where.member))
    member, (may_follow, web) = np.zeros(kinds, np.int64), np.zeros((2, kinds), np.bool_)
    member[kind], may_follow[kind], web[kind] = where.member, follows, of_web
    group = where.member_group[member]
    given = with_other_connections(
        posteriors.alone, posteriors.groups, group, member, may_follow, web, PRIORS[posteriors.side]
    )
    return _by_connection(given, posteriors)


def _by_connection(kinds: Posterior, posteriors: SidePosteriors) -> Posterior:
    """The posterior of each connection by its kind, without what is known of its far host alone."""
    of_kinds = {name: getattr(kinds, name) for name in Posterior.__struct_fields__}
    return Posterior(**{
        name: column[:0] if name in BY_MEMBER else column[posteriors.connection_kind]
        for name, column in of_kinds.items()
    })  # fmt: skip


def _in_time(fast_excess_s: Floats, variation_s: Floats) -> npt.NDArray[np.bool_]:
    """Whether the fast ones of a pool's answers come at the transport's speed, by what its path varies."""
    return fast_excess_s <= np.fmax(IN_TIME_S, 2 * variation_s)


def group_results(
    posteriors: SidePosteriors, members: Pools, groups: JudgedPools, places: Sequence[Sequence[int]]
) -> list[GroupResult]:
    """A result a group; `places` are those of its connections in the table of results."""
    hosts = np.split(np.arange(len(members.near_s)), np.flatnonzero(np.diff(posteriors.places.member_group)) + 1)
    return [
        _group_result(posteriors, members, groups, number, hosts[number], places[number])
        for number in range(len(posteriors.places.network))
    ]


def _group_result(
    posteriors: SidePosteriors,
    members: Pools,
    groups: JudgedPools,
    number: int,
    hosts: np.ndarray,
    pairs: Sequence[int],
) -> GroupResult:
    explanation = groups.explanation(number)
    figures = groups.figures(number, len(hosts))
    verdict = verdict_of(explanation)
    has_leg = verdict.is_split and bool(groups.shows_leg[number])
    interval = (figures.leg_low_s, figures.leg_high_s)
    names = posteriors.places.member_address
    return GroupResult(
        side=posteriors.side,
        network=posteriors.places.network[number],
        port=int(posteriors.places.port[number]),
        hosts=_servers(posteriors, hosts, pairs),
        pairs=tuple(pairs),
        exchanges=figures.exchanges,
        verdict=verdict,
        probability=probability_of(figures.split, dialogues=bool(groups.dialogues[number])),
        mechanism=mechanism_of(verdict, relays=bool(groups.relays[number])),
        where=_PLACES.get(explanation),
        near_round_trip_s=_known(figures.near_s),
        hidden_round_trip_s=figures.leg_s if has_leg else None,
        hidden_round_trip_interval_s=interval if has_leg else None,
        reason=reason(figures, explanation),
        evidence=group_evidence(posteriors, number, figures, explanation),
        by_host=tuple(
            host_result(posteriors, members, groups, number, int(host), str(names[host])) for host in hosts
        ),
    )  # fmt: skip


def _servers(posteriors: SidePosteriors, hosts: np.ndarray, pairs: Sequence[int]) -> tuple[str, ...]:
    """The servers' addresses of a group."""
    if posteriors.side is GroupSide.CLIENT:
        return tuple(sorted({str(posteriors.places.member_address[host]) for host in hosts}))
    return tuple(sorted({posteriors.servers[pair] for pair in pairs}))


def host_result(
    posteriors: SidePosteriors, members: Pools, groups: JudgedPools, group: int, host: int, address: str
) -> HostResult:
    """What a group's posterior says of one of its far hosts."""
    posterior = posteriors.groups
    network = float(of_network(posterior, posteriors.side)[group])
    end_to_end = 1 - network - float(posterior.handshakes_answered[group])
    site = max(end_to_end, 0.0) * float(posterior.member_site[host])
    shows = max(end_to_end, 0.0) * float(posterior.member_wired_site[host])
    exchanges = int(members.exchanges[host])
    leg = float(members.leg_s[host])
    of_group = groups.explanation(group)
    explanation = of_group
    if of_group is Explanation.END_TO_END and site > 1 - DECISIVE:
        explanation = Explanation.SITE if shows >= DECISIVE else Explanation.UNDECIDED
    verdict = verdict_of(explanation)
    asks_proxy = explanation in ASKING
    has_leg = verdict.is_split and (not asks_proxy or bool(groups.shows_leg[group]))
    likely = float(groups.classes.split[group]) if asks_proxy else network + site
    relays = asks_proxy and bool(groups.relays[group])
    return HostResult(
        host=address,
        connections=int(members.connections[host]),
        exchanges=exchanges,
        verdict=verdict,
        probability=probability_of(likely, dialogues=bool(members.dialogues[host]) or relays),
        where=_PLACES.get(explanation),
        near_round_trip_s=_known(float(members.near_s[host])),
        hidden_round_trip_s=leg if has_leg else None,
        hidden_round_trip_interval_s=(
            (float(members.leg_low_s[host]), float(members.leg_high_s[host])) if has_leg else None
        ),
        reference_round_trip_s=_known(float(members.reference_s[host])),
    )


def verdict_of(explanation: Explanation) -> Verdict:
    """The verdict that an explanation carries."""
    if explanation in SPLITS:
        return Verdict.SPLIT_TCP
    return Verdict.REGULAR if explanation in WHOLE else Verdict.INCONCLUSIVE


def mechanism_of(verdict: Verdict, *, relays: bool) -> Mechanism | None:
    """How a split works: one end does not show it, but where clients ask a proxy for a relay."""
    if not verdict.is_split:
        return None
    return Mechanism.RELAY if relays else Mechanism.UNDECIDED


def probability_of(split: float, *, dialogues: bool) -> dict[Verdict, float]:
    """Class probabilities; one end does not show whether a split point stores, unless it relays `dialogues`."""
    columns = probability_columns(np.asarray([split]), np.asarray([dialogues]))
    return {kind: float(share[0]) for kind, share in zip(JUDGED, columns, strict=True)}


def probability_columns(split: Floats, dialogues: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Class probabilities by pool, as `JUDGED` has them."""
    stored = np.where(dialogues, _STORED_DIALOGUES, _STORED_SHARE)
    return 1.0 - split, split * (1.0 - stored), split * stored


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
