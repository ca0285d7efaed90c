"""What changed between a handshake's segments as they left and as they arrived, and which middleboxes change it so.

Every field is looked at once a connection, whichever of SYN and SYN-ACK shows the graver change: a middlebox that
rewrites a field rewrites it in both. A field that one of the captures lacks is not compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct

from detector.methods.handshake.opening import (
    MAXIMUM_SEGMENT_SIZE,
    SACK_PERMITTED,
    TIMESTAMPS,
    WINDOW_SCALE,
    Passed,
    SynOptions,
)
from pepscope.captures.packets import Direction


class Likelihood(Struct, frozen=True):
    """How probable a change is on a path without rewriters, behind a normaliser (a firewall, NAT or scrubber that
    passes the segments on), behind a SYN proxy (which answers the handshake itself and passes data), and where another
    TCP opens a connection of its own."""

    plain: float
    normaliser: float
    syn_proxy: float
    relay: float


#: How common each explanation of an end-to-end connection is. Paths with a middlebox that rewrites fields are one in
#: ten (Honda et al., IMC 2011: sequence numbers); SYN proxies guard few servers, and those when attacked.
PRIOR = Likelihood(0.89, 0.1, 0.01, 1.0)

#: Field, and what happened to it, gravest first -> likelihoods. Where a number is measured or follows from a standard:
#: a 32-bit number that agrees by chance; NATs and firewalls on one path in ten (Honda et al.); normalisers take options
#: out or overwrite them with padding and lower the segment size, and only stateful proxies can add scaling or
#: timestamps, since every later segment would have to change with them (RFC 7323, 2.2 and 3.2); routers that zero the
#: scale without taking it out existed. Linux's SYN proxy keeps the client's number and passes on what it offered. The
#: others are orders of magnitude.
TABLE: Mapping[str, Mapping[str, Likelihood]] = MappingProxyType(
    {
        "sequence numbers": {
            "both other": Likelihood(1e-6, 0.5, 0.4, 0.99),
            "only the server's other": Likelihood(1e-6, 0.2, 0.6, 0.003),
            "only the client's other": Likelihood(1e-6, 0.2, 1e-3, 0.003),
            "other": Likelihood(1e-6, 0.6, 0.8, 0.99),  # where one of the two segments is all that both captures hold
            "equal": Likelihood(1.0, 0.4, 1e-6, 1e-3),
        },
        "option list": {
            "scaling or timestamps added to the SYN": Likelihood(1e-6, 1e-4, 1e-3, 0.15),
            "scaling or timestamps added to the SYN-ACK": Likelihood(1e-6, 1e-4, 0.05, 0.15),
            "SACK added": Likelihood(1e-6, 1e-3, 0.05, 0.1),
            "segment size added": Likelihood(1e-6, 0.05, 0.3, 0.05),
            "unknown option added": Likelihood(1e-3, 0.05, 0.01, 0.05),
            "options removed": Likelihood(1e-3, 0.4, 0.3, 0.2),
            "equal": Likelihood(1.0, 0.5, 0.3, 0.4),
        },
        "option order": {
            "other": Likelihood(1e-6, 0.02, 0.4, 0.4),
            "equal": Likelihood(1.0, 0.98, 0.6, 0.6),
        },
        "window scale": {
            "other in the SYN": Likelihood(1e-6, 1e-3, 1e-3, 0.3),
            "other in the SYN-ACK": Likelihood(1e-6, 1e-3, 0.1, 0.3),
            "zeroed": Likelihood(1e-6, 0.05, 0.05, 0.05),
            "equal": Likelihood(1.0, 0.95, 0.85, 0.6),
        },
        "segment size": {
            "raised": Likelihood(1e-6, 0.03, 0.2, 0.2),
            "lowered": Likelihood(0.2, 0.5, 0.3, 0.3),
            "equal": Likelihood(0.8, 0.5, 0.5, 0.5),
        },
        "window": {
            "other": Likelihood(1e-6, 0.3, 0.9, 0.6),
            "equal": Likelihood(1.0, 0.7, 0.1, 0.4),
        },
        "IP ID": {
            "other": Likelihood(1e-6, 0.5, 0.95, 0.95),
            "zeroed": Likelihood(1e-3, 0.3, 0.3, 0.2),
            "equal": Likelihood(1.0, 0.5, 1e-3, 1e-3),
        },
        "TSval": {
            "other": Likelihood(1e-6, 0.3, 0.9, 0.97),
            "equal": Likelihood(1.0, 0.7, 0.1, 0.03),  # two stacks of one machine stamp alike within a tick
        },
        "TTL": {
            "raised": Likelihood(1e-6, 0.05, 0.2, 0.2),
            "not raised": Likelihood(1.0, 0.95, 0.8, 0.8),
        },
        "ECN": {
            "set": Likelihood(1e-6, 1e-3, 1e-3, 0.02),
            "cleared": Likelihood(0.02, 0.3, 0.5, 0.08),
            "equal": Likelihood(0.98, 0.7, 0.5, 0.9),
        },
    }
)

_RANKS = {field: {what: rank for rank, what in enumerate(rows)} for field, rows in TABLE.items()}

#: Changes that are looked at once: most handshakes of a path change alike.
_REMEMBERED = 4096

#: Beyond this the table, not the data, is in doubt.
MOST_NATS = 12.0

#: SYN and SYN-ACK, where both captures hold them; those of most connections of a path pass alike.
Openings = tuple[tuple[Direction, Passed], ...]


@lru_cache(_REMEMBERED)
def changes(openings: Openings) -> Mapping[str, str]:
    """Field -> what happened to it, for the fields that both captures hold."""
    found = {"sequence numbers": _sequence_numbers(openings)}
    for direction, passed in openings:
        for field, happened in _of_segment(direction, passed):
            known = found.get(field)
            if known is None or _RANKS[field][happened] < _RANKS[field][known]:
                found[field] = happened
    return MappingProxyType(found)


def relay_nats(found: Mapping[str, str]) -> float:
    """Natural-log likelihood ratio of a relay's own handshake against everything that leaves a connection whole."""
    return _relay_nats(tuple(found.items()))


