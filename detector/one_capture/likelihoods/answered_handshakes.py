"""Handshakes that something answers for others: SYN proxies and SYN cookies, which split nothing.

Where host and handshake are one, data are acknowledged as fast as the SYN was, or a delayed acknowledgement later. A
box that answers SYNs only and then lets data pass makes the handshake shorter than any acknowledgement of data, by
the path behind it, which exchanges take as they take a hidden leg. So what tells both apart is where data are
acknowledged, given that path. Acknowledgements are compared in the order of what they say: prompt ones, which no host
delays; those without payload, which it may. One that rides on an answer is the exchange itself: it tells only that the
path is no longer. Where there are no others, a box that answers handshakes and a split look the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, Floats
from detector.one_capture.members import Ints
from pepscope.results.verdicts import GroupSide

#: Where one host answers both: acknowledgements as fast as the handshake, delayed by Linux's timer, or by another's. A
#: host with a habit delays all that it can, so that the least of many is no surer than one. Linux' timer holds back the
#: least one of 11 % of simulated split points, and of 0.3 % of real kernels.
_ALIKE, _DELAYED, _OTHERWISE = 0.84, 0.06, 0.1
_DELAYED_S = (0.038, 0.046)

#: One split point acknowledges for all servers of a group, so that they have one habit. Timers that delay (s): of Linux
#: (40 ms, at 100 to 1,000 ticks a second), of BSD and Darwin, and of older Windows; how many split points have each, of
#: which the last two are assumed. Such a timer holds back the least acknowledgement of half of the members: of some all
#: were answered at once, or acknowledged with answers.
_TIMERS_S: Floats = np.array([_DELAYED_S, (0.098, 0.106), (0.198, 0.206)])
_TIMED: Floats = np.array([0.12, 0.03, 0.03])
_TIMED_DELAYED, _TIMED_ALIKE = 0.5, 0.45

#: The least acknowledgement of a host was prompt where its prompt ones are no later than this (s).
_PROMPT_S = 0.005

#: Share of hosts whose prompt acknowledgements are later than their handshakes all the same: of 9,000 members behind
#: split points 2 % by more than 38 ms.
_PROMPT_LATER = 0.02

#: No host delays an acknowledgement longer (RFC 9293 section 3.8.6.3).
LONGEST_DELAY_S = 0.5

#: How often a handshake's hop limit or shut window shows another sender: of hosts (their route or stack changes), and
#: where something answers for them. At the clients SYN-ACKs of 6 in 10 networks behind SYN proxies do (between real
#: kernels all); at the server the proxy's SYN, in the client's name, does in 6 in 10 between real kernels, with
#: netfilter, and in none where the proxy only rewrites the client's SYN.
_SHOWN_BY_HOSTS = 0.01
_SHOWN_IF_ANSWERED = {GroupSide.CLIENT: 0.6, GroupSide.SERVER: 0.3}

#: The same of timestamps that lag behind the handshake's, at the clients: of 1,753 hosts and split points one does
#: (simulated, seed 5601). Of SYN proxies netfilter's all do; one in ten is taken to hide it.
_LAGS_IF_ANSWERED = 0.9

#: Share of a member's handshakes from which they show another sender.
_MOSTLY = 0.5

#: Density (per second) of round trips that no hypothesis expects.
_NEVER = 1e-6

#: What holds acknowledgements up (s), log-uniform.
_LEAST_S, _MOST_S = 0.001, 1.0

#: Paths behind the box that are told apart (s): one that does not show, then each of `HIDDEN_S`. Each stands for those
#: around it, up to half of the way to the next.
_PATHS_S: Floats = np.concatenate([[0.0], HIDDEN_S])
_AROUND_S: Floats = _PATHS_S * (HIDDEN_S[1] / HIDDEN_S[0] - 1) / 2


class Acknowledged(Struct, frozen=True):
    """Least round trips by member (s), NaN where unknown: of handshakes, and of data by how they were acknowledged.

    `prompt_s` of more than a segment, which no host delays; `plain_s` by packets without payload; `data_s` of all,
    those included whose acknowledgement rides on an answer.
    """

    handshake_s: Floats
    prompt_s: Floats
    plain_s: Floats
    data_s: Floats

    @property
    def undelayed_s(self) -> Floats:
        """Of those that nothing delayed: prompt ones; the least of all is no later, and if it is hardly sooner, it was
        not delayed itself."""
        return np.where(self.prompt_s < self.plain_s + _PROMPT_S, np.fmin(self.prompt_s, self.plain_s), np.nan)


class _Habit(Struct, frozen=True):
    """How often the least acknowledgement without payload is as fast as the handshake, delayed by each of the timers,
    or by anything else."""

    alike: float
    timed: Floats
    otherwise: float

    def plain(self, beyond: _Beyond) -> Floats:
        """Densities of acknowledgements without payload."""
        density: Floats = self.alike * beyond.alike + beyond.timed @ self.timed + self.otherwise * beyond.allowed
        return density


class _Habits(Struct, frozen=True):
    """The habit of `any_one` host, and what habits the members of a group may have in `common`, with the `shares` of
    these."""

    any_one: _Habit
    common: Sequence[_Habit]
    shares: Floats


_AT_ONCE = (_ALIKE - _TIMED.sum() * _TIMED_ALIKE) / (1 - _TIMED.sum())
_TIMED_BY_ANY = _TIMED_DELAYED * _TIMED
_OF_TIMERS = [
    _Habit(_TIMED_ALIKE, _TIMED_DELAYED * timer, 1 - _TIMED_ALIKE - _TIMED_DELAYED) for timer in np.eye(len(_TIMED))
]
_OF_A_CLIENT = _Habit(_ALIKE, np.array([_DELAYED, 0.0, 0.0]), _OTHERWISE)

#: Habits by side of the capture; clients have habits of their own, and none in common.
_HABITS = {
    GroupSide.CLIENT: _Habits(
        _Habit(_ALIKE, _TIMED_BY_ANY, 1 - _ALIKE - _TIMED_BY_ANY.sum()),
        [_Habit(_AT_ONCE, np.zeros(len(_TIMED)), 1 - _AT_ONCE), *_OF_TIMERS],
        np.append(1 - _TIMED.sum(), _TIMED),
    ),
    GroupSide.SERVER: _Habits(_OF_A_CLIENT, [_OF_A_CLIENT], np.array([1.0])),
}


class HandshakeNats(Struct, frozen=True):
    """Log-likelihoods by member; what is unknown says nothing (0).

    `as_fast`: of the least round trip of data, given the least handshake, where one host makes both, by its habit
    (rows, whose log probabilities are `habit_nats`). `same_sender` and `other_sender`: of the shares of handshakes that
    show another sender than data do, by sign (rows). `found` is what they rest on, `of_any_one` the habit of hosts one
    by one, `blur_s` by how much the same may differ.
    """

    of_any_one: _Habit
    habit_nats: Floats
    as_fast: Floats
    same_sender: Floats
    other_sender: Floats
    found: Acknowledged
    blur_s: Floats

    def behind(self, members: Ints) -> Floats:
        """As `as_fast`, but where something nearer makes the handshake: by member and path behind that (columns: too
        short to show, then each of `HIDDEN_S`)."""
        blur_s = self.blur_s[members, None] + _AROUND_S
        beyond_s = [
            (data_s - self.found.handshake_s)[members, None] - _PATHS_S
            for data_s in (self.found.data_s, self.found.plain_s, self.found.undelayed_s)
        ]
        nats: Floats = np.log(np.exp(np.minimum(np.nan_to_num(beyond_s[0]), 0.0) / blur_s) + _NEVER)
        for data_s, one_host in zip(beyond_s[1:], (self.of_any_one.plain, _prompt), strict=True):
            known = np.flatnonzero(~np.isnan(data_s[:, 0]))
            nats[known] = np.log(one_host(_Beyond.of(data_s[known], blur_s[known])) + _NEVER)
        return nats


def handshake_nats(
    found: Acknowledged, variation_s: Floats, moved_share: Floats, lagging_share: Floats, side: GroupSide
) -> HandshakeNats:
    """Compare the handshakes of each member with its data; NaN stands for what is unknown. `variation_s` is how much
    its round trips vary, `moved_share` the share of its handshakes whose hop limit or shut window shows another sender,
    `lagging_share` of those whose timestamps do."""
    blur_s = _LEAST_S + np.nan_to_num(variation_s)
    habits = _HABITS[side]
    as_fast = np.zeros((len(habits.common), len(blur_s)))
    for row, habit in zip(as_fast, habits.common, strict=True):
        for data_s, one_host in ((found.plain_s, habit.plain), (found.undelayed_s, _prompt)):
            known = np.flatnonzero(~np.isnan(data_s - found.handshake_s))
            row[known] = np.log(one_host(_Beyond.of((data_s - found.handshake_s)[known], blur_s[known])) + _NEVER)
    signs = (moved_share, _SHOWN_IF_ANSWERED[side]), (lagging_share, _LAGS_IF_ANSWERED)
    same = np.stack([_of_sign(share, _SHOWN_BY_HOSTS) for share, _ in signs])
    other = np.stack([_of_sign(share, if_answered) for share, if_answered in signs])
    return HandshakeNats(habits.any_one, np.log(habits.shares), as_fast, same, other, found, blur_s)


class _Beyond(Struct, frozen=True):
    """By how much data take longer than the handshake, or it and a path (s), and the densities of this: as long, but
    for what the path varies; longer by each of the timers (last axis); by anything that a host may delay an
    acknowledgement."""

    alike: Floats
    timed: Floats
    allowed: Floats

    @classmethod
    def of(cls, beyond_s: Floats, blur_s: Floats) -> _Beyond:
        further_s = np.maximum(beyond_s, _LEAST_S)
        anything = np.where(beyond_s > _LEAST_S, 1 / (further_s * np.log(_MOST_S / _LEAST_S)), 0.0)
        alike = np.exp(-np.abs(beyond_s) / blur_s) / (2 * blur_s)
        least_s, most_s = _TIMERS_S.T
        after_s, blurs_s = beyond_s[..., None], blur_s[..., None]
        timed = (_below(after_s - least_s, blurs_s) - _below(after_s - most_s, blurs_s)) / (most_s - least_s)
        return cls(alike, timed, np.where(beyond_s < LONGEST_DELAY_S, anything, 0.0))


def delayed_by_timers(beyond_s: Floats, blur_s: Floats) -> tuple[float, Floats]:
    """How often a timer delays the least acknowledgement without payload of a split point, and the density (per second)
    of how much later than others one that any timer delays comes, which blurs by `blur_s`."""
    share = float(_TIMED_BY_ANY.sum())
    density: Floats = _Beyond.of(beyond_s, blur_s).timed @ _TIMED_BY_ANY / share
    return share, density


def _below(away_s: Floats, blur_s: Floats) -> Floats:
    """How often what the path varies, as `alike` has it, is less."""
    tail: Floats = np.exp(-np.abs(away_s) / blur_s) / 2
    return np.where(away_s < 0, tail, 1 - tail)


def _prompt(beyond: _Beyond) -> Floats:
    return (1 - _PROMPT_LATER) * beyond.alike + _PROMPT_LATER * beyond.allowed


def _of_sign(share: Floats, shown: float) -> Floats:
    seen, shows = ~np.isnan(share), np.nan_to_num(share) > _MOSTLY
    return np.where(seen, np.log(np.where(shows, shown, 1 - shown)), 0.0)
