"""From posteriors to verdicts: which hypothesis carries a verdict, and what else may explain what was seen."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.hypotheses.posteriors import Posterior
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.senders.declared_proxies import are_granted
from pepscope.results.verdicts import GroupSide


class Explanation(IntEnum):
    """What explains a pool best, in the order of codes."""

    UNDECIDED = 0
    END_TO_END = 1
    NETWORK = 2  # a split in the network
    SITE = 3  # a split inside the server's own site
    NETWORK_OR_SITE = 4  # a split, in either place
    HANDSHAKES_ANSWERED = 5  # end to end, but something answers handshakes
    LATE_OR_SPLIT = 6  # undecided between a split and hosts that are always late
    DECLARED = 7  # a proxy that the client asks for
    ASKED_AS_PROXY = 8  # undecided: asked as a proxy is, but as fast as a server that accepts that


#: Those of which the client says something itself, whatever was timed.
ASKING = (Explanation.DECLARED, Explanation.ASKED_AS_PROXY)

#: Those of no split.
WHOLE = (Explanation.END_TO_END, Explanation.HANDSHAKES_ANSWERED)

#: Those that carry the verdict of a split.
SPLITS = (Explanation.NETWORK, Explanation.SITE, Explanation.NETWORK_OR_SITE, Explanation.DECLARED)


class Classes(Struct, frozen=True):
    """By pool: how probable a split of any place is, how probable a verdict needs it, and what explains the pool."""

    split: Floats
    least_split: Floats
    explanation: npt.NDArray[np.int64]


#: Of what is not end to end by itself, the share that must be lateness to name it.
_LATE_SHARE = 0.2

_HALF = 0.5

#: Least probability of a split in a verdict; a false alarm is worse than none. The client's was chosen on simulated
#: seeds 5990, 6010, 6031 to 6033 and kernels 3930: of 3,004 groups of several servers that the network does not split
#: one has 0.9 to 0.985, of 1,218 that it does 36 have 0.975 to 0.985 (docs/decisions/120). The server's was
#: chosen on simulated seeds 6045 and 6046: of 6,469 groups that are not split one has more (0.988, a client that
#: thinks), and four have 0.98; it costs two splits in a hundred (docs/decisions/130).
LEAST_SPLIT = {GroupSide.CLIENT: 0.975, GroupSide.SERVER: 0.983}

#: The same where one server alone is judged, at the client's side: nothing but priors bounds how probable a server is
#: that always takes its time. Of 341 such groups there two have 0.975 to 0.985, of 188 that are split 10.
LEAST_SPLIT_OF_ONE = 0.985

#: Probability from which a host has a leg inside its site; below one minus this it has none.
DECISIVE = 0.95

#: Least probability of no split in the network: at the client's side servers beside a split point, and caches, answer
#: in time.
LEAST_WHOLE = {GroupSide.CLIENT: 0.98, GroupSide.SERVER: 0.95}

#: Least probability of no split in the network where one host may have a leg inside its site (`DECISIVE`): what leaves
#: a leg of a few milliseconds there leaves one in the network as well, where a host alone is given none below 10 ms.
#: Chosen on simulated seeds 5971, 5981 and 5982 (docs/decisions/106).
_LEAST_WHOLE_BESIDE_SITE = 0.99

#: Most of a box that holds its acknowledgements back beside answered handshakes: what shows another sender of these
#: tells them apart.
_MOST_HOLDING = 0.02

#: No probability is surer than this: the tables hold some ten thousand exchanges.
SUREST = 0.999

#: How many times likelier a proxy is than before where requests in absolute-form are granted so often, for another port
#: than theirs: assumed, one in three hundred such servers being none. With the priors this decides where timing says
#: nothing (99 would not), so that timing has to speak against a proxy to leave it open (docs/decisions/135).
_ODDS_OF_REQUESTS = 299.0

#: A split point nearer to the server than this (s) stands inside its site: 100 km of fibre and back.
OWN_SITE_S = 0.001


def of_network(posterior: Posterior, side: GroupSide) -> Floats:
    """How probable a split in the network is, by pool.

    A box that holds its acknowledgements back is one as well. At the server's side no timestamps tell it from answered
    handshakes, so that there it accuses no network.
    """
    return posterior.split + posterior.holding if side is GroupSide.CLIENT else posterior.split


def classes(
    posterior: Posterior,
    exchanges: npt.NDArray[np.int64],
    *,
    side: GroupSide,
    least_probability: float,
    in_time: npt.NDArray[np.bool_] | None = None,
    handshakes_timed: npt.NDArray[np.bool_] | bool = True,
    one_host: bool = False,
    one_server: npt.NDArray[np.bool_] | bool = False,
) -> Classes:
    """Classes of pools; without an exchange nothing is decided.

    `in_time` says of each pool whether anything shows that no leg is hidden: answers at the transport's speed, or near
    ends of several hosts' own (default: of all). A pool of which nothing does is not called end to end, however
    improbable a split is. Nor is one said to have handshakes that something answers of which no handshake is timed.
    `least_probability` raises what verdicts need, and those of groups of `one_server` need more. Pools of `one_host`
    whose network is surely not split have no leg inside the site where hosts are said to have none (`DECISIVE`).
    """
    least_split = np.maximum(least_probability, np.where(one_server, LEAST_SPLIT_OF_ONE, LEAST_SPLIT[side]))
    least_split = np.broadcast_to(least_split, posterior.split.shape)
    most_split = 1 - max(least_probability, LEAST_WHOLE[side])
    in_network = of_network(posterior, side)
    split = np.clip(in_network + posterior.site, 1 - SUREST, SUREST)
    late = posterior.late + posterior.fleet
    answered = exchanges > 0
    explanation = np.full(len(split), Explanation.UNDECIDED, np.int64)
    explanation[(late > _LATE_SHARE) & (split > most_split)] = Explanation.LATE_OR_SPLIT
    of_any_place = np.maximum(posterior.split + posterior.site, 1 - SUREST) + posterior.holding
    is_end = of_any_place <= most_split
    if one_host:
        of_network_alone = of_any_place - posterior.site
        is_end |= (of_network_alone <= 1 - max(least_probability, _LEAST_WHOLE_BESIDE_SITE)) & (
            of_any_place <= 1 - max(least_probability, DECISIVE)
        )
    explanation[is_end if in_time is None else is_end & in_time] = Explanation.END_TO_END
    answered_for = is_end & (posterior.handshakes_answered > _HALF)
    told_apart = (posterior.holding <= _MOST_HOLDING) & handshakes_timed
    explanation[answered_for] = np.where(told_apart, Explanation.HANDSHAKES_ANSWERED, Explanation.UNDECIDED)[
        answered_for
    ]
    is_split = split >= least_split
    explanation[is_split] = Explanation.NETWORK_OR_SITE
    explanation[is_split & (in_network >= least_split)] = Explanation.NETWORK
    explanation[is_split & (posterior.site >= least_split)] = Explanation.SITE
    explanation[~answered] = Explanation.UNDECIDED
    return Classes(split, least_split, explanation)


def with_declared(found: Classes, form: npt.NDArray[np.int64], exchanges: npt.NDArray[np.int64]) -> Classes:
    """The same, but for groups whose clients ask for a proxy (`ProxyForm`, 0 for none), with so many exchanges.

    What only proxies grant decides, whatever the timing. Requests in absolute-form alone are weighed with it, and
    decide nothing without.
    """
    asks, granted = form > 0, are_granted(form)
    odds = found.split / (1 - found.split) * _ODDS_OF_REQUESTS
    split = np.where(granted, SUREST, np.minimum(odds / (1 + odds), SUREST))
    decides = granted | ((exchanges > 0) & (split >= found.least_split))
    explanation = np.where(decides, Explanation.DECLARED, Explanation.ASKED_AS_PROXY)
    return Classes(
        np.where(asks, split, found.split), found.least_split, np.where(asks, explanation, found.explanation)
    )


def as_groups_declare(
    found: Classes, form: npt.NDArray[np.int64], groups: Classes, group: npt.NDArray[np.int64]
) -> Classes:
    """The same of connections, each of a `group`: those that ask for a proxy are what their group is."""
    asks = form > 0
    return Classes(
        np.where(asks, groups.split[group], found.split),
        found.least_split,
        np.where(asks, groups.explanation[group], found.explanation),
    )
