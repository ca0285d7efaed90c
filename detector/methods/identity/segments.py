"""Segments of both captures laid over each other: which packets are compared, and in which offsets."""

from __future__ import annotations

from detector.methods.identity.agreement import LEAST_CHANCE
from detector.pair import Pair, Vantage
from pepscope import _core
from pepscope.captures.packets import Direction, PacketColumns

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


def align_segments(pair: Pair, client: Vantage, server: Vantage) -> _core.PairSegments | None:
    """Segments at the client's and at the server's vantage, in the client side's offsets.

    SYN and RST are left out (they are made or changed by all kinds of middleboxes), and so is what goes to a host that
    has sent RST: after an abort a split point's machine may route what is still in flight past itself, straight from
    the far end.

    Packets that are alike whatever their offsets (timestamps and length, or IP ID and length where hardly any have
    timestamps) give the best alignment of the streams; otherwise the pair's alignment is used where payload or both
    SYNs support it. A stream may be aligned alone: then its data and the acknowledgements of it are compared, and
    nothing else. None where no stream is.
    """
    in_bytes = windows_in_bytes(client, server)
    return _core.align_segments(
        _columns(client, in_bytes),
        _columns(server, in_bytes),
        shifts=(-pair.alignment[Direction.UP].shift_bytes, -pair.alignment[Direction.DOWN].shift_bytes),
        supported=(_alignment_supported(pair, Direction.UP), _alignment_supported(pair, Direction.DOWN)),
        sampled_every=thinning_for(max(len(client.packets), len(server.packets))),
        fewest_sampled=SAMPLE_PACKETS // 8,
        fewest_joined=FEWEST_JOINED,
        copies=COPIES,
        majority=MAJORITY,
    )


def windows_in_bytes(client: Vantage, server: Vantage) -> frozenset[Direction]:
    """Directions in which both captures hold what scales windows; windows of the others compare as on the wire."""
    near, far = client.connection, server.connection
    flows = ((Direction.UP, near.up, far.up), (Direction.DOWN, near.down, far.down))
    return frozenset([d for d, a, b in flows if a.window_shift is not None and b.window_shift is not None])


def thinning_for(packets: int) -> int:
    """Every how many-th region is enough for a connection of so many packets."""
    return max(1, -(-packets // SAMPLE_PACKETS))


def _columns(
    vantage: Vantage, in_bytes: frozenset[Direction]
) -> tuple[PacketColumns, tuple[int, int], tuple[int | None, int | None]]:
    up, down = vantage.connection.up, vantage.connection.down
    window_shifts = (
        0 if Direction.UP in in_bytes else up.window_shift or 0,
        0 if Direction.DOWN in in_bytes else down.window_shift or 0,
    )
    return vantage.packets, window_shifts, (up.reset_time_ns, down.reset_time_ns)


def _alignment_supported(pair: Pair, direction: Direction) -> bool:
    alignment = pair.alignment[direction]
    if alignment.compared > 0 and alignment.matched >= 0.5:
        return True
    return all(v.flow(direction).initial_sequence_number is not None for v in pair.vantages)
