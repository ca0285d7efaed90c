"""One side of a capture weighed: timing, near ends and references to posteriors of groups, members and connections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.classes import LEAST_SPLIT_OF_ONE, LEAST_WHOLE
from detector.one_capture.columns import VantageColumns, selected
from detector.one_capture.hypotheses.alike_ports import (
    SharedLeg,
    by_distance,
    networks_of,
    no_surer_than_together,
    open_networks,
    ports_of_one_time,
    with_alike_ports,
)
from detector.one_capture.hypotheses.moments import answer_pairs
from detector.one_capture.hypotheses.passing.passed_handshakes import passed_nats
from detector.one_capture.hypotheses.posteriors import Posterior
from detector.one_capture.hypotheses.regular_looks import Clients
from detector.one_capture.hypotheses.side_evidence import SideEvidence
from detector.one_capture.hypotheses.transport_nats import near_legs_of_clients, near_legs_of_servers
from detector.one_capture.likelihoods.answered_handshakes import Acknowledged, handshake_nats
from detector.one_capture.likelihoods.client_stacks import client_stack_nats
from detector.one_capture.likelihoods.closes import closes, last_round_trips_s, no_closes
from detector.one_capture.likelihoods.exchange_nats import speaks_web
from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming, exchange_timing
from detector.one_capture.likelihoods.legs import common_leg_nats
from detector.one_capture.likelihoods.other_ports import Shares, with_other_ports
from detector.one_capture.likelihoods.priors import PRIORS, Priors
from detector.one_capture.likelihoods.references.equal_ports import equal_port_nats
from detector.one_capture.likelihoods.references.port_references import farther_ports, port_references
from detector.one_capture.likelihoods.references.reference_nats import reference_nats
from detector.one_capture.likelihoods.timing_tables import Floats, timing_tables
from detector.one_capture.likelihoods.waiting_handshakes import waiting_nats
from detector.one_capture.members import Ints, quantiles
from detector.one_capture.networks import NetworkTable, Places, come_one_way, places
from detector.one_capture.senders.handshake_clocks import lagging_share
from detector.one_capture.senders.handshakes import answered_share
from detector.one_capture.senders.stacks import GroupStacks, asked_alike, form_codes, group_stacks
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import GroupSide

#: Shares below this one are none.
_LEAST_SHARE = 1e-300


class SidePosteriors(Struct, frozen=True):
    """Posteriors on one side; `groups` has an element a group and legs by member, `alone` one for each kind of
    connection: those of one member whose exchanges say the same. `connection_kind` is that of each connection."""

    side: GroupSide
    servers: Sequence[str]  # of the connections
    places: Places
    timing: ExchangeTiming
    variation_s: Floats  # by group
    reference_s: Floats  # by member, NaN without
    other_port_s: Floats  # by member: the round trip of the port that serves as a reference (`PortReferences`)
    near_nats: Floats  # by group: of the members' near ends (of clients: how they vary, and their stacks), for one box
    stack_nats: Floats  # by group: of clients' stacks alone; 0 for servers
    groups: Posterior
    alone: Posterior
    connection_kind: Ints
    comes_one_way: npt.NDArray[np.bool_]  # by group: see `networks.come_one_way`; of servers never
    farther: npt.NDArray[np.bool_]  # by group: see `port_references.farther_ports`; of servers: those asked as proxies
    form: Ints  # by connection, where its client asks this side for a proxy: `ProxyForm`


def weigh_side(vantage: VantageColumns, side: GroupSide, table: NetworkTable) -> SidePosteriors:
    """Weigh everything that the captures of a vantage point show of the far hosts on this side."""
    at_client = side is GroupSide.CLIENT
    asks_proxy = vantage.declared.asks & at_client
    where = places(vantage.columns, at_client=at_client, table=table, asks_proxy=asks_proxy)
    posteriors = _by_alike_ports(_weigh(vantage, side, where), vantage, table)
    return _by_ports_of_one_time(posteriors, vantage, table) if at_client else posteriors


def _by_alike_ports(posteriors: SidePosteriors, vantage: VantageColumns, table: NetworkTable) -> SidePosteriors:
    """The same, given what a network's ports show together where one of several is open."""
    where, at_client = posteriors.places, posteriors.side is GroupSide.CLIENT
    answered = np.bincount(where.member_group[posteriors.timing.member], minlength=len(where.network)) > 0
    farther = posteriors.farther
    network = networks_of(where, farther)
    # Ports change none that is decided where they only raise, and none at all where none of them shows a split.
    bounds = (
        (1 - LEAST_WHOLE[posteriors.side], LEAST_SPLIT_OF_ONE) if at_client else (PRIORS[posteriors.side].split, np.inf)
    )
    weighed = open_networks(posteriors.groups.split, answered, network, bounds)
    if not len(weighed):
        return posteriors
    # At the server's side a port that is surely not split is not alike those that may be, but shows how far hosts are.
    may_be = at_client | farther | (posteriors.groups.split > 1 - LEAST_WHOLE[posteriors.side])
    pooled = np.isin(network // 2, weighed // 2) & may_be
    weighed, rows = np.unique(network[pooled]), np.flatnonzero(pooled[where.group])
    part = selected(vantage, rows, np.ones(len(vantage.references), np.bool_))
    columns = by_distance(part.columns, farther[where.group][rows])
    alike = _weigh(part, posteriors.side, places(columns, at_client=at_client, table=table), each=False)
    networks = int(network.max()) + 1
    together, one_host = np.full(networks, np.nan), np.zeros(networks, np.bool_)
    answering = alike.places.member_group[np.unique(alike.timing.member)]
    one_host[weighed] = np.bincount(answering, minlength=len(weighed)) == 1
    together[weighed] = _legs(alike, one_host[weighed]).nats
    own = _legs(posteriors, one_host[network])
    groups = with_alike_ports(posteriors.groups, answered, network, own, together, one_host[network], posteriors.side)
    return replace(posteriors, groups=groups)


def _by_ports_of_one_time(posteriors: SidePosteriors, vantage: VantageColumns, table: NetworkTable) -> SidePosteriors:
    """The same where no port is more surely split than all on which its hosts are late by one time."""
    where = posteriors.places
    answered = np.bincount(where.member_group[posteriors.timing.member], minlength=len(where.network)) > 0
    first = ports_of_one_time(posteriors.groups, where, answered & ~where.asks_proxy)
    several = np.bincount(first, minlength=len(first))[first] > 1
    if not several.any():
        return posteriors
    # The network's other ports as they are, since they may serve as references.
    weighed = np.isin(where.network, np.asarray(where.network)[several]) & ~where.asks_proxy
    rows = np.flatnonzero(weighed[where.group])
    part = selected(vantage, rows, np.ones(len(vantage.references), np.bool_))
    columns = {**part.columns, "server_port": where.port[first][where.group][rows].astype(np.uint16)}
    alike = _weigh(part, posteriors.side, places(columns, at_client=True, table=table), each=False)
    groups = no_surer_than_together(posteriors.groups, where, alike.groups, alike.places, first)
    return replace(posteriors, groups=groups)


def _legs(posteriors: SidePosteriors, one_host: npt.NDArray[np.bool_]) -> SharedLeg:
    """The legs of the groups that are judged; `one_host` is whether one answers alone."""
    where, timing = posteriors.places, posteriors.timing
    of_web = speaks_web(timing.kind, where.member_group[timing.member], len(where.network))
    return SharedLeg.of(posteriors.groups, one_host, of_web, PRIORS[posteriors.side])


def _weigh(vantage: VantageColumns, side: GroupSide, where: Places, *, each: bool = True) -> SidePosteriors:
    """Weigh these groups, and unless not `each` connection by itself, which is then as its group is."""
    at_client, groups = side is GroupSide.CLIENT, len(where.network)
    timing = exchange_timing(
        vantage.exchanges, where, at_client=at_client, opened_ns=_opened_ns(vantage) if at_client else None
    )
    variation_s = timing.of_groups(timing.variation_s, where.member_group, groups)
    answering = np.bincount(timing.member, minlength=len(where.member_group)) > 0
    answered = np.bincount(where.member_group[answering], minlength=groups) > 0
    evidence = _evidence(vantage, side, where, timing, variation_s)
    if at_client:
        # What a proxy leads to is no path of the network's, and says nothing about its other ports.
        of_stacks, one_way, farther = np.zeros(groups), np.zeros(groups, np.bool_), where.asks_proxy
        near_legs = near_legs_of_servers(timing, variation_s, evidence.waiting, _server_stacks(vantage, where), where)
    else:
        of_stacks = answered * _client_stack_nats(vantage, where)
        one_way, farther = come_one_way(vantage.columns, where), farther_ports(timing, where)
        near_legs = near_legs_of_clients(vantage, where, timing, variation_s, answered, of_stacks)
    of_groups = evidence.weighed(where.member_group, groups, near_legs)
    equal = equal_port_nats(timing, where, side, of_groups.split, of_groups.leg_nats, 1 - LEAST_WHOLE[side])
    of_groups = _less_split(of_groups, np.where(answered, equal, 0.0), PRIORS[side].split)
    if not at_client:
        of_groups = _by_other_ports(of_groups, answered, where, networks_of(where, farther), PRIORS[side])
    alone, kind = evidence.weighed_alone(where.member) if each else (of_groups, where.group)
    return SidePosteriors(
        side=side,
        servers=vantage.servers,
        places=where,
        timing=timing,
        variation_s=variation_s,
        reference_s=evidence.reference.round_trip_s,
        other_port_s=evidence.ports.round_trip_s,
        near_nats=near_legs.split - near_legs.end,
        stack_nats=of_stacks,
        groups=of_groups,
        alone=alone,
        connection_kind=kind,
        comes_one_way=one_way,
        farther=farther,
        form=vantage.declared.form * where.asks_proxy[where.group],
    )


def _evidence(
    vantage: VantageColumns, side: GroupSide, where: Places, timing: ExchangeTiming, variation_s: Floats
) -> SideEvidence:
    """What is weighed of members; `variation_s` is by group."""
    at_client, tables = side is GroupSide.CLIENT, timing_tables(side)
    steady_s = variation_s
    if at_client:  # a path varies as its handshakes do; first data may wait for the handshake of who answers SYNs
        steady_s = np.fmin(
            steady_s, timing.of_groups(timing.handshake_variation_s, where.member_group, len(variation_s))
        )
    varies_s = steady_s[where.member_group]
    closing_s = None if at_client else last_round_trips_s(vantage.columns)
    moved_share, lagging = _other_sender_shares(vantage, where, timing.handshake_s, at_client=at_client)
    return SideEvidence(
        tables=tables,
        timing=timing,
        closes=no_closes() if at_client else closes(vantage.columns, where, timing),
        variation=tables.variation_class(variation_s)[where.member_group],
        reference=reference_nats(vantage.references, where, timing, at_client=at_client),
        ports=port_references(timing, where, side),
        handshakes=handshake_nats(_acknowledged(timing, closing_s, where.member), varies_s, moved_share, lagging, side),
        waiting=waiting_nats(timing.handshake_s, timing.plain_s, varies_s, timing.handshakes)
        if at_client
        else passed_nats(timing),
        moments=None if at_client else answer_pairs(timing, vantage.exchanges.question_ns[timing.row]),
        clients=None if at_client else Clients(vantage.exchanges, vantage.columns, where.member, timing.base_s),
        priors=PRIORS[side],
    )


def _opened_ns(vantage: VantageColumns) -> Ints:
    """When the handshake of each connection ended; -1 where it was not seen."""
    first_ns, *taken_ns = (
        vantage.columns[name] for name in ("first_time_ns", "handshake_syn_ack_ns", "handshake_ack_ns")
    )
    return np.where(np.min(taken_ns, axis=0) < 0, -1, first_ns + np.sum(taken_ns, axis=0))


def _server_stacks(vantage: VantageColumns, where: Places) -> GroupStacks:
    """What the SYN-ACKs of each group's servers look like."""
    answers, asked = (form_codes(vantage.senders, vantage.columns, way) for way in (Direction.DOWN, Direction.UP))
    alike = asked_alike(answers, asked, where.member, where.member_group)
    hop_limit = vantage.senders.hop_limit[Direction.DOWN.value :: 2].astype(np.int64)
    return group_stacks(alike, hop_limit, where.member, where.member_group, len(where.network))


def _client_stack_nats(vantage: VantageColumns, where: Places) -> Floats:
    """What the SYNs of each group's clients say for a split point's stack (nats)."""
    form = form_codes(vantage.senders, vantage.columns, Direction.UP)
    return client_stack_nats(vantage.senders, form, where.group, len(where.network))


def _by_other_ports(
    groups: Posterior, answered: npt.NDArray[np.bool_], where: Places, network: Ints, priors: Priors
) -> Posterior:
    """The posteriors of groups, given those of the other ports of their networks (`network` by group)."""
    parts = {
        "split": ("split", "site"),
        "late": ("late", "fleet"),
        "rest": ("end", "handshakes_answered", "holding"),
    }
    before = Shares(
        **{name: np.sum([getattr(groups, part) for part in of], axis=0) for name, of in parts.items()},
        leg_nats=common_leg_nats(groups.leg_nats, where.member_group, len(network)), answered=answered,
    )  # fmt: skip
    after = with_other_ports(before, network, priors.split, priors.late)
    scaled: dict[str, Floats] = {}
    for name, of in parts.items():
        times = getattr(after, name) / np.maximum(getattr(before, name), _LEAST_SHARE)
        scaled |= {part: getattr(groups, part) * times for part in of}
    return replace(groups, **scaled)


def _less_split(groups: Posterior, nats: Floats, before: float) -> Posterior:
    """The posteriors of groups, of which something says so much for a split in the network (0 at most) that clears
    none: a split stays as probable as `before` anything was seen, if it was."""
    odds = groups.split / np.maximum(1 - groups.split, _LEAST_SHARE) * np.exp(nats)
    split = np.minimum(groups.split, np.maximum(odds / (1 + odds), before))
    rest = np.where(groups.split > split, (1 - split) / np.maximum(1 - groups.split, _LEAST_SHARE), 1.0)
    names = ("end", "late", "fleet", "handshakes_answered", "holding", "site")
    return replace(groups, split=split, **{name: getattr(groups, name) * rest for name in names})


def _acknowledged(timing: ExchangeTiming, closing_s: Floats | None, member: Ints) -> Acknowledged:
    """The least round trips of members; `closing_s` are those of the ends of connections, which nothing delays."""
    found = Acknowledged(timing.handshake_s, timing.prompt_s, timing.plain_s, timing.data_s)
    if closing_s is None:
        return found
    last_s = quantiles(closing_s, member, len(timing.near_s), 0.0)
    of_data = {name: np.fmin(getattr(found, name), last_s) for name in ("prompt_s", "plain_s", "data_s")}
    return replace(found, **of_data)


def _other_sender_shares(
    vantage: VantageColumns, where: Places, handshake_s: Floats, *, at_client: bool
) -> tuple[Floats, Floats]:
    """By member: the shares of its handshakes that another sender made, by hop limits and windows, and by timestamps,
    which tell at the clients' side alone."""
    far, members = Direction.DOWN if at_client else Direction.UP, len(where.member_group)
    moved = answered_share(vantage.senders, far, where.member, members)
    if not at_client:
        return moved, np.full(members, np.nan)
    return moved, lagging_share(vantage.senders, handshake_s, far, where.member, members)
