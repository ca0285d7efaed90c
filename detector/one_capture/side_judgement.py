"""One side of a capture judged: timing, near ends and references to posteriors of groups, members and connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.classes import LEAST_SPLIT, LEAST_WHOLE
from detector.one_capture.columns import VantageColumns, selected
from detector.one_capture.hypotheses.alike_ports import networks_of, open_networks, with_alike_ports, without_ports
from detector.one_capture.hypotheses.beside_exchanges import Beside, of_clients, of_servers
from detector.one_capture.hypotheses.cached_answers import CacheNats, cache_nats
from detector.one_capture.hypotheses.member_nats import MemberNats, Paths, joined_members, member_nats
from detector.one_capture.hypotheses.moments import AnswerPairs, MomentNats, answer_pairs, moment_nats
from detector.one_capture.hypotheses.posteriors import Posterior, Seen, joined, posterior
from detector.one_capture.hypotheses.regular_looks import Clients, LooksNats
from detector.one_capture.hypotheses.splits import Groups
from detector.one_capture.hypotheses.sums import by_common_habit, by_group
from detector.one_capture.likelihoods.answered_handshakes import Acknowledged, HandshakeNats, handshake_nats
from detector.one_capture.likelihoods.client_stacks import client_stack_nats
from detector.one_capture.likelihoods.closes import Closes, closes, last_round_trips_s, no_closes
from detector.one_capture.likelihoods.equal_members import equal_members
from detector.one_capture.likelihoods.exchange_nats import exchange_nats
from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming, exchange_timing
from detector.one_capture.likelihoods.legs import common_leg_nats
from detector.one_capture.likelihoods.other_ports import Shares, with_other_ports
from detector.one_capture.likelihoods.priors import PRIORS, Priors
from detector.one_capture.likelihoods.reference_nats import ReferenceNats, reference_nats
from detector.one_capture.likelihoods.timing_tables import Floats, TimingTables, excess_bin, timing_tables
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats, waiting_nats
from detector.one_capture.members import Ints, codes, numbered, quantiles
from detector.one_capture.networks import NetworkTable, Places, come_one_way, places
from detector.one_capture.senders.handshake_clocks import lagging_share
from detector.one_capture.senders.handshakes import handshake_signs, member_handshakes
from detector.one_capture.senders.stacks import asked_alike, form_codes, group_stacks
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import GroupSide

#: Shares below this one are none.
_LEAST_SHARE = 1e-300

#: Groups that are split more probably than this are asked whether their clients look for work at regular times.
_SUSPECT = 0.5

#: Members that are weighed at once: some ten kilobytes each.
_MEMBERS_TOGETHER = 4096


class SideJudgement(Struct, frozen=True):
    """Posteriors on one side; `groups` has an element a group and legs by member, `alone` one for each kind of
    connection: those of one member whose exchanges say the same. `connection_kind` is that of each connection."""

    side: GroupSide
    servers: Sequence[str]  # of the connections
    places: Places
    timing: ExchangeTiming
    variation_s: Floats  # by group
    reference_s: Floats  # by member, NaN without
    near_nats: Floats  # by group: of the members' near ends (of clients: how they vary, and their stacks), for one box
    stack_nats: Floats  # by group: of clients' stacks alone; 0 for servers
    groups: Posterior
    alone: Posterior
    connection_kind: Ints
    comes_one_way: npt.NDArray[np.bool_]  # by group: see `networks.come_one_way`; of servers never


def judge_side(vantage: VantageColumns, side: GroupSide, table: NetworkTable) -> SideJudgement:
    """Weigh everything that the captures of a vantage point show of the far hosts on this side."""
    at_client = side is GroupSide.CLIENT
    judged = _judge(vantage, side, places(vantage.columns, at_client=at_client, table=table))
    return _by_alike_ports(judged, vantage, table) if at_client else judged


def _by_alike_ports(judged: SideJudgement, vantage: VantageColumns, table: NetworkTable) -> SideJudgement:
    """The same, given what a network's ports show together where one of several is open."""
    where, priors = judged.places, PRIORS[judged.side]
    answered = np.bincount(where.member_group[judged.timing.member], minlength=len(where.network)) > 0
    network = networks_of(where)
    weighed = open_networks(judged.groups.split, answered, network, (1 - LEAST_WHOLE[judged.side], LEAST_SPLIT))
    if not len(weighed):
        return judged
    of_weighed = np.flatnonzero(np.isin(network[where.group], weighed))
    part = selected(vantage, of_weighed, np.ones(len(vantage.references), np.bool_))
    alike = _judge(part, judged.side, places(without_ports(part.columns), at_client=True, table=table), each=False)
    together = np.full(int(network.max()) + 1, np.nan)
    together[weighed] = alike.groups.split
    return replace(judged, groups=with_alike_ports(judged.groups, answered, network, together, priors.split))


