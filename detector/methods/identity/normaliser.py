"""A relay's own packets against a normaliser's: what single middleboxes rewrite counts jointly, and decides nothing
alone.

A normaliser (a firewall or NAT that shifts sequence numbers, gives IP IDs of its own and lowers windows and the segment
size) passes every packet on: acknowledgements stand where the receiver put them, data carry the acknowledgements that
their sender had reached, PSH and segment ends stay. A relay's stack puts all of these anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from detector.methods.identity.agreement import (
    LOCKSTEP_NATS,
    RENUMBERED_NATS,
    REWRITABLE_FIELDS,
    REWRITABLE_NATS,
    WINDOW_NATS,
    FieldSums,
    total_nats,
)
from detector.methods.identity.segment_counts import Integers, Reals, Truths

#: Fields that no middlebox rewrites must reach this sum against the same packets before fields that middleboxes rewrite
#: are added: as much as decides without it. Otherwise a capture made by a filter and a normaliser, each harmless, make
#: a relay together.
STRUCTURE_NATS = math.log(1000.0)
#: The largest sum against the same packets otherwise: it makes no finding.
DOUBT_NATS = math.log(100.0)
#: From this sum on a relay is certain to the last digit of a double, whatever the places of acknowledgements say.
CERTAIN_NATS = 40.0
_WINDOW = frozenset({"window"})
_PLACES = frozenset({"acknowledgement"})


def weigh(
    sums: FieldSums,
    *,
    numbers_kept: Integers,
    renumbered: Truths,
    other_ip_ids: Truths,
    one_receiver: Callable[[int], float],
) -> Reals:
    """Natural-log likelihood ratio of the same packets, normalised or not, against a relay's own, by connection.

    `sums` are those of all classes of segments. `renumbered`: both SYNs arrived with other sequence numbers;
    `other_ip_ids`: IP IDs are others in every class of segments. `one_receiver` gives what the places of
    acknowledgements of a connection say at least for the same packets, lossy captures considered
    (`detector.methods.identity.dropped_acks`).
    """
    total = total_nats(sums, most_for_places=np.where(numbers_kept, math.inf, LOCKSTEP_NATS))
    # Of the middleboxes that shift sequence numbers, few give packets IP IDs of their own as well.
    doubts = np.where(renumbered, np.where(other_ip_ids, 2, 1), 0)
    same = np.maximum(0.0, total - doubts * RENUMBERED_NATS)
    places = total_nats(sums, _PLACES)
    structure = total_nats(sums, frozenset(sums.by_field) - REWRITABLE_FIELDS - _PLACES)
    # Stacks of one kind widen windows alike, however many classes of segments show it.
    rewritten = total_nats(sums, REWRITABLE_FIELDS - _WINDOW) + np.minimum(total_nats(sums, _WINDOW), WINDOW_NATS)
    rewritten = np.maximum(rewritten - np.where(renumbered, RENUMBERED_NATS, 0.0), -REWRITABLE_NATS)
    is_certain = (places < 0) & (structure + rewritten <= -CERTAIN_NATS)
    excused = np.array(places, np.float64)
    for row in np.flatnonzero((total <= 0) & (places < 0) & ~is_certain).tolist():
        excused.flat[row] = max(float(np.ravel(places)[row]), min(one_receiver(row), 0.0))
    weighed = structure + excused
    other = np.where(weighed <= -STRUCTURE_NATS, weighed + rewritten, np.maximum(total, -DOUBT_NATS))
    return np.where(total > 0, same, np.where(is_certain, structure + rewritten, other))
