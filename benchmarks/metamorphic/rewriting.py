"""What NATs, firewalls and window regulators write into the packets that pass, and what anonymisers do.

A middlebox on the way changes what an end *receives*; both directions are changed alike only where a middlebox
translates (addresses, sequence numbers, timestamps), so that each end sees its own numbers back.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.metamorphic.records import ACK, SACK, SYN, Array, Records, joined, with_length

#: Address that a NAT shows, IPv4 and IPv6: networks for benchmarks and documentation (RFC 2544, RFC 3849).
NAT_ADDRESS = {4: bytes([198, 18, 0, 7]), 6: bytes.fromhex("20010db8000000000000000000000777")}
_FIRST_NAT_PORT = 20_000
#: What stands before IPv4 addresses at the openers' side of a translator, and before those of servers (RFC 6052).
OPENERS_PREFIX = bytes.fromhex("20010db80064000000000000")
_TRANSLATED_PREFIX = bytes.fromhex("0064ff9b0000000000000000")
#: An IPv6 header against an IPv4 one.
_LONGER_BY = 20
_WINDOW_SCALE = 3

#: A regulator leaves the sender this much more than it was seen to use: losses of the capture hide some of its use.
WINDOW_ROOM = 1.25
_TWO_SEGMENTS = 3000


def translated(records: Records, opener: bool, chance: np.random.Generator) -> Records:
    """A NAT gives the end that opens (or, port forwarding, the other end) one address, and each connection a port."""
    count = records.connections
    span = 65_536 - _FIRST_NAT_PORT
    ports = _FIRST_NAT_PORT + chance.choice(span, count, replace=False) if 0 < count <= span else np.zeros(count)
    from_end = records.is_up == opener
    data = records.data.copy()
    for version, address in NAT_ADDRESS.items():
        first, size = (8, 16) if version == 6 else (12, 4)
        for is_source in (True, False):
            rows = np.flatnonzero((records.version == version) & (from_end == is_source))
            start = first if is_source else first + size
            data[rows[:, None], start + np.arange(size)] = np.frombuffer(address, np.uint8)
    renamed = replace(records, data=data)
    port = ports[records.connection]
    return renamed.put(records.tcp, 2, port, from_end).put(records.tcp + 2, 2, port, ~from_end)


def as_version_6(records: Records) -> Records:
    """IPv4 packets as a translator makes IPv6 of them (RFC 7915): 20 bytes longer, without an identification.

    Only packets without IP options; addresses are the last four bytes of others (RFC 6052).
    """
    plain = (records.version == 4) & (records.data[:, 0] & 15 == 5)
    older = records.take(plain)
    grown = np.roll(older.data, _LONGER_BY, axis=1)
    grown[:, :40] = 0
    grown[:, 0], grown[:, 6], grown[:, 7] = 0x60, older.data[:, 9], older.data[:, 8]
    for start, own, other in ((8, older.is_up, 12), (24, ~older.is_up, 16)):
        prefixes = np.frombuffer(OPENERS_PREFIX + _TRANSLATED_PREFIX, np.uint8).reshape(2, 12)
        grown[:, start : start + 12] = prefixes[np.where(own, 0, 1)]
        grown[:, start + 12 : start + 16] = older.data[:, other : other + 4]
    moved = {name: getattr(older, name) for name in ("timestamps", "sack")}
    held = np.minimum(older.held + _LONGER_BY, older.data.shape[1])
    made = replace(
        older, data=grown, held=held, wire=older.wire + _LONGER_BY, tcp=older.tcp + _LONGER_BY,
        **{name: np.where(at > 0, at + _LONGER_BY, 0) for name, at in moved.items()},
    )  # fmt: skip
    made = with_length(made, np.ones(len(made), bool))
    order = np.argsort(np.r_[np.flatnonzero(plain), np.flatnonzero(~plain)], kind="stable")
    rest = records.take(~plain)
    both = (np.concatenate([getattr(made, name), getattr(rest, name)]) for name in Records.__slots__)
    return Records(*both).take(order)


def unmarked(records: Records, received: Array) -> Records:
    """A router on the way clears the DSCP and ECN fields (RFC 2474, RFC 3168) and the TCP flags ECE and CWR."""
    is_6 = records.version == 6
    made = records.put(1, 1, 0, received & ~is_6).put(0, 2, records.get(0, 2) & 0xF00F, received & is_6)
    return made.put(made.tcp + 13, 1, made.flags & 0x3F, received)


def on_both_interfaces(records: Records, after_ns: int) -> Records:
    """Every packet a second time, as a router sends it: one hop further, `after_ns` later."""
    hop_limit = np.where(records.version == 6, 7, 8)
    passed = records.put(hop_limit, 1, np.maximum(records.get(hop_limit, 1) - 1, 1))
    return joined(records, replace(passed, time_ns=passed.time_ns + after_ns), 0)


def on_both_sides_of_nat(records: Records, opener: bool, after_ns: int, chance: np.random.Generator) -> Records:
    """Every packet once more with the addresses that a NAT gives: what openers send that much later, what comes back
    that much earlier. The other addresses are connections of their own."""
    beyond = translated(records, opener, chance)
    passed_ns = np.where(records.is_up == opener, after_ns, -after_ns)
    return joined(records, replace(beyond, time_ns=beyond.time_ns + passed_ns), records.connections)


def with_other_ends(records: Records, key: int) -> Records:
    """Addresses under a key, and every port another."""
    ports = np.random.default_rng(key).permutation(65_536)
    made = anonymised(records, key)
    for at in (records.tcp, records.tcp + 2):
        made = made.put(at, 2, ports[made.get(at, 2)])
    return made


def anonymised(records: Records, key: int) -> Records:
    """Addresses under a key: one address stays one address, also in another capture under the same key."""
    data = records.data.copy()
    mask = np.frombuffer((key & (1 << 24) - 1).to_bytes(3, "big"), np.uint8)
    is_6 = records.version == 6
    for rows, ends in ((np.flatnonzero(~is_6), (16, 20)), (np.flatnonzero(is_6), (24, 40))):
        for end in ends:
            places = np.arange(end - 3, end)
            data[rows[:, None], places] ^= mask
    return replace(records, data=data)


def with_shifted_sequence_numbers(records: Records, chance: np.random.Generator) -> Records:
    """A firewall that hides initial sequence numbers: a constant for each direction of each connection.

    Acknowledgements and SACK blocks of the other direction are translated back.
    """
    return _renumbered(records, chance.integers(0, 2**32, (max(records.connections, 1), 2)))


def as_strangers(
    records: Records, numbers: tuple[int, int], stamps: tuple[int, int], identifications: tuple[int, int]
) -> Records:
    """Sequence numbers, timestamps and IPv4 identifications moved by one constant for each direction, down and up, of
    all connections; identifications that are zero stay so.

    Hosts draw all three at random (RFC 6528, RFC 7323 section 5.4, RFC 7739), so unrelated connections do not have them
    in common; simulated ones may.
    """
    count = max(records.connections, 1)
    own = np.take(identifications, records.is_up.astype(int))
    has_one = (records.version == 4) & (records.get(4, 2) != 0)
    records = records.put(4, 2, records.get(4, 2) + own, has_one)
    return _restamped(_renumbered(records, np.tile(numbers, (count, 1))), np.tile(stamps, (count, 1)))


def _renumbered(records: Records, constants: Array) -> Records:
    """`constants`: for each connection what is added to the sequence numbers down and up."""
    own = constants[records.connection, records.is_up.astype(int)]
    others = constants[records.connection, (~records.is_up).astype(int)]
    made = records.put(records.tcp + 4, 4, records.sequence + own)
    made = made.put(records.tcp + 8, 4, records.acknowledgement + others, records.flags & ACK > 0)
    is_sack = (records.sack > 0) & (records.get(records.sack, 1) == SACK)
    length = np.where(is_sack, records.get(records.sack + 1, 1), 0)
    for edge in range(2, 34, 4):
        at = np.minimum(records.sack + edge, records.data.shape[1] - 4)
        made = made.put(at, 4, made.get(at, 4) + others, (edge + 4 <= length) & (at == records.sack + edge))
    return made


def with_identification(records: Records, received: Array, randomly: bool, chance: np.random.Generator) -> Records:
    """IPv4 identifications of what is received, zeroed or drawn anew."""
    drawn = chance.integers(0, 65_536, len(records)) if randomly else 0
    return records.put(4, 2, drawn, received & (records.version == 4))


def without_timestamps(records: Records, where: Array) -> Records:
    """The option overwritten by no-operations, in the rows `where`."""
    rows = np.flatnonzero(where & (records.timestamps > 0))
    data = records.data.copy()
    data[rows[:, None], records.timestamps[rows, None] + np.arange(10)] = 1
    return replace(records, data=data, timestamps=np.where(where, 0, records.timestamps))


def with_shifted_timestamps(records: Records, chance: np.random.Generator) -> Records:
    """A middlebox that hides uptimes: TSval off by a constant for each direction, TSecr translated back."""
    return _restamped(records, chance.integers(0, 2**32, (max(records.connections, 1), 2)))


def _restamped(records: Records, constants: Array) -> Records:
    """`constants`: for each connection what is added to TSval down and up."""
    has = records.timestamps > 0
    value, echo = records.timestamps + 2, records.timestamps + 6
    own = constants[records.connection, records.is_up.astype(int)]
    others = constants[records.connection, (~records.is_up).astype(int)]
    echoed = records.get(echo, 4)
    made = records.put(value, 4, records.get(value, 4) + own, has)
    return made.put(echo, 4, echoed + others, has & (echoed > 0))


def with_other_payload(records: Records, key: int) -> Records:
    """Every payload byte under a key, which both ends apply: another object of the same length."""
    is_header = np.arange(records.data.shape[1]) < records.header_bytes[:, None]
    return replace(records, data=np.where(is_header, records.data, records.data ^ np.uint8(1 + key % 255)))


def with_zeroed_payload(records: Records) -> Records:
    """Every payload byte is zero; lengths, headers and options stay."""
    is_header = np.arange(records.data.shape[1]) < records.header_bytes[:, None]
    return replace(records, data=np.where(is_header, records.data, np.uint8(0)))


def with_narrower_windows(records: Records, received: Array) -> Records:
    """A regulator clamps the windows that an end receives, but never below what this end's data used of them."""
    window = records.get(records.tcp + 14, 2)
    narrowed = window.copy()
    for connection in np.unique(records.connection):
        here = records.connection == connection
        for rows in (here & received & records.is_up, here & received & ~records.is_up):
            if rows.any():
                narrowed[rows] = _clamped(records, here, rows, window)
    return records.put(records.tcp + 14, 2, narrowed)