def _judge(vantage: VantageColumns, side: GroupSide, where: Places, *, each: bool = True) -> SideJudgement:
    """Weigh these groups, and unless not `each` connection by itself, which is then as its group is."""
    at_client = side is GroupSide.CLIENT
    far = Direction.DOWN if at_client else Direction.UP
    used = np.ones(len(where.member), np.bool_)
    timing = exchange_timing(vantage.exchanges, where, used, at_client=at_client)
    groups, members = len(where.network), len(where.member_group)
    variation_s = timing.of_groups(timing.variation_s, where.member_group, groups)
    steady_s = variation_s
    if at_client:  # a path varies as its handshakes do; first data may wait for the handshake of who answers SYNs
        steady_s = np.fmin(steady_s, timing.of_groups(timing.handshake_variation_s, where.member_group, groups))
    measured = np.bincount(where.member, minlength=members)
    shown = _Shown(
        timing_tables(side), timing, no_closes() if at_client else closes(vantage.columns, where, timing),
        timing_tables(side).variation_class(variation_s)[where.member_group],
        reference_nats(vantage.references, where, timing),
        handshake_nats(
            _acknowledged(timing, None if at_client else last_round_trips_s(vantage.columns), where.member),
            steady_s[where.member_group], *_other_sender_shares(vantage, where, far, timing.handshake_s), side,
        ),
        waiting_nats(timing.handshake_s, timing.plain_s, steady_s[where.member_group], measured),
        None if at_client else answer_pairs(timing, vantage.exchanges.question_ns[timing.row]),
        None if at_client else Clients(vantage.exchanges, vantage.columns, where.member, timing.base_s),
        PRIORS[side],
    )  # fmt: skip
    form, of_stacks = form_codes(vantage.senders, vantage.columns, far), np.zeros(groups)
    if at_client:
        hop_limit = vantage.senders.hop_limit[far.value :: 2].astype(np.int64)
        form = asked_alike(
            form, form_codes(vantage.senders, vantage.columns, Direction.UP), where.member, where.member_group
        )
        stacks = group_stacks(form, hop_limit, where.member, where.member_group, groups)
        beside = of_servers(timing, variation_s, shown.waiting, measured, stacks, where.member_group)
    else:
        answered = np.bincount(where.member_group[timing.member], minlength=groups) > 0
        of_stacks = answered * client_stack_nats(vantage.senders, form, where.member_group[where.member], groups)
        beside = of_clients(vantage, where, timing, variation_s, answered, of_stacks)
    every = np.arange(members)
    of_groups = shown.weighed(timing.member, every, where.member_group, groups, beside)
    if not at_client:
        of_groups = _by_other_ports(of_groups, answered, where, PRIORS[side])
    shown = replace(shown, closes=no_closes())  # one close of one connection tells little
    alone, kind = shown.weighed_alone(timing.connection, where.member) if each else (of_groups, where.group)
    return SideJudgement(
        side, vantage.servers, where, timing, variation_s, shown.reference.round_trip_s, beside.split - beside.end,
        of_stacks, of_groups, alone, kind,
        np.zeros(groups, np.bool_) if at_client else come_one_way(vantage.columns, where),
    )  # fmt: skip


