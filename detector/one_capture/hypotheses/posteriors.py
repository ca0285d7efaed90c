"""What one capture says of networks: the posterior of each hypothesis from exchanges, handshakes and references.

A *member* is what has a hidden leg of its own: a server's address at the client's side, a client's at the server's. A
*group* is judged as a whole: one rule governs its members. The hypotheses for a group are those of `GroupHypothesis`.
End to end each member may be late by itself, in all its answers or in those that an application or a person gives, or,
where servers are judged, have a leg inside the server's own site: behind a balancer that relays everything, or behind a
front end that answers TLS handshakes itself.

Probabilities multiply over exchanges, tempered within a connection (`CONNECTION_CORRELATION`), because what delays one
exchange of a connection often delays the next one. Delays and legs that are not known are integrated over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.hypotheses.cached_answers import CacheNats
from detector.one_capture.hypotheses.group_exchanges import GroupExchangeNats, group_exchange_nats
from detector.one_capture.hypotheses.habits.late_answers import CLOSES_AT_ONCE
from detector.one_capture.hypotheses.member_nats import LATE, LATE_APPLICATION, PROMPT, SITE, MemberNats
from detector.one_capture.hypotheses.splits import Groups
from detector.one_capture.hypotheses.sums import any_leg, by_group, log, sum_nats
from detector.one_capture.hypotheses.transport_nats import TransportNats
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.references.port_references import PortReferences
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats
from detector.one_capture.members import Ints


class GroupHypothesis(StrEnum):
    """What may explain all that a group's members show."""

    #: A split in the network: a hidden leg at every member, some of them too short to show. TLS may end at the split
    #: point. See `hypotheses/splits.py` for this one and the next three.
    SPLIT = "split"
    #: The same, and it connects to the server before it answers a handshake.
    CONNECTS_FIRST = "connects first"
    #: The same, and it is a cache.
    CACHE = "cache"
    #: The same, and legs, or hosts behind them, vary as hosts that are late do.
    UNSTEADY = "unsteady"
    #: The same, and devices behind it delay all that they say.
    SPLIT_AND_DEVICES = "split and devices"
    #: The same, and libraries behind it compute keys for as long as a leg takes.
    SPLIT_AND_SLOW_HANDSHAKES = "split and slow handshakes"
    #: A split point that holds its acknowledgements back (`HOLDS_ACKS`).
    HOLDING = "holding"
    #: End to end, and something answers handshakes for hosts (SYN proxies and cookies): data pass, and the handshake
    #: says nothing.
    HANDSHAKES_ANSWERED = "handshakes answered"
    #: End to end, each member prompt or late by itself.
    EACH_BY_ITSELF = "each by itself"
    #: End to end, and hosts are alike: one sort of path delays all their answers by the same short time.
    ALIKE = "alike"
    #: Clients of one make, all of which take their time before the answers of applications, ...
    ALIKE_APPLICATIONS_LATE = "alike, applications late"
    #: ... or before every answer: a fleet.
    FLEET = "fleet"
    #: Most members are late, each in its own way.
    BUSY = "busy"
    #: Most members' devices delay all that they say, each in its own way, and their closes as well.
    DEVICES = "devices"
    #: All servers of one operator stand behind one balancer or front end of the site's.
    ONE_FRONT = "one front"
    #: Machines compute for as long, and as steadily, as a leg would take before all that they say, but for what
    #: libraries answer.
    PROGRAMS = "programs"
    #: Servers beside each other answer TLS handshakes, or what they hold, at once; the rest they fetch from afar, or
    #: make.
    EDGES = "edges"
    #: Libraries compute keys for as long, and as steadily, as a leg would take.
    SLOW_HANDSHAKES = "slow handshakes"
    #: Hosts behind one address take a time of their own in each connection before all that they say.
    OWN_TIMES = "own times"


_Of = GroupHypothesis

#: Of networks that are end to end, those whose members are alike: one link and one sort of application.
_ALIKE = 0.5

#: Stands for a probability of zero.
_NEVER = 1e-30

#: Of busy hosts, those that are late; half of them in all answers.
_BUSY_SHARE = 0.7

#: Of clients in groups of devices that delay, those that have one.
_DEVICES_SHARE = 0.9

