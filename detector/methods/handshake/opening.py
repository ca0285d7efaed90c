"""SYN and SYN-ACK of one connection as one capture shows them."""

from __future__ import annotations

from dataclasses import dataclass

from detector.pair import Vantage
from detector.streams.flow_ends import flow_ends
from pepscope.captures.packets import Direction

#: TCP option kinds (IANA registry); end of list and no-operation are padding.
END_OF_LIST, PADDING = 0, 1
MAXIMUM_SEGMENT_SIZE, WINDOW_SCALE, SACK_PERMITTED, TIMESTAMPS = 2, 3, 4, 8


#: Padding of so many bytes in a row is no stack's: options are aligned to four bytes, so three suffice.
BLANKED_BYTES = 4
_BLANKED = bytes([PADDING]) * BLANKED_BYTES


@dataclass(frozen=True, slots=True)
class Opening:
    """The SYN (or SYN-ACK) of one direction at one vantage, all its copies together.

    `options` are kinds and values of the first copy in their order, without padding; `None` where the capture cut them
    off. `windows` (unscaled), `ip_ids`, `tsvals` and `ecn` hold what each copy had; `ip_ids` and `tsvals` are empty
    where there is none.
    """

    sequence_number: int
    copies: int
    options: tuple[tuple[int, bytes], ...] | None
    windows: frozenset[int]
    ip_ids: frozenset[int]
    tsvals: frozenset[int]
    ecn: frozenset[int]
    ttl: int

    @property
    def kinds(self) -> tuple[int, ...]:
        """Option kinds in their order; nothing where they were cut off."""
        return tuple([kind for kind, _ in self.options or ()])

    def value(self, kind: int) -> bytes | None:
        """The value of an option (of its last copy), `None` without it."""
        found = None
        for other, value in self.options or ():
            if other == kind:
                found = value
        return found


def read_opening(vantage: Vantage, direction: Direction) -> Opening | None:
    """The SYN (up) or SYN-ACK (down) that this capture holds; `None` without one."""
    flow, seen = vantage.flow(direction), vantage.derived(flow_ends, direction)
    if flow.initial_sequence_number is None or seen.syn_copies == 0:
        return None
    counted = vantage.connection.ip_version == 4
    return Opening(
        sequence_number=flow.initial_sequence_number,
        copies=seen.syn_copies,
        options=parse_options(flow.syn_options) if flow.options_captured and not _blanked(flow.syn_options) else None,
        windows=frozenset(seen.syn_windows),
        ip_ids=frozenset(seen.syn_ip_ids if counted else ()),
        tsvals=frozenset(seen.syn_tsvals),
        ecn=frozenset(seen.syn_ecn),
        ttl=seen.syn_ttl,
    )


def _blanked(octets: bytes) -> bool:
    """Whether an option was overwritten with padding, as firewalls and tools that make captures anonymous do."""
    return _BLANKED in octets


def parse_options(octets: bytes) -> tuple[tuple[int, bytes], ...] | None:
    """Kinds and values in their order without padding; `None` where the last option is not whole (RFC 9293 3.1)."""
    found: list[tuple[int, bytes]] = []
    position = 0
    while position < len(octets) and octets[position] != END_OF_LIST:
        if octets[position] == PADDING:
            position += 1
            continue
        length = octets[position + 1] if position + 1 < len(octets) else 0
        if length < 2 or position + length > len(octets):
            return None
        found.append((octets[position], octets[position + 2 : position + length]))
        position += length
    return tuple(found)