def _clamped(records: Records, here: Array, rows: Array, window: Array) -> Array:
    limit = int(_most_outstanding(records, np.flatnonzero(here), rows) * WINDOW_ROOM) + _TWO_SEGMENTS
    opening = np.flatnonzero(here & (records.flags & SYN > 0)).tolist()
    syns = {bool(records.is_up[row]): _scale(records, row) for row in opening}
    if len(syns) < 2:
        return window[rows]  # how far windows are scaled is unknown
    scaled = all(shift is not None for shift in syns.values())
    shift = (syns[bool(records.is_up[rows.argmax()])] or 0) if scaled else 0
    unscaled = records.flags[rows] & SYN > 0
    return np.minimum(window[rows], np.where(unscaled, limit, limit >> shift))


def _most_outstanding(records: Records, here: Array, rows: Array) -> int:
    """Most bytes that the end that receives `rows` had sent without acknowledgement, in this capture."""
    acknowledging = rows[here]
    data = ~acknowledging & (records.payload_bytes[here] > 0)
    acknowledging &= records.flags[here] & ACK > 0
    if not data.any():
        return 0
    base = records.sequence[here][data][0]
    sent = _relative(records.sequence[here], base) + records.payload_bytes[here]
    taken = _relative(records.acknowledgement[here], base)
    most_sent = np.maximum.accumulate(np.where(data, sent, 0))
    most_taken = np.maximum.accumulate(np.where(acknowledging, taken, 0))
    return int((most_sent - most_taken).max())


def _relative(number: Array, base: int) -> Array:
    return (number - base + 2**31) % 2**32 - 2**31


def _scale(records: Records, row: int) -> int | None:
    """The window scale that a SYN offers."""
    at, end = int(records.tcp[row]) + 20, int(records.header_bytes[row])
    packet = records.data[row].tobytes()
    while at + 2 < end and packet[at]:
        if packet[at] == _WINDOW_SCALE:
            return int(packet[at + 2])
        at += 1 if packet[at] == 1 else max(packet[at + 1], 2)
    return None
