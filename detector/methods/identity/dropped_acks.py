"""Places of pure acknowledgements at both ends: one receiver's, seen through lossy captures, or two stacks' own?

Each end of a data segment is a place where a pure acknowledgement may stand. End to end, the receiver puts one there
with some density; its own capture may lack some of them, and so may the far one. A relay acknowledges at places of its
own. A capture from which acknowledgements were dropped (a filter, a tool that kept one in so many) explains the same
differences as a relay, so how much they can say is bounded by how rare such captures are: one that lacks its own host's
acknowledgements lacks those of the far host, too, unless it was made to drop one direction's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from msgspec import Struct

from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.verdicts import FloatArray

#: What is believed of a capture's losses before looking, as so many segments of which so many were lost: captures of
#: busy machines lose up to some percent, and of few packets in sight none need be missing.
PRIOR_SEGMENTS, PRIOR_LOST = 20.0, 1.0
#: One capture in ten lacks acknowledgements, one in five thousand those of its own host alone, for which no filter is
#: known; on one path in twenty something thins them in one direction (RFC 3449, 5.2.2, on links of unequal rates).
#: Orders of magnitude.
DROPS_ACKS, DROPS_OWN_ACKS, PATH_THINS = 0.1, 0.0002, 0.05
#: Shares that such a capture, or such a middlebox, drops: one in ten to all. Of a capture the share that the places
#: show is one more, as likely as each of these: many places tell shares apart that lie between two of them.
_DROPPED = np.array([0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 0.97, 0.999])
#: What ordinary paths lose: hardly anything, or as much as radio links and queues do.
PATH_LOSSES = (0.001, 0.02)
#: How densely stacks acknowledge, and how often they do so: in a dialogue most send acknowledgements either all at once
#: or all with the answer (a third each), in a transfer anything between.
_DENSITIES = np.array([0.005, 0.02, *np.linspace(0.1, 0.9, 9), 0.98, 0.995])
_DENSITY_PRIOR = np.array([1 / 6, 1 / 6, *(1 / 27 for _ in range(9)), 1 / 6, 1 / 6])


class PlaceCounts(Struct, frozen=True):
    """Places in the stretch of one direction that both captures hold, but for ranges in which the emitter's capture
    missed data: acknowledged at both ends, where they were emitted only, where they arrived only, and at neither."""

    both: int
    emitted_only: int
    arrived_only: int
    neither: int


_NO_PLACES = PlaceCounts(0, 0, 0, 0)


def probable_loss(missed_share: float, segments: int) -> float:
    """Share of packets that a capture lost, by the share of the stream it is seen to have missed in so many segments
    (mean of a beta distribution)."""
    return (missed_share * segments + PRIOR_LOST) / (segments + PRIOR_SEGMENTS)


def possible_losses(missed_share: float, segments: int) -> tuple[float, ...]:
    """Shares of packets that a capture may have lost among those compared, each as likely as another.

    What it is seen to have missed may be spread over the stream, or lie in one piece (a capture that began late, a
    burst) beside what is compared.
    """
    return tuple(probable_loss(share, segments) for share in dict.fromkeys((0.0, missed_share)))


def one_receiver_nats(
    counts: dict[Direction, PlaceCounts], client_losses: Sequence[float], server_losses: Sequence[float]
) -> float:
    """Natural-log likelihood ratio of one receiver's acknowledgements against two stacks', over both directions.

    `client_losses` and `server_losses` are what the captures may lose of everything, each as likely as another.
    """
    both = list(product(client_losses, server_losses))
    ratios = [_one_receiver_nats(counts, *losses) for losses in both]
    return _log_sum(np.array(ratios)) - math.log(len(both))


def _one_receiver_nats(counts: dict[Direction, PlaceCounts], client_loss: float, server_loss: float) -> float:
    client, server = (
        (loss, *_dropped(counts, own)) for loss, own in zip((client_loss, server_loss), DIRECTIONS, strict=True)
    )
    tables = {
        direction: _one_receiver(count, *((client, server) if direction is Direction.UP else (server, client)))
        for direction, count in counts.items()
    }
    two = sum(_two_stacks(count) for count in counts.values())
    # Axes: what the emitter's capture drops of its own, what the arriver's drops; 0 is an ordinary capture.
    up, down = (tables.get(d, np.zeros((len(client),) * 2)) for d in Direction)
    levels = np.arange(len(client))
    share = np.full(len(client) - 1, 1.0 / (len(client) - 1))
    terms: list[FloatArray] = []
    for client_own, client_far, client_prior in _captures(levels, share):
        for server_own, server_far, server_prior in _captures(levels, share):
            joint = up[np.ix_(client_own, server_far)] + down[np.ix_(server_own, client_far)].T
            terms.append((joint + np.log(client_prior)[:, None] + np.log(server_prior)[None, :]).ravel())
    return _log_sum(np.concatenate(terms)) - two


def _captures(levels: Int64Array, share: FloatArray) -> list[tuple[Int64Array, Int64Array, FloatArray]]:
    """Kinds of captures: level at which they drop their own host's acknowledgements and the far host's, and priors."""
    sound = 1.0 - DROPS_ACKS - DROPS_OWN_ACKS
    return [
        (levels[:1], levels[:1], np.array([sound])),
        (levels[1:], levels[1:], DROPS_ACKS * share),
        (levels[1:], np.zeros_like(levels[1:]), DROPS_OWN_ACKS * share),
    ]


def _dropped(counts: Mapping[Direction, PlaceCounts], own: Direction) -> tuple[float, ...]:
    """Shares that a capture may drop whose host acknowledges in the direction `own`, the one last that it shows."""
    its, others = counts.get(own, _NO_PLACES), counts.get(own.reverse, _NO_PLACES)
    lacked = its.arrived_only + others.emitted_only
    shown = (lacked + 1) / (lacked + its.both + others.both + 2)
    return (*_DROPPED.tolist(), shown)


def _one_receiver(count: PlaceCounts, emitter: Sequence[float], arriver: Sequence[float]) -> FloatArray:
    """Log likelihoods by what the emitter's and the arriver's capture drop, averaged over density and the path."""
    own = np.array(emitter)[:, None, None, None]
    far = np.array(arriver)[None, :, None, None]
    path = np.array([*PATH_LOSSES, *_DROPPED])[None, None, :, None]
    ordinary, thinning = ((1.0 - PATH_THINS) / len(PATH_LOSSES),), (PATH_THINS / len(_DROPPED),)
    path_prior = np.array(ordinary * len(PATH_LOSSES) + thinning * len(_DROPPED))[None, None, :, None]
    density = _DENSITIES[None, None, None, :]
    arrives = (1.0 - far) * (1.0 - path)
    logs = (
        count.both * np.log(density * (1.0 - own) * arrives)
        + count.emitted_only * np.log(density * (1.0 - own) * (1.0 - arrives))
        + count.arrived_only * np.log(density * own * arrives)
        + count.neither * np.log(1.0 - density * (1.0 - own * (1.0 - arrives)))
        + np.log(path_prior)
        + np.log(_DENSITY_PRIOR)[None, None, None, :]
    )
    most = logs.max(axis=(2, 3), keepdims=True)
    return np.asarray(most[:, :, 0, 0] + np.log(np.exp(logs - most).sum(axis=(2, 3))))


def _two_stacks(count: PlaceCounts) -> float:
    """Log likelihood of places that two stacks chose apart from each other."""
    total = count.both + count.emitted_only + count.arrived_only + count.neither
    found = 0.0
    for chosen in (count.both + count.emitted_only, count.both + count.arrived_only):
        logs = chosen * np.log(_DENSITIES) + (total - chosen) * np.log(1.0 - _DENSITIES) + np.log(_DENSITY_PRIOR)
        found += _log_sum(np.asarray(logs))
    return found


def _log_sum(logs: FloatArray) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))
