"""What one capture says of networks: the posterior of each hypothesis from exchanges, handshakes and references.

A *member* is what has a hidden leg of its own: a server's address at the client's side, a client's at the server's. A
*group* is judged as a whole: one rule governs its members. The hypotheses for a group are

- end to end: no hidden leg at any member; each member may be late by itself, in all its answers or in those that an
  application or a person gives, or, where servers are judged, have a leg inside the server's own site: behind a
  balancer that relays everything, or behind a front end that answers TLS handshakes itself;
- a split in the network: a hidden leg at every member, some of them too short to show; TLS may end at the split point;
- a fleet: clients of one make, all of which take their time before every answer, or before those of applications;
- hosts that are alike: one sort of path delays all their answers by the same short time;
- busy hosts: most members are late, each in its own way;
- handshakes answered for others (SYN proxies and cookies): data pass end to end, but the handshake says nothing.

Probabilities multiply over exchanges, tempered within a connection (`CONNECTION_CORRELATION`), because what delays one
exchange of a connection often delays the next one. Delays and legs that are not known are integrated over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from detector.one_capture.likelihoods.exchange_nats import ExchangeNats
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.reference_nats import ReferenceNats
from detector.one_capture.likelihoods.timing_tables import (
    HIDDEN_S,
    LATE_SHARES,
    LEG_NATS,
    NATURES,
    Floats,
    TimingTables,
)
from detector.one_capture.members import Ints

#: Of networks that are end to end, those whose members are alike: one link and one sort of application.
_ALIKE = 0.5

#: Stands for a probability of zero.
_NEVER = 1e-30

#: Natures of legs between a balancer and what it balances, which are wires: so many of the steadiest.
_WIRED = 2

#: Of busy hosts, those that are late; half of them in all answers.
_BUSY_SHARE = 0.7

#: Of late applications, those where a person answers; of split points, those where TLS ends and begins anew.
_PERSONS, _ENDS_TLS = 0.5, 0.1

#: Of split points, those that hold their acknowledgements back until the far end's have come, to look far away: then
#: only the handshake comes from the split point, as where something answers handshakes for others.
_HOLDS_ACKS = 0.005

#: Of what answers handshakes for others, the share that makes first answers wait for its own handshake with the host.
_CONNECTS_LATE = 0.2

#: Of split points, those that close towards the server by themselves, and of those where TLS ends; of clients that are
#: late, those that close at once, as nothing is left to think about.
_CLOSES_ITSELF, _ENDS_TLS_AND_CLOSES, _CLOSES_AT_ONCE = 0.2, 0.6, 0.5


@dataclass(frozen=True, slots=True)
class Posterior:
    """Probabilities of groups (one element a group) and of their members' hidden legs.

    `split`, `end`, `late` (end to end, and every member late in all answers, or most of them in their own ways),
    `fleet`, `handshakes_answered`, `holding` (a split whose acknowledgements are held back) and `site` (a leg inside
    the server's own site at every member) sum to one. `leg_nats` is the log posterior of each member's leg over
    `HIDDEN_S` given that it has one; `member_site` the probability of a leg inside its site given that the group is end
    to end.
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


def joined(parts: Sequence[Posterior]) -> Posterior:
    """The posteriors of groups one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Posterior(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Posterior)))


@dataclass(frozen=True, slots=True)
class Paths:
    """What is known of members' paths beforehand, as log probabilities by member: of each nature of a hidden leg, of
    each nature end to end, and of answers that are shifted end to end (by nothing, then by each of `HIDDEN_S`)."""

    natures: Floats
    end_natures: Floats
    shifts: Floats

    def of(self, members: Ints) -> Paths:
        """Those of some members."""
        return Paths(self.natures[members], self.end_natures[members], self.shifts[members])


@dataclass(frozen=True, slots=True)
class Seen:
    """Log-likelihoods of what else is seen, by group: end to end, behind a split, behind one that holds its
    acknowledgements back, and with answered handshakes."""

    end: Floats
    split: Floats
    holding: Floats
    handshakes_answered: Floats


@dataclass(frozen=True, slots=True)
class MemberNats:
    """Log-likelihoods of what members' exchanges say, priors of members included.

    `parts` by way of being end to end (rows, see `_end_parts`) and member, `passed` where handshakes are answered and
    data pass end to end, `legs` by member and each of `HIDDEN_S`; `answers`: whether a member answered anything.
    """

    parts: Floats
    passed: Floats
    legs: Floats
    answers: npt.NDArray[np.bool_]

    def of(self, members: Ints) -> MemberNats:
        """Those of some members."""
        return MemberNats(self.parts[:, members], self.passed[members], self.legs[members], self.answers[members])


def member_nats(nats: ExchangeNats, by_data: ExchangeNats, priors: Priors, paths: Paths) -> MemberNats:
    """What each member's exchanges say by themselves: `nats` beyond all round trips, handshakes included; `by_data`
    beyond those of data alone."""
    parts, legs = _end_parts(nats, priors, paths), _leg_nats(nats, priors, paths)
    answers = np.any(nats.handshake != 0, axis=1) | np.any(nats.application != 0, axis=1)
    passed = _passed(nats, by_data, parts, legs, priors, paths)
    return MemberNats(parts, passed, legs, answers)


def joined_members(every: Sequence[MemberNats]) -> MemberNats:
    """Members one after the other."""
    return MemberNats(
        np.concatenate([each.parts for each in every], axis=1),
        *(np.concatenate([getattr(each, name) for each in every]) for name in ("passed", "legs", "answers")),
    )


def posterior(
    members: MemberNats,
    alike: MemberNats,
    group: Ints,
    groups: int,
    priors: Priors,
    seen: Seen,
    reference: ReferenceNats,
) -> Posterior:
    """Weigh the hypotheses of groups; `group` is the group of each member, and ascends.

    `alike` are groups as if each were one member: one path, one device and one application.
    """
    without, within = reference.nats[:, 0], reference.nats[:, 1:]
    no_leg = _by_group(without, group, groups)
    parts, legs = members.parts, members.legs + within
    member_end = sum_nats(parts.T) + without
    every_end = _by_group(member_end, group, groups)
    shows = priors.shortest_s <= HIDDEN_S
    common = np.where(shows, alike.legs, -np.inf) + _legs_by_group(within, group, groups)
    without_leg = sum_nats(parts[:3].T) + without
    if not shows.all():
        without_leg = np.logaddexp(without_leg, _any_leg(legs[:, ~shows])) - np.log(2.0)
    split = _split_nats(np.where(shows, legs, -np.inf), _any_leg(common), without_leg, group, groups, priors)
    late = _by_group(parts[2] + without, group, groups)
    fleet = alike.parts[2] - _log(priors.late) + no_leg if priors.late else np.full(groups, -np.inf)
    busy = _by_group(_busy(parts, priors) + without, group, groups)
    by_data = _by_group(reference.by_data, group, groups)
    passed = np.logaddexp(
        _log(1 - priors.common_leg) + _by_group(members.passed, group, groups),
        _log(priors.common_leg) + alike.passed,
    )
    passed += by_data
    whole = _log(1.0 - priors.split)
    # What one member does, is no habit of many.
    together = np.where(_by_group(members.answers.astype(np.float64), group, groups) > 1, 1.0, _NEVER)
    plain = np.log(1.0 - together * (priors.fleet + priors.busy) - priors.handshakes_answered)
    logs = np.stack([
        _log(priors.split * (1 - _HOLDS_ACKS)) + split + seen.split,
        whole + plain + np.log(1 - _ALIKE * together) + every_end + seen.end,
        whole + np.log(together) + _log(priors.fleet) + fleet + seen.end,
        whole + _log(priors.handshakes_answered) + passed + seen.handshakes_answered,
        _log(priors.split * _HOLDS_ACKS) + passed + seen.holding,
        whole + np.log(together) + _log(priors.busy) + busy + seen.end,
        whole + plain + np.log(_ALIKE * together) + alike.parts[0] + no_leg + seen.end,
        whole + plain + np.log(_ALIKE * together) + alike.parts[1] + no_leg + seen.end,
    ])  # fmt: skip
    shares = np.exp(logs - sum_nats(logs.T))
    all_late = np.exp(late - every_end)
    all_site = np.exp(_by_group(parts[3] + without, group, groups) - every_end)
    return Posterior(
        split=shares[0],
        end=shares[1] * np.maximum(1.0 - all_late - all_site, 0.0) + shares[6],
        late=shares[1] * all_late + shares[5],
        fleet=shares[2] + shares[7],
        handshakes_answered=shares[3],
        holding=shares[4],
        site=shares[1] * all_site,
        leg_nats=legs - sum_nats(legs)[:, None],
        member_site=np.exp(parts[3] + without - member_end),
    )


def _busy(parts: Floats, priors: Priors) -> Floats:
    """Log-likelihoods by member where most of a group are late."""
    prompt = 1.0 - priors.late - priors.late_application - priors.balancer - priors.front_end
    before = (prompt, priors.late_application, priors.late)
    now = (1 - _BUSY_SHARE, _BUSY_SHARE / 2, _BUSY_SHARE / 2)
    moved = [_log(after / share) if share else 0.0 for after, share in zip(now, before, strict=True)]
    return sum_nats((parts[:3] + np.asarray(moved)[:, None]).T)


def _end_parts(nats: ExchangeNats, priors: Priors, paths: Paths) -> Floats:
    """Log-likelihoods by way of being end to end (rows: prompt, late where an application answers, late in all, behind
    the site's front) and member, priors included."""
    with_close = nats.all + nats.close
    every, application = (_by_nature(each) + paths.natures[:, None] for each in (with_close, nats.application))
    balancer = _any_leg(sum_nats(_by_nature(nats.all)[..., :_WIRED]) - np.log(_WIRED))
    prompt_handshakes = _end_nats(nats.handshake, paths)
    prompt = 1.0 - priors.late - priors.late_application - priors.balancer - priors.front_end
    return np.stack([
        _log(prompt)
        + _prompt(_end_nats(with_close, paths), sum_nats(every), paths.shifts),
        _log(priors.late_application) + prompt_handshakes + _late_application(nats, paths),
        _log(priors.late) + _late(nats, paths, priors.steady),
        np.logaddexp(
            _log(priors.balancer) + balancer,
            _log(priors.front_end) + prompt_handshakes + _any_leg(sum_nats(application)),
        ),
    ])  # fmt: skip


def _late(nats: ExchangeNats, paths: Paths, steady: float) -> Floats:
    """Log-likelihoods of hosts that are late in every answer: by one delay, or by one in handshakes and another one
    where applications answer; a share of them as `steady` as a leg."""
    apart = sum_nats(nats.handshake[:, TimingTables.LATE] + np.log(LATE_SHARES)) + _late_application(nats, paths)
    alike = sum_nats(nats.all[:, TimingTables.LATE] + _late_close(nats, paths) + np.log(LATE_SHARES))
    either: Floats = np.logaddexp(alike, apart) - np.log(2.0)
    return np.logaddexp(_log(1 - steady) + either, _log(steady) + _as_steady(nats, paths)) if steady else either


def _as_steady(nats: ExchangeNats, paths: Paths) -> Floats:
    """Log-likelihoods of hosts whose answers take what a leg would add: the tables assume the shapes of hosts' delays,
    so that the shape alone tells a leg from them by so much and no more, however many answers there are."""
    at_once = _log(_CLOSES_AT_ONCE) + _end_nats(nats.close, paths)[:, None, None]
    close = np.logaddexp(_log(1 - _CLOSES_AT_ONCE) + _by_nature(nats.close), at_once)
    return _any_leg(sum_nats(_by_nature(nats.all) + close + paths.natures[:, None]))


def _late_application(nats: ExchangeNats, paths: Paths) -> Floats:
    by_delay = sum_nats(nats.application[:, TimingTables.LATE] + _late_close(nats, paths) + np.log(LATE_SHARES))
    by_person = nats.application[:, TimingTables.PERSON] + _end_nats(nats.close, paths)
    return np.logaddexp(_log(1 - _PERSONS) + by_delay, _log(_PERSONS) + by_person)


def _late_close(nats: ExchangeNats, paths: Paths) -> Floats:
    """Log-likelihoods by member and delay of the closes of hosts that are late: late by the same, or at once."""
    at_once = _log(_CLOSES_AT_ONCE) + _end_nats(nats.close, paths)[:, None]
    late: Floats = np.logaddexp(_log(1 - _CLOSES_AT_ONCE) + nats.close[:, TimingTables.LATE], at_once)
    return late


def _passed(
    nats: ExchangeNats, by_data: ExchangeNats, parts: Floats, legs: Floats, priors: Priors, paths: Paths
) -> Floats:
    """Log-likelihoods by member of data that pass end to end; `parts` and `legs` are those by all round trips.

    Beyond a handshake that something nearer answered, exchanges are late by the rest of the path, as by a leg. So they
    are no likelier than by any leg, however near to the round trips of data they are: where acknowledgements ride on
    answers, exchanges are those round trips. A box that connects only when the client has sent makes the first answer
    of a connection wait for its own handshake, too, as a relay does.
    """
    summed = sum_nats(parts.T)
    both = ((nats.handshake, by_data.handshake), (nats.application, by_data.application), (nats.close, by_data.close))
    (other,) = np.nonzero(np.any([np.any(one != another, axis=1) for one, another in both], axis=0))
    if len(other):
        by_data_nats = sum_nats(_end_parts(by_data.of(other), priors, paths.of(other)).T)
        by_leg_nats = _any_leg(legs[other])
        summed[other] = np.logaddexp(
            _log(1 - _CONNECTS_LATE) + np.minimum(by_data_nats, by_leg_nats), _log(_CONNECTS_LATE) + by_leg_nats
        )
    return summed


def _leg_nats(nats: ExchangeNats, priors: Priors, paths: Paths) -> Floats:
    """Log-likelihoods by member and leg, the leg's prior included: all exchanges cross it, or applications are late
    too, or TLS ends there."""
    handshake, application = _by_nature(nats.handshake), _by_nature(nats.application)
    at_once = _end_nats(nats.close, paths)[:, None, None]
    close, tls_close = (
        np.logaddexp(_log(1 - share) + _by_nature(nats.close), _log(share) + at_once)
        for share in (_CLOSES_ITSELF, _ENDS_TLS_AND_CLOSES)
    )
    late = _log(priors.late_application) + _late_application(nats, paths)[:, None, None]
    prompt = _log(1.0 - priors.late_application) + application + close
    crossing = _log(1.0 - _ENDS_TLS) + handshake + np.logaddexp(prompt, late)
    tls_ends = _log(_ENDS_TLS) + _end_nats(nats.handshake, paths)[:, None, None] + application + tls_close
    return sum_nats(np.logaddexp(crossing, tls_ends) + paths.natures[:, None]) + LEG_NATS


def _by_nature(rows: Floats) -> Floats:
    """Of the columns of hypotheses the legs, by member, leg and nature."""
    return rows[:, TimingTables.HIDDEN].reshape(-1, len(HIDDEN_S), NATURES)


def _legs_by_group(rows: Floats, group: Ints, groups: int) -> Floats:
    """Sums over the members of each group, by leg."""
    summed = np.zeros((groups, rows.shape[1]))
    np.add.at(summed, group, rows)
    return summed


def _end_nats(rows: Floats, paths: Paths) -> Floats:
    """Log-likelihoods of being end to end, in any nature."""
    return sum_nats(rows[:, TimingTables.END_BY_NATURE] + paths.end_natures)


def _prompt(end: Floats, shifted: Floats, shift_nats: Floats) -> Floats:
    """Log-likelihoods of answers at the transport's speed; `shifted` are those of answers that all take longer by each
    of `HIDDEN_S`, as slow links make them whose round trips were measured with short packets."""
    return sum_nats(np.concatenate([end[:, None], shifted], axis=1) + shift_nats)


def _split_nats(
    leg_nats: Floats, common: Floats, without_leg: Floats, group: Ints, groups: int, priors: Priors
) -> Floats:
    """Log-likelihood of a split by group: legs of the members' own, or one leg that all have (`common`), as clients of
    one access network do.

    Members whose leg is too short to show look end to end, or as behind a leg that alone would not be told from a busy
    host; but not all of a group, which then could not be told from one that is.
    """
    too_short = priors.too_short
    short = _log(too_short) + without_leg
    either = np.logaddexp(_log(1.0 - too_short) + _any_leg(leg_nats), short)
    count = np.bincount(group, minlength=groups)
    any_leg = _by_group(either, group, groups)
    no_leg = _by_group(short, group, groups)
    own = any_leg + np.log1p(-np.exp(np.minimum(no_leg - any_leg, -1e-12)))
    own -= np.log1p(-np.power(too_short, count))
    either_way: Floats = np.logaddexp(_log(1 - priors.common_leg) + own, _log(priors.common_leg) + common)
    return either_way


def _any_leg(nats: Floats) -> Floats:
    """Any leg of the columns, one as probable as another."""
    mean: Floats = sum_nats(nats) - np.log(nats.shape[1])
    return mean


def _by_group(values: Floats, group: Ints, groups: int) -> Floats:
    summed: Floats = np.bincount(group, weights=values, minlength=groups).astype(np.float64)
    return summed


def sum_nats(rows: Floats) -> Floats:
    """The logarithm of the sum of the probabilities along the last axis."""
    most = rows.max(axis=-1, keepdims=True)
    shares = rows - most
    np.exp(shares, out=shares)
    summed: Floats = np.log(shares.sum(axis=-1))
    summed += most[..., 0]
    return summed


def _log(probability: float) -> float:
    return float(np.log(probability)) if probability > 0 else -np.inf
