"""What results say of how they were made: version and options of pepscope, captures with times and digests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pepscope
from detector.options import DetectOptions
from pepscope.captures.capture import Capture
from pepscope.captures.files.digest import FileDigest
from pepscope.captures.provenance import Tool

if TYPE_CHECKING:
    from pepscope.results.verdicts import CaptureSummary

_SIDES = {True: "client", False: "server", None: None}


def stated_tool(
    options: DetectOptions,
    *,
    filter: str | None,  # noqa: A002
    networks: str | None,
    one_vantage: bool = False,
) -> Tool:
    """The version, and the options on which results depend, named as those of `detect`."""
    return Tool(
        pepscope.__version__,
        {
            "clocks": options.clocks.value,
            "ack_delay_s": options.ack_delay_s,
            "drift_limit_ppm": options.drift_limit_ppm,
            "taken_at": _SIDES[options.first_at_client],
            "one_vantage": one_vantage,
            "networks": networks,
            "same_transfers": options.same_transfers,
            "least_probability": options.least_probability,
            "least_pairing_confidence": options.least_pairing_confidence,
            "filter": filter,
        },
    )


def capture_summary(capture: Capture, digest: FileDigest) -> CaptureSummary:
    """A capture as results name it; without a digest, and with a warning, where its file changed while it was read."""
    from pepscope.results.verdicts import CaptureSummary  # dataclasses, which take longer to make than all else here

    grows = (f"{capture.path} changed while it was read: it has no digest",) if digest.changed() else ()
    started_ns, ended_ns = capture.time_span_ns or (None, None)
    return CaptureSummary(
        capture.path,
        capture.packet_count,
        len(capture.connections),
        (*capture.warnings, *grows),
        started_ns,
        ended_ns,
        digest.hexadecimal(),
    )