#: Of split points, those that hold their acknowledgements back until the far end's have come, to look far away: then
#: only the handshake comes from the split point, as where something answers handshakes for others.
HOLDS_ACKS = 0.005

#: Hypotheses of a split in the network but for that of one whose acknowledgements are held back.
_SPLITS = (
    _Of.SPLIT, _Of.CONNECTS_FIRST, _Of.CACHE, _Of.UNSTEADY, _Of.SPLIT_AND_DEVICES, _Of.SPLIT_AND_SLOW_HANDSHAKES,
)  # fmt: skip

#: Hypotheses of groups that are late, but for those in which members are late each by itself.
_LATE = (_Of.BUSY, _Of.DEVICES, _Of.PROGRAMS, _Of.SLOW_HANDSHAKES, _Of.OWN_TIMES)

#: Of edges, those that fetch what they do not hold over connections of their own, which crosses a leg inside the site
#: as behind a front; the others make it. Assumed: no number of answers tells one from the other.
_EDGES_FETCH = 0.5

#: Hypotheses that say where no server's own leg is: in the network, behind one front, or nowhere known.
_NOT_EACH_BY_ITSELF = (*_SPLITS, _Of.HOLDING, _Of.HANDSHAKES_ANSWERED, _Of.ONE_FRONT)

#: Of groups of clients, those in which an address is several clients', each of which has its own connections: behind a
#: NAT, as homes, companies and carriers have one, or a relay with an address of its own. Assumed.
_CROWDS = 0.5

#: Hypotheses in which each client has a leg, or is late, by itself.
_BY_CLIENT = (
    _Of.SPLIT, _Of.UNSTEADY, _Of.SPLIT_AND_DEVICES, _Of.SPLIT_AND_SLOW_HANDSHAKES, _Of.EACH_BY_ITSELF, _Of.BUSY,
    _Of.DEVICES, _Of.PROGRAMS, _Of.SLOW_HANDSHAKES, _Of.OWN_TIMES,
)  # fmt: skip

#: Of clients that are late in all as steadily as a leg, those that take a time of their own in each connection, not one
#: for all, as work comes and goes beside them; and of these those that stand at wires, as programs do. Assumed, each by
#: half: nothing was counted.
_OWN_TIMES, _OWN_TIMES_AT_WIRES = 0.5, 0.5

#: Fields of a posterior that have a row for each member.
BY_MEMBER = ("leg_nats", "member_site", "member_wired_site")


class Posterior(Struct, frozen=True):
    """Probabilities of groups, one element a group, and of their members' hidden legs. Those from `split` to `site` sum
    to one."""

    split: Floats  # a split in the network, but for one whose acknowledgements are held back
    end: Floats  # end to end, and not of what follows
    late: Floats  # end to end, and every member late in all answers, or most in their own ways (devices, programs)
    fleet: Floats  # end to end, and clients of one make take their time before every answer, or those of applications
    handshakes_answered: Floats  # end to end, and something answers handshakes
    holding: Floats  # a split whose acknowledgements are held back
    site: Floats  # a leg inside the server's own site at every member, as edges that fetch have
    leg_nats: Floats  # by member and each of `HIDDEN_S`: the log posterior of a member's leg, given that it has one
    member_site: Floats  # by member: of a leg inside its site, given that the group is end to end
    member_wired_site: Floats  # by member: of one behind which answers vary no more than a wire, if hosts are not alike

    def replaced(self, others: Posterior, groups: Ints, members: Ints) -> Posterior:
        """The same with `others` at these groups and members."""
        columns = {}
        for name in Posterior.__struct_fields__:
            columns[name] = getattr(self, name).copy()
            columns[name][members if name in BY_MEMBER else groups] = getattr(others, name)
        return Posterior(**columns)


