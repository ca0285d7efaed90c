"""What the transport shows of groups, beside the exchanges of their members: near legs and handshakes.

Of servers near legs tell by where they end and whose stack ends them; of clients by how their round trips vary, by the
slowest link, the stacks that made the SYNs, and when first words come.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.columns import VantageColumns
from detector.one_capture.likelihoods.exchange_timing import ExchangeTiming
from detector.one_capture.likelihoods.near.near_ends import AT_ONE_PLACE, near_nats
from detector.one_capture.likelihoods.near.near_links import group_link_nats
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.likelihoods.waiting_handshakes import WaitingNats
from detector.one_capture.members import Ints
from detector.one_capture.networks import Places
from detector.one_capture.senders.first_words import first_words_s, group_words_nats
from detector.one_capture.senders.near_variation import near_variation_nats
from detector.one_capture.senders.stacks import GroupStacks
from pepscope.captures.packets import Direction

#: Servers whose near legs are no longer than this (s) stand in the data centre or region of their client.
_ONE_SITE_S = 0.002

#: No wire between a server and a split point has a longer round trip (s), half around the world and back: the near leg
#: crosses a satellite, behind which few split points stand with more than a room between them and the client (nats).
_LONGEST_WIRE_S, _SATELLITE_NATS = 0.4, -4.0


class NearLegNats(Struct, frozen=True):
    """Log-likelihoods by group of what its near legs show, a column a hypothesis; those of members are `MemberNats`."""

    end: Floats  # end to end
    split: Floats  # behind a split in the network
    connects_first: Floats  # behind a split whose handshakes cross the hidden leg: they wait for it, or pass
    programs: Floats  # end to end, and programs that take as long as a leg stand where split points do
    slow_handshakes: Floats  # end to end, and libraries compute keys for as long as a leg takes
    edges: Floats  # end to end, and servers are edges at one place
    one_front: Floats  # behind one front of all servers, which stands where split points do

    def of(self, groups: slice | Ints) -> NearLegNats:
        """Those of some groups."""
        return NearLegNats(*(getattr(self, name)[groups] for name in NearLegNats.__struct_fields__))

    @classmethod
    def nothing(cls, near_s: Floats, *, at_client: bool) -> NearLegNats:
        """Nothing is seen but how long near legs are: of one server that takes as long as a leg the members' priors
        tell (`Priors.steady_application`), unless it stands beside its client."""
        nothing, never = np.zeros(len(near_s)), np.full(len(near_s), -np.inf)
        programs = np.where(near_s < _ONE_SITE_S, 0.0, -np.inf) if at_client else nothing
        return cls(nothing, nothing, nothing, programs, programs, never, never)


class TransportNats(Struct, frozen=True):
    """Log-likelihoods by group of what near legs and handshakes show together, a column a hypothesis: as
    `NearLegNats`, and those that handshakes alone tell from the others."""

    end: Floats
    split: Floats
    holding: Floats  # behind a split that holds its acknowledgements back
    handshakes_answered: Floats  # end to end, and something answers handshakes
    connects_first: Floats
    programs: Floats
    slow_handshakes: Floats
    edges: Floats
    one_front: Floats


def near_legs_of_servers(
    timing: ExchangeTiming,
    variation_s: Floats,
    waiting: WaitingNats,
    stacks: GroupStacks,
    where: Places,
) -> NearLegNats:
    """What servers' near ends say of groups.

    Timers may delay acknowledgements where nothing else shows a near end: of hosts whose handshakes were not captured,
    and where handshakes wait for the far leg, since SYN-ACKs may then be the servers'.
    """
    groups, group = len(variation_s), where.member_group
    answering = np.bincount(timing.member, minlength=len(group)) > 0
    one_prefix = where.in_one_prefix(answering)
    handshakes_vary_s = timing.of_groups(timing.handshake_variation_s, group, groups)
    varies_s = np.fmax(variation_s, handshakes_vary_s)[group]
    undelayed_s = np.fmin(np.where(np.isnan(timing.handshake_s), np.nan, timing.near_s), timing.prompt_s)
    near_s, delayed = np.where(np.isnan(undelayed_s), timing.plain_s, undelayed_s), np.isnan(undelayed_s)
    end, split = near_nats(
        near_s, varies_s, timing.timed_connections, stacks, group, groups, timed=delayed, one_prefix=one_prefix
    )
    plain_s = np.where(waiting.known, timing.plain_s, np.nan)
    own, one = near_nats(
        plain_s, varies_s, timing.timed_connections, None, group, groups, timed=True, one_prefix=one_prefix
    )
    # That all servers are programs which take as long as legs, or such libraries, has a common cause at one site or in
    # one organisation; programs also where several stand at one place, as in a region of a cloud; else each its own.
    at_one_site = one_prefix | where.are_private(answering)
    at_one_site |= timing.of_groups(timing.near_s, group, groups) < _ONE_SITE_S
    machines, one_front = (np.where(is_so, split, -np.inf) for is_so in (at_one_site, one_prefix))
    several = np.bincount(group[answering], minlength=groups) > 1
    elsewhere = np.where(several, split + np.log(AT_ONE_PLACE), -np.inf)
    programs = np.where(at_one_site, split, elsewhere)
    return NearLegNats(end, split, end + one - own, programs, machines, split, one_front)


def near_legs_of_clients(
    vantage: VantageColumns,
    where: Places,
    timing: ExchangeTiming,
    variation_s: Floats,
    answered: npt.NDArray[np.bool_],
    of_stacks: Floats,
) -> NearLegNats:
    """What the near leg of clients says of groups that `answered` anything, given what their stacks do (`of_stacks`).

    `variation_s` is by group.
    """
    near_s = timing.of_groups(timing.near_s, where.member_group, len(variation_s))
    of_times = np.where(near_s > _LONGEST_WIRE_S, _SATELLITE_NATS, near_variation_nats(variation_s))
    network = np.unique(where.network, return_inverse=True)[1]
    of_links = group_link_nats(vantage.senders, Direction.UP.value, where.group, network, variation_s)
    of_words = answered * group_words_nats(first_words_s(vantage.exchanges, vantage.columns), where.group, variation_s)
    nothing = np.zeros(len(variation_s))
    # Where handshakes pass, so do SYNs and first words: both are the clients' own.
    of_path = answered * (of_times + of_links)
    no_front = np.full(len(variation_s), -np.inf)
    return NearLegNats(
        nothing, of_path + of_stacks + of_words, of_path, of_path + of_words, of_path, no_front, no_front
    )
