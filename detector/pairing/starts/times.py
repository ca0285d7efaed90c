"""Connections of two captures held against each other by when they began, under an unknown clock offset."""

from __future__ import annotations

import math

#: Starts of one connection at two places differ by the clocks' offset, give or take this much.
START_SPREAD_NS = 100_000_000

#: Clocks that nothing relates may be wrong by this much before connections that overlap seem not to.
CLOCK_SLACK_NS = 10_000_000_000

#: Where matched connections relate the clocks, by this much: what their starts spread by on either side,
KNOWN_CLOCK_SLACK_NS = 2 * START_SPREAD_NS
#: and as much again as clocks drift over the captures.
CLOCK_DRIFT = 500e-6


def start_nats(gap_ns: int) -> float:
    """Log-likelihood of a start difference (after the clocks' offset) against none at all, never positive.

    A Cauchy distribution of width `START_SPREAD_NS`: a SYN that had to be sent again (after a second, RFC 6298 section
    2) is unusual, not impossible.
    """
    return -math.log1p((gap_ns / START_SPREAD_NS) ** 2)