def joined(parts: Sequence[Posterior]) -> Posterior:
    """The posteriors of groups one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Posterior(*(np.concatenate([getattr(part, name) for part in parts]) for name in Posterior.__struct_fields__))


def any_reading(readings: Sequence[Posterior], group: Ints) -> Posterior:
    """The posterior of groups whose words may be read in several ways; `group` is that of each member. One way is as
    probable as another whatever is seen: how well it fits tells shapes of delays from each other, which are assumed."""
    if len(readings) == 1:
        return readings[0]
    shares = (name for name in Posterior.__struct_fields__ if name != "leg_nats")
    means = {name: np.mean([getattr(each, name) for each in readings], axis=0) for name in shares}
    has_leg = np.log([np.maximum(each.split, _NEVER)[group] for each in readings])
    legs = np.logaddexp.reduce([each.leg_nats + has[:, None] for each, has in zip(readings, has_leg, strict=True)])
    return Posterior(**means, leg_nats=legs - np.logaddexp.reduce(has_leg)[:, None])


def posterior(
    groups: Groups,
    transport: TransportNats,
    waiting: WaitingNats,
    answered: Floats,
    cached: CacheNats | None = None,
    ports: PortReferences | None = None,
    crowd: Groups | None = None,
) -> Posterior:
    """Weigh the hypotheses of groups. `answered` are log-likelihoods by member and path behind something that answers
    its handshakes (`HandshakeNats.behind`); `cached` is None where caches are not thought of, `ports` where ports are
    not compared; `crowd` are the groups as if each connection were a client's of its own, None where an address is one
    client's."""
    groups = _with_fronts_and_caches(groups, waiting, cached)
    exchanges = group_exchange_nats(groups, transport, waiting, answered, ports)
    nats = _nats(groups, transport, exchanges)
    if crowd is not None:
        nats = _with_crowds(nats, groups, crowd, transport, ports)
    every = np.stack([*nats.values()])
    shares = dict(zip(nats, np.exp(every - sum_nats(every.T)), strict=True))
    return _summed_up(shares, groups, exchanges, ports)


def _with_fronts_and_caches(groups: Groups, waiting: WaitingNats, cached: CacheNats | None) -> Groups:
    """The same, given which members stand alone in their groups, and what caches show."""
    if cached is not None:
        sometimes = groups.members.with_late_sometimes(cached.known, cached.sometimes, cached.legs, groups.priors)
        groups = replace(groups, members=sometimes, hits=cached)
    answering = by_group(groups.members.answers.astype(np.float64), groups.group, groups.count)
    alone = answering[groups.group] <= 1
    return replace(groups, members=groups.members.with_fronts(alone, waiting, groups.priors))


def _summed_up(
    shares: Mapping[GroupHypothesis, Floats], groups: Groups, exchanges: GroupExchangeNats, ports: PortReferences | None
) -> Posterior:
    """The `shares` of hypotheses, by group, as what verdicts need of them, and what they say of members."""
    members, parts, without = groups.members, groups.members.parts, groups.reference.nats[:, 0]
    all_late, all_site = (
        np.exp(by_group(parts[row] + without, groups.group, groups.count) - exchanges.end) for row in (LATE, SITE)
    )
    fetched = _EDGES_FETCH * shares[_Of.EDGES]
    late = shares[_Of.EDGES] - fetched + np.sum([shares[each] for each in _LATE], axis=0)
    no_front = np.sum([shares[each] for each in shares if each not in _NOT_EACH_BY_ITSELF], axis=0)
    of_end = np.maximum(shares[_Of.ONE_FRONT] + no_front, _NEVER)
    one_front, fetching = ((each / of_end)[groups.group] for each in (shares[_Of.ONE_FRONT], fetched))
    # Programs, libraries and edges take the time themselves.
    by_themselves = shares[_Of.PROGRAMS] + shares[_Of.SLOW_HANDSHAKES] + shares[_Of.EDGES]
    each_by_itself = (1 - one_front) * (1 - by_themselves / np.maximum(no_front, _NEVER))[groups.group]
    # So do hosts that are late alike, or most in their own ways. As fronts of one operator may be alike, too, that
    # names none, and clears none.
    shown = (1 - one_front) * (shares[_Of.EACH_BY_ITSELF] / np.maximum(no_front, _NEVER))[groups.group]
    return Posterior(
        split=np.sum([shares[each] for each in _SPLITS], axis=0),
        end=shares[_Of.EACH_BY_ITSELF] * np.maximum(1.0 - all_late - all_site, 0.0) + shares[_Of.ALIKE],
        late=shares[_Of.EACH_BY_ITSELF] * all_late + late,
        fleet=shares[_Of.ALIKE_APPLICATIONS_LATE] + shares[_Of.FLEET],
        handshakes_answered=shares[_Of.HANDSHAKES_ANSWERED],
        holding=shares[_Of.HOLDING],
        site=shares[_Of.EACH_BY_ITSELF] * all_site + shares[_Of.ONE_FRONT] + fetched,
        leg_nats=_leg_nats(groups if ports is None else groups.beside(ports), exchanges),
        member_site=one_front + fetching + each_by_itself * np.exp(parts[SITE] + without - groups.end),
        member_wired_site=one_front + shown * np.exp(members.fronts.wired + without - groups.end),
    )


