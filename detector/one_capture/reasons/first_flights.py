"""First flights that something nearer than the server acknowledges: a firewall that reads them. Named, not weighed.

A firewall whose rules go by server names collects what a client says first, as long as it comes in several segments,
and acknowledges it in the server's name; everything later passes. It ends no connection, and the round trips of first
flights are left out of what times the transport (`crates/evidence`, `first_flight.rs`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from detector.one_capture.columns import VantageColumns
from detector.one_capture.members import Floats, Ints
from detector.one_capture.reasons.findings import FirstFlightFinding
from detector.one_capture.reasons.quantities import counted, duration
from detector.one_capture.side_posteriors import SidePosteriors
from pepscope.captures.exchanges import Exchanges, RoundTripColumns
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Evidence, GroupSide

#: More payload than one segment holds.
_LEAST_BYTES = 1461

#: Who answers nearer than this share of the handshake and of all later acknowledgements, and by more than hosts blur
#: (s), is neither who answered the SYN nor who takes everything else.
_NEARER, _LEAST_NEARER_S = 0.5, 0.002

#: One connection may have been acknowledged by anything, and of many most must be.
_FEWEST, _MOSTLY = 2, 0.5


def read_first_flights(
    vantage: VantageColumns, posteriors: SidePosteriors, is_split: np.ndarray
) -> Iterable[tuple[int, Evidence]]:
    """Groups that are not split whose first flights of several segments something nearer acknowledges, with what shows
    it. A relay that connects before it answers does so, too, but acknowledges everything else as near."""
    if posteriors.side is not GroupSide.CLIENT:
        return
    exchanges, places = vantage.exchanges, posteriors.places
    rows = np.flatnonzero(
        exchanges.first & (exchanges.asked == Direction.UP) & (exchanges.question_bytes >= _LEAST_BYTES)
        & ~exchanges.repeated & ~exchanges.crossed
    )  # fmt: skip
    if not len(rows):
        return
    handshakes_s, later_s = _timed_s(exchanges.round_trips, len(places.group))
    rows = rows[~np.isnan(handshakes_s[exchanges.connection[rows]])]
    handshake_s = handshakes_s[exchanges.connection[rows]]
    whole_s = np.fmin(handshake_s, later_s[exchanges.connection[rows]])
    group, groups = places.group[exchanges.connection[rows]], len(places.network)
    taken_s = _acknowledged_s(exchanges, rows)
    nearer = (taken_s < _NEARER * whole_s) & (taken_s < whole_s - _LEAST_NEARER_S)
    read, of = np.bincount(group[nearer], minlength=groups), np.bincount(group, minlength=groups)
    for number in np.flatnonzero((read >= _FEWEST) & (read > _MOSTLY * of) & ~is_split).tolist():
        here = nearer & (group == number)
        middle_s = [float(np.median(values[here])) for values in (taken_s, handshake_s)]
        yield number, _evidence(int(read[number]), int(of[number]), *middle_s)


def _timed_s(round_trips: RoundTripColumns, connections: int) -> tuple[Floats, Floats]:
    """By connection its handshake, and the least round trip of what it said later; NaN where none was timed."""
    up = np.flatnonzero(round_trips.asked == Direction.UP)
    found_s = np.full((2, connections), np.nan)
    for timed_s, times_ns in zip(found_s, (round_trips.handshake_ns[up], round_trips.least_ns[up]), strict=True):
        timed_s[round_trips.connection[up]] = np.where(times_ns >= 0, times_ns / 1e9, np.nan)
    return found_s[0], found_s[1]


def _acknowledged_s(exchanges: Exchanges, rows: Ints) -> Floats:
    """How soon these questions were acknowledged whole."""
    taken_s: Floats = (exchanges.acknowledged_ns[rows] - exchanges.question_ns[rows]) / 1e9
    return taken_s


def _evidence(read: int, of: int, taken_s: float, handshake_s: float) -> Evidence:
    return FirstFlightFinding.FIRST_FLIGHTS_READ.undecided(
        "handshake",
        f"What clients say first in several segments is acknowledged after {duration(taken_s)} in {read:,} of "
        f"{counted(of, 'connection')} whose handshakes take {duration(handshake_s)}: something on the way reads it, as "
        "firewalls do to see server names, and acknowledges it in the servers' names.",
        {"read": read, "connections": of, "acknowledged_s": taken_s, "handshake_s": handshake_s},
    )