def _by_other_ports(groups: Posterior, answered: npt.NDArray[np.bool_], where: Places, priors: Priors) -> Posterior:
    """The posteriors of groups, given those of the other ports of their networks."""
    parts = {
        "split": ("split", "site"),
        "late": ("late", "fleet"),
        "rest": ("end", "handshakes_answered", "holding"),
    }
    network = np.unique(where.network, return_inverse=True)[1]
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


def _acknowledged(timing: ExchangeTiming, closing_s: Floats | None, member: Ints) -> Acknowledged:
    """The least round trips of members; `closing_s` are those of the ends of connections, which nothing delays."""
    found = Acknowledged(timing.handshake_s, timing.prompt_s, timing.plain_s, timing.data_s)
    if closing_s is None:
        return found
    last_s = quantiles(closing_s, member, len(timing.near_s), 0.0)
    of_data = {name: np.fmin(getattr(found, name), last_s) for name in ("prompt_s", "plain_s", "data_s")}
    return replace(found, **of_data)


class _Units(Struct, frozen=True):
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

    def at(self, units: Ints) -> _Units:
        """Some units."""
        return _Units(self.kinds, self.kind[units], None if self.moments is None else self.moments.of(units))


class _Shown(Struct, frozen=True):
    """What a side shows of its members, to be weighed by group or by connection."""

    tables: TimingTables
    timing: ExchangeTiming
    closes: Closes
    variation: Ints  # class of each member's group
    reference: ReferenceNats
    handshakes: HandshakeNats
    waiting: WaitingNats
    moments: AnswerPairs | None  # of clients' answers
    clients: Clients | None  # at the server's side
    priors: Priors

    def weighed(self, unit: Ints, member: Ints, group: Ints, groups: int, beside: Beside) -> Posterior:
        """The posterior of groups of units; `unit` is that of each exchange, `member` and `group` those of each unit,
        `beside` what else is seen of each group."""
        units = self._in_moments(self._units(unit, self.variation[member], self.closes.member), unit)
        alike = units
        if groups < len(group):
            first = np.searchsorted(group, np.arange(groups))
            alike = self._units(group[unit], self.variation[member[first]], group[self.closes.member])
            alike = self._in_moments(alike, group[unit])
        cached = None
        if self.priors.caches:
            classes = self.variation[member]
            varies_s = self.timing.variation_s[member]
            cached = cache_nats(self.tables, self.timing, unit, varies_s, classes, _paths(self.tables, classes))
        found = self._posterior(units, alike, member, group, groups, beside, cached)
        return found if self.clients is None else self._given_looks(self.clients, found, units, alike, group, beside)

    def _given_looks(
        self, clients: Clients, found: Posterior, units: _Units, alike: _Units, group: Ints, beside: Beside
    ) -> Posterior:
        """The posterior of groups of members, given of those that seem split whether their clients look for work at
        regular times."""
        (suspects,) = np.nonzero(found.split > _SUSPECT)
        (members,) = np.nonzero(np.isin(group, suspects))
        if not len(members):
            return found
        of_suspect = np.searchsorted(suspects, group[members])
        nats = clients.looks(members, of_suspect)
        given = replace(units.at(members), looks=LooksNats.of_gaps(nats))
        of_all = given
        if len(suspects) < len(members):
            all_nats = by_group(nats, of_suspect, len(suspects))
            of_all = replace(alike.at(suspects), looks=LooksNats.of_gaps(all_nats))
        return found.replaced(
            self._posterior(given, of_all, members, of_suspect, len(suspects), beside.of(suspects)), suspects, members
        )

    def weighed_alone(self, unit: Ints, member: Ints) -> tuple[Posterior, Ints]:
        """The posterior of units each by itself, once for all of a member that show the same, and which is that of each
        unit."""
        units = self._units(unit, self.variation[member], no_closes().member)
        kind, first = numbered([units.kind, member])
        once, alone, nothing = _Units(units.kinds, units.kind[first]), np.arange(len(first)), np.zeros(len(first))
        return self._posterior(once, once, member[first], alone, len(first), Beside(nothing, nothing, nothing)), kind

    def _posterior(
        self,
        units: _Units,
        alike: _Units,
        member: Ints,
        group: Ints,
        groups: int,
        beside: Beside,
        cached: CacheNats | None = None,
    ) -> Posterior:
        """The posterior of groups by what their units, and they as if each were one unit, show."""
        parts = []
        for begin, end in _together(group, groups):
            inside = slice(*np.searchsorted(group, [begin, end]))
            of_part, count = group[inside] - begin, end - begin
            seen = self._seen(member[inside], of_part, count, beside.of(slice(begin, end)))
            members, alone = units.of(inside, self.priors), alike.of(slice(begin, end), self.priors)
            here = Groups(members, alone, self.reference.of(member[inside]), of_part, count, self.priors)
            hits = None if cached is None else cached.of(inside)
            behind = self.handshakes.behind(member[inside])
            parts.append(posterior(here, seen, self.waiting.of(member[inside]), behind, hits))
        return joined(parts)

    def _in_moments(self, units: _Units, unit: Ints) -> _Units:
        """What they say with what their answers of one moment do."""
        if self.moments is None:
            return units
        return replace(units, moments=moment_nats(self.moments, unit, len(units.kind)))

    def _units(self, unit: Ints, variation: Ints, close_unit: Ints) -> _Units:
        """What the exchanges and closes of each unit say; `variation` is the class of each unit."""
        tables, timing, closes = self.tables, self.timing, self.closes
        unit = np.concatenate([unit, close_unit])
        kind = np.concatenate([timing.kind, closes.kind])
        weight = np.concatenate([timing.weight, closes.weight])
        excess_s = np.concatenate([timing.excess_s, closes.excess_s])
        bins = np.concatenate([timing.bins, excess_bin(closes.excess_s)])
        equal = equal_members(unit, codes([kind, bins, weight]), variation)
        is_first = np.zeros(len(variation), np.bool_)
        is_first[equal.first] = True
        order = np.flatnonzero(is_first[unit])
        order = order[np.argsort(equal.kind[unit[order]], kind="stable")]
        of_kind = equal.kind[unit[order]]
        found = []
        for start in range(0, max(len(equal.first), 1), _MEMBERS_TOGETHER):
            stop = min(start + _MEMBERS_TOGETHER, len(equal.first))
            inside = slice(*np.searchsorted(of_kind, [start, stop]))
            rows, classes = order[inside], variation[equal.first[start:stop]]
            of_unit = of_kind[inside] - start
            nats = exchange_nats(
                tables, of_unit, kind[rows], classes[of_unit], excess_s[rows], weight[rows], stop - start
            )
            found.append(member_nats(nats, self.priors, _paths(tables, classes)))
        return _Units(joined_members(found), equal.kind)

    def _seen(self, member: Ints, group: Ints, groups: int, beside: Beside) -> Seen:
        """What is seen of groups beside their exchanges: `beside`, and what their members' handshakes say."""
        of = self.handshakes
        as_fast = by_common_habit(of.habits, of.as_fast[:, member], group, groups)
        same, other = (_of_one_box(each[:, member], group, groups) for each in (of.same_sender, of.other_sender))
        end, split = beside.end, beside.split
        either = np.maximum(end, split)
        return Seen(
            end=end + as_fast + same,
            split=split + as_fast + same,
            holding=either + same,
            handshakes_answered=either + other,
            connects_first=beside.waits + as_fast + same,
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


def _other_sender_shares(
    vantage: VantageColumns, where: Places, far: Direction, handshake_s: Floats
) -> tuple[Floats, Floats]:
    """By member: the shares of its handshakes that another sender made, by hop limits and windows, and by timestamps,
    which tell at the clients' side alone."""
    signs = handshake_signs(vantage.senders, vantage.exchanges.round_trips, far)
    members = len(where.member_group)
    nothing = np.full(members, np.nan)
    moved = member_handshakes(signs, np.full(len(where.member), np.nan), nothing, where.member, members).answered_share
    if far is Direction.UP:
        return moved, nothing
    return moved, lagging_share(vantage.senders, handshake_s, far, where.member, members)
