"""How probable what members show is behind split points of each sort, by group.

Members whose leg is too short to show look end to end, or as behind a leg that alone would not be told from a busy
host; but not all of a group, which then could not be told from one that is. Each sort breaks an assumption of its own:

- handshakes of relays that connect before they answer cross the leg, and so do those that a box lets pass which
  acknowledges data in the hosts' names: only acknowledgements show the near leg;
- hits of a cache do not cross the leg;
- where TLS ends at the split point, its handshakes do not cross it;
- legs, or hosts behind them, may vary as much as hosts that are late do. That every host is late says nothing of a leg.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.hypotheses.cached_answers import CacheNats
from detector.one_capture.hypotheses.member_nats import MemberNats
from detector.one_capture.hypotheses.sums import any_leg, by_group, legs_by_group, log, sum_nats
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.references.port_references import PortReferences
from detector.one_capture.likelihoods.references.reference_nats import ReferenceNats
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S, LEG_NATS, Floats
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats
from detector.one_capture.members import Ints

#: Stands for what cannot be.
_NEVER = -np.inf

#: How often programs that compute for as long as a leg takes before they go on close at once: assumed. Programs of
#: three laboratories do, but they only wait; what works on an answer has the last one to work on as well. Which of both
#: is a trait of the program, which all members of a group run.
_PROGRAMS_CLOSE = 0.5


class Groups(Struct, frozen=True, dict=True):
    """Members by group, and what they show: `members`, and `alike` groups as if each were one member, with references.

    `group` is the group of each member, and ascends; `hits` is what caches show, None where they are not thought of.
    Log-likelihoods of splits have an axis of habits before all others where members' legs have one (`by_habit`).
    """

    members: MemberNats
    alike: MemberNats
    reference: ReferenceNats
    group: Ints
    count: int
    priors: Priors
    hits: CacheNats | None = None

    def of(self, members: Ints, groups: Ints) -> Groups:
        """Some groups, and `members`, which are all of theirs."""
        return replace(
            self,
            members=self.members.of(members),
            alike=self.alike.of(groups),
            reference=self.reference.of(members),
            group=np.searchsorted(groups, self.group[members]),
            count=len(groups),
            hits=None if self.hits is None else self.hits.of(members),
        )

    def beside(self, ports: PortReferences) -> Groups:
        """The same with other ports as further references."""
        nats = self.reference.nats.copy()
        nats[:, 1:] += ports.nats
        return replace(self, reference=replace(self.reference, nats=nats))

    @property
    def by_habit(self) -> Groups:
        """The same by each habit of split points (`HABIT_NATS`), which the first axis of legs counts; itself where
        habits tell nothing."""
        habits = self.members.habits
        if habits is None:
            return self
        return replace(self, members=replace(self.members, legs=habits.all, legs_behind_tls=habits.behind_tls))

    @cached_property
    def _shaking(self) -> npt.NDArray[np.bool_]:
        """By group, whether any member answered in TLS handshakes."""
        return by_group(self.members.shakes_hands.astype(np.float64), self.group, self.count) > 0

    @cached_property
    def _several(self) -> npt.NDArray[np.bool_]:
        """By group, whether several members answered anything."""
        return by_group(self.members.answers.astype(np.float64), self.group, self.count) > 1

    @property
    def _impossible(self) -> Floats:
        """Log-likelihoods by group of what cannot be."""
        return np.full(self.count, _NEVER)

    @cached_property
    def legs(self) -> Floats:
        """Log-likelihoods by member and leg that everything crosses."""
        return self.members.legs + self.reference.nats[:, 1:]

    @cached_property
    def legs_behind_tls(self) -> Floats:
        """The same where TLS ends at the split point."""
        return self.members.legs_behind_tls + self.reference.nats[:, 1:]

    @cached_property
    def end(self) -> Floats:
        """Log-likelihoods by member of any way of being end to end."""
        return sum_nats(self.members.parts.T) + self.reference.nats[:, 0]

    @cached_property
    def crossing(self) -> Floats:
        """Log-likelihoods by group of splits whose legs everything crosses."""
        return self._split(self.legs, self.alike.legs)

    @cached_property
    def behind_tls(self) -> Floats:
        """The same where TLS ends at the split point."""
        return self._split(self.legs_behind_tls, self.alike.legs_behind_tls)

    def programs(self) -> Floats:
        """Log-likelihoods by group of programs that take as long as legs do before all that they say, each its own time
        or all the same, and close as late or at once, all alike; references cross no leg.

        Where no closes are weighed they are no likelier than a split, or a cache, that references do not cross:
        answers tell none from the others. Programs are thought of behind wires alone, which makes each of them a
        little more probable, and many members would prove what no answer shows."""
        if not self.priors.programs:
            return self._impossible
        end = self._end_to_end
        rows = slice(4 if self.priors.slow_handshakes and self._shaking.any() else 2)
        every = end._split(self.members.programs[rows] + end.reference.nats[:, 1:], self.alike.programs[rows])
        either: Floats = np.logaddexp(log(1 - _PROGRAMS_CLOSE) + every[::2], log(_PROGRAMS_CLOSE) + every[1::2])
        plain, *with_keys = either
        if not self.priors.closes:
            plain = np.minimum(plain, np.maximum.reduce([end.crossing, end.behind_tls, end.cached]))
        if not with_keys:
            return np.asarray(plain)
        keys = self.priors.slow_handshakes * self._shaking
        with np.errstate(divide="ignore"):  # no keys
            found: Floats = np.logaddexp(
                np.log1p(-keys) + plain, np.log(keys) + np.minimum(with_keys[0], end.slow_handshakes_behind())
            )
        return found

    def edges(self) -> Floats:
        """Log-likelihoods by group of several servers at one place that answer TLS handshakes, or what they hold, at
        once, and take their time for the rest, as edges of content networks that fetch it from afar do. They show what
        a split does where TLS ends, or a cache, but that references cross no leg."""
        if not (self.priors.edges and self._several.any()):
            return self._impossible
        end = self._end_to_end
        ending_tls = np.where(self._shaking, end.behind_tls, _NEVER)
        return np.where(self._several, np.maximum(ending_tls, end.cached), _NEVER)

    def slow_handshakes(self) -> Floats:
        """Log-likelihoods by group of machines that compute keys for as long as legs take before TLS handshake flights,
        each its own time or all the same; references cross no leg."""
        if not (self.priors.slow_handshakes and self._shaking.any()):
            return self._impossible
        end = self._end_to_end
        found = end._split(self.members.slow_handshakes + end.reference.nats[:, 1:], self.alike.slow_handshakes)
        return np.where(self._shaking, found, _NEVER)

    def slow_handshakes_behind(self) -> Floats:
        """The same behind a split point, whose leg all that they say and references cross."""
        if not (self.priors.slow_handshakes and self._shaking.any()):
            return self._impossible
        behind = self.members.slow_handshakes_behind + self.reference.nats[:, 1:]
        return np.where(self._shaking, self._split(behind, self.alike.slow_handshakes_behind), _NEVER)

    def front_share(self) -> Floats:
        """How often one front of a site stands before all servers of a group: as often as one does before one."""
        share = np.zeros(self.count)
        np.maximum.at(share, self.group, self.priors.fronts(self.members.speaks_web))
        return share

    def behind_one_front(self) -> Floats:
        """Log-likelihoods by group of one front of the site's before all servers, its prior included. It shows what a
        split in the network does, but that it answers references itself."""
        if not self.priors.balancer + self.priors.front_end:
            return self._impossible
        site = self._end_to_end
        of_front_ends = self.front_share() - self.priors.balancer
        with np.errstate(divide="ignore"):  # no front end
            either: Floats = np.logaddexp(
                log(self.priors.balancer) + site.crossing, np.log(of_front_ends) + site.behind_tls
            )
        return either

    @property
    def _end_to_end(self) -> Groups:
        """The same where references end where acknowledgements do; itself where references say nothing."""
        return self._where_references_cross_nothing if self.reference.nats.any() else self

    @cached_property
    def _where_references_cross_nothing(self) -> Groups:
        without = np.repeat(self.reference.nats[:, :1], self.reference.nats.shape[1], axis=1)
        return replace(self, reference=replace(self.reference, nats=without))

    def waiting(self, waiting: WaitingNats) -> Floats:
        """Log-likelihoods by group of splits whose handshakes wait for the far leg; a member of which acknowledgements
        show nothing looks as end to end, if any leg that shows is part of its handshake."""
        if not self.priors.connects_first:
            return self._impossible
        legs, end = self.members.legs_once_connected + self.reference.nats[:, 1:] + waiting.legs, self.end
        # Hosts are as far away with a split point as without it: a leg is some part of the handshake, none likelier.
        fits = end + waiting.legs[:, self.priors.shortest_s <= HIDDEN_S].max(axis=1)
        behind = np.where(waiting.known, self._any_that_shows(legs), fits)
        return self._own(behind, np.where(waiting.known, self._without_leg(legs), end))

    @cached_property
    def cached(self) -> Floats:
        """Log-likelihoods by group of caches before servers of which some answer both at once and late; of the others
        all answers were hits, or misses."""
        if self.hits is None or not self.hits.known.any():
            return self._impossible
        hits_and_misses = self._any_that_shows(self.hits.legs + self.reference.nats[:, 1:])
        one_sort = np.logaddexp(self._any_own_leg, self.end) - np.log(2.0)
        found = self._own(np.where(self.hits.known, hits_and_misses, one_sort), self._prompt_or_late)
        some = by_group(self.hits.known.astype(np.float64), self.group, self.count) > 0
        return np.where(some, found, _NEVER)

    def unsteady(self) -> Floats:
        """Log-likelihoods by group of splits whose legs, or hosts behind them, vary as much as hosts that are late do,
        each in its own way or all alike: so that the shapes in the tables refute no leg by themselves."""
        if not self.priors.unsteady:
            return self._impossible
        references = self.reference.nats[:, 1:] + LEG_NATS
        late = self.members.unsteady + self._any_that_shows(references)
        own = self._own(np.logaddexp(self._any_own_leg, late) - np.log(2.0), self._prompt_or_late)
        by_leg = self._references + LEG_NATS
        either: Floats = np.logaddexp(own, self.alike.unsteady + any_leg(by_leg)) - np.log(2.0)
        return either

    def behind_answered(self, behind: Floats) -> Floats:
        """Log-likelihoods by group of data that pass end to end behind something that answers handshakes: exchanges
        take the path behind it as they take a leg, and `behind` says what acknowledgements of data show of that path,
        by member and path."""
        passed = replace(self, reference=replace(self.reference, nats=self.reference.nats + behind))
        if not self.priors.unsteady:
            return passed.crossing
        either: Floats = np.logaddexp(
            log(1 - self.priors.unsteady) + passed.crossing, log(self.priors.unsteady) + passed.unsteady()
        )
        return either

    def _split(self, legs: Floats, common: Floats) -> Floats:
        """Legs of the members' own, or one leg that all have (`common`), as clients of one access network do."""
        shown = self._any_own_leg if legs is self.legs else self._any_that_shows(legs)
        own = self._own(shown, self._without_leg(legs))
        if not self.priors.common_leg:
            return own
        of_all = self._any_that_shows(common + self._references)
        either: Floats = np.logaddexp(log(1 - self.priors.common_leg) + own, log(self.priors.common_leg) + of_all)
        return either

    def _own(self, behind_leg: Floats, without_leg: Floats) -> Floats:
        """Members each behind a leg or, but for one, too near for one to show, as a share of them is."""
        count = np.bincount(self.group, minlength=self.count)
        every = [self._own_given(share, behind_leg, without_leg) for share in self.priors.too_short]
        some_shows = np.log1p(-np.mean([np.power(share, count) for share in self.priors.too_short], axis=0))
        own: Floats = np.logaddexp.reduce(every) - np.log(len(every)) - some_shows
        return own

    def _own_given(self, too_short: float, behind_leg: Floats, without_leg: Floats) -> Floats:
        """The same where this share is too near, and that one leg shows."""
        short = log(too_short) + without_leg
        either = np.logaddexp(log(1.0 - too_short) + behind_leg, short)
        every, none = (by_group(each, self.group, self.count) for each in (either, short))
        own: Floats = every + np.log1p(-np.exp(np.minimum(none - every, -1e-12)))
        return own

    @cached_property
    def _references(self) -> Floats:
        """What references say by group of one leg that all members have."""
        return legs_by_group(self.reference.nats[:, 1:], self.group, self.count)

    @property
    def _first_that_shows(self) -> int:
        """The first of `HIDDEN_S` that shows by itself."""
        return int(np.searchsorted(HIDDEN_S, self.priors.shortest_s))

    @cached_property
    def _any_own_leg(self) -> Floats:
        """Log-likelihoods by member of any leg that everything crosses, and that shows."""
        return self._any_that_shows(self.legs)

    def _any_that_shows(self, legs: Floats) -> Floats:
        any_that_shows: Floats = sum_nats(legs[..., self._first_that_shows :]) - np.log(len(HIDDEN_S))
        return any_that_shows

    def _without_leg(self, legs: Floats) -> Floats:
        """Log-likelihoods by member of no leg, or one that does not show."""
        without = self._prompt_or_late
        if hidden := self._first_that_shows:
            without = np.logaddexp(without, any_leg(legs[..., :hidden])) - np.log(2.0)
        return without

    @cached_property
    def _prompt_or_late(self) -> Floats:
        """Log-likelihoods by member without a leg, neither in the network nor inside the site."""
        return sum_nats(self.members.parts[:3].T) + self.reference.nats[:, 0]
