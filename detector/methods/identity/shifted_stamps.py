"""Timestamps that a firewall shifts by constants, in segments that do not show by how much.

The constants are read from the segments that have one counterpart (`crates/evidence`), class by class. Where a capture
lost or left out segments, most of a class may be held against a wrong counterpart, and no constant fits; where all
acknowledge the same place (duplicate acknowledgements) none has one counterpart. A firewall shifts the timestamps of a
whole connection: where one class shows that it does, another that fits no constant speaks for a relay no more than the
one that does speaks against it. The same holds of segments that have one another's IP IDs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from detector.methods.identity.agreement import FITTED_NATS, IP_ID_NATS, ClassComparison
from detector.methods.identity.segment_counts import Truths

_STAMPS, _IP_IDS = "timestamps", "ip-id"


def with_one_shift(parts: Sequence[ClassComparison]) -> list[ClassComparison]:
    """The classes of segments of connections (the last axis), weighed by whether something else shows a shift."""
    shown = reduce(np.logical_or, [_shows_shift(part).any(axis=0) for part in parts])
    return [_weighed(part, shown) for part in parts]


def _is_shifted(part: ClassComparison) -> Truths:
    return (part.tsval_shift != 0) | (part.tsecr_shift != 0)


def _shows_shift(part: ClassComparison) -> Truths:
    """Whether constants fit so many segments that two stacks' clocks, whose delay hardly varies, do not."""
    return _is_shifted(part) & (part.fields[_STAMPS].nats >= FITTED_NATS)


def _weighed(part: ClassComparison, shown: Truths) -> ClassComparison:
    stamps = part.fields[_STAMPS]
    has_same_ids = part.fields[_IP_IDS].nats >= IP_ID_NATS
    unknown = (shown | has_same_ids) & ~_is_shifted(part) & (stamps.nats < 0)
    nats = np.where(unknown, np.maximum(stamps.nats, -FITTED_NATS), stamps.nats)
    return part._replace(fields={**part.fields, _STAMPS: stamps._replace(nats=nats)}, shift_unknown=unknown)
