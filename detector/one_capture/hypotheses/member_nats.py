"""What the exchanges of each member say by themselves, by all ways of being end to end or behind a leg."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.hypotheses.fronts import FrontNats, front_nats, joined_fronts
from detector.one_capture.hypotheses.habits.close_habits import close_as_late, close_behind
from detector.one_capture.hypotheses.habits.crossing_habits import CONNECTED, HabitLegNats, any_habit, joined_habits
from detector.one_capture.hypotheses.habits.late_answers import (
    CLOSES_AT_ONCE,
    LateApplication,
    late_behind,
    late_close,
    late_or_irregular,
)
from detector.one_capture.hypotheses.habits.slow_keys import keys_behind_legs, keys_nats, others_behind_keys
from detector.one_capture.hypotheses.moments import MomentNats
from detector.one_capture.hypotheses.natures import WIRED, Crossing, Paths, by_nature, end_nats
from detector.one_capture.hypotheses.regular_looks import OF_LATE, LooksNats
from detector.one_capture.hypotheses.sums import (
    DELAYS_BEYOND,
    any_delay,
    any_leg,
    any_queue,
    delays_beyond_legs,
    log,
    sum_nats,
)
from detector.one_capture.likelihoods.exchange_nats import ExchangeNats
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.timing_tables import LEG_NATS, Floats, TimingTables
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats
from detector.one_capture.members import Ints

#: The rows of parts: members that answer at once, those that are late where an application answers, or in all answers,
#: and those behind their site's front.
PROMPT, LATE_APPLICATION, LATE, SITE = range(4)

#: Of split points, those where TLS ends and begins anew.
ENDS_TLS = 0.1

#: Of split points, those that close towards the server by themselves once it has answered: where they can read what is
#: said, where they cannot, and where TLS ends. What passes bytes on does not know that nothing more will be asked: of
#: eight between kernels none closes HTTP in clear, and a ninth does with 1 in 10 (rule of succession).
_CLOSES_ITSELF, _CLOSES_UNREAD, _ENDS_TLS_AND_CLOSES = 0.1, 0.02, 0.6

#: Of programs that compute as long as a leg, those whose machines are busy with other work as well, so that what they
#: take varies as legs of any nature do: one group of clients in a hundred, assumed (docs/decisions/160).
_BUSY_MACHINES = 1 / 6

#: Of hosts that are late in TLS handshakes and otherwise, those that are late in handshakes alone, by what keys take to
#: compute: assumed.
_IN_HANDSHAKES_ALONE = 0.3


class MemberNats(Struct, frozen=True):
    """Log-likelihoods of what members' exchanges say, priors of members included.

    Members are the last axis, but where legs, or other times, are: these are each of `HIDDEN_S`.
    """

    #: By way of being end to end (rows, see `PROMPT`).
    parts: Floats
    #: The last of these ways: behind a front of the site's.
    fronts: FrontNats
    #: The row of `parts` where everything is late, by how (rows): in ways of their own, as steadily as a leg, and where
    #: libraries alone are late, in TLS handshakes.
    late: Floats
    #: Given a device that delays its closes as it does its answers (rows): in ways of its own, as steadily as a leg.
    device: Floats
    #: By member and leg, given that everything crosses it; of any one habit of split points.
    legs: Floats
    #: By member and leg, given that TLS ends at the split point.
    legs_behind_tls: Floats
    #: By program (rows), member and time, given programs that compute for so long before all that they say, as steadily
    #: as a leg would take: those that do so before they close as well, those that close at once, and both once more
    #: where libraries compute keys for any time before TLS handshake flights.
    programs: Floats
    #: By member and time, given libraries that compute keys for so long before TLS handshake flights alone.
    slow_handshakes: Floats
    #: By member and leg, given such libraries behind it.
    slow_handshakes_behind: Floats
    #: Given a leg that varies, or a host behind it, as much as hosts that are late do.
    unsteady: Floats
    #: Whether a member answered anything, whether in TLS handshakes, and whether it speaks TLS or HTTP.
    answers: npt.NDArray[np.bool_]
    shakes_hands: npt.NDArray[np.bool_]
    speaks_web: npt.NDArray[np.bool_]
    #: Legs by each habit of split points (`crossing_habits.HABIT_NATS`), where habits tell anything.
    habits: HabitLegNats | None = None

    @property
    def legs_once_connected(self) -> Floats:
        """The legs of split points that have connected before anything is asked."""
        return self.legs if self.habits is None else self.habits.all[CONNECTED]

    def of(self, members: Ints) -> MemberNats:
        """Those of some members."""
        columns = {
            name: getattr(self, name)[:, members] if name in _IN_ROWS else getattr(self, name)[members]
            for name in _COLUMNS
        }
        habits = None if self.habits is None else self.habits.of(members)
        return MemberNats(**columns, fronts=self.fronts.of(members), habits=habits)

    def with_late_sometimes(
        self, known: npt.NDArray[np.bool_], sometimes: Floats, legs: Floats, priors: Priors
    ) -> MemberNats:
        """With applications that are late as often always as `sometimes` (log-likelihoods), where that is `known`; and
        programs as often by one time always as sometimes (`legs`)."""
        parts = self.parts.copy()
        late = np.logaddexp(parts[LATE_APPLICATION] - np.log(2.0), log(priors.late_application / 2) + sometimes)
        parts[LATE_APPLICATION] = np.where(known, late, parts[LATE_APPLICATION])
        programs = np.where(known[:, None], np.logaddexp(self.programs, legs) - np.log(2.0), self.programs)
        return replace(
            self, parts=parts, programs=programs, unsteady=_given_late(parts, self.late, self.shakes_hands, priors)
        )

    def with_moments(self, nats: MomentNats) -> MemberNats:
        """Given by member how late answers of one moment are."""
        varying, steady = self.device
        device = np.stack([varying + nats.device, steady])
        return replace(self, unsteady=self.unsteady + nats.queue, device=device)

    def with_looks(self, nats: LooksNats, priors: Priors) -> MemberNats:
        """Given by member whether all that is said lies on the grid of a program that looks at regular times; such a
        program may stand behind a leg as well, which is no longer than what its answers take."""
        looking = log(priors.late * OF_LATE / 2) + nats.looks
        varying, steady, in_handshakes = self.late
        late = np.stack([
            np.logaddexp(varying, looking + np.logaddexp(self.device[0] - log(1 - priors.steady), any_leg(self.legs))),
            steady + nats.steady,
            in_handshakes,
        ])  # fmt: skip
        parts, behind = self.parts.copy(), np.logaddexp(0.0, looking)
        parts[LATE] = np.logaddexp.reduce(late)
        return replace(
            self,
            parts=parts,
            late=late,
            device=self.device + np.stack([nats.device, nats.steady]),
            legs=self.legs + behind[:, None],
            legs_behind_tls=self.legs_behind_tls + behind[:, None],
            programs=self.programs + behind[:, None],
            slow_handshakes=self.slow_handshakes + behind[:, None],
            slow_handshakes_behind=self.slow_handshakes_behind + behind[:, None],
            unsteady=self.unsteady + behind,
        )

    def with_fronts(self, alone: npt.NDArray[np.bool_], waiting: WaitingNats, priors: Priors) -> MemberNats:
        """With fronts that vary as split points do where a member is `alone` in answering, and with those that connect
        before they answer a handshake, if split points do."""
        fronts, parts = self.fronts, self.parts.copy()
        if priors.connects_first and priors.balancer:
            fronts = fronts.or_waiting(self.legs_once_connected, waiting, priors)
        fronts = fronts.where_alone(alone)
        parts[SITE] = fronts.any
        return replace(self, parts=parts, fronts=fronts)


#: Those of members that are arrays, and of these the ones whose members stand behind an axis of rows.
_COLUMNS = tuple(name for name in MemberNats.__struct_fields__ if name not in ("fronts", "habits"))
_IN_ROWS = ("parts", "late", "device", "programs")


def member_nats(
    nats: ExchangeNats,
    speaks_web: npt.NDArray[np.bool_],
    priors: Priors,
    paths: Paths,
    habits: Sequence[ExchangeNats] = (),
) -> MemberNats:
    """What each member's exchanges say by themselves; `speaks_web` is whether it speaks TLS or HTTP, and `habits` what
    they say by each of `HABIT_NATS`. Fronts inside a site have habits as split points in the network have them."""
    crossing = Crossing.of(habits or (nats,))
    if habits:
        # Hosts that take as long as a leg do so once in each first answer as well, or each time anew.
        nats = nats.by_either(habits[CONNECTED])
    late_applications = LateApplication.of(nats, paths)
    late = log(priors.late) + _late(nats, late_applications, paths, priors.steady)
    fronts = front_nats(nats, crossing, speaks_web, priors, paths)
    prompt, prompt_handshakes = _prompt(nats, paths), end_nats(nats.handshake, paths)
    application_late = late_applications.some_steady(Crossing.of([nats]), paths, priors.steady_application)
    parts = np.stack([
        np.log(priors.prompt(speaks_web)) + prompt,
        log(priors.late_application) + prompt_handshakes + application_late,
        np.logaddexp.reduce(late),
        fronts.any,
    ])  # fmt: skip
    said, of_habits = _Said.behind(nats, crossing, late_applications, priors, paths), None
    legs, behind_tls = _leg_nats(nats, crossing, said, priors, paths)
    if habits:
        by_habit, (legs, behind_tls) = HabitLegNats(legs, behind_tls), (any_habit(each) for each in (legs, behind_tls))
        said, of_habits = said.of_habit(CONNECTED), by_habit.or_else(legs, behind_tls)
    answers = nats.shakes_hands | np.any(nats.application != 0, axis=1)
    unsteady = _queued(nats, paths) if priors.closes else _given_late(parts, late, nats.shakes_hands, priors)
    device = np.full((2, len(legs)), -np.inf)
    if priors.devices:
        device = np.stack([log(1 - priors.steady) + _device(nats), log(priors.steady) + any_leg(legs)])
    programs, slow_handshakes, slow_behind = np.full((4, *legs.shape), -np.inf), *np.full((2, *legs.shape), -np.inf)
    if priors.programs:
        keys = keys_nats(nats, paths)
        programs = _programs(nats, said, prompt_handshakes, keys, paths)
        slow_handshakes = _slow_handshakes(nats, parts, prompt_handshakes, keys, priors, paths)
        slow_behind = keys_behind_legs(keys, said.all, paths)
    return MemberNats(
        parts=parts, fronts=fronts, late=late, device=device, legs=legs, legs_behind_tls=behind_tls, programs=programs,
        slow_handshakes=slow_handshakes, slow_handshakes_behind=slow_behind, unsteady=unsteady, answers=answers,
        shakes_hands=nats.shakes_hands, speaks_web=speaks_web, habits=of_habits,
    )  # fmt: skip


def joined_members(every: Sequence[MemberNats]) -> MemberNats:
    """Members one after the other."""
    if len(every) == 1:
        return every[0]
    columns = {
        name: np.concatenate([getattr(each, name) for each in every], axis=1 if name in _IN_ROWS else 0)
        for name in _COLUMNS
    }
    habits = joined_habits([each.habits for each in every if each.habits is not None])
    return MemberNats(**columns, fronts=joined_fronts([each.fronts for each in every]), habits=habits)


def _late(nats: ExchangeNats, applications: LateApplication, paths: Paths, steady: float) -> Floats:
    """Log-likelihoods of hosts that are late in every answer: by one delay, or by one in handshakes and another one
    where applications answer; (second row) of the share of them that are as `steady` as a leg; and (third row) of those
    whose libraries are late in handshakes, as steadily or not, and whose applications answer at once."""
    late, at_once = applications.any, end_nats(nats.application + nats.closes, paths)
    by_delay = any_delay(nats.handshake)
    as_leg = any_leg(sum_nats(by_nature(nats.handshake) + paths.natures[:, None]))
    shakes = nats.shakes_hands
    alone = np.logaddexp(log(1 - steady) + by_delay, log(steady) + as_leg) + at_once
    varying = _either(any_delay(nats.all, late_close(nats, paths)), by_delay + late)
    alike = _as_steady(nats, paths)
    as_steady = np.where(shakes, _either(alike, as_leg + late), alike)
    otherwise = _not_in_handshakes_alone(shakes)
    return np.stack([
        otherwise + log(1 - steady) + varying,
        otherwise + log(steady) + as_steady,
        np.where(shakes, log(_IN_HANDSHAKES_ALONE) + alone, -np.inf),
    ])  # fmt: skip


def _not_in_handshakes_alone(shakes: npt.NDArray[np.bool_]) -> Floats:
    """How probable it is that hosts which are late are so not in TLS handshakes alone (nats)."""
    return np.where(shakes, log(1 - _IN_HANDSHAKES_ALONE), 0.0)


def _either(alike: Floats, apart: Floats) -> Floats:
    """One as probable as the other: one delay for all answers, or another one where applications answer."""
    either: Floats = np.logaddexp(alike, apart) - np.log(2.0)
    return either


def _as_steady(nats: ExchangeNats, paths: Paths) -> Floats:
    """Log-likelihoods of hosts whose answers take what a leg would add: the tables assume the shapes of hosts' delays,
    so that the shape alone tells a leg from them by so much and no more, however many answers there are."""
    close = close_behind(nats.closes, CLOSES_AT_ONCE, paths)
    return any_leg(sum_nats(by_nature(nats.all) + close + paths.natures[:, None]))


def _given_late(parts: Floats, late: Floats, shakes: npt.NDArray[np.bool_], priors: Priors) -> Floats:
    """Log-likelihoods by member of being late where applications answer or in all answers, given that it is: not in
    handshakes alone, which no leg makes so."""
    if not priors.unsteady:
        return np.full(parts.shape[1], -np.inf)
    in_all = np.logaddexp(late[0], late[1]) - log(priors.late) - _not_in_handshakes_alone(shakes)
    found: Floats = np.logaddexp(parts[LATE_APPLICATION] - log(priors.late_application), in_all) - np.log(2.0)
    return found


def _queued(nats: ExchangeNats, paths: Paths) -> Floats:
    """Log-likelihoods by member of a leg in which something queues, so that answers take it or some times as long; and
    closes as well, but for what the split point closes by itself."""
    close = close_as_late(nats.close, _CLOSES_ITSELF, paths) + close_as_late(nats.client_close, _CLOSES_UNREAD, paths)
    alike = any_queue(nats.all[:, TimingTables.LATE] + close)
    apart = any_queue(nats.handshake[:, TimingTables.LATE] + close) + late_or_irregular(nats)
    return _either(alike, apart)


def _device(nats: ExchangeNats) -> Floats:
    """Log-likelihoods by member of a device that delays its closes as it does its answers: all is late by one delay, or
    handshakes and closes are, and what applications answer by another one, or irregularly."""
    closes = nats.closes[:, TimingTables.LATE]
    return _either(any_delay(nats.all, closes), any_delay(nats.handshake, closes) + late_or_irregular(nats))


def _late_in_all_behind(nats: ExchangeNats, close: Floats, by_delay: Floats) -> Floats:
    """The same of hosts that are late in every answer behind it: by one delay, or by one in handshakes and another one
    where applications answer. Delays are as probable as end to end, so that closes tell the leg, not answers alone."""
    late = by_delay + delays_beyond_legs(nats.handshake[:, TimingTables.LATE])[:, :, None]
    both = np.flatnonzero(nats.shakes_hands)  # without handshakes one delay is the other
    alike = _late_by_more_closing(nats.all[both], nats.closes[both], close[both])
    late[both] = _either(alike, late[both])
    found: Floats = late + DELAYS_BEYOND[:, None]
    return found


def _late_by_more_closing(answers: Floats, closes: Floats, close: Floats) -> Floats:
    """Log-likelihoods by member, leg and nature of answers that are late by any one delay but those that are shorter
    than the leg, and of closes that are as late, or take as long as the leg (`close`)."""
    late = answers[:, TimingTables.LATE]
    found: Floats = np.logaddexp(
        log(CLOSES_AT_ONCE) + delays_beyond_legs(late)[:, :, None] + close,
        log(1 - CLOSES_AT_ONCE) + delays_beyond_legs(late + closes[:, TimingTables.LATE])[:, :, None],
    )
    return found


class _Said(Struct, frozen=True):
    """Log-likelihoods by member, leg and nature of what applications answer, closes included: `closes` alone, and `all`
    where everything takes as long as the leg, or applications take longer, by any one delay (`by_delay`) or others."""

    closes: Floats
    by_delay: Floats | None
    all: Floats

    @classmethod
    def behind(
        cls, nats: ExchangeNats, crossing: Crossing, applications: LateApplication, priors: Priors, paths: Paths
    ) -> _Said:
        """Of what stands behind a leg."""
        closes = close_behind(nats.close, _CLOSES_ITSELF, paths)
        closes = closes + close_behind(nats.client_close, _CLOSES_UNREAD, paths)
        by_delay = None
        if priors.closes:
            by_delay = _late_by_more_closing(nats.application, nats.closes, closes)
            behind = late_behind(nats, closes, by_delay)
        else:
            behind = applications.some_steady(crossing, paths, priors.steady_application)[..., None, None]
        late = log(priors.late_application) + behind
        at_once = log(1.0 - priors.late_application) + crossing.application + closes
        return cls(closes, by_delay, np.logaddexp(at_once, late))

    def of_habit(self, number: int) -> _Said:
        """What they say by one of the habits."""
        return replace(self, all=self.all[number])


def _leg_nats(
    nats: ExchangeNats, crossing: Crossing, said: _Said, priors: Priors, paths: Paths
) -> tuple[Floats, Floats]:
    """Log-likelihoods by member and leg, the leg's prior included: all exchanges cross it, or applications are late
    too, or (where closes tell the leg from what they take) all answers; and where TLS ends at the split point."""
    everything = crossing.handshake + said.all
    if said.by_delay is not None:
        everything = np.logaddexp(
            everything + log(1.0 - priors.late),
            log(priors.late) + _late_in_all_behind(nats, said.closes, said.by_delay),
        )
    tls_close = close_behind(nats.closes, _ENDS_TLS_AND_CLOSES, paths)
    tls_ends = end_nats(nats.handshake, paths)[:, None, None] + crossing.application + tls_close
    natures = paths.natures[:, None]
    return sum_nats(everything + natures) + LEG_NATS, sum_nats(tls_ends + natures) + LEG_NATS


def _programs(nats: ExchangeNats, said: _Said, handshakes: Floats, keys: Floats, paths: Paths) -> Floats:
    """`MemberNats.programs`: all is as late as behind a wired leg, on a busy machine as behind any, or all but closes;
    and TLS handshakes are prompt (`handshakes`), or libraries compute `keys` for any time before them."""
    closing_at_once = by_nature(nats.application) + end_nats(nats.closes, paths)[:, None, None]
    steady = np.stack([sum_nats(each[..., :WIRED]) - np.log(WIRED) for each in (said.all, closing_at_once)])
    varying = np.stack([sum_nats(each + paths.natures[:, None]) for each in (said.all, closing_at_once)])
    late = np.logaddexp(log(1 - _BUSY_MACHINES) + steady, log(_BUSY_MACHINES) + varying) + LEG_NATS
    return np.concatenate([late + any_time[:, None] for any_time in (handshakes, any_leg(keys))])


def _slow_handshakes(
    nats: ExchangeNats, parts: Floats, handshakes: Floats, keys: Floats, priors: Priors, paths: Paths
) -> Floats:
    """`MemberNats.slow_handshakes`: as `keys`, and all but TLS handshakes as members that are end to end (`parts`, of
    which `handshakes` are taken away)."""
    found: Floats = keys + others_behind_keys(nats, parts[LATE_APPLICATION] - handshakes, priors, paths)
    if priors.closes:  # as behind legs, hosts may be late in all by themselves
        found = np.logaddexp(log(1 - priors.late) + found, parts[LATE][:, None])
    return found


def _prompt(nats: ExchangeNats, paths: Paths) -> Floats:
    """Log-likelihoods by member of answers at the transport's speed, or that all take longer by each of `HIDDEN_S` in
    each nature, as slow links make them whose round trips were measured with short packets.

    What shifts answers shifts no close: a slow link holds up what is longer than a FIN, a slow device computes. What
    applications compute may shift theirs alone: as a split point does where TLS ends, but for the close."""
    applications = end_nats(nats.handshake, paths)[:, None, None] + by_nature(nats.application)
    shifted = np.logaddexp(by_nature(nats.all), applications) - np.log(2.0)
    shifted += end_nats(nats.closes, paths)[:, None, None]
    end = end_nats(nats.all + nats.closes, paths)
    return sum_nats(np.concatenate([end[:, None], shifted.reshape(len(end), -1)], axis=1) + paths.shifts)
