"""What a clock that was set leaves in its capture, for the steps that are to explain early acknowledgements.

A clock set forward shows a pause as long as the step, and no packet in it. One set back would show times that fall;
where they do not, there was a pause at least as long, and the other capture shows it. And each capture's times jump
against the TCP timestamps of its own host (`detector.clocks.host_clock`). A queue leaves neither.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from detector.clocks.host_clock import HostClock, host_clock
from detector.clocks.steps import ClockPiece
from detector.pair import Pair
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array

#: Theta over the client's clock, and over the server's: what is added to a client time to have the capture's own.
_CLIENT, _SERVER = 0, 1


def steps_contradicted(
    pair: Pair, pieces: Sequence[ClockPiece], drift_limit: float, round_trip_ns: float, error_ns: float
) -> bool:
    """Whether the captures show that one of the steps between these pieces was none, or another one.

    `drift_limit` bounds what the clocks drift apart, `round_trip_ns` by how much a pause may be shorter at the other
    end, and `error_ns` how wrong a capture's times are.
    """
    if pair.client_side is None or pair.server_side is None:
        return False
    return _no_pause(pair, pieces, round_trip_ns + error_ns) or _no_jump(pair, pieces, drift_limit, error_ns)


def _allowed(before: ClockPiece, after: ClockPiece) -> tuple[float, float]:
    """The least and the greatest step (ns) that the constraints of both pieces allow."""
    (low_before, high_before), (low_after, high_after) = (
        piece.bounds_at_ns(after.start_ns) for piece in (before, after)
    )
    return low_after - high_before, high_after - low_before


def _no_pause(pair: Pair, pieces: Sequence[ClockPiece], tolerance_ns: float) -> bool:
    """Whether no capture shows the pause that one of the steps needs."""
    for number, (before, after) in enumerate(itertools.pairwise(pieces)):
        least, most = _allowed(before, after)
        size = max(least, -most, 0.0)
        end = pieces[number + 2].start_ns if number + 2 < len(pieces) else None
        pauses = [
            _longest_pause(vantage.packets.time_ns, _own_ns(before, clock), end and _own_at_ns(after, end, clock))
            for vantage, clock in ((pair.client_side, _CLIENT), (pair.server_side, _SERVER))
            if vantage is not None
        ]
        if max(pauses) < size - tolerance_ns:
            return True
    return False


def _own_ns(piece: ClockPiece, clock: int) -> float:
    return _own_at_ns(piece, piece.start_ns, clock)


def _own_at_ns(piece: ClockPiece, time_ns: int, clock: int) -> float:
    return time_ns + clock * piece.at_ns(time_ns)


def _longest_pause(time_ns: Int64Array, start_ns: float, end_ns: float | None) -> float:
    """The longest time between two packets of a capture (ns) of which one lies in a stretch, in the file's order."""
    longest_ns = _core.longest_pause_ns(time_ns, start_ns, math.inf if end_ns is None else end_ns)
    return math.inf if longest_ns is None else float(longest_ns)


def _no_jump(pair: Pair, pieces: Sequence[ClockPiece], drift_limit: float, error_ns: float) -> bool:
    """Whether the captures' times jump otherwise against their hosts' timestamps than one of the steps would have it,
    give or take a tick of each and what the clocks may drift apart meanwhile."""
    if pair.client_side is None or pair.server_side is None:
        return False
    client = pair.client_side.derived(host_clock, Direction.UP)
    server = pair.server_side.derived(host_clock, Direction.DOWN)
    if client is None or server is None:
        return False
    client_levels, server_levels = _levels(client, pieces, _CLIENT), _levels(server, pieces, _SERVER)
    for number, (before, after) in enumerate(itertools.pairwise(pieces)):
        moved_client, moved_server = (_moved(levels, number) for levels in (client_levels, server_levels))
        if moved_client is None or moved_server is None:
            continue
        least, most = _allowed(before, after)
        error = client.tick_ns + server.tick_ns + error_ns + drift_limit * (after.end_ns - before.start_ns)
        if not least - error <= moved_server - moved_client <= most + error:
            return True
    return False


def _levels(clock: HostClock, pieces: Sequence[ClockPiece], own: int) -> list[float | None]:
    """The capture's time less the host's where each piece begins.

    A piece is as long as its constraints allow, so the step to the next one is near its end, but before it.
    """
    starts = [_own_ns(piece, own) for piece in pieces]
    return [clock.level_from(start, end) for start, end in itertools.pairwise([-math.inf, *starts[1:], math.inf])]


def _moved(levels: Sequence[float | None], number: int) -> float | None:
    before, after = levels[number : number + 2]
    return None if before is None or after is None else after - before
