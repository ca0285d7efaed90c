"""SYN and SYN-ACK of one connection as one capture shows them, and what passed between two captures, for comparison."""

from __future__ import annotations

from typing import NamedTuple

from detector.methods.handshake.changes import Openings
from detector.methods.handshake.opening import Passed, SynOptions, read_options
from detector.pair import Vantage
from pepscope.captures.packets import Direction
from tests.detector.streams import reference_flow_ends

_ZERO = frozenset({0})


class Opening(NamedTuple):
    """The SYN (or SYN-ACK) of one direction at one vantage, all its copies together.

    `options` are those of the first copy; `None` where the capture cut them off. `windows` (unscaled), `ip_ids`,
    `tsvals` and `ecn` hold what each copy had; `ip_ids` and `tsvals` are empty where there is none.
    """

    sequence_number: int
    copies: int
    options: SynOptions | None
    windows: frozenset[int]
    ip_ids: frozenset[int]
    tsvals: frozenset[int]
    ecn: frozenset[int]
    ttl: int


def read_opening(vantage: Vantage, direction: Direction) -> Opening | None:
    """The SYN (up) or SYN-ACK (down) that this capture holds; `None` without one."""
    flow, seen = vantage.flow(direction), reference_flow_ends.opening(vantage.packets, direction)
    if flow.initial_sequence_number is None or seen is None:
        return None
    counted = vantage.connection.ip_version == 4
    return Opening(
        sequence_number=flow.initial_sequence_number,
        copies=seen.copies,
        options=read_options(flow.syn_options) if flow.options_captured else None,
        windows=seen.windows,
        ip_ids=seen.ip_ids if counted else frozenset(),
        tsvals=seen.tsvals,
        ecn=seen.ecn,
        ttl=seen.ttl,
    )


def passed(left: Opening, came: Opening) -> Passed:
    """What of a segment that left arrived alike."""
    return Passed(
        left.sequence_number == came.sequence_number,
        (left.options, came.options),
        came.copies > left.copies,
        bool(left.windows & came.windows),
        bool(left.tsvals & came.tsvals) if left.tsvals and came.tsvals else None,
        _ip_id(left.ip_ids, came.ip_ids),
        came.ttl > left.ttl,
        _ecn(left.ecn, came.ecn),
    )


def openings_of(both: dict[Direction, tuple[Opening, Opening]]) -> Openings:
    """SYN and SYN-ACK as they left and arrived."""
    return tuple((direction, passed(*sides)) for direction, sides in both.items())


def _ip_id(left: frozenset[int], came: frozenset[int]) -> str | None:
    """None where a side has none or both leave it 0, as many stacks do in a SYN-ACK."""
    if not left or not came or left | came == _ZERO:
        return None
    if came == _ZERO or left == _ZERO:
        return "zeroed"
    return "equal" if (left & came) - _ZERO else "other"


def _ecn(left: frozenset[int], came: frozenset[int]) -> str:
    """Retransmitted SYNs go without ECN (RFC 3168, 6.1.1.1), so any copy that agrees will do."""
    if left & came:
        return "equal"
    return "set" if max(came) > max(left) else "cleared"
