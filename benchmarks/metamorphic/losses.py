"""What a capture tool leaves out, repeats or writes in another order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.metamorphic.records import ACK, FIN, RST, SYN, Array, Records

#: Two records this close may change places on a network card with several queues: each is stamped by its own interrupt.
QUEUE_SKEW_NS = 10_000


def cut(records: Records, bytes_ipv4: int) -> Records:
    """At most so many bytes of each packet from its IP header on, 20 more of IPv6."""
    room = bytes_ipv4 + np.where(records.version == 6, 20, 0)
    return replace(records, held=np.minimum(records.held, room))


def lost(records: Records, share: float, chance: np.random.Generator) -> Records:
    """Each record is lost with probability `share`, on its own."""
    return records.take(chance.random(len(records)) >= share)


def lost_bursts(records: Records, share: float, longest: int, chance: np.random.Generator) -> Records:
    """Bursts of one to `longest` records are lost, in all about `share` of the records."""
    mean = (1 + longest) / 2
    begins = chance.random(len(records)) < share / mean / (1 - share)
    change = np.zeros(len(records) + 1, np.int64)
    starts = np.flatnonzero(begins)
    np.add.at(change, starts, 1)
    np.add.at(change, np.minimum(starts + chance.integers(1, longest + 1, len(starts)), len(records)), -1)
    return records.take(np.cumsum(change[:-1]) == 0)


def between(records: Records, begin: float, end: float) -> Records:
    """The records in the part of the capture's duration from `begin` to `end` (0 to 1)."""
    if len(records) == 0:
        return records
    first, last = int(records.time_ns.min()), int(records.time_ns.max())
    low, high = (first + round(share * (last - first)) for share in (begin, end))
    return records.take((records.time_ns >= low) & (records.time_ns <= high))


def without_part(records: Records, parts: int, missing: int) -> Records:
    """One of `parts` equal parts of the records is missing, as one file of a ring of them."""
    count = len(records)
    begin, end = (round(count * place / parts) for place in (missing, missing + 1))
    return records.take(np.r_[0:begin, end:count])


def without_equal(records: Records, among: int) -> Records:
    """Without records that are what one of the `among` before them was, byte for byte, as `editcap -D` leaves them out.

    Only what is held is compared, so hosts' own repetitions without an IP identification go as well.
    """
    held = zip(records.wire.tolist(), records.held.tolist(), records.data, strict=True)
    seen = [(wire, row[:size].tobytes()) for wire, size, row in held]
    return records.take(np.array([one not in seen[max(at - among, 0) : at] for at, one in enumerate(seen)], bool))


def first_records(records: Records, count: int) -> Records:
    """The first `count` records."""
    return records.take(slice(0, count))


def one_direction(records: Records, up: bool) -> Records:
    """Only what the openers of the connections sent, or (`up` false) only what was sent to them."""
    return records.take(records.is_up == up)


def with_data(records: Records) -> Records:
    """Only packets that carry data."""
    return records.take(records.payload_bytes > 0)


def thinned_acks(records: Records, one_in: int) -> Records:
    """Of the pure ACKs of each direction of each connection, every `one_in`-th."""
    pure = (records.payload_bytes == 0) & (records.flags & (SYN | FIN | RST | ACK) == ACK)
    keep = ~pure
    group = records.connection * 2 + records.is_up
    places = np.flatnonzero(pure)
    ordered = places[np.argsort(group[places], kind="stable")]
    keep[ordered[rank_in_runs(group[ordered]) % one_in == one_in - 1]] = True
    return records.take(keep)


def rank_in_runs(values: Array) -> Array:
    """The place of each element in its run of equal values."""
    begins = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])[: len(values)]
    lengths = np.diff(np.r_[begins, len(values)])
    return np.arange(len(values)) - np.repeat(begins, lengths)


def duplicated(records: Records, share: float, after_ns: int, chance: np.random.Generator) -> Records:
    """A share of the records once more, `after_ns` later, as a mirror of both directions of a port gives them."""
    again = records.take(chance.random(len(records)) < share)
    again = replace(again, time_ns=again.time_ns + after_ns)
    both = Records(*(np.concatenate([getattr(records, name), getattr(again, name)]) for name in records.__slots__))
    return both.take(np.argsort(both.time_ns, kind="stable"))


def swapped_in_file(records: Records, share: float, chance: np.random.Generator) -> Records:
    """A share of neighbours stand the other way round in the file; each keeps its time."""
    return records.take(_swapped(len(records), chance.random(max(len(records) - 1, 0)) < share))


def one_direction_first(records: Records, up: bool) -> Records:
    """One direction's file with the other's appended; each record keeps its time."""
    return records.take(np.argsort(records.is_up != up, kind="stable"))


def later_part_first(records: Records, at: float) -> Records:
    """What followed the share `at` of the records, and the records up to there appended; each keeps its time."""
    return records.take(np.roll(np.arange(len(records)), -round(at * len(records))))


def swapped_in_time(records: Records, share: float, chance: np.random.Generator) -> Records:
    """A share of neighbours within `QUEUE_SKEW_NS` of each other were stamped the other way round."""
    close = np.abs(np.diff(records.time_ns)) <= QUEUE_SKEW_NS
    changed = records.take(_swapped(len(records), close & (chance.random(len(close)) < share)))
    return replace(changed, time_ns=records.time_ns)


def _swapped(count: int, with_next: Array) -> Array:
    """Places of `count` records after the marked ones changed places with the next, each once at most."""
    order = np.arange(count)
    last = -1
    for place in np.flatnonzero(with_next).tolist():
        if place > last:
            order[place], order[place + 1] = place + 1, place
            last = place + 1
    return order
