"""What a user should know of a capture that was read, one sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pepscope import _core

_MEBIBYTE = 1 << 20

#: Counts that get a sentence: name, noun, and the sentence's predicate.
_COUNTS = (
    ("cut_short", "packet", "cut by the snap length before the end of the TCP header"),
    ("malformed", "packet", "with lengths that contradict each other"),
    ("too_deep", "packet", "with more headers in one another than can be followed"),
    ("encrypted", "packet", "encrypted by the wireless link"),
    ("unfinished_datagrams", "fragmented datagram", "of which some fragment is missing"),
    ("frames_without_time", "packet", "without a time stamp, which got that of the packet before"),
)
#: Protocols that are named in one sentence.
_CONTENTS_NAMED = 6
#: Why packets are no TCP, besides their protocols; named only where a capture holds no TCP at all.
_OTHERS = (
    ("filtered_out", "removed by the filter"),
    ("cut_short", "cut too short"),
    ("malformed", "malformed"),
    ("too_deep", "nested too deep"),
    ("encrypted", "encrypted"),
    ("fragments_held", "fragments without the rest"),
)
#: Counts that the sentence on a capture without TCP names.
_NAMED_WITHOUT_TCP = frozenset({"unfinished_datagrams", *(key for key, _ in _OTHERS)})
_NOT_CAPTURED = (
    (
        "packets_with_truncated_options",
        "packet",
        "cut by the snap length within the TCP options: what these would say is unknown",
    ),
    (
        "one_way",
        "connection",
        "with the packets of one direction only: a filter or another route keeps the others from the capture",
    ),
    (
        "without_acknowledgements",
        "connection",
        "without any pure acknowledgement of much data: a filter keeps those from the capture",
    ),
    (
        "without_data",
        "connection",
        "without the packets with data that were acknowledged: a filter keeps those from the capture",
    ),
)


def capture_warnings(path: str, core: _core.Capture) -> tuple[str, ...]:
    """The sentences on a capture; none for a capture without peculiarities."""
    return (*_file_warnings(path, core), *_not_captured(core), *_out_of_time(core), *_oversize(core))


def _file_warnings(path: str, core: _core.Capture) -> Iterator[str]:
    counts = core.counts
    if core.damage is not None:
        byte_offset, cause = core.damage
        source = "standard input" if path == "-" else path
        read = _counted(counts["frames"], "packet")
        yield f"{source} is damaged at byte {byte_offset}: {cause}; the {read} before that were read"
    for part, byte_offset, cause in core.part_damage:
        yield f"{part} is damaged at byte {byte_offset}: {cause}; what follows in other files was read"
    no_tcp = not counts["tcp_segments"]
    if not no_tcp:
        for packets, link_type in _unread_link_types(core):
            yield f"{_counted(packets, 'packet')} of {link_type}, which cannot be read"
    for key, noun, what in _COUNTS:
        if counts[key] and not (no_tcp and key in _NAMED_WITHOUT_TCP):
            yield f"{_counted(counts[key], noun)} {what}"
    if no_tcp:
        yield _nothing_found(core)
        return
    for content, packets, may_hide_tcp in core.contents:
        if may_hide_tcp:
            yield f"{_counted(packets, 'packet')} of {content}, in which TCP cannot be seen"


def _nothing_found(core: _core.Capture) -> str:
    counts = core.counts
    if not counts["frames"]:
        return "the capture holds no packets"
    by_name: Counter[str] = Counter()
    for content, packets, _ in core.contents:
        by_name[content] += packets  # several kinds of message have one name
    named = by_name.most_common(_CONTENTS_NAMED)
    reasons = [f"{packets} of {content}" for content, packets in named]
    if others := counts["not_ip"] + counts["not_tcp"] - sum(packets for _, packets in named):
        reasons.append(f"{others} of other protocols")
    reasons += [f"{packets} of {link_type}, which cannot be read" for packets, link_type in _unread_link_types(core)]
    reasons += [f"{counts[key]} {reason}" for key, reason in _OTHERS if counts[key]]
    return f"the capture holds {_counted(counts['frames'], 'packet')} but no TCP: {', '.join(reasons)}"


def _unread_link_types(core: _core.Capture) -> Iterator[tuple[int, str]]:
    """Packets and name of each link type that cannot be read."""
    for number, name, packets, is_known in core.link_types:
        if not is_known:
            yield packets, f"link type {number}" + ("" if name is None else f" ({name})")


def _not_captured(core: _core.Capture) -> Iterator[str]:
    found = core.not_captured
    for key, noun, what in _NOT_CAPTURED:
        if found[key]:
            yield f"{_counted(found[key], noun)} {what}"


def _out_of_time(core: _core.Capture) -> Iterator[str]:
    if count := core.left_in_file_order:
        yield (
            f"{_counted(count, 'connection')} with times that fall back: standard input cannot be read again in the "
            "order of time, so that round trips may be wrong; give a file instead"
        )


def _oversize(core: _core.Capture) -> Iterator[str]:
    if core.oversize is None:
        return
    allowed_bytes, partitions, (packets, largest_bytes), (partition_packets, partition_bytes) = core.oversize
    allowed = f"more than the {_mebibytes(allowed_bytes)} MiB allowed"
    if largest_bytes > allowed_bytes:
        yield (
            f"one connection of {packets} packets takes about {_mebibytes(largest_bytes)} MiB, {allowed}: a connection "
            "is analysed whole"
        )
    else:
        yield (
            f"the largest of {partitions} parts has {partition_packets} packets and takes about "
            f"{_mebibytes(partition_bytes)} MiB, {allowed}: no more parts can be made"
        )


def temporary_files_note(written_bytes: int, read_bytes: int) -> str | None:
    """A sentence on the disk traffic of captures that memory had no room for; None where there was none."""
    if not written_bytes:
        return None
    return (
        f"more than the memory allowed: {_megabytes(written_bytes)} MB were written to temporary files, and "
        f"{_megabytes(read_bytes)} MB read back"
    )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f}"


def _mebibytes(count: int) -> int:
    return -(-count // _MEBIBYTE)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
