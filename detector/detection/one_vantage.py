"""From captures of one vantage point to verdicts on its networks and connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from detector.detection.request import DetectionRequest
from detector.detection.temporary_files import temporary_bytes
from detector.one_capture.detection import judge_vantage
from detector.one_capture.further_methods import ConnectionsAlone, further_evidence
from detector.one_capture.networks import NetworkTable
from detector.one_capture.sides import contradiction_of
from detector.presentation.provenance import capture_summary
from pepscope.captures.capture import Capture
from pepscope.processes.logged import log_info
from pepscope.results.verdicts import CaptureSummary, DetectionResult, GroupSide

if TYPE_CHECKING:
    from detector.method import Method

_LOG = "pepscope.detect"


def judge_one_vantage(
    captures: Sequence[Capture],
    methods: Sequence[Method],
    networks: NetworkTable | None,
    request: DetectionRequest,
) -> DetectionResult:
    """What captures of one vantage point show, to pepscope's own judgement and to further `methods`."""
    options, details = request.options, request.details
    at_client = options.first_at_client
    taken_at = None if at_client is None else GroupSide.CLIENT if at_client else GroupSide.SERVER
    pairs, groups = judge_vantage(
        captures,
        taken_at=taken_at,
        networks=networks,
        least_probability=options.least_probability,
        further_evidence=further_evidence(captures, options, methods),
        series=details.series,
    )
    log_info(_LOG, "judged; connections: %d, groups: %d", len(pairs), len(groups))
    if details.series:
        from detector.detection.drawn import add_series

        add_series(ConnectionsAlone(captures, options).pair, pairs, details.connections)
    if details.packets.moments:
        from detector.presentation.telling_packets.observing import OfOneVantage
        from detector.presentation.telling_packets.results import name_packets

        groups = name_packets(captures, pairs, groups, OfOneVantage(captures, options), details.packets)
    summaries = tuple(
        _contradicted(capture_summary(capture, digest), capture, taken_at)
        for capture, digest in zip(captures, request.digests, strict=True)
    )
    return DetectionResult(summaries, pairs, groups, request.tool, temporary_bytes(captures))


def _contradicted(summary: CaptureSummary, capture: Capture, taken_at: GroupSide | None) -> CaptureSummary:
    """The summary, with a warning where round trips speak against the side that the user names."""
    if taken_at is None:
        return summary
    against = contradiction_of(capture.connection_columns(), taken_at, capture.references())
    return summary if against is None else replace(summary, warnings=(*summary.warnings, against))
