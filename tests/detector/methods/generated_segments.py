"""Generated segments, what a path and captures make of them, and packets that hold them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from detector.methods.identity.agreement import (
    ClassComparison,
    FieldAgreement,
    compare_acknowledgements,
    compare_data,
)
from detector.methods.identity.segment_counts import segment_counts
from detector.methods.identity.segments import COPIES, FEWEST_JOINED, MAJORITY
from pepscope import _core
from pepscope.captures.packets import Direction, Mark, PacketColumns, TcpFlag
from tests.detector.methods.reference_segments import Segments

WRAP = 1 << 32
NOTHING = np.zeros(0, np.int64)

seeds = st.integers(0, 2**32 - 1)
counts = st.integers(0, 120)
#: What a relay, a firewall, a capture and a receiving host do: other packets, stamps shifted, windows scaled, stamps or
#: identifications taken away, segments joined, stamps cut off by the snap length.
changes = st.sets(st.sampled_from(("relay", "shift", "scale", "strip", "zero-id", "join", "cut", "hop")))


def emitted_data(random: np.random.Generator, count: int) -> Segments:
    """Data in order, a tenth of it sent again, and now and then with another PSH or acknowledgement."""
    length = random.choice([1448, 1448, 1448, 700, 1], count)
    data = _segments(random, np.cumsum(length) - length, length)
    again = np.flatnonzero(random.random(count) < 0.1)
    later = data.take(again)
    return together(
        data,
        later.replaced(
            first_copy=np.zeros(len(again), np.bool_),
            tsval=(later.tsval + random.integers(0, 3, len(again))) % WRAP * later.has_timestamps,
            push=random.random(len(again)) < 0.5,
            acknowledgement=later.acknowledgement + random.integers(0, 2, len(again)),
        ),
    )


def emitted_acknowledgements(random: np.random.Generator, count: int) -> Segments:
    """Pure acknowledgements with runs of duplicates."""
    plain = _segments(random, np.zeros(count, np.int64), np.zeros(count, np.int64))
    return plain.replaced(acknowledgement=np.cumsum(random.integers(0, 3, count)) * 1448)


def arrived(random: np.random.Generator, emitted: Segments, how: set[str]) -> Segments:
    """What the other capture shows of these segments: some are lost, some disordered."""
    order = np.argsort(np.arange(len(emitted)) + random.choice([0, 0, 0, 3], len(emitted)), kind="stable")
    came = emitted.take(order[random.random(len(emitted)) < 0.9])
    count = len(came)
    if "relay" in how:
        other = _segments(random, came.start, came.length)
        came = other.replaced(acknowledgement=came.acknowledgement, push=came.push)
    if "shift" in how:
        stamped = came.has_timestamps
        came = came.replaced(
            tsval=(came.tsval + 4_000_000_000) % WRAP * stamped, tsecr=(came.tsecr + 77) % WRAP * stamped
        )
    if "scale" in how:
        came = came.replaced(window=came.window >> 3)
    if "strip" in how:
        gone = random.random(count) < 0.5
        kept = np.where(gone, 0, 1)
        came = came.replaced(
            has_timestamps=came.has_timestamps & ~gone, tsval=came.tsval * kept, tsecr=came.tsecr * kept
        )
    if "zero-id" in how:
        came = came.replaced(ip_id=np.zeros(count, np.int64))
    if "join" in how:
        came = came.replaced(length=came.length * random.choice([1, 2], count))
    if "cut" in how:
        came = came.replaced(stamps_captured=came.has_timestamps | (random.random(count) < 0.5))
    if "hop" in how:
        came = came.replaced(ttl=came.ttl - 1)
    return came


def together(*parts: Segments) -> Segments:
    columns = (*Segments.NUMBERS, *Segments.FLAGS)
    return Segments.of(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in columns})


def _segments(random: np.random.Generator, start: np.ndarray, length: np.ndarray) -> Segments:
    count = len(start)
    stamped = bool(random.integers(0, 4))
    return Segments.of(
        start=start,
        length=length,
        acknowledgement=np.cumsum(random.integers(0, 2, count)) * 100,
        window=random.choice([0, 512, 64_256, 65_536, 1 << 20], count),
        push=random.random(count) < 0.3,
        first_copy=np.ones(count, np.bool_),
        has_timestamps=np.full(count, stamped),
        stamps_captured=np.ones(count, np.bool_),
        tsval=(int(random.integers(WRAP)) + np.cumsum(random.integers(0, 3, count))) % WRAP * stamped,
        tsecr=(int(random.integers(WRAP)) + np.cumsum(random.integers(0, 2, count))) % WRAP * stamped,
        ip_id=(int(random.integers(1 << 16)) + np.arange(count)) % (1 << 16),
        ttl=np.full(count, 64),
    )


def packets_of(segments: dict[Direction, Segments]) -> PacketColumns:
    """Packets with these segments of either direction, in this order; no payload was captured."""
    flows = [(direction, part) for direction, part in segments.items() if len(part)]
    every = together(*(part for _, part in flows)) if flows else _segments(np.random.default_rng(0), NOTHING, NOTHING)
    count = len(every)
    marks = np.where(every.first_copy, 0, Mark.RETRANSMISSION.value)
    marks |= np.where(every.has_timestamps, Mark.HAS_TIMESTAMPS.value, 0)
    marks |= np.where(every.stamps_captured, 0, Mark.OPTIONS_TRUNCATED.value)
    return PacketColumns(
        time_ns=np.arange(count, dtype=np.int64),
        direction=np.repeat([way for way, _ in flows], [len(part) for _, part in flows]).astype(np.uint8),
        sequence_offset=every.start,
        acknowledgement_offset=every.acknowledgement,
        payload_bytes=every.length.astype(np.uint32),
        window_bytes=every.window.astype(np.uint32),
        flags=np.where(every.push, TcpFlag.PSH | TcpFlag.ACK, TcpFlag.ACK).astype(np.uint16),
        tsval=every.tsval.astype(np.uint32),
        tsecr=every.tsecr.astype(np.uint32),
        ip_id=every.ip_id.astype(np.uint16),
        ttl=every.ttl.astype(np.uint8),
        payload_hash=np.zeros(count, np.uint32),
        marks=marks.astype(np.uint16),
        round_trip_time_ns=np.full(count, -1, np.int64),
    )


def laid_over(emitted: Segments, arrived: Segments, *, by_fields: bool = False) -> _core.PairSegments:
    """The segments that the client emitted and those that arrived, in the offsets that they have, or only in those that
    their fields show."""
    client, server = (packets_of({Direction.UP: part}) for part in (emitted, arrived))
    found = _core.align_segments(
        (client, (0, 0), (None, None)), (server, (0, 0), (None, None)), shifts=(0, 0), supported=(not by_fields,) * 2,
        sampled_every=1, fewest_sampled=0, fewest_joined=FEWEST_JOINED if by_fields else 1 << 60,
        copies=COPIES, majority=MAJORITY,
    )  # fmt: skip
    assert found is not None
    return found


def alone(comparison: ClassComparison, *place: int) -> ClassComparison:
    """One of many comparisons in plain numbers, with the fields that were compared."""
    part = comparison.at(*place)
    fields = {
        name: FieldAgreement(*(None if number is None else number.item() for number in agreement))
        for name, agreement in part.fields.items()
        if agreement.is_compared
    }
    plain = {name: getattr(part, name).item() for name in part._fields if name != "fields"}
    return ClassComparison(fields=fields, **{**plain, "hops": plain["hops"] if part.with_candidate else 0})


def compared_data(
    emitted: Segments,
    arrived: Segments,
    largest_payload: int = 1460,
    lost_share: float = 0.0,
    *,
    may_add: bool = False,
) -> ClassComparison:
    """What the fields of these data say."""
    counts = segment_counts([laid_over(emitted, arrived)], 0)
    return alone(compare_data(counts.data, largest_payload, lost_share, may_add), Direction.UP, 0)


def compared_acknowledgements(emitted: Segments, arrived: Segments, lost_share: float = 0.0) -> ClassComparison:
    """What the fields of these pure acknowledgements say."""
    counts = segment_counts([laid_over(emitted, arrived)], 0)
    found = compare_acknowledgements(counts.acknowledgements, counts.positions, lost_share)
    return alone(found, Direction.UP, 0)
