"""From capture files to verdicts: read, pair, relate the clocks, examine by every method, judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from detector.clocks.relation import relate
from detector.groups import JudgedPart, Members, judge_groups, with_group_verdicts
from detector.one_capture.detection import judge_vantage
from detector.one_capture.further_methods import ConnectionsAlone, further_evidence
from detector.one_capture.networks import NetworkTable, read_networks
from detector.options import DECISION_PROBABILITY, LEAST_PAIRING_CONFIDENCE, ClockMode, DetectOptions
from detector.pair import Pair
from detector.pairing.absence import Absence, nothing_in_common
from detector.pairing.captures import PairedCaptures, pair_captures
from detector.pairing.rivals import RivalJudge
from detector.shown.provenance import capture_summary, digests_of, stated_tool
from detector.shown.series import flow_series
from detector.shown.telling_packets.observing import OfOneVantage, OfTwoCaptures
from detector.shown.telling_packets.results import AskedPackets, name_packets
from detector.verdict.judging import judge_pair
from detector.verdict.loading_order import LoadingOrder, loading_order
from detector.verdict.parts import by_parts
from detector.verdict.together import judge_together, loaded_together
from pepscope.captures.at_once import open_captures
from pepscope.captures.capture import Capture
from pepscope.captures.files.digest import FileDigest
from pepscope.captures.opening.capture_files import CaptureFile, capture_name
from pepscope.captures.packets import Direction
from pepscope.errors import CaptureError, UsageError
from pepscope.results.attention import ATTENTION, EndPoints, places_between
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import (
    DetectionResult,
    GroupSide,
    TemporaryBytes,
    Tool,
    Verdict,
)

#: Connections that get series for figures; those that are not regular come first.
SERIES_LIMIT = 50

#: Pairs whose packets are compared to find out whether two files are copies of one capture.
_COPIES_LOOKED_AT = 3

_LOG = logging.getLogger("pepscope.detect")


def detect(
    first: CaptureFile,
    second: CaptureFile | None = None,
    *,
    clocks: ClockMode | str = ClockMode.GENERAL,
    ack_delay_s: float | None = None,
    drift_limit_ppm: float = 500.0,
    taken_at: str | None = None,
    networks: str | None = None,
    same_transfers: bool = False,
    least_probability: float = DECISION_PROBABILITY,
    least_pairing_confidence: float = LEAST_PAIRING_CONFIDENCE,
    filter: str | None = None,  # noqa: A002
    memory_bytes: int | None = None,
    series: bool = False,
    connections: Sequence[EndPoints] = (),
    packets: int | AskedPackets = 0,
    jobs: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> DetectionResult:
    """Judge every TCP connection in one or two captures.

    `first` and `second` are capture files taken at the two ends, in any order, as paths or as file objects open for
    bytes; `-` (once) is standard input. `clocks`
    is what to assume of the capture clocks, `ack_delay_s` the delay that the receiver put on every ACK (Method 3),
    `drift_limit_ppm` the fastest clock drift to allow for. `taken_at` is the capture point of `first` if it is known:
    the `client` (the end that opens the connections) or the `server`. `networks` is for one capture, as in
    `detect_vantage`. Set `same_transfers` if both captures show the
    same transfers: then a pair with equal payload is not doubted because its addresses differ.
    Below `least_probability` of its class (end to end, or split), or below `least_pairing_confidence` that both
    captures show it, a connection gets no verdict: it is inconclusive. `filter` is an expression in libpcap's language.
    Packets that take more than `memory_bytes`, both captures and the work on them together, are kept in temporary files
    and judged by parts (default: 1 GiB for each capture); judging the largest connection may still take some 250 bytes
    for each packet of it. With `series` the results carry what a page draws: of `connections` (client and server of
    each, as results write them) where some are given, otherwise of those that deserve most attention. With `packets`
    evidence names the packets that show it, of so many moments for each finding, and of the thousand connections that
    deserve attention most. `jobs` processes judge, and from two on both captures are read at once; results do not
    depend on their number. Where captures are kept in temporary files fewer processes judge if the memory has no room
    for what each of them loads. `progress` is called with work done and in all.

    Raises CaptureError where a capture cannot be read or holds no TCP, FilterError, and UsageError for options outside
    their range.
    """
    options = replace(
        _options(clocks, ack_delay_s, drift_limit_ppm, taken_at),
        same_transfers=same_transfers,
        least_probability=_least("probability", least_probability, 0.5),
        least_pairing_confidence=_least("pairing confidence", least_pairing_confidence, 0.0),
    )
    if jobs < 1:
        raise UsageError(f"jobs must be at least 1, got {jobs}")
    paths = [capture_name(each) for each in (first, second) if each is not None]
    if len(paths) == 2 and "-" not in paths and _is_same_file(*paths):
        raise UsageError(f"both captures are the same file, {paths[0]}: give the captures of two ends")
    if second is not None and networks is not None:
        raise UsageError("a table of networks is for one vantage point: two captures show where they meet")
    table = None if networks is None else read_networks(networks)
    share_bytes = None if memory_bytes is None else memory_bytes // (len(paths) + 1)
    tool = stated_tool(options, filter=filter, networks=networks)
    digests = digests_of(paths)
    captures = _opened(paths, filter, share_bytes, progress, at_once=jobs > 1)
    _log_captures(captures)
    if second is None:
        return _one_vantage(
            captures, options, table, tool, digests, series=series, connections=connections, packets=_asked(packets)
        )
    paired = pair_captures(captures[0], captures[1], options)
    _LOG.info("paired; connections to judge: %d", len(paired))
    if paired.has_both:
        _refuse_copies(captures, paired)
    order = loading_order(captures, paired.matches, jobs, share_bytes)
    pairs, members, read_elsewhere = _judge_all(captures, paired, options, order, progress)
    _LOG.info("judged; connections: %d", len(paired))
    groups = judge_groups(pairs, members, two_captures=paired.has_both, least_probability=options.least_probability)
    results = with_group_verdicts(pairs, groups)
    if series:
        _add_series(lambda number: paired.pair(paired.matches[number]), results, connections)
    if (asked := _asked(packets)).moments:
        groups = name_packets(captures, results, groups, OfTwoCaptures(captures, paired), asked)
    summaries = [capture_summary(*each) for each in zip(captures, digests, strict=True)]
    if notes := _notes(captures, paired, results):
        summaries[-1] = replace(summaries[-1], warnings=(*summaries[-1].warnings, *notes))
    return DetectionResult(tuple(summaries), results, groups, tool, _temporary_bytes(captures, read_elsewhere))


def detect_vantage(
    sources: Sequence[CaptureFile],
    *,
    taken_at: str | None = None,
    networks: str | None = None,
    ack_delay_s: float | None = None,
    least_probability: float = DECISION_PROBABILITY,
    filter: str | None = None,  # noqa: A002
    memory_bytes: int | None = None,
    series: bool = False,
    connections: Sequence[EndPoints] = (),
    packets: int | AskedPackets = 0,
    progress: Callable[[int, int], object] | None = None,
) -> DetectionResult:
    """Judge what several captures of one vantage point show together: parts of a rotated series, or of several days.

    `networks` is a file of lines `prefix,name` that says which client addresses belong together (default: /24 and /48
    of IPv6); the other options are those of `detect`. Connections that cross from one file into the next are two.
    Raises as `detect` does.
    """
    options = replace(
        _options(ClockMode.GENERAL, ack_delay_s, 0.0, taken_at),
        least_probability=_least("probability", least_probability, 0.5),
    )
    paths = [capture_name(source) for source in sources]
    for number, path in enumerate(paths):
        if any(path != "-" != other and _is_same_file(path, other) for other in paths[:number]):
            raise UsageError(f"two of the captures are the same file, {path}: give each once")
    table = None if networks is None else read_networks(networks)
    share_bytes = None if memory_bytes is None else memory_bytes // (len(paths) + 1)
    tool = stated_tool(options, filter=filter, networks=networks, one_vantage=True)
    digests = digests_of(paths)
    captures = _opened(paths, filter, share_bytes, progress, at_once=False)
    _log_captures(captures)
    return _one_vantage(
        captures, options, table, tool, digests, series=series, connections=connections, packets=_asked(packets)
    )


def _opened(
    paths: Sequence[str | BinaryIO],
    expression: str | None,
    memory_bytes: int | None,
    progress: Callable[[int, int], object] | None,
    *,
    at_once: bool,
) -> list[Capture]:
    """The captures, of which one at least holds TCP; each may keep so many bytes in memory."""
    if paths.count("-") > 1:
        raise UsageError("only one of the two captures can come from standard input")
    captures = open_captures(
        paths,
        filter=expression,
        memory_bytes=memory_bytes,
        tcp_needed=len(paths) == 1,
        progress=progress,
        at_once=at_once,
    )
    if not any(capture.tcp_packet_count for capture in captures):
        raise captures[0].nothing_to_analyse()
    return captures


def _log_captures(captures: Sequence[Capture]) -> None:
    for capture in captures:
        _LOG.info(
            "read %s: TCP packets: %d, connections: %d",
            capture.path, capture.tcp_packet_count, len(capture.connections),
        )  # fmt: skip


def _asked(packets: int | AskedPackets) -> AskedPackets:
    asked = packets if isinstance(packets, AskedPackets) else AskedPackets(packets)
    if asked.moments < 0:
        raise UsageError(f"the packets to name must be at least 0, got {asked.moments}")
    return asked


def _one_vantage(
    captures: Sequence[Capture],
    options: DetectOptions,
    networks: NetworkTable | None,
    tool: Tool,
    digests: Sequence[FileDigest],
    *,
    series: bool,
    connections: Sequence[EndPoints],
    packets: AskedPackets,
) -> DetectionResult:
    """What captures of one vantage point show."""
    at_client = options.first_at_client
    pairs, groups = judge_vantage(
        captures,
        taken_at=None if at_client is None else GroupSide.CLIENT if at_client else GroupSide.SERVER,
        networks=networks,
        least_probability=options.least_probability,
        further_evidence=further_evidence(captures, options),
        series=series,
    )
    _LOG.info("judged; connections: %d, groups: %d", len(pairs), len(groups))
    if series:
        _add_series(ConnectionsAlone(captures, options).pair, pairs, connections)
    if packets.moments:
        groups = name_packets(captures, pairs, groups, OfOneVantage(captures, options), packets)
    summaries = tuple(capture_summary(*each) for each in zip(captures, digests, strict=True))
    return DetectionResult(summaries, pairs, groups, tool, _temporary_bytes(captures))


def _temporary_bytes(captures: Sequence[Capture], read_elsewhere: int = 0) -> TemporaryBytes:
    """What the captures wrote to temporary files and read from them."""
    written, read = (sum(counts) for counts in zip(*(each.temporary_bytes for each in captures), strict=True))
    return TemporaryBytes(written, read + read_elsewhere)


def _options(
    clocks: ClockMode | str, ack_delay_s: float | None, drift_limit_ppm: float, taken_at: str | None
) -> DetectOptions:
    try:
        mode = ClockMode(clocks)
    except ValueError:
        raise UsageError(f"clocks must be one of {', '.join(ClockMode)}, got {clocks!r}") from None
    if ack_delay_s is not None and not ack_delay_s > 0:
        raise UsageError(f"the ACK delay must be greater than 0 s, got {ack_delay_s}")
    if not 0 <= drift_limit_ppm <= 10_000:
        raise UsageError(f"the drift limit must be between 0 and 10000 ppm, got {drift_limit_ppm}")
    if taken_at not in (None, "client", "server"):
        raise UsageError(f"taken_at must be one of client, server, got {taken_at!r}")
    return DetectOptions(mode, ack_delay_s, drift_limit_ppm, None if taken_at is None else taken_at == "client")


def _least(name: str, value: float, above: float) -> float:
    if not above <= value <= 1:
        raise UsageError(f"the least {name} must be between {above:g} and 1, got {value}")
    return value


def _is_same_file(first: str | BinaryIO, second: str | BinaryIO) -> bool:
    if not isinstance(first, str) or not isinstance(second, str):
        return first is second
    try:
        return Path(first).samefile(second)
    except OSError:
        return False  # opening the capture reports the error with more detail


def _refuse_copies(captures: Sequence[Capture], paired: PairedCaptures) -> None:
    """Raise CaptureError where the captures are one in two files: compared with itself every connection is intact."""
    both = [match for match in paired.matches if match.first is not None and match.second is not None]
    for match in both[:_COPIES_LOOKED_AT]:
        one, two = captures[0].packets(match.first or 0), captures[1].packets(match.second or 0)
        if not np.array_equal(one.time_ns, two.time_ns):
            return
    if both:
        raise CaptureError(
            f"{captures[0].path} and {captures[1].path} hold the same packets at the same nanoseconds, so they are one "
            "capture: give the captures of two ends"
        )


def _judge_all(
    captures: Sequence[Capture],
    paired: PairedCaptures,
    options: DetectOptions,
    order: LoadingOrder,
    progress: Callable[[int, int], object] | None,
) -> tuple[PairTable, Members, int]:
    """What was judged, and its members, in the order of the matches; and how many bytes of temporary files other
    processes read for it."""
    absence = Absence(captures, paired, options, _is_split) if paired.has_both else None
    rivals = RivalJudge(paired, judge_pair)

    def bytes_read() -> int:
        return sum(capture.temporary_bytes[1] for capture in captures)

    def judged(numbers: Sequence[int]) -> JudgedPart:
        part, before = JudgedPart(), bytes_read()
        for loaded in loaded_together(captures[0].path, paired, absence, numbers):
            table, rows, are_doubtful = judge_together(loaded, rivals)
            members = Members.of([each.pair for each in loaded], are_doubtful)
            part.add(numbers[len(part.pairs) : len(part.pairs) + len(loaded)], table, rows, members)
        part.bytes_read = bytes_read() - before
        return part

    every, read_before = JudgedPart(), bytes_read()
    for _, part in by_parts(judged, order.places, order.jobs, order.stretches):
        every.extend(part)
        if progress is not None:
            progress(len(every.pairs), len(paired))
    read_elsewhere = every.bytes_read - (bytes_read() - read_before)
    return every.pairs.in_order(every.rows_in_order()), Members.in_order(every.members), read_elsewhere


def _is_split(pair: Pair) -> bool | None:
    verdict = judge_pair(pair).verdict
    return None if verdict is Verdict.INCONCLUSIVE else verdict is not Verdict.REGULAR


def _notes(captures: Sequence[Capture], paired: PairedCaptures, results: PairTable) -> tuple[str, ...]:
    """Warnings about how the two captures relate to each other: one sentence each."""
    places = range(len(results))
    if results and paired.has_both and not any(map(results.is_seen_twice, places)):
        return (nothing_in_common(captures),)
    both = [at_one for at_one in map(results.at_one_place, places) if at_one is not None]
    one = sum(both)
    if not one:
        return ()
    names = " and ".join(capture.path for capture in captures)
    return (
        f"{names} were taken at one place by {one} of {len(both)} connections: these were judged as in one capture",
    )


def _add_series(pair_of: Callable[[int], Pair], results: PairTable, connections: Sequence[EndPoints]) -> None:
    """Give the connections that were asked for, or deserve attention, what a page draws of them."""
    chosen = {place for ends in connections for place in places_between(results, ends)} or _most_telling(results)
    for number in sorted(chosen):
        pair = pair_of(number)
        if pair.encrypted:
            continue  # what is drawn lays one side's bytes over the other's
        clock = relate(pair)
        drawn = tuple(
            flow_series(pair, clock, direction)
            for direction in Direction
            if any(vantage.flow(direction).data_packets for vantage in pair.vantages)
        )
        results.add_series(number, drawn)


def _most_telling(results: PairTable) -> set[int]:
    ranks = [ATTENTION[verdict] for verdict in results.verdicts()]
    order = sorted(range(len(results)), key=lambda i: (ranks[i], -results.packets(i)))
    return set(order[:SERIES_LIMIT])
