"""Exchanges of one capture whose times tell nothing: it has none, counts frames, or a tool kept them from falling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from pepscope.captures.capture import Capture
from pepscope.captures.exchanges import ANSWERED_BEFORE, Exchanges

#: Times that are multiples of this (ns) have been rounded.
_COARSEST_NS = 1_000_000_000

#: Fewer frames may follow each other at equal steps by chance; and fewer of a connection at steps (ns) shorter than any
#: machine goes on with.
_FEWEST_COUNTED, _FEWEST_STEPS, _LEAST_STEP_NS = 16, 4, 2_000


def timed(capture: Capture, columns: Mapping[str, npt.NDArray[Any]], exchanges: Exchanges) -> Exchanges:
    """The exchanges; of a capture whose times are all one, were rounded to whole seconds, or count its frames, none
    times an answer. Connections whose times stood still count as those that two clocks timed."""
    times_ns = np.concatenate([exchanges.question_ns, exchanges.answered_ns])
    step_ns = int(np.gcd.reduce(times_ns - times_ns[0])) if len(times_ns) else 0
    if not 0 < step_ns < _COARSEST_NS or _counts_frames(capture, columns):
        return replace(exchanges, repeated=np.ones(len(exchanges), np.bool_))
    stood = _stood_still(capture, columns)
    if not stood.any():
        return exchanges
    trips = exchanges.round_trips
    handshake_ns = np.where(stood[trips.connection], ANSWERED_BEFORE, trips.handshake_ns)
    return replace(exchanges, round_trips=replace(trips, handshake_ns=handshake_ns))


def _stood_still(capture: Capture, columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Connections with times that a tool kept from falling: these stand still, or go on in least steps, until the clock
    that was set back has caught up.

    Round trips are that short on one machine, too. So of one connection at least the times have to count frames.
    """
    least_ns = np.stack([columns[f"{way}_round_trip_time_min_ns"] for way in ("up", "down")])
    suspects = ((least_ns >= 0) & (least_ns < _LEAST_STEP_NS)).any(axis=0)
    frames, times_ns = _ends(capture, columns, np.flatnonzero(suspects).tolist())
    counted, took_ns = np.diff(frames)[:, 0], np.diff(times_ns)[:, 0]
    in_steps = (took_ns % np.maximum(counted, 1) == 0) & (took_ns < _LEAST_STEP_NS * counted)
    return np.asarray(suspects & (in_steps & (counted >= _FEWEST_STEPS)).any())


def _counts_frames(capture: Capture, columns: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Whether times are the frames' numbers by one step: those of every connection's first and last packet, and of all
    packets of the connection that has most. The first and the last of all refute that of most captures; others take
    longer to look up."""
    ends = [int(np.argmin(columns["first_time_ns"])), int(np.argmax(columns["last_time_ns"]))]
    if not _is_counted(*_ends(capture, columns, ends)):
        return False
    frames, times_ns = _ends(capture, columns, range(len(columns["first_time_ns"])))
    most = int(np.argmax(columns["packets"]))
    frames = np.append(frames, capture.frame_numbers(most))
    times_ns = np.append(times_ns, capture.packets(most).time_ns)
    return len(np.unique(frames)) >= _FEWEST_COUNTED and _is_counted(frames, times_ns)


def _is_counted(frames: npt.NDArray[np.int64], times_ns: npt.NDArray[np.int64]) -> bool:
    """Whether each frame comes a whole step (ns) after the one before."""
    counted, took_ns = frames - frames.min(), times_ns - times_ns.flat[frames.argmin()]
    step_ns, over_ns = divmod(int(took_ns.flat[frames.argmax()]), max(int(counted.max()), 1))
    return over_ns == 0 and bool((took_ns == counted * step_ns).all())


def _ends(
    capture: Capture, columns: Mapping[str, npt.NDArray[Any]], connections: Sequence[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Frames and times (ns) of the first and the last packet of connections, a row a connection."""
    times_ns = np.stack([columns[f"{end}_time_ns"][list(connections)] for end in ("first", "last")], axis=1)
    return capture.frame_spans(list(connections)), times_ns
