"""What one capture says of networks: the posterior of each hypothesis from exchanges, handshakes and references.

A *member* is what has a hidden leg of its own: a server's address at the client's side, a client's at the server's. A
*group* is judged as a whole: one rule governs its members. The hypotheses for a group are

- end to end: no hidden leg at any member; each member may be late by itself, in all its answers or in those that an
  application or a person gives, or, where servers are judged, have a leg inside the server's own site: behind a
  balancer that relays everything, or behind a front end that answers TLS handshakes itself;
- a split in the network: a hidden leg at every member, some of them too short to show. TLS may end at the split point;
  it may connect before it answers a handshake, be a cache, or have legs that vary as hosts do: `hypotheses/splits.py`;
- a fleet: clients of one make, all of which take their time before every answer, or before those of applications;
- hosts that are alike: one sort of path delays all their answers by the same short time;
- busy hosts: most members are late, each in its own way;
- devices: most members' devices delay all that they say, each in its own way, and their closes as well;
- slow handshakes: libraries compute keys for as long, and as steadily, as a leg would take;
- edges: servers beside each other answer TLS handshakes, or what they hold, at once, and fetch the rest from afar, or
  make it;
- one front: all servers of one operator stand behind one balancer or front end of the site's;
- programs: end to end, and machines compute for as long, and as steadily, as a leg would take before all that they
  say, but for what libraries answer;
- handshakes answered for others (SYN proxies and cookies): data pass end to end, but the handshake says nothing.

Probabilities multiply over exchanges, tempered within a connection (`CONNECTION_CORRELATION`), because what delays one
exchange of a connection often delays the next one. Delays and legs that are not known are integrated over.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.hypotheses.beside_exchanges import Seen
from detector.one_capture.hypotheses.cached_answers import CacheNats
from detector.one_capture.hypotheses.habits.late_answers import CLOSES_AT_ONCE
from detector.one_capture.hypotheses.member_nats import LATE, LATE_APPLICATION, PROMPT, SITE, MemberNats
from detector.one_capture.hypotheses.of_exchanges import OfExchanges, of_exchanges
from detector.one_capture.hypotheses.splits import Groups
from detector.one_capture.hypotheses.sums import any_leg, by_group, log, sum_nats
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.references.port_references import PortReferences
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats
from detector.one_capture.members import Ints

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
_SPLITS = ("split", "connects first", "cache", "unsteady", "split and devices", "split and slow handshakes")

#: Hypotheses of groups that are late, but for those in which members are late each by itself.
_LATE = ("busy", "devices", "programs", "slow handshakes", "own times")

#: Of edges, those that fetch what they do not hold over connections of their own, which crosses a leg inside the site
#: as behind a front; the others make it. Assumed: no number of answers tells one from the other.
_EDGES_FETCH = 0.5

#: Hypotheses that say where no server's own leg is: in the network, behind one front, or nowhere known.
_NOT_EACH_BY_ITSELF = (*_SPLITS, "holding", "handshakes answered", "one front")

#: Of groups of clients, those in which an address is several clients', each of which has its own connections: behind a
#: NAT, as homes, companies and carriers have one, or a relay with an address of its own. Assumed.
_CROWDS = 0.5

#: Hypotheses in which each client has a leg, or is late, by itself.
_BY_CLIENT = (
    "split", "unsteady", "split and devices", "split and slow handshakes", "each by itself", "busy", "devices",
    "programs", "slow handshakes", "own times",
)  # fmt: skip

#: Of clients that are late in all as steadily as a leg, those that take a time of their own in each connection, not one
#: for all, as work comes and goes beside them; and of these those that stand at wires, as programs do. Assumed, each by
#: half: nothing was counted.
_OWN_TIMES, _OWN_TIMES_AT_WIRES = 0.5, 0.5

#: Fields of a posterior that have a row for each member.
BY_MEMBER = ("leg_nats", "member_site", "member_wired_site")


class Posterior(Struct, frozen=True):
    """Probabilities of groups (one element a group) and of their members' hidden legs.

    `split`, `end`, `late` (end to end, and every member late in all answers, or most of them in their own ways, devices
    and programs among them), `fleet`, `handshakes_answered`, `holding` (a split whose acknowledgements are held back)
    and `site` (a leg inside the server's own site at every member, as edges that fetch have) sum to one. `leg_nats` is
    the log posterior of each member's leg over `HIDDEN_S` given that it has one; `member_site` the probability of a leg
    inside its site given that the group is end to end, and `member_wired_site` that of one behind which answers vary no
    more than a wire.
    """

    split: Floats
    end: Floats
    late: Floats
    fleet: Floats
    handshakes_answered: Floats
    holding: Floats
    site: Floats
    leg_nats: Floats
    member_site: Floats
    member_wired_site: Floats

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
    seen: Seen,
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
    if cached is not None:
        sometimes = groups.members.with_late_sometimes(cached.known, cached.sometimes, cached.legs, groups.priors)
        groups = replace(groups, members=sometimes, hits=cached)
    answering = by_group(groups.members.answers.astype(np.float64), groups.group, groups.count)
    alone = answering[groups.group] <= 1
    groups = replace(groups, members=groups.members.with_fronts(alone, waiting, groups.priors))
    of = of_exchanges(groups, seen, waiting, answered, ports)
    members, parts, without = groups.members, groups.members.parts, groups.reference.nats[:, 0]
    member_end, every_end = groups.end, of.end
    nats = _nats(groups, seen, of)
    if crowd is not None:
        nats = _with_crowds(nats, groups, crowd, seen, ports)
    every = np.stack([*nats.values()])
    share = dict(zip(nats, np.exp(every - sum_nats(every.T)), strict=True))
    all_late, all_site = (
        np.exp(by_group(parts[row] + without, groups.group, groups.count) - every_end) for row in (LATE, SITE)
    )
    fetched = _EDGES_FETCH * share["edges"]
    late = share["edges"] - fetched + np.sum([share[name] for name in _LATE], axis=0)
    no_front = np.sum([share[name] for name in share if name not in _NOT_EACH_BY_ITSELF], axis=0)
    of_end = np.maximum(share["one front"] + no_front, _NEVER)
    one_front, fetching = ((each / of_end)[groups.group] for each in (share["one front"], fetched))
    # Programs, libraries and edges take the time themselves.
    by_themselves = share["programs"] + share["slow handshakes"] + share["edges"]
    each_by_itself = (1 - one_front) * (1 - by_themselves / np.maximum(no_front, _NEVER))[groups.group]
    beside = groups if ports is None else groups.beside(ports)
    legs, behind_tls = beside.legs, beside.legs_behind_tls
    return Posterior(
        split=np.sum([share[name] for name in _SPLITS], axis=0),
        end=share["each by itself"] * np.maximum(1.0 - all_late - all_site, 0.0) + share["alike"],
        late=share["each by itself"] * all_late + late,
        fleet=share["alike, applications late"] + share["fleet"],
        handshakes_answered=share["handshakes answered"],
        holding=share["holding"],
        site=share["each by itself"] * all_site + share["one front"] + fetched,
        leg_nats=np.logaddexp(
            legs + (of.crossing - of.split)[groups.group, None] - sum_nats(legs)[:, None],
            behind_tls + (of.ends_tls - of.split)[groups.group, None] - sum_nats(behind_tls)[:, None],
        ),
        member_site=one_front + fetching + each_by_itself * np.exp(parts[SITE] + without - member_end),
        member_wired_site=one_front + each_by_itself * np.exp(members.fronts.wired + without - member_end),
    )


def _nats(groups: Groups, seen: Seen, of: OfExchanges) -> dict[str, Floats]:
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
    programs = priors.programs * (seen.programs > -np.inf)
    fronts = groups.front_share() * (seen.one_front > -np.inf)
    slow_handshakes = priors.slow_handshakes * (seen.slow_handshakes + of.slow_handshakes > -np.inf)
    slow_keys = np.log(np.maximum(slow_handshakes, _NEVER))
    edges = priors.edges * (of.edges > -np.inf)
    late = together * (priors.fleet + priors.busy + priors.devices) + programs + slow_handshakes + edges + fronts
    plain = np.log(1.0 - late - priors.handshakes_answered)
    ordinary = 1 - HOLDS_ACKS - priors.connects_first - priors.caches - priors.unsteady
    are_alike = whole + plain + np.log(_ALIKE * together)
    busy = summed(_busy(members, priors) + without)
    return {
        "split": log(priors.split * ordinary) + of.split + seen.split,
        "connects first": log(priors.split * priors.connects_first) + of.connects_first + seen.connects_first,
        "cache": log(priors.split * priors.caches) + of.cached + seen.split,
        "unsteady": log(priors.split * priors.unsteady) + of.unsteady + seen.split,
        "split and devices": log(priors.split) + np.log(together) + log(priors.devices) + devices + seen.split,
        "split and slow handshakes": log(priors.split) + slow_keys + of.slow_handshakes_behind + seen.split,
        "holding": log(priors.split * HOLDS_ACKS) + of.answered + seen.holding,
        "handshakes answered": whole + log(priors.handshakes_answered) + of.answered + seen.handshakes_answered,
        "each by itself": whole + plain + np.log(1 - _ALIKE * together) + of.end + seen.end,
        "alike": are_alike + alike.parts[PROMPT] + no_leg + seen.end,
        "alike, applications late": are_alike + alike.parts[LATE_APPLICATION] + no_leg + seen.end,
        "fleet": whole + np.log(together) + log(priors.fleet) + fleet + seen.end,
        "busy": whole + np.log(together) + log(priors.busy) + busy + seen.end,
        "devices": whole + np.log(together) + log(priors.devices) + devices + seen.end,
        "one front": whole + of.one_front + seen.one_front,
        "programs": whole + log(priors.programs) + of.programs + seen.programs,
        "edges": whole + log(priors.edges) + of.edges + seen.edges,
        "slow handshakes": whole + log(priors.slow_handshakes) + of.slow_handshakes + seen.slow_handshakes,
        "own times": impossible,  # but in crowds
    }


def _with_crowds(
    nats: dict[str, Floats], groups: Groups, crowd: Groups, seen: Seen, ports: PortReferences | None
) -> dict[str, Floats]:
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
        of = of_exchanges(crowd, seen, unknown, nothing, None)
        # Programs stand at wires and clients anywhere: so many steady ones would prove what no answer shows.
        own = _nats(crowd, seen, replace(of, programs=np.minimum(of.programs, of.split)))
        own["own times"] = _own_times(crowd, groups, seen)
    found = {name: column.copy() for name, column in nats.items()}
    for name in _BY_CLIENT:
        found[name][may] = np.logaddexp(log(1 - _CROWDS) + nats[name][may], log(_CROWDS) + own[name][may])
    return found


def _own_times(crowd: Groups, groups: Groups, seen: Seen) -> Floats:
    """Log-likelihoods of groups, prior included, of hosts that take a time of their own in each connection before all
    that they say, closes as well, as steadily as legs would.

    A split whose legs are each connection's own fits any times; so do these, so that neither the number of connections
    nor how steady each of them is tells one from the other. What stands behind one address is late together, as often
    as one client is that closes as late; of several addresses devices delay all, as often as elsewhere."""
    priors = groups.priors
    answering = by_group(groups.members.answers.astype(np.float64), groups.group, groups.count)
    late = np.where(answering > 1, priors.devices, (1 - CLOSES_AT_ONCE) * priors.late)
    share = log(priors.steady * _OWN_TIMES) + np.log(late)
    beside = np.logaddexp(log(1 - _OWN_TIMES_AT_WIRES) + seen.end, log(_OWN_TIMES_AT_WIRES) + seen.programs)
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
