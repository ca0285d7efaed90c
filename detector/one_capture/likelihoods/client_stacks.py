"""Whose stack made the SYNs that a server sees: the clients' own, or the split point's.

A split point opens its connections to the server itself, so that all have the form of its stack (options in their
order, MSS, window, scale), which is Linux' or FreeBSD's as a rule. SYNs of several forms in one network, or those of
Windows, macOS or iOS, are clients' own. Some split points copy the client's SYN, or let it pass and acknowledge data
only: of these the form says nothing, which bounds what speaks against a split.

Clients of one make have one form, too. So that one form is seen speaks for nothing, only whose it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints
from detector.one_capture.senders.stacks import INITIAL_HOP_LIMITS, systems_of
from pepscope.captures.senders import Senders
from pepscope.results.distinct import distinct

#: Of split points, those whose SYNs are the clients' own or copies of them.
COPIES = 0.05

#: A network has forms of several stacks where none makes up more than this share of its SYNs: a box may have several
#: programs, and a client may go past it.
ONE_FORM = 0.9

#: Shares of split points and of clients by the system of their stacks, where the form of a SYN tells it. Proxies,
#: load balancers and satellite gateways run Linux or FreeBSD; half of the clients do, phones and programs included.
_OF_BOXES = {"linux": 0.85, "freebsd": 0.1, "windows": 0.03, "darwin": 0.02}
_OF_CLIENTS = {"linux": 0.5, "freebsd": 0.03, "windows": 0.25, "darwin": 0.22}


def client_stack_nats(senders: Senders, form: Ints, group: Ints, groups: int) -> Floats:
    """Log-likelihood ratio by group, split against end to end, of the SYNs of clients; 0 where none was captured.

    `form` (`senders.stacks.form_codes`, -1 unknown) and `group` are by connection.
    """
    found = np.zeros(groups)
    known = np.flatnonzero(form >= 0)
    if not len(known):
        return found
    pairs, first, count = np.unique(
        np.stack([group[known], form[known]]), axis=1, return_index=True, return_counts=True
    )
    of_group = pairs[0]
    every, most = np.zeros((2, groups))
    np.add.at(every, of_group, count)
    np.maximum.at(most, of_group, count)
    is_most = count == most[of_group]
    ratio = np.full(groups, 1.0)
    ratio[of_group[is_most]] = _system_ratios(senders, known[first[is_most]])
    has_one = most > ONE_FORM * every
    seen = distinct(of_group)
    found[seen] = np.log((1 - COPIES) * np.where(has_one, ratio, 0.0) + COPIES)[seen]
    return found


def _system_ratios(senders: Senders, connection: npt.NDArray[np.intp]) -> Floats:
    """How much more frequent the system of each connection's SYN is among split points; 1 where it is not known."""
    rows = np.concatenate([senders.option_kinds[2 * connection], senders.syn_hop_limit[2 * connection, None]], axis=1)
    kinds, place = np.unique(rows, axis=0, return_inverse=True)
    ratios = [_ratio(_systems(kind[:-1].tolist(), int(kind[-1]))) for kind in kinds]
    return np.asarray(ratios, np.float64)[place.reshape(-1)]


def _systems(option_kinds: Sequence[int], hop_limit: int) -> frozenset[str]:
    """The systems that a SYN may be of; where none starts from its hop limit, which boxes set as they like, those of
    its options."""
    own = systems_of(option_kinds, hop_limit)
    return own or frozenset().union(*(systems_of(option_kinds, other) for other in INITIAL_HOP_LIMITS))


def _ratio(systems: frozenset[str]) -> float:
    known = [name for name in _OF_BOXES if name in systems]
    if not known:
        return 1.0
    return sum(_OF_BOXES[name] for name in known) / sum(_OF_CLIENTS[name] for name in known)