def _leg_nats(groups: Groups, exchanges: GroupExchangeNats) -> Floats:
    """The log posterior of each member's leg, given that it has one: that everything crosses, or where TLS ends."""
    legs, behind_tls = groups.legs, groups.legs_behind_tls
    found: Floats = np.logaddexp(
        legs + (exchanges.crossing - exchanges.split)[groups.group, None] - sum_nats(legs)[:, None],
        behind_tls + (exchanges.ends_tls - exchanges.split)[groups.group, None] - sum_nats(behind_tls)[:, None],
    )
    return found


def _nats(groups: Groups, transport: TransportNats, exchanges: GroupExchangeNats) -> dict[GroupHypothesis, Floats]:
    """Log-likelihoods of groups by hypothesis, priors included."""
    members, alike, priors = groups.members, groups.alike, groups.priors
    without = groups.reference.nats[:, 0]

    def summed(by_member: Floats) -> Floats:
        return by_group(by_member, groups.group, groups.count)

    no_leg, impossible = summed(without), np.full(groups.count, -np.inf)
    fleet = alike.parts[LATE] - log(priors.late) + no_leg if priors.late else impossible
    devices = summed(_devices(members, priors) + without) if priors.devices else impossible
    whole = log(1.0 - priors.split)
    # What one member does, is no habit of many.
    together = np.where(summed(members.answers.astype(np.float64)) > 1, 1.0, _NEVER)
    programs = priors.programs * (transport.programs > -np.inf)
    fronts = groups.front_share() * (transport.one_front > -np.inf)
    slow_handshakes = priors.slow_handshakes * (transport.slow_handshakes + exchanges.slow_handshakes > -np.inf)
    slow_keys = np.log(np.maximum(slow_handshakes, _NEVER))
    edges = priors.edges * (exchanges.edges > -np.inf)
    late = together * (priors.fleet + priors.busy + priors.devices) + programs + slow_handshakes + edges + fronts
    plain = np.log(1.0 - late - priors.handshakes_answered)
    ordinary = 1 - HOLDS_ACKS - priors.connects_first - priors.caches - priors.unsteady
    are_alike = whole + plain + np.log(_ALIKE * together)
    busy = summed(_busy(members, priors) + without)
    return {
        _Of.SPLIT: log(priors.split * ordinary) + exchanges.split + transport.split,
        _Of.CONNECTS_FIRST: log(priors.split * priors.connects_first)
        + exchanges.connects_first
        + transport.connects_first,
        _Of.CACHE: log(priors.split * priors.caches) + exchanges.cached + transport.split,
        _Of.UNSTEADY: log(priors.split * priors.unsteady) + exchanges.unsteady + transport.split,
        _Of.SPLIT_AND_DEVICES: log(priors.split) + np.log(together) + log(priors.devices) + devices + transport.split,
        _Of.SPLIT_AND_SLOW_HANDSHAKES: log(priors.split)
        + slow_keys
        + exchanges.slow_handshakes_behind
        + transport.split,
        _Of.HOLDING: log(priors.split * HOLDS_ACKS) + exchanges.answered + transport.holding,
        _Of.HANDSHAKES_ANSWERED: whole
        + log(priors.handshakes_answered)
        + exchanges.answered
        + transport.handshakes_answered,
        _Of.EACH_BY_ITSELF: whole + plain + np.log(1 - _ALIKE * together) + exchanges.end + transport.end,
        _Of.ALIKE: are_alike + alike.parts[PROMPT] + no_leg + transport.end,
        _Of.ALIKE_APPLICATIONS_LATE: are_alike + alike.parts[LATE_APPLICATION] + no_leg + transport.end,
        _Of.FLEET: whole + np.log(together) + log(priors.fleet) + fleet + transport.end,
        _Of.BUSY: whole + np.log(together) + log(priors.busy) + busy + transport.end,
        _Of.DEVICES: whole + np.log(together) + log(priors.devices) + devices + transport.end,
        _Of.ONE_FRONT: whole + exchanges.one_front + transport.one_front,
        _Of.PROGRAMS: whole + log(priors.programs) + exchanges.programs + transport.programs,
        _Of.EDGES: whole + log(priors.edges) + exchanges.edges + transport.edges,
        _Of.SLOW_HANDSHAKES: whole
        + log(priors.slow_handshakes)
        + exchanges.slow_handshakes
        + transport.slow_handshakes,
        _Of.OWN_TIMES: impossible,  # but in crowds
    }


