"""How much round trips of the near leg vary: at the server's side that of a split is a wire, an access link varies.

Shares of classes are learned from networks of known truth (`python -m benchmarks.one_ended_learning.near_legs`): behind
splits, and of clients end to end whose answers are late. The tables of exchanges know four classes of paths; as
evidence of its own the variation is taken as finely as it tells: a wire across the Internet varies by 2 ms as often as
an access link.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from typing import Any

import numpy as np
from msgspec import json

from detector.one_capture.members import Floats, Ints

#: Bounds of the classes of variation (s).
VARIATION_EDGES_S = (2e-4, 5e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 4e-3, 6e-3, 0.01, 0.02)

#: Bounds of what the variation of a group's round trips says against a split and for it (nats). A near leg without
#: variation is a wire; so is a fibre to the home, and a wire may be busy.
_MOST_AGAINST, _MOST_FOR = -4.0, 1.2


def variation_class(variation_s: Floats) -> Ints:
    """The class of each variation."""
    return np.searchsorted(VARIATION_EDGES_S, np.nan_to_num(variation_s), side="right").astype(np.int64)


def near_variation_nats(variation_s: Floats) -> Floats:
    """Log-likelihood ratio by group, split against end to end, of how much its round trips vary (s); 0 where nothing
    tells that (NaN)."""
    found: Floats = np.where(np.isnan(variation_s), 0.0, _ratios()[variation_class(variation_s)])
    return found


@cache
def _ratios() -> Floats:
    learned: dict[str, Any] = json.decode(get_data(__package__, "near_variation.json") or b"{}")
    nats: Floats = np.clip(np.log(learned["split"]) - np.log(learned["end"]), _MOST_AGAINST, _MOST_FOR)
    return nats