@lru_cache(_REMEMBERED)
def _relay_nats(found: tuple[tuple[str, str], ...]) -> float:
    whole = 0.0
    for name in ("plain", "normaliser", "syn_proxy"):
        whole += getattr(PRIOR, name) * math.prod(getattr(TABLE[field][what], name) for field, what in found)
    relay = math.prod(TABLE[field][what].relay for field, what in found)
    return max(-MOST_NATS, min(MOST_NATS, math.log(relay / whole)))


def _of_segment(direction: Direction, passed: Passed) -> list[tuple[str, str]]:
    """What happened to the fields of a SYN or a SYN-ACK."""
    found: list[tuple[str, str]] = []
    left, came = passed.options
    if left is not None and came is not None and not passed.lacks_copies:
        # With fewer copies than arrived the capture missed some, and hosts try again with fewer options.
        found += _options("SYN" if direction is Direction.UP else "SYN-ACK", left, came)
    found.append(("window", "equal" if passed.same_window else "other"))
    if passed.same_tsval is not None:
        found.append(("TSval", "equal" if passed.same_tsval else "other"))
    if passed.ip_id is not None:
        found.append(("IP ID", passed.ip_id))
    found.append(("TTL", "raised" if passed.is_ttl_raised else "not raised"))
    found.append(("ECN", passed.ecn))
    return found


def _sequence_numbers(openings: Openings) -> str:
    other = [direction for direction, passed in openings if not passed.same_number]
    if not other:
        return "equal"
    if len(openings) == 1:
        return "other"
    if len(other) == 2:
        return "both other"
    return "only the client's other" if Direction.UP in other else "only the server's other"


@lru_cache(_REMEMBERED)
def _options(segment: str, left: SynOptions, came: SynOptions) -> tuple[tuple[str, str], ...]:
    """What happened to the options of a segment."""
    found = _kinds(segment, left.kinds, came.kinds)
    scale, scale_came = left.window_scale, came.window_scale
    if scale is not None and scale_came is not None:
        other = f"other in the {segment}" if any(scale_came) else "zeroed"
        found.append(("window scale", "equal" if scale == scale_came else other))
    size, size_came = left.segment_size, came.segment_size
    if size is not None and size_came is not None:
        found.append(("segment size", "equal" if size == size_came else "raised" if size_came > size else "lowered"))
    return tuple(found)


def _kinds(segment: str, left: tuple[int, ...], came: tuple[int, ...]) -> list[tuple[str, str]]:
    """What happened to the list of options and to their order."""
    found = [("option list", _added(kind, segment)) for kind in came if kind not in left]
    found.append(("option list", "options removed" if set(left) - set(came) else "equal"))
    common = [kind for kind in left if kind in came]
    if len(common) > 1:
        kept = common == [kind for kind in came if kind in common]
        found.append(("option order", "equal" if kept else "other"))
    return found


def _added(kind: int, segment: str) -> str:
    if kind in (WINDOW_SCALE, TIMESTAMPS):
        return f"scaling or timestamps added to the {segment}"
    if kind == SACK_PERMITTED:
        return "SACK added"
    return "segment size added" if kind == MAXIMUM_SEGMENT_SIZE else "unknown option added"
