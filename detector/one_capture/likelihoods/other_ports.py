"""What other ports of a network say of one: middleboxes seldom split a single port, and hosts have habits on all.

At the server's side a network is one of three sorts: it splits all ports, its clients are late on all ports, or each
port is as it is. What a port shows is weighed by these sorts, and what the others show speaks for one sort or another.
Their times are not independent, since they share clients, paths and boxes: so that together they may move the odds of a
sort by `_MOST_NATS` or twice that, however many they are and however sure.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints

#: Of splits, those of all ports; of late clients, those that are late on all.
ALL_SPLIT, _ALL_LATE = 0.7, 0.8

#: What all other ports together may say for or against a network of one sort, in nats; and what it may say against a
#: split of all ports that a port's leg is another one than theirs.
_MOST_NATS = 1.0
_OTHER_LEG_NATS = -2.0

#: Stand for shares and priors of zero.
_NEVER, _NO_PRIOR = 1e-12, 1e-300


class Shares(Struct, frozen=True):
    """By group, summing to one: split; every member late in all answers; anything else.

    `leg_nats` is the log posterior of its leg, given that it has one; `answered`: whether anything shows all this.
    """

    split: Floats
    late: Floats
    rest: Floats
    leg_nats: Floats
    answered: npt.NDArray[np.bool_]


def with_other_ports(found: Shares, network: Ints, split_prior: float, late_prior: float) -> Shares:
    """The shares of each group, given those of the other groups of its network (`network` by group, from 0).

    A box that splits all ports has one leg. The priors are those that `found` holds: of a split, and of members
    that are late in all answers.
    """
    every, late_everywhere = split_prior * ALL_SPLIT, late_prior * _ALL_LATE
    alone = 1 - every - late_everywhere
    split_alone, late_alone = (split_prior - every) / alone, (late_prior - late_everywhere) / alone
    split, late, rest = (
        np.log(np.maximum(share, _NEVER) / max(prior, _NEVER))
        for share, prior in (
            (found.split, split_prior), (found.late, late_prior), (found.rest, 1 - split_prior - late_prior),
        )
    )  # fmt: skip
    single = np.stack([split + _log(split_alone), late + _log(late_alone), rest + np.log1p(-split_alone - late_alone)])
    any_way = np.logaddexp.reduce(single)
    others_late = np.clip(_of_others(late - any_way, found.answered, network), -_MOST_NATS, _MOST_NATS)
    others_split = np.clip(_of_others(split - any_way, found.answered, network), -_MOST_NATS, None)
    others_split = np.minimum(others_split, np.maximum(others_late, 0.0) + _MOST_NATS)
    sorts = np.stack([
        _log(every) + split + others_split + _same_leg_nats(found.leg_nats, network),
        _log(late_everywhere) + late + others_late,
        _log(alone) + any_way,
    ])  # fmt: skip
    of_sort = np.exp(sorts - np.logaddexp.reduce(sorts))
    of_single = of_sort[2] * np.exp(single - any_way)
    return replace(found, split=of_sort[0] + of_single[0], late=of_sort[1] + of_single[1], rest=of_single[2])


def _log(prior: float) -> float:
    return math.log(max(prior, _NO_PRIOR))


def _same_leg_nats(leg_nats: Floats, network: Ints) -> Floats:
    """How improbable a group's leg is, given that it is the one of the other groups of its network; 0 if it is not."""
    own = leg_nats - np.logaddexp.reduce(leg_nats, axis=1)[:, None]
    summed = np.zeros((int(network.max(initial=-1)) + 1, own.shape[1]))
    np.add.at(summed, network, own)
    others = summed[network] - own
    others -= np.logaddexp.reduce(others, axis=1)[:, None]
    agreeing = np.logaddexp.reduce(own + others, axis=1) + np.log(own.shape[1])
    clipped: Floats = np.clip(agreeing, _OTHER_LEG_NATS, 0.0)
    return clipped


def _of_others(nats: Floats, answered: npt.NDArray[np.bool_], network: Ints) -> Floats:
    """The sum over the other groups of the same network that answered anything."""
    nats = np.where(answered, nats, 0.0)
    others: Floats = np.bincount(network, weights=nats)[network] - nats
    return others
