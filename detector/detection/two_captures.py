"""From two captures to verdicts: pair, relate the clocks, examine by every method, judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from detector.detection.request import DetectionRequest, Work
from detector.detection.temporary_files import temporary_bytes
from detector.groups import JudgedPart, Members, judge_groups, with_group_verdicts
from detector.options import DetectOptions
from detector.pair import Pair
from detector.pairing.absence import Absence, nothing_in_common
from detector.pairing.captures import PairedCaptures, pair_captures
from detector.pairing.rivals import RivalJudge
from detector.presentation.provenance import capture_summary
from detector.presentation.requested import RequestedPackets
from detector.verdict.judging import judge_pairs, verdicts_on
from detector.verdict.loading_order import LoadingOrder, loading_order
from detector.verdict.together import Loader, judge_together
from pepscope.captures.capture import Capture
from pepscope.errors import CaptureError
from pepscope.processes.logged import log_info
from pepscope.processes.parts import by_parts
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import DetectionResult, Verdict

if TYPE_CHECKING:
    from detector.presentation.telling_packets.while_judging import NamedWhileJudging

#: Pairs whose packets are compared to find out whether two files are copies of one capture.
_COPIES_LOOKED_AT = 3

_LOG = "pepscope.detect"


def judge_two_captures(captures: Sequence[Capture], request: DetectionRequest, work: Work) -> DetectionResult:
    """What two captures show together. Raises CaptureError where both are one capture in two files."""
    options, details = request.options, request.details
    paired = pair_captures(captures[0], captures[1], options)
    log_info(_LOG, "paired; connections to judge: %d", len(paired))
    if paired.has_both:
        _refuse_copies(captures, paired)
    order = loading_order(captures, paired.matches, work.processes, work.memory_bytes)
    naming = _naming(captures, details.packets, len(paired))
    pairs, members, read_elsewhere = _judge_all(captures, paired, options, order, naming, work.progress)
    log_info(_LOG, "judged; connections: %d", len(paired))
    groups = judge_groups(pairs, members, two_captures=paired.has_both, least_probability=options.least_probability)
    results = with_group_verdicts(pairs, groups)
    if details.series:
        from detector.detection.drawn import add_series

        add_series(lambda number: paired.pair(paired.matches[number]), results, details.connections)
    if details.packets.moments:
        from detector.presentation.telling_packets.observing import OfTwoCaptures
        from detector.presentation.telling_packets.results import name_packets

        groups = name_packets(captures, results, groups, OfTwoCaptures(captures, paired), details.packets)
    summaries = [capture_summary(*each) for each in zip(captures, request.digests, strict=True)]
    if notes := _notes(captures, paired, results):
        summaries[-1] = replace(summaries[-1], warnings=(*summaries[-1].warnings, *notes))
    return DetectionResult(tuple(summaries), results, groups, request.tool, temporary_bytes(captures, read_elsewhere))


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


def _naming(captures: Sequence[Capture], packets: RequestedPackets, count: int) -> NamedWhileJudging | None:
    """What names packets of `count` connections while they are judged; None if no packets are requested."""
    if not packets.moments:
        return None
    from detector.presentation.telling_packets.while_judging import NamedWhileJudging

    return NamedWhileJudging(captures, packets, count)


def _judge_all(
    captures: Sequence[Capture],
    paired: PairedCaptures,
    options: DetectOptions,
    order: LoadingOrder,
    naming: NamedWhileJudging | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[PairTable, Members, int]:
    """What was judged, and its members, in the order of the matches; and how many bytes of temporary files other
    processes read for it."""
    absence = Absence(captures, paired, options, _is_split) if paired.has_both else None
    loader, rivals = Loader(captures[0].path, paired, absence), RivalJudge(paired, judge_pairs, verdicts_on)

    def bytes_read() -> int:
        return sum(capture.temporary_bytes[1] for capture in captures)

    def judged(numbers: Sequence[int]) -> JudgedPart:
        part, before = JudgedPart(), bytes_read()
        for together in chain.from_iterable(map(loader.load, loader.batches(numbers, order.packets_together))):
            table, rows, are_doubtful = judge_together(together, rivals)
            if naming is not None:
                naming.add(together, table, rows)
            members = Members.of(together.pairs, are_doubtful, together.sides)
            part.add(together.numbers, table, rows, members)
        part.bytes_read = bytes_read() - before
        return part

    every, read_before = JudgedPart(), bytes_read()
    for _, part in by_parts(judged, order.places, order.jobs, order.stretches, order.fewest_places):
        every.extend(part)
        if progress is not None:
            progress(len(every.pairs), len(paired))
    read_elsewhere = every.bytes_read - (bytes_read() - read_before)
    return every.pairs.in_order(every.rows_in_order()), Members.in_order(every.members), read_elsewhere


def _is_split(pair: Pair) -> bool | None:
    (verdict,) = verdicts_on([pair])
    return None if verdict is Verdict.INCONCLUSIVE else verdict is not Verdict.REGULAR


def _notes(captures: Sequence[Capture], paired: PairedCaptures, results: PairTable) -> tuple[str, ...]:
    """Warnings about how the two captures relate to each other: one sentence each."""
    if results and paired.has_both and not any(map(results.is_seen_twice, range(len(results)))):
        return (nothing_in_common(captures),)
    one, both = results.counts_at_one_place()
    if not one:
        return ()
    names = " and ".join(capture.path for capture in captures)
    return (f"{names} were taken at one place by {one:,} of {both:,} connections: these were judged as in one capture",)
