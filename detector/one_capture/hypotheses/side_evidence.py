"""What one side of a capture shows of its members, weighed to posteriors of groups and of connections."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.hypotheses.cached_answers import CacheNats, cache_nats
from detector.one_capture.hypotheses.member_nats import MemberNats, joined_members, member_nats
from detector.one_capture.hypotheses.moments import AnswerPairs, MomentNats, moment_nats
from detector.one_capture.hypotheses.natures import Paths
from detector.one_capture.hypotheses.posteriors import Posterior, any_reading, joined, posterior
from detector.one_capture.hypotheses.regular_looks import Clients, LooksNats
from detector.one_capture.hypotheses.splits import Groups
from detector.one_capture.hypotheses.sums import by_common_habit, by_group
from detector.one_capture.hypotheses.transport_nats import NearLegNats, TransportNats
from detector.one_capture.likelihoods.answered_handshakes import HandshakeNats
from detector.one_capture.likelihoods.closes import Closes, no_closes
from detector.one_capture.likelihoods.equal_members import equal_members
from detector.one_capture.likelihoods.exchange_nats import BinnedExchanges
from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.references.port_references import PortReferences
from detector.one_capture.likelihoods.references.reference_nats import ReferenceNats, no_references
from detector.one_capture.likelihoods.timing_tables import Floats, TimingTables, excess_bin
from detector.one_capture.likelihoods.unread_words import MOST_HANDSHAKES, reading
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats
from detector.one_capture.members import Ints, codes, numbered

#: Groups that are split more probably than this are asked whether their clients look for work at regular times.
_SUSPECT = 0.5

#: Groups that are split more probably than this, a tenth of what they are beforehand, are asked whether addresses are
#: several clients', where they have no more connections than that: each takes as much to weigh as a member.
_MAY_BE_SPLIT, _MOST_CONNECTIONS = 0.02, 512

_ALL = slice(None)

#: Members that are weighed at once: some ten kilobytes each.
_MEMBERS_TOGETHER = 4096


class Units(Struct, frozen=True):
    """What the exchanges of units say, kept once for all that say the same."""

    kinds: MemberNats
    kind: Ints
    moments: MomentNats | None = None  # by unit, see `MemberNats.with_moments`
    looks: LooksNats | None = None  # by unit, see `MemberNats.with_looks`

    def of(self, units: slice, priors: Priors) -> MemberNats:
        """Those of some units."""
        own = self.kinds.of(self.kind[units])
        if self.moments is not None:
            own = own.with_moments(self.moments.of(units))
        return own if self.looks is None else own.with_looks(self.looks.of(units), priors)

    def at(self, units: Ints, looks: LooksNats | None = None) -> Units:
        """Some units, with what their clients' looks say."""
        return Units(self.kinds, self.kind[units], None if self.moments is None else self.moments.of(units), looks)


class Crowd(Struct, frozen=True):
    """The connections of groups as if each were a client's of its own; `group` is that of each, and ascends. Of groups
    with very many there is none."""

    units: Units
    group: Ints

    def of(self, begin: int, end: int, alike: MemberNats, priors: Priors) -> Groups:
        """Those of a range of groups, whose members are also seen `alike`. References are addresses', not theirs."""
        inside = slice(*np.searchsorted(self.group, [begin, end]))
        group = self.group[inside] - begin
        return Groups(self.units.of(inside, priors), alike, no_references(len(group)), group, end - begin, priors)


class _Shown(Struct, frozen=True):
    """What clients show: their `units`, their groups `alike`, as if each were one unit, the `group` of each member, and
    what the `near_legs` of each group show."""

    clients: Clients
    units: Units
    alike: Units
    group: Ints
    near_legs: NearLegNats

    def of(self, suspects: Ints, members: Ints, group: Ints, *, looks: bool) -> tuple[Units, Units]:
        """The members of some groups, and these as if each were one unit; with what their looks say, if asked."""
        nats = self.clients.looks(members, group) if looks else None
        each = self.units.at(members, None if nats is None else LooksNats.of_gaps(nats))
        if len(suspects) == len(members):
            return each, each
        summed = None if nats is None else by_group(nats, group, len(suspects))
        return each, self.alike.at(suspects, None if summed is None else LooksNats.of_gaps(summed))


