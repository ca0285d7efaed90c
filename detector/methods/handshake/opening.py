"""SYN and SYN-ACK of one connection as one capture shows them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from detector.streams.known import are_known
from detector.streams.summaries import Summaries
from pepscope import _core
from pepscope.captures.packets import Direction, Int64Array

#: TCP option kinds (IANA registry); end of list and no-operation are padding.
END_OF_LIST, PADDING = 0, 1
MAXIMUM_SEGMENT_SIZE, WINDOW_SCALE, SACK_PERMITTED, TIMESTAMPS = 2, 3, 4, 8


#: Padding of so many bytes in a row is no stack's: options are aligned to four bytes, so three suffice.
BLANKED_BYTES = 4
_BLANKED = bytes([PADDING]) * BLANKED_BYTES

#: Options that are read once: a segment that arrives as it left has the same in both captures.
_REMEMBERED = 1024


class SynOptions(NamedTuple):
    """What stacks choose and middleboxes change of a SYN's options; a value is `None` without its option."""

    kinds: tuple[int, ...]  # in their order, without padding
    window_scale: bytes | None
    segment_size: bytes | None


class Passed(NamedTuple):
    """A SYN or a SYN-ACK as it left and as it arrived, all its copies together.

    `options` are those of the first copies; `None` where a capture cut them off. `lacks_copies`: more copies arrived
    than the emitter's capture shows. `same_tsval` and `ip_id` are `None` where nothing is to be compared.
    """

    same_number: bool
    options: tuple[SynOptions | None, SynOptions | None]
    lacks_copies: bool
    same_window: bool
    same_tsval: bool | None
    ip_id: str | None
    is_ttl_raised: bool
    ecn: str


#: What a capture shows of the segment that opens one direction, by name: see `pepscope._core.openings`.
Counts = Mapping[str, int]

_IP_IDS = (None, "equal", "other", "zeroed")
_EQUAL = 1
_UNKNOWN = 0


class Ends(NamedTuple):
    """What summaries show of the segment that opens a direction, as it left and as it arrived: whether it has the same
    number (None where one of them has none), and its options (None where a capture cut them off)."""

    same_number: bool | None
    left: SynOptions | None
    arrived: SynOptions | None


class EndsOfMany(NamedTuple):
    """`Ends` of many connections as columns: whether numbers are the same (`_SAME`), and places among the `options`."""

    same_number: Int64Array
    left: Int64Array
    arrived: Int64Array
    options: tuple[list[SynOptions | None], list[SynOptions | None]]  # as they left, and as they arrived

    def at(self, row: int) -> Ends:
        """Those of one connection."""
        left, arrived = self.options
        return Ends(_SAME[self.same_number[row]], left[self.left[row]], arrived[self.arrived[row]])


#: What a code of `EndsOfMany.same_number` stands for.
_SAME = (False, True, None)


def ends_of(left: Summaries, came: Summaries, direction: Direction) -> EndsOfMany:
    """The ends of a direction in many connections, by the captures at its senders and at its receivers."""
    number, there = (side.of_flow(direction, "initial_sequence_number") for side in (left, came))
    same = np.where(are_known(number, there), (number == there).astype(np.int64), _SAME.index(None))
    (codes, options), (codes_there, options_there) = (_options(side, direction) for side in (left, came))
    return EndsOfMany(same, codes, codes_there, (options, options_there))


def _options(side: Summaries, direction: Direction) -> tuple[Int64Array, list[SynOptions | None]]:
    """Options as places in a list."""
    codes, distinct = _core.coded_options(side.syn_options(direction), BLANKED_BYTES)
    captured = side.are_of_flow(direction, "options_captured")
    return np.where(captured, codes, len(distinct)), [*map(read_options, distinct), None]


def passed(ends: Ends, counts: Counts, has_ip_ids: bool, *, swapped: bool) -> Passed:
    """What both captures show of a segment that opens a direction, which both hold.

    `swapped`: what the one calls left arrived.
    """
    first, then = ("arrived", "left") if swapped else ("left", "arrived")
    most, most_then = counts[f"ecn_{first}"], counts[f"ecn_{then}"]
    tsvals = counts["tsvals"]
    return Passed(
        bool(ends.same_number),
        (ends.arrived, ends.left) if swapped else (ends.left, ends.arrived),
        counts[f"copies_{then}"] > counts[f"copies_{first}"],
        counts["windows"] == _EQUAL,
        None if tsvals == _UNKNOWN else tsvals == _EQUAL,
        _IP_IDS[counts["ip_ids"]] if has_ip_ids else None,
        counts[f"ttl_{then}"] > counts[f"ttl_{first}"],
        # Retransmitted SYNs go without ECN (RFC 3168, 6.1.1.1), so any copy that agrees will do.
        "equal" if counts["ecn"] == _EQUAL else "set" if most_then > most else "cleared",
    )


@lru_cache(_REMEMBERED)
def read_options(octets: bytes) -> SynOptions | None:
    """A SYN's options, an option that is repeated by its last copy.

    `None` where the last one is not whole, or where one was overwritten with padding, as firewalls and tools that make
    captures anonymous do.
    """
    options = None if _BLANKED in octets else parse_options(octets)
    if options is None:
        return None
    last = dict(options)
    return SynOptions(tuple([kind for kind, _ in options]), last.get(WINDOW_SCALE), last.get(MAXIMUM_SEGMENT_SIZE))


def parse_options(octets: bytes) -> tuple[tuple[int, bytes], ...] | None:
    """Kinds and values in their order without padding; `None` where the last option is not whole (RFC 9293 3.1)."""
    found: list[tuple[int, bytes]] = []
    position, end = 0, len(octets)
    while position < end and (kind := octets[position]) != END_OF_LIST:
        if kind == PADDING:
            position += 1
            continue
        length = octets[position + 1] if position + 1 < end else 0
        if length < 2 or position + length > end:
            return None
        found.append((kind, octets[position + 2 : position + length]))
        position += length
    return tuple(found)
