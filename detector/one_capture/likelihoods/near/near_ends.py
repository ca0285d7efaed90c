"""Where the transport ends: at one place for all hosts of a split network, at each host where nothing splits.

The least round trip of the transport to a member is the near leg's where a split point stands, and so the same for all
members but for what the path varies; end to end it is the path to that member.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from detector.one_capture.likelihoods.answered_handshakes import delayed_by_timers
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints
from detector.one_capture.senders.stacks import GroupStacks

#: Share of networks whose user speaks with hosts at one place only: a site, or caches near the user.
AT_ONE_PLACE = 0.3

#: The same where all hosts have addresses of one prefix, which is one operator's: assumed.
_PREFIX_AT_ONE_PLACE = 0.9

#: Of hosts elsewhere, the share that stand beside the nearest one all the same.
BESIDE_NEAREST = 0.1

#: Further away than the nearest host (s): log-uniform from what clocks and hosts blur to half around the world, and
#: uniform below.
_LEAST_S, _MOST_S = 0.0005, 0.3

#: Share of connections whose least round trip is off by anything: the member's path was slow when it was measured. All
#: connections of a member must be off for its least one to be; no share is below `_LEAST_OFF`.
_OFF, _LEAST_OFF = 0.02, 1e-6

#: Share of members with one connection whose least round trip is as far off as any single one. Of n connections it is
#: an n-th: behind 1,700 near ends of split points 4 % of members with two or three are further off than twice what the
#: path varies, 0.6 % of those with four to seven, and one of 350 with eight to fifteen (docs/decisions/115).
_ALL_SLOW = 0.3

#: What paths vary whose round trips are too few to tell (s), as a mobile cell does; but no more than they take.
UNKNOWN_VARIATION_S = 0.01

#: Nats that stacks may say for or against a split: a box may copy hop limits and options, and hosts may be of one make.
_MOST_BY_STACKS = 2.0

#: What the hosts' own times blur round trips by (s): interrupts, and an ACK that waits for the reader.
_BLUR_S = 0.001


def near_nats(
    near_s: Floats,
    variation_s: Floats,
    connections: Ints,
    stacks: GroupStacks | None,
    group: Ints,
    groups: int,
    *,
    timed: npt.NDArray[np.bool_] | bool = False,
    one_prefix: npt.NDArray[np.bool_] | bool = False,
) -> tuple[Floats, Floats]:
    """Log-likelihoods by group of its members' least round trips and stacks: end to end, and split.

    `near_s`, `variation_s` (how much round trips vary) and `connections` (that were measured) are by member, NaN where
    unknown; `group` ascends. Hosts at one place are one cause for equal round trips and for equal hop limits. Without
    `stacks` round trips speak alone. `timed` (by member) are those of acknowledgements that timers may delay; groups of
    `one_prefix` are of hosts that mostly stand at one place.
    """
    at_one_place, elsewhere = _place_nats(near_s, variation_s, connections, group, groups, timed)
    one_place = np.where(one_prefix, _PREFIX_AT_ONE_PLACE, AT_ONE_PLACE)
    end = _of_places(at_one_place, elsewhere, one_place)
    if stacks is None:
        return end, at_one_place
    both = _of_places(at_one_place + stacks.beside_nats, elsewhere + stacks.apart_nats, one_place)
    by_stacks = np.clip(stacks.box_nats + at_one_place - both - (at_one_place - end), -_MOST_BY_STACKS, _MOST_BY_STACKS)
    return end, at_one_place + by_stacks


def _place_nats(
    near_s: Floats,
    variation_s: Floats,
    connections: Ints,
    group: Ints,
    groups: int,
    timed: npt.NDArray[np.bool_] | bool,
) -> tuple[Floats, Floats]:
    """Log-likelihoods by group of how far its members' least round trips lie above the nearest member's: all at one
    place, and at places of their own. The arguments are those of `near_nats`."""
    known = np.flatnonzero(~np.isnan(near_s))
    nearest = np.full(groups, np.inf)
    np.minimum.at(nearest, group[known], near_s[known])
    further = known[near_s[known] > nearest[group[known]]]
    beyond_s = near_s[further] - nearest[group[further]]
    anywhere = 1 / (np.maximum(beyond_s, _LEAST_S) * (1 + np.log(_MOST_S / _LEAST_S)))
    off = np.maximum(_OFF ** np.maximum(connections[further], 1), _LEAST_OFF)
    unknown = np.isnan(variation_s[further])
    varies_s = np.where(unknown, np.minimum(UNKNOWN_VARIATION_S, nearest[group[further]]), variation_s[further])
    near = _beside(beyond_s, varies_s, connections[further])
    share, delayed = delayed_by_timers(beyond_s, _BLUR_S + varies_s)
    near = np.where(np.broadcast_to(timed, group.shape)[further], (1 - share) * near + share * delayed, near)
    beside = (1 - off) * near + off * anywhere
    apart = BESIDE_NEAREST * beside + (1 - BESIDE_NEAREST) * anywhere
    at_one_place, elsewhere = (
        np.bincount(group[further], np.log(density), groups).astype(np.float64) for density in (beside, apart)
    )
    return at_one_place, elsewhere


def _beside(beyond_s: Floats, variation_s: Floats, connections: Ints) -> Floats:
    """Density of how far a least round trip lies above the nearest one where both lead to one place.

    The least of several connections is nearer to what the path takes than one is, unless something slowed them all.
    """
    all_slow = all_slow_share(connections)
    blurs_s = (_BLUR_S + variation_s / np.maximum(connections, 1), _BLUR_S + variation_s)
    each = [np.exp(-beyond_s / blur_s) / blur_s for blur_s in blurs_s]
    density: Floats = (1 - all_slow) * each[0] + all_slow * each[1]
    return density


def all_slow_share(connections: Ints) -> Floats:
    """How often something slowed all of so many connections, so that their least round trip is as far off as one."""
    share: Floats = _ALL_SLOW / np.maximum(connections, 1)
    return share


def _of_places(at_one_place: Floats, elsewhere: Floats, share: Floats) -> Floats:
    """Log-likelihood of hosts end to end, whether they stand at one place, as a `share` does, or not."""
    either: Floats = np.logaddexp(np.log(share) + at_one_place, np.log(1 - share) + elsewhere)
    return either