class SideEvidence(Struct, frozen=True):
    """What a side shows of its members, to be weighed by group or by connection.

    What is weighed is a *unit*: a member, a group as if it were one member, or a connection.
    """

    tables: TimingTables
    timing: ExchangeTiming
    closes: Closes
    variation: Ints  # class of the round trips of each member's group
    reference: ReferenceNats
    ports: PortReferences
    handshakes: HandshakeNats
    waiting: WaitingNats
    moments: AnswerPairs | None  # of clients' answers; None of servers', as what follows
    clients: Clients | None
    priors: Priors
    tls_answers: int = 0  # so many first answers of connections that cannot be read belong to TLS handshakes

    def weighed(self, group: Ints, groups: int, near_legs: NearLegNats) -> Posterior:
        """The posterior of groups; `group` is that of each member, ascending, `near_legs` what theirs show."""
        return any_reading([each._weighed(group, groups, near_legs) for each in self._readings()], group)

    def _readings(self) -> list[SideEvidence]:
        """The same by each way in which connections can be read whose words were not captured."""
        several = bool(self.timing.unread.any())
        return [replace(self, tls_answers=answers) for answers in range(1 + MOST_HANDSHAKES * several)]

    def _weighed(self, group: Ints, groups: int, near_legs: NearLegNats) -> Posterior:
        """The same read in one way."""
        unit, closing, member = self.timing.member, self.closes.member, np.arange(len(group))
        units = self._units(unit, self.variation, self.closes, closing, habits=bool(self.timing.at_once.any()))
        units = self._in_moments(units, unit)
        alike = units
        if groups < len(group):
            variation = self.variation[np.searchsorted(group, np.arange(groups))]
            alike = self._units(group[unit], variation, self.closes, group[closing])
            alike = self._in_moments(alike, group[unit])
        cached = None
        if self.priors.caches:
            paths = _paths(self.tables, self.variation)
            cached = cache_nats(
                self.tables, self.timing, unit, self.timing.variation_s, self.variation, paths,
                steady=self.priors.steady_application,
            )  # fmt: skip
        found = self._posterior(units, alike, member, group, groups, near_legs, cached)
        if self.clients is None:
            return found
        shown = _Shown(self.clients, units, alike, group, near_legs)
        found = self._given(found, found.split > _MAY_BE_SPLIT, shown, looks=False)
        return self._given(found, found.split > _SUSPECT, shown, looks=True)

    def _given(self, found: Posterior, suspect: npt.NDArray[np.bool_], shown: _Shown, *, looks: bool) -> Posterior:
        """The posterior `found` of groups, given of those that are `suspect` that an address may be several clients',
        and with `looks` whether clients look for work at regular times."""
        (suspects,) = np.nonzero(suspect)
        (members,) = np.nonzero(np.isin(shown.group, suspects))
        if not len(members):
            return found
        group = np.searchsorted(suspects, shown.group[members])
        each, together = shown.of(suspects, members, group, looks=looks)
        crowd = self._crowd(shown.clients.member, members, group, len(suspects))
        near_legs = shown.near_legs.of(suspects)
        given = self._posterior(each, together, members, group, len(suspects), near_legs, crowd=crowd)
        return found.replaced(given, suspects, members)

    def _crowd(self, member: Ints, members: Ints, group: Ints, groups: int) -> Crowd | None:
        """The connections of these `members`, which ascend, of groups; `member` is that of each connection. None where
        all groups have very many."""
        (connection,) = np.nonzero(np.isin(member, members))
        of_group = group[np.searchsorted(members, member[connection])]
        (few,) = np.nonzero(np.bincount(of_group, minlength=groups)[of_group] <= _MOST_CONNECTIONS)
        if not len(few):
            return None
        order = few[np.argsort(of_group[few], kind="stable")]
        connection, of_group = connection[order], of_group[order]
        place = np.full(len(member), -1)
        place[connection] = np.arange(len(connection))
        both = self.timing.connection, self.closes.connection
        exchanges, closing = (np.flatnonzero(place[each] >= 0) for each in both)
        closes = Closes(*(getattr(self.closes, name)[closing] for name in Closes.__struct_fields__))
        units = self._units(
            place[self.timing.connection[exchanges]], self.variation[member[connection]], closes,
            place[closes.connection], exchanges=exchanges,
        )  # fmt: skip
        return Crowd(units, of_group)

    def weighed_alone(self, member: Ints) -> tuple[Posterior, Ints]:
        """The posterior of connections each by itself, once for all of a member that show the same, and which is that
        of each connection; `member` is that of each. One close of one connection tells little, and is left out."""
        readings = [each._weighed_alone(member) for each in self._readings()]
        kind = readings[0][1]
        return any_reading([found for found, _ in readings], np.arange(len(readings[0][0].split))), kind

    def _weighed_alone(self, member: Ints) -> tuple[Posterior, Ints]:
        """The same read in one way."""
        closes = no_closes()
        units = self._units(self.timing.connection, self.variation[member], closes, closes.member)
        kind, first = numbered([units.kind, member])
        once, member, alone = Units(units.kinds, units.kind[first]), member[first], np.arange(len(first))
        near_legs = NearLegNats.nothing(self.timing.near_s[member], at_client=self.clients is None)
        return self._posterior(once, once, member, alone, len(first), near_legs), kind

    def _posterior(
        self,
        units: Units,
        alike: Units,
        member: Ints,
        group: Ints,
        groups: int,
        near_legs: NearLegNats,
        cached: CacheNats | None = None,
        crowd: Crowd | None = None,
    ) -> Posterior:
        """The posterior of groups by what their units, and they as if each were one unit, show; and what a `crowd`
        does."""
        parts = []
        weighed = group if crowd is None else np.sort(np.concatenate([group, crowd.group]))
        for begin, end in _together(weighed, groups):
            inside = slice(*np.searchsorted(group, [begin, end]))
            of_part, count = group[inside] - begin, end - begin
            transport = self._transport(member[inside], of_part, count, near_legs.of(slice(begin, end)))
            members, alone = units.of(inside, self.priors), alike.of(slice(begin, end), self.priors)
            here = Groups(members, alone, self.reference.of(member[inside]), of_part, count, self.priors)
            hits = None if cached is None else cached.of(inside)
            behind = self.handshakes.behind(member[inside])
            waiting, ports = self.waiting.of(member[inside]), self.ports.of(member[inside])
            clients = None if crowd is None else crowd.of(begin, end, alone, self.priors)
            parts.append(posterior(here, transport, waiting, behind, hits, ports, clients))
        return joined(parts)

    def _in_moments(self, units: Units, unit: Ints) -> Units:
        """What they say with what their answers of one moment do."""
        if self.moments is None:
            return units
        return replace(units, moments=moment_nats(self.moments, unit, len(units.kind)))

    def _units(
        self,
        unit: Ints,
        variation: Ints,
        closes: Closes,
        close_unit: Ints,
        *,
        exchanges: Ints | slice = _ALL,
        habits: bool = False,
    ) -> Units:
        """What the exchanges and `closes` of each unit say; `unit` is that of each of the `exchanges`, `close_unit`
        that of each close, `variation` the class of each unit. With `habits` by habits of split points, too."""
        tables, timing = self.tables, self.timing
        unit = np.concatenate([unit, close_unit])
        kind = np.concatenate([timing.kind[exchanges], closes.kind])
        weight = np.concatenate([timing.weight[exchanges], closes.weight])
        bins = np.concatenate([timing.bins[exchanges], excess_bin(closes.excess_s)])
        at_once = np.concatenate([timing.at_once[exchanges], np.zeros(len(closes.kind), np.bool_)]) & habits
        unread = np.concatenate([timing.unread[exchanges], np.zeros(len(closes.kind), np.int64)])
        equal = equal_members(unit, codes([kind, bins, weight, at_once, unread]), variation)
        is_first = np.zeros(len(variation), np.bool_)
        is_first[equal.first] = True
        order = np.flatnonzero(is_first[unit])
        order = order[np.argsort(equal.kind[unit[order]], kind="stable")]
        of_kind = equal.kind[unit[order]]
        found = []
        together = _MEMBERS_TOGETHER // len(tables.by_habit) if habits else _MEMBERS_TOGETHER
        for start in range(0, max(len(equal.first), 1), together):
            stop = min(start + together, len(equal.first))
            inside = slice(*np.searchsorted(of_kind, [start, stop]))
            rows, classes = order[inside], variation[equal.first[start:stop]]
            of_unit = of_kind[inside] - start
            read = reading(kind[rows], unread[rows], self.tls_answers)
            binned = BinnedExchanges(of_unit, read, classes[of_unit], bins[rows], weight[rows], stop - start)
            paths, opening = _paths(tables, classes), at_once[rows] if habits else None
            found.append(self._member_nats(binned, paths, opening))
        return Units(joined_members(found), equal.kind)

    def _member_nats(self, binned: BinnedExchanges, paths: Paths, opening: npt.NDArray[np.bool_] | None) -> MemberNats:
        """What exchanges and closes of units say by themselves; by habits of split points, too, where it is known which
        exchanges are asked as their connections are `opening`."""
        if opening is None:
            return member_nats(binned.once().nats(self.tables), binned.speaks_web, self.priors, paths)
        nats, first = binned.of(~opening).once().nats(self.tables), binned.of(opening).once()
        usual, *behind = (first.nats(each) for each in self.tables.by_habit)
        every = nats.and_of(usual)
        by_habit = [every, *(nats.behind.and_of(each) for each in behind)]
        return member_nats(every, binned.speaks_web, self.priors, paths, by_habit)

    def _transport(self, member: Ints, group: Ints, groups: int, near_legs: NearLegNats) -> TransportNats:
        """What the transport shows of groups: their `near_legs`, and their members' handshakes."""
        of = self.handshakes
        as_fast = by_common_habit(of.habit_nats, of.as_fast[:, member], group, groups)
        same, other = (_of_one_box(each[:, member], group, groups) for each in (of.same_sender, of.other_sender))
        end, split = near_legs.end, near_legs.split
        either = np.maximum(end, split)
        return TransportNats(
            end=end + as_fast + same,
            split=split + as_fast + same,
            holding=either + same,
            handshakes_answered=either + other,
            connects_first=near_legs.connects_first + as_fast + same,
            programs=near_legs.programs + as_fast + same,
            slow_handshakes=near_legs.slow_handshakes + as_fast + same,
            edges=near_legs.edges + as_fast + same,
            one_front=near_legs.one_front + as_fast + same,
        )


def _paths(tables: TimingTables, classes: Ints) -> Paths:
    """What is known beforehand of paths of these classes of variation."""
    return Paths(tables.nature_nats[classes], tables.end_nature_nats[classes], tables.shift_nats[classes])


def _together(group: Ints, groups: int) -> Iterator[tuple[int, int]]:
    """Ranges of groups that are weighed at once: their members, or one group that is larger."""
    first = 0
    while first < groups:
        begin = int(np.searchsorted(group, first))
        last = groups
        if begin + _MEMBERS_TOGETHER < len(group):
            last = max(int(group[begin + _MEMBERS_TOGETHER]), first + 1)
        yield first, last
        first = last


def _of_one_box(signs: Floats, group: Ints, groups: int) -> Floats:
    """Log-likelihoods by group of what its members show of who answers handshakes, by sign (rows) and member: one box
    answers for all, so that each sign counts once."""
    shown = [(by_group(each, group, groups), by_group((each != 0).astype(np.float64), group, groups)) for each in signs]
    once: Floats = np.sum([nats / np.maximum(members, 1) for nats, members in shown], axis=0)
    return once
