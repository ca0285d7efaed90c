"""Segments of both captures laid over each other: which packets are compared, and in which offsets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from detector.methods.identity.agreement import LEAST_CHANCE
from detector.streams.known import UNKNOWN
from detector.streams.loaded import packets_of
from detector.streams.sides import Sides
from detector.streams.size_changes import are_moved_within
from detector.streams.summaries import Summaries
from pepscope import _core
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.packets import Direction, Int64Array
from pepscope.results.evidence.columns import BoolArray

#: Above this many packets a connection is compared on a sample of its stream regions, unless it leaves an eighth of
#: that.
SAMPLE_PACKETS = 20_000
#: Fewer packets that look alike do not fix the offsets of two captures against each other.
FEWEST_JOINED = 8
#: Copies of one byte range that are looked at.
COPIES = 8
#: The widest gap between two of a host's IP IDs in which a third, of an acknowledgement that its capture lacks, shows
#: that the host sent it: another host's falls there with the least chance agreement that is ever assumed (1 in 20).
MOST_SKIPPED_IP_IDS = int(LEAST_CHANCE * 2**16)
#: Offsets, a shift of timestamps, or a power of two between windows, are what so many of the segments agree on.
MAJORITY = 0.5


def align_segments(sides: Sides) -> list[_core.PairSegments | None]:
    """Segments at the clients' and at the servers' vantages, in the client sides' offsets.

    SYN and RST are left out (they are made or changed by all kinds of middleboxes), and so is what goes to a host that
    has sent RST: after an abort a split point's machine may route what is still in flight past itself, straight from
    the far end.

    Packets that are alike whatever their offsets (timestamps and length, or IP ID and length where hardly any have
    timestamps) give the best alignment of the streams; otherwise the pair's alignment is used where payload or both
    SYNs support it. A stream may be aligned alone: then its data and the acknowledgements of it are compared, and
    nothing else. None where no stream is.
    """
    powers = [_window_powers(side) for side in (sides.client, sides.server)]
    on_wire = windows_on_wire(sides)
    clients, servers = (
        (
            packets_of(vantages),
            np.where(on_wire & (own != UNKNOWN), own, 0),
            np.array([side.of_flow(way, "reset_time_ns") for way in DIRECTIONS]),
        )
        for vantages, side, own in (
            (sides.clients, sides.client, powers[0]),
            (sides.servers, sides.server, powers[1]),
        )
    )
    packets = np.array([[*map(len, clients[0])], [*map(len, servers[0])]], np.int64)
    return _core.align_all_segments(
        clients,
        servers,
        shifts=np.array([-sides.aligned(way).shift_bytes for way in DIRECTIONS]),
        supported=np.array([_alignments_supported(sides, way) for way in DIRECTIONS]),
        sampled_every=thinning_for(packets.max(axis=0)).tolist(),
        fewest_sampled=SAMPLE_PACKETS // 8,
        fewest_joined=FEWEST_JOINED,
        copies=COPIES,
        majority=MAJORITY,
    )


def windows_on_wire(sides: Sides) -> BoolArray:
    """Of which connections windows up and down (rows) compare as on the wire: not both captures hold what scales
    them."""
    client, server = (_window_powers(side) for side in (sides.client, sides.server))
    return np.asarray((client == UNKNOWN) | (server == UNKNOWN))


def _window_powers(side: Summaries) -> Int64Array:
    """The powers of two by which windows up and down (rows) are scaled."""
    return np.array([side.of_flow(way, "window_shift") for way in DIRECTIONS])


def _alignments_supported(sides: Sides, direction: Direction) -> BoolArray:
    """Whether payload or both SYNs support the alignments of streams that lie over each other with one shift."""
    aligned, began = sides.aligned(direction), sides.began(direction)
    supported = ((aligned.compared > 0) & (aligned.matched >= 0.5)) | (began[0] & began[1])
    return supported & ~are_moved_within(sides, direction)


def thinning_for(packets: npt.ArrayLike) -> Int64Array:
    """Every how many-th region is enough for connections of so many packets."""
    return np.maximum(1, -(-np.asarray(packets, np.int64) // SAMPLE_PACKETS))
