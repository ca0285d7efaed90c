"""SYN and SYN-ACK of one connection as one capture shows them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from detector.pair import Vantage
from detector.streams.flow_ends import flow_ends
from pepscope.captures.packets import Direction

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
    flow, seen = vantage.flow(direction), vantage.derived(flow_ends, direction)
    if flow.initial_sequence_number is None or seen.syn_copies == 0:
        return None
    counted = vantage.connection.ip_version == 4
    return Opening(
        sequence_number=flow.initial_sequence_number,
        copies=seen.syn_copies,
        options=read_options(flow.syn_options) if flow.options_captured else None,
        windows=frozenset(seen.syn_windows),
        ip_ids=frozenset(seen.syn_ip_ids if counted else ()),
        tsvals=frozenset(seen.syn_tsvals),
        ecn=frozenset(seen.syn_ecn),
        ttl=seen.syn_ttl,
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
