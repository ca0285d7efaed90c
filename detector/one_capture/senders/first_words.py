"""First words: how long after its handshake a client first says something that it was not asked for.

A split point opens its connection to the server once it has accepted the client's, or has read what the client wants.
So it holds the client's first words when its own handshake is complete, and they leave with the acknowledgement, over a
wire. A client makes its first words only then, they are a longer packet than the acknowledgement, and cross the access
link, whose grants and rate delay them; where a device delays all that it says, it delays them as well. Splits that
connect as soon as the client's SYN comes have them late by the hidden leg, less the near one's round trip.

What is learned from networks of known truth (`python -m benchmarks.one_ended_learning.near_legs`) is how many of a
group's first words leave at once: behind splits, and of clients end to end whose answers are late, with which a split
may be confused. Where the server speaks first there are no such words.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import json

from detector.one_capture.members import Floats, Ints
from pepscope.captures.direction import Direction
from pepscope.captures.exchanges import Exchanges

#: First words leave at once that take less after the handshake (s): 80 % of those behind real relays do.
AT_ONCE_S = 3e-4

#: Bounds of the classes of the share of first words that leave at once, and of how many there are; round trips below
#: this variation (s) are steady.
SHARE_EDGES = (0.001, 0.2, 0.5, 0.8, 0.95)
COUNT_EDGES = (2, 5)
STEADY_S = 0.0015

#: Of split points, those whose first words are as late as clients': they connect once they have accepted, and stand so
#: near the server that their handshake is over before the words have crossed the hidden leg. Assumed: of 71 groups
#: behind a real relay (five first words and more) 26 had fewer than four in five at once. It bounds what words say
#: against a split.
_AS_CLIENTS = 0.3

#: The most that first words say for a split (nats): some clients stand at a wire and have their words ready.
_MOST_FOR = 1.2

#: Clocks that tick more slowly (ns) do not tell the shortest classes apart.
_COARSEST_NS = 100_000


def first_words_s(exchanges: Exchanges, columns: Mapping[str, npt.NDArray[Any]]) -> Floats:
    """By connection, what the client's first words took after its handshake (s); NaN where the server spoke first, they
    or the handshake were not seen, or sent again, or where the clock is too coarse to tell."""
    connections = len(columns["first_time_ns"])
    words_s = np.full(connections, np.nan)
    # By the times themselves: of a few exchanges the differences may have any step in common.
    times_ns = np.concatenate([exchanges.question_ns, exchanges.answered_ns])
    if not len(times_ns) or int(np.gcd.reduce(times_ns)) > _COARSEST_NS:
        return words_s
    up = exchanges.asked == Direction.UP.value
    rows = np.flatnonzero(up & exchanges.first & ~exchanges.repeated)
    said_ns = exchanges.question_ns[rows] - np.maximum(exchanges.question_span_ns[rows], 0)
    server_ns = np.full(connections, np.iinfo(np.int64).max)
    np.minimum.at(server_ns, exchanges.connection[~up], exchanges.question_ns[~up])
    of = exchanges.connection[rows]
    handshake_ns = columns["handshake_syn_ack_ns"][of], columns["handshake_ack_ns"][of]
    taken_ns = said_ns - columns["first_time_ns"][of] - handshake_ns[0] - handshake_ns[1]
    is_known = (handshake_ns[0] >= 0) & (handshake_ns[1] >= 0) & (said_ns < server_ns[of]) & (taken_ns >= 0)
    words_s[of[is_known]] = taken_ns[is_known] / 1e9
    return words_s


def words_class(words_s: Floats, group: Ints, variation_s: Floats) -> tuple[Ints, Ints, Ints]:
    """The classes of groups: whether round trips are not known to be steady, how many first words there are, and how
    many of them leave at once; `words_s` and their `group` are by connection, `variation_s` by group."""
    known = ~np.isnan(words_s)
    count = np.bincount(group[known], minlength=len(variation_s))
    at_once = np.bincount(group[known & (words_s < AT_ONCE_S)], minlength=len(variation_s))
    share = at_once / np.maximum(count, 1)
    return (
        (~(variation_s < STEADY_S)).astype(np.int64),
        np.searchsorted(COUNT_EDGES, count, side="right").astype(np.int64),
        np.searchsorted(SHARE_EDGES, share, side="right").astype(np.int64),
    )


def group_words_nats(words_s: Floats, group: Ints, variation_s: Floats) -> Floats:
    """Log-likelihood ratio by group, split against end to end, of its connections' first words (`words_s`, whose groups
    are `group`); 0 where there are none. One near end makes all, so that they count once."""
    some = np.bincount(group[~np.isnan(words_s)], minlength=len(variation_s)) > 0
    found: Floats = np.where(some, _ratios()[words_class(words_s, group, variation_s)], 0.0)
    return found


@cache
def _ratios() -> Floats:
    learned: dict[str, Any] = json.decode(get_data(__package__, "first_words.json") or b"{}")
    ratio = np.asarray(learned["split"]) / np.asarray(learned["end"])
    nats: Floats = np.minimum(np.log(_AS_CLIENTS + (1 - _AS_CLIENTS) * ratio), _MOST_FOR)
    return nats
