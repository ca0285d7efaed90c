"""What one capture shows of a connection in NumPy: what the compiled numbers are compared with."""

from __future__ import annotations

import numpy as np

from detector.streams import curves
from pepscope.captures.packets import NO_ACKNOWLEDGEMENT, Direction, Mark, PacketColumns, TcpFlag

ENDING = TcpFlag.RST | TcpFlag.FIN


def window_course(
    packets: PacketColumns, direction: Direction, shut_share: float, open_share: float
) -> tuple[int, int, int, int, float]:
    """Cycles, times shut, least and largest window (bytes), and least share."""
    special = packets.flagged(TcpFlag.SYN | TcpFlag.RST | TcpFlag.FIN)
    windows = packets.window_bytes[packets.going(direction) & packets.flagged(TcpFlag.ACK) & ~special].astype(np.int64)
    if len(windows) == 0:
        return 0, 0, 0, 0, 1.0
    largest = int(windows.max())
    windows = windows[int(np.argmax(windows > open_share * windows[0])) :]
    share = windows / np.maximum(np.maximum.accumulate(windows), 1)
    state = np.where(share <= shut_share, -1, np.where(share >= open_share, 1, 0))
    state = state[state != 0]
    changes = state[np.flatnonzero(np.diff(state, prepend=0) != 0)]
    shut = int(np.count_nonzero(changes == -1))
    reopened = int(np.count_nonzero((changes[:-1] == -1) & (changes[1:] == 1)))
    return reopened, shut, int(windows.min()), largest, float(share.min())


def abort(packets: PacketColumns, direction: Direction) -> tuple[int, int] | None:
    """Time (ns) and highest offset reached of a receiver's abort."""
    reply = packets.going(direction.reverse)
    resets = reply & packets.flagged(TcpFlag.RST)
    if not resets.any():
        return None
    finished = packets.going(direction) & packets.flagged(TcpFlag.FIN)
    if finished.any() and packets.time_ns[finished].min() <= packets.time_ns[resets].min():
        return None
    data = packets.going(direction) & (packets.payload_bytes > 0)
    ends = packets.sequence_offset[data] + packets.payload_bytes[data].astype(np.int64)
    if len(ends) == 0:
        return None
    acks = packets.acknowledgement_offset[reply & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)]
    ending = reply & packets.flagged(ENDING)
    return int(packets.time_ns[ending].min()), max(int(ends.max()), int(acks.max(initial=0)))


def abort_at_sender(packets: PacketColumns, direction: Direction) -> tuple[int, int, int | None, int]:
    """Bytes acknowledged, largest payload, time (ns) of the other end's first FIN or RST, and zero-window probes."""
    replies = packets.going(direction.reverse)
    acked = replies & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT) & ~packets.flagged(TcpFlag.RST)
    over = replies & packets.flagged(ENDING)
    probes = packets.going(direction) & packets.marked(Mark.ZERO_WINDOW_PROBE) & ~packets.marked(Mark.DUPLICATE)
    return (
        int(packets.acknowledgement_offset[acked].max(initial=0)),
        int(packets.payload_bytes.max(initial=0)),
        int(packets.time_ns[over].min()) if over.any() else None,
        int(np.count_nonzero(probes)),
    )


def fins(packets: PacketColumns, direction: Direction) -> tuple[int, int | None]:
    """How many FINs, and when (ns) the first passed; None where there is none, or where an earlier one was missed."""
    sent = packets.flagged(TcpFlag.FIN) & ~packets.marked(Mark.DUPLICATE)
    found = np.flatnonzero(packets.going(direction) & sent)
    if len(found) == 0 or packets.marked(Mark.RETRANSMISSION)[found[0]]:
        return len(found), None
    return len(found), int(packets.time_ns[found[0]])


def hop_limit(packets: PacketColumns, direction: Direction) -> int | None:
    """The most frequent hop limit of a flow."""
    seen = packets.ttl[packets.going(direction)]
    return int(np.bincount(seen).argmax()) if len(seen) else None


def answering_hop_limits(packets: PacketColumns, direction: Direction) -> tuple[int | None, int | None]:
    """Hop limit of the first SYN that acknowledges, and the most frequent one of the other packets that do."""
    answers = packets.going(direction) & (packets.acknowledgement_offset != NO_ACKNOWLEDGEMENT)
    answers &= ~packets.flagged(TcpFlag.RST)
    opening = packets.ttl[answers & packets.flagged(TcpFlag.SYN)]
    later = packets.ttl[answers & ~packets.flagged(TcpFlag.SYN)]
    return (
        int(opening[0]) if len(opening) else None,
        int(np.bincount(later).argmax()) if len(later) else None,
    )


def acknowledgement_delays_s(packets: PacketColumns, direction: Direction) -> list[float]:
    """At the receiver: from the arrival of the last byte that each plain acknowledgement covers to its sending."""
    arrived, sent = curves.first_arrivals(packets, direction), curves.acknowledgements(packets, direction)
    chosen = sent.plain & (sent.value > max(sent.floor, 0))
    arrival = arrived.at(sent.value[chosen] - 1)
    known = arrival != curves.NEVER
    delays: list[float] = ((sent.time_ns[chosen][known] - arrival[known]) / 1e9).tolist()
    return delays


def round_trips(packets: PacketColumns, direction: Direction, limit_s: float) -> tuple[int, float, int, int]:
    """How many round trips, the least (s), how many shorter than the limit, and most of these during the longest."""
    sent, seen = curves.sent_data(packets, direction), curves.acknowledgements(packets, direction)
    chosen = seen.plain & (seen.value > max(seen.floor, 0))
    last = seen.value[chosen] - 1
    left = sent.first_copies.at(last)
    again = ((sent.repeats.start <= last[:, None]) & (last[:, None] < sent.repeats.end)).any(axis=1)
    known = (left != curves.NEVER) & ~again
    came = seen.time_ns[chosen][known]
    ended, trips = (came - came[:1]) / 1e9, (came - left[known]) / 1e9
    if len(trips) == 0:
        return 0, 0.0, 0, 0
    times = ended[trips < limit_s]
    within = np.searchsorted(times, times + trips.max(), side="right") - np.arange(len(times))
    return len(trips), float(trips.min()), len(times), int(within.max(initial=0))
