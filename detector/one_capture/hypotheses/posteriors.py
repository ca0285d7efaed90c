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
- handshakes answered for others (SYN proxies and cookies): data pass end to end, but the handshake says nothing.

Probabilities multiply over exchanges, tempered within a connection (`CONNECTION_CORRELATION`), because what delays one
exchange of a connection often delays the next one. Delays and legs that are not known are integrated over.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.hypotheses.cached_answers import CacheNats
from detector.one_capture.hypotheses.member_nats import ENDS_TLS, MemberNats
from detector.one_capture.hypotheses.splits import Groups
from detector.one_capture.hypotheses.sums import by_group, log, sum_nats
from detector.one_capture.likelihoods.priors import Priors
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


#: Fields of a posterior that have a row for each member.
_BY_MEMBER = ("leg_nats", "member_site", "member_wired_site")


class Posterior(Struct, frozen=True):
    """Probabilities of groups (one element a group) and of their members' hidden legs.

    `split`, `end`, `late` (end to end, and every member late in all answers, or most of them in their own ways, devices
    among them), `fleet`, `handshakes_answered`, `holding` (a split whose acknowledgements are held back) and `site` (a
    leg inside the server's own site at every member) sum to one. `leg_nats` is the log posterior of each member's leg
    over `HIDDEN_S` given that it has one; `member_site` the probability of a leg inside its site given that the group
    is end to end, and `member_wired_site` that of one behind which answers vary no more than over a wire.
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
            columns[name][members if name in _BY_MEMBER else groups] = getattr(others, name)
        return Posterior(**columns)


def joined(parts: Sequence[Posterior]) -> Posterior:
    """The posteriors of groups one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Posterior(*(np.concatenate([getattr(part, name) for part in parts]) for name in Posterior.__struct_fields__))


class Seen(Struct, frozen=True):
    """Log-likelihoods of what else is seen, by group: end to end, behind a split, behind one that holds its
    acknowledgements back, with answered handshakes, and behind one that connects before it answers."""

    end: Floats
    split: Floats
    holding: Floats
    handshakes_answered: Floats
    connects_first: Floats


def posterior(
    groups: Groups, seen: Seen, waiting: WaitingNats, answered: Floats, cached: CacheNats | None = None
) -> Posterior:
    """Weigh the hypotheses of groups. `answered` are log-likelihoods by member and path behind something that answers
    its handshakes (`HandshakeNats.behind`), `cached` is None where caches are not thought of."""
    if cached is not None:
        groups = replace(
            groups, members=groups.members.with_late_sometimes(cached.known, cached.sometimes, groups.priors)
        )
    if groups.priors.connects_first:
        groups = replace(groups, members=groups.members.with_waiting_fronts(waiting, groups.priors))
    members, alike, priors, reference = groups.members, groups.alike, groups.priors, groups.reference
    parts, without = members.parts, reference.nats[:, 0]

    def summed(by_member: Floats) -> Floats:
        return by_group(by_member, groups.group, groups.count)

    member_end, no_leg = groups.end, summed(without)
    every_end = summed(member_end)
    crossing, ends_tls = log(1 - ENDS_TLS) + groups.crossing(), log(ENDS_TLS) + groups.behind_tls()
    split = np.logaddexp(crossing, ends_tls)
    fleet = alike.parts[2] - log(priors.late) + no_leg if priors.late else np.full(groups.count, -np.inf)
    devices = summed(_devices(members, priors) + without) if priors.devices else np.full(groups.count, -np.inf)
    passed = groups.behind_answered(answered)
    whole = log(1.0 - priors.split)
    # What one member does, is no habit of many.
    together = np.where(summed(members.answers.astype(np.float64)) > 1, 1.0, _NEVER)
    plain = np.log(1.0 - together * (priors.fleet + priors.busy + priors.devices) - priors.handshakes_answered)
    ordinary = 1 - HOLDS_ACKS - priors.connects_first - priors.caches - priors.unsteady
    logs = np.stack([
        log(priors.split * ordinary) + split + seen.split,
        log(priors.split * priors.connects_first) + groups.waiting(waiting) + seen.connects_first,
        log(priors.split * priors.caches) + groups.cached(cached) + seen.split,
        log(priors.split * priors.unsteady) + groups.unsteady() + seen.split,
        log(priors.split) + np.log(together) + log(priors.devices) + devices + seen.split,
        log(priors.split * HOLDS_ACKS) + passed + seen.holding,
        whole + log(priors.handshakes_answered) + passed + seen.handshakes_answered,
        whole + plain + np.log(1 - _ALIKE * together) + every_end + seen.end,
        whole + plain + np.log(_ALIKE * together) + alike.parts[0] + no_leg + seen.end,
        whole + plain + np.log(_ALIKE * together) + alike.parts[1] + no_leg + seen.end,
        whole + np.log(together) + log(priors.fleet) + fleet + seen.end,
        whole + np.log(together) + log(priors.busy) + summed(_busy(parts, priors) + without) + seen.end,
        whole + np.log(together) + log(priors.devices) + devices + seen.end,
    ])  # fmt: skip
    shares = np.exp(logs - sum_nats(logs.T))
    all_late = np.exp(summed(parts[2] + without) - every_end)
    all_site = np.exp(summed(parts[3] + without) - every_end)
    legs, behind_tls = groups.legs, groups.legs_behind_tls
    return Posterior(
        split=shares[:5].sum(axis=0),
        end=shares[7] * np.maximum(1.0 - all_late - all_site, 0.0) + shares[8],
        late=shares[7] * all_late + shares[11] + shares[12],
        fleet=shares[9] + shares[10],
        handshakes_answered=shares[6],
        holding=shares[5],
        site=shares[7] * all_site,
        leg_nats=np.logaddexp(
            legs + (crossing - split)[groups.group, None] - sum_nats(legs)[:, None],
            behind_tls + (ends_tls - split)[groups.group, None] - sum_nats(behind_tls)[:, None],
        ),
        member_site=np.exp(parts[3] + without - member_end),
        member_wired_site=np.exp(members.wired_site + without - member_end),
    )


def _devices(members: MemberNats, priors: Priors) -> Floats:
    """Log-likelihoods by member where most of a group have devices that delay all that they say; a share of these do so
    as steadily as a leg would, so that no shape tells them from one."""
    slow = np.logaddexp(*members.device)
    others = sum_nats(members.parts[:2].T) - np.log(1 - priors.late)
    either: Floats = np.logaddexp(log(_DEVICES_SHARE) + slow, log(1 - _DEVICES_SHARE) + others)
    return either


def _busy(parts: Floats, priors: Priors) -> Floats:
    """Log-likelihoods by member where most of a group are late."""
    prompt = 1.0 - priors.late - priors.late_application - priors.balancer - priors.front_end
    before = (prompt, priors.late_application, priors.late)
    now = (1 - _BUSY_SHARE, _BUSY_SHARE / 2, _BUSY_SHARE / 2)
    moved = [log(after / share) if share else 0.0 for after, share in zip(now, before, strict=True)]
    return sum_nats((parts[:3] + np.asarray(moved)[:, None]).T)