def _with_crowds(
    nats: dict[GroupHypothesis, Floats],
    groups: Groups,
    crowd: Groups,
    transport: TransportNats,
    ports: PortReferences | None,
) -> dict[GroupHypothesis, Floats]:
    """The same, given that addresses may be several clients': each connection then has a leg, or is late, by itself.
    That is not thought of where references, which are addresses', say anything, or no connections are given."""
    references = groups.reference.nats if ports is None else np.hstack([groups.reference.nats, ports.nats])
    says = by_group(np.abs(references).max(axis=1), groups.group, groups.count) > 0
    (may,) = np.nonzero(~says & (np.bincount(crowd.group, minlength=groups.count) > 1))
    if not len(may):
        return nats
    nothing = crowd.reference.nats
    unknown = WaitingNats(np.zeros(len(nothing), np.bool_), nothing[:, 1:])
    with np.errstate(invalid="ignore", divide="ignore"):  # groups without connections
        exchanges = group_exchange_nats(crowd, transport, unknown, nothing, None)
        # Programs stand at wires and clients anywhere: so many steady ones would prove what no answer shows.
        own = _nats(crowd, transport, replace(exchanges, programs=np.minimum(exchanges.programs, exchanges.split)))
        own[_Of.OWN_TIMES] = _own_times(crowd, groups, transport)
    found = {name: column.copy() for name, column in nats.items()}
    for name in _BY_CLIENT:
        found[name][may] = np.logaddexp(log(1 - _CROWDS) + nats[name][may], log(_CROWDS) + own[name][may])
    return found


def _own_times(crowd: Groups, groups: Groups, transport: TransportNats) -> Floats:
    """Log-likelihoods of groups, prior included, of hosts that take a time of their own in each connection before all
    that they say, closes as well, as steadily as legs would.

    A split whose legs are each connection's own fits any times; so do these, so that neither the number of connections
    nor how steady each of them is tells one from the other. What stands behind one address is late together, as often
    as one client is that closes as late; of several addresses devices delay all, as often as elsewhere."""
    priors = groups.priors
    answering = by_group(groups.members.answers.astype(np.float64), groups.group, groups.count)
    late = np.where(answering > 1, priors.devices, (1 - CLOSES_AT_ONCE) * priors.late)
    share = log(priors.steady * _OWN_TIMES) + np.log(late)
    beside = np.logaddexp(log(1 - _OWN_TIMES_AT_WIRES) + transport.end, log(_OWN_TIMES_AT_WIRES) + transport.programs)
    found: Floats = log(1 - priors.split) + share + by_group(any_leg(crowd.members.legs), crowd.group, crowd.count)
    return found + beside


def _devices(members: MemberNats, priors: Priors) -> Floats:
    """Log-likelihoods by member where most of a group have devices that delay all that they say; a share of these do so
    as steadily as a leg would, so that no shape tells them from one."""
    slow = np.logaddexp(*members.device)
    others = sum_nats(members.parts[[PROMPT, LATE_APPLICATION]].T) - np.log(1 - priors.late)
    either: Floats = np.logaddexp(log(_DEVICES_SHARE) + slow, log(1 - _DEVICES_SHARE) + others)
    return either


def _busy(members: MemberNats, priors: Priors) -> Floats:
    """Log-likelihoods by member where most of a group are late."""
    prompt = np.log((1 - _BUSY_SHARE) / priors.prompt(members.speaks_web))
    late = [log(_BUSY_SHARE / 2 / share) if share else 0.0 for share in (priors.late_application, priors.late)]
    moved = np.stack([prompt, *(np.full(len(prompt), nats) for nats in late)])
    return sum_nats((members.parts[:3] + moved).T)
