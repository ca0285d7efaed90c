"""What the other connections of a group say of one: one rule governs them, but for the few that are treated apart.

A connection either follows its group or is treated apart. If it follows, its posterior is its group's, in which its own
exchanges count already, and what it shares with others (host, path, box) counts once; if it is apart, it is as it shows
by itself. What it shows weighs the two: with g a group's posterior, o the connection's own and p what is so before
anything was seen, the others alone would say g p / o (which sums to S), and its own exchanges are 1 / S times as
probable given what the others say as given nothing. So the odds that it follows are (1 - `APART`) / (`APART` S).

What follows from that: it is never surer than both its group and itself; where it shows nothing of its own, `APART` of
its probability stays as it was beforehand, however sure the others are; where it contradicts them, it is apart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from detector.one_capture.hypotheses.posteriors import HOLDS_ACKS, Posterior
from detector.one_capture.likelihoods.priors import Priors
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints

#: Of the connections of one network and port, those that are treated apart: a box may know addresses, names or sizes.
#: Assumed, as no survey counts them; the more, the more a connection must show by itself. With one in ten, groups that
#: are accused wrongly took five times as many connections with them (simulated; docs/decisions/094).
APART = 0.2

#: Stands for a probability of zero.
_NEVER = 1e-300


def with_other_connections(
    alone: Posterior,
    groups: Posterior,
    group: Ints,
    member: Ints,
    follows: npt.NDArray[np.bool_],
    speaks_web: npt.NDArray[np.bool_],
    priors: Priors,
) -> Posterior:
    """The posteriors of connections, given those of their groups; `alone` are those of each by itself.

    `group` and `member` are by connection, `speaks_web` whether it speaks TLS or HTTP, and `follows` whether it may
    follow its group: one that shows nothing does not, and none to which others add nothing.
    """
    shares = _at_member(groups, group, member)
    less = np.zeros(len(group))
    for names, before in _before(speaks_web, priors):
        of_group, own = (np.sum([each[name] for name in names], axis=0) for each in (shares, _fields(alone, names)))
        less += of_group * before / np.maximum(own, _NEVER)
    following = np.where(follows, (1 - APART) / (1 - APART + APART * less), 0.0)
    return replace(
        alone, **{name: following * share + (1 - following) * getattr(alone, name) for name, share in shares.items()}
    )


def _before(speaks_web: npt.NDArray[np.bool_], priors: Priors) -> tuple[tuple[tuple[str, ...], Floats | float], ...]:
    """How probable hypotheses for one connection are beforehand, by the fields of `Posterior` that hold each.

    At the client's side a connection by itself leaves caches out, so that it counts a split as a little less, and
    programs, unless it stays at one site.
    """
    holding = priors.split * HOLDS_ACKS
    answered = (1 - priors.split) * priors.handshakes_answered
    programs = (1 - priors.split) * priors.programs * priors.closes
    ordinary = 1 - priors.split - answered - programs
    late, site = ordinary * priors.late, ordinary * priors.fronts(speaks_web)
    return (
        (("split",), priors.split - holding), (("holding",), holding), (("handshakes_answered",), answered),
        (("late", "fleet"), late + programs), (("site",), site), (("end",), ordinary - late - site),
    )  # fmt: skip


def _fields(posterior: Posterior, names: tuple[str, ...]) -> dict[str, Floats]:
    return {name: getattr(posterior, name) for name in names}


def _at_member(groups: Posterior, group: Ints, member: Ints) -> dict[str, Floats]:
    """What groups say at one of their members: each has a leg inside its own site, or none, by itself."""
    names = ("split", "holding", "handshakes_answered", "fleet", "late", "site", "end")
    shares = {name: column[group] for name, column in _fields(groups, names).items()}
    ordinary = shares["site"] + shares["late"] + shares["end"]
    shares["site"] = ordinary * np.clip(groups.member_site[member], 0.0, 1.0)
    others = (ordinary - shares["site"]) / np.maximum(shares["late"] + shares["end"], _NEVER)
    return shares | {name: shares[name] * others for name in ("late", "end")}
