"""One slice of a capture to evidence; connections that go on are handed to the next slice whole.

What a slice hands on are the frames of connections that have not ended, as a capture that is read before the next
slice. So a connection is judged once, by all of its packets, in the slice in which it ends. Connections that last, that
fall silent or that have very many packets are judged by what there is of them, and what follows counts as another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from detector.corpora.joining import joined
from detector.corpora.watch.evidence_pool import Evidence, evidence_of, joined_evidence, thinned
from detector.one_capture.columns import selected, vantage_columns
from detector.one_capture.networks import NetworkTable, read_networks
from pepscope.captures.capture import open_capture
from pepscope.captures.connections import CLOSES, Close
from pepscope.captures.files.frames import frames_of_connections
from pepscope.whole_file import write_whole

_NS = 1_000_000_000

#: A connection is handed on as long as it is younger than this.
LONGEST_NS = 300 * _NS

#: One that is open is handed on unless it was silent for this long: browsers leave connections open for minutes.
SILENT_NS = 60 * _NS

#: Behind the end of a connection come late and repeated packets, for less than this.
LINGERING_NS = 2 * _NS

#: Packets of one connection, and of all, that are handed on.
MOST_PACKETS, MOST_PACKETS_IN_ALL = 20_000, 500_000


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What reading needs to know besides the slice."""

    most_connections: int
    networks: str | None = None
    filter_expression: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SliceWork:
    """A slice as another process gets it.

    `carried` is what the slice before handed on, `target` where this one writes what it hands on, None where it is the
    last. `ended_ns` is when the slice ended, None where its latest packet says it.

    With `after_ns` the file was read before, up to a packet of that time: connections that began since are taken, and
    those that were handed on.
    """

    path: Path
    carried: Path | None
    target: Path | None
    options: ReadOptions
    seed: int
    ended_ns: int | None = None
    after_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SliceReading:
    """What a slice says. `connections` were judged, of which `evidence` may hold a sample; `carried` were handed on, in
    the file that the work names if there are any. `last_ns` is when the latest packet was captured."""

    evidence: Evidence | None
    connections: int
    carried: int
    packets: int
    last_ns: int | None
    warnings: tuple[str, ...]


def read_slice(work: SliceWork) -> SliceReading:
    """Read a slice. Raises CaptureError, FilterError, OSError."""
    table = NetworkTable() if work.options.networks is None else read_networks(work.options.networks)
    with TemporaryDirectory(prefix="pepscope-", dir=None if work.target is None else work.target.parent) as scratch:
        if work.carried is None or work.after_ns is not None:
            return _read(work, work.path, table)
        whole = joined([work.carried, work.path], Path(scratch, "slice.pcap"))
        if whole is not None:
            return _read(work, whole, table)
        # What cannot be read as one file (another link type, a compression of its own) begins anew.
        before = _read(replace(work, target=None, after_ns=None), work.carried, table)
        return _together(before, _read(work, work.path, table))


def _together(before: SliceReading, after: SliceReading) -> SliceReading:
    parts = [each.evidence for each in (before, after) if each.evidence is not None]
    return replace(
        after,
        evidence=joined_evidence(parts) if parts else None,
        connections=before.connections + after.connections,
        packets=before.packets + after.packets,
        last_ns=after.last_ns or before.last_ns,
    )


def _read(work: SliceWork, path: Path, table: NetworkTable) -> SliceReading:
    options = work.options
    capture = open_capture(
        str(path),
        filter=options.filter_expression,
        memory_bytes=options.memory_bytes,
        payload="exchanges",
        tcp_needed=False,
    )
    summaries = capture.connection_columns()
    last_ns = None if capture.time_span_ns is None else capture.time_span_ns[1]
    goes_on = np.zeros(len(summaries["packets"]), np.bool_)
    if work.target is not None and last_ns is not None:
        goes_on = _goes_on(summaries, max(last_ns, work.ended_ns or 0))
        if goes_on.any():
            rows = {name: column[goes_on] for name, column in summaries.items()}
            write_whole(work.target, frames_of_connections(str(path), rows))
    is_taken = ~goes_on
    if work.after_ns is not None:
        is_taken &= (summaries["first_time_ns"] > work.after_ns) | _is_in(work.carried, summaries)
    evidence = None
    if len(is_taken) or len(capture.references()):
        vantage = vantage_columns([capture])
        asked_ns = vantage.references.asked_ns
        is_new = np.ones(len(asked_ns), np.bool_) if work.after_ns is None else asked_ns > work.after_ns
        taken = selected(vantage, np.flatnonzero(is_taken), is_new)
        evidence = thinned(evidence_of(taken, work.seed), options.most_connections, table)
    # The user knows the slice, not the file that was read in its place.
    warnings = tuple(warning.replace(str(path), str(work.path)) for warning in capture.warnings)
    return SliceReading(
        evidence, int(is_taken.sum()), int(goes_on.sum()), capture.packet_count, last_ns, warnings
    )  # fmt: skip


def _is_in(carried: Path | None, summaries: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Which connections were handed on."""
    names = ("first_time_ns", "client_port", "server_port")
    rows = list(zip(*(summaries[name].tolist() for name in names), strict=True))
    if carried is None:
        return np.zeros(len(rows), np.bool_)
    capture = open_capture(str(carried), payload=False, columns=False, tcp_needed=False)
    known = set(zip(*(capture.connection_columns()[name].tolist() for name in names), strict=True))
    return np.asarray([row in known for row in rows], np.bool_)


def _goes_on(summaries: Mapping[str, npt.NDArray[Any]], now_ns: int) -> npt.NDArray[np.bool_]:
    """Which connections the next slice may show more of."""
    silent_ns = now_ns - summaries["last_time_ns"]
    is_open = summaries["close"] == CLOSES.index(Close.OPEN)
    packets = summaries["packets"]
    goes_on: npt.NDArray[np.bool_] = (
        (silent_ns < np.where(is_open, SILENT_NS, LINGERING_NS))
        & (now_ns - summaries["first_time_ns"] < LONGEST_NS)
        & (packets <= MOST_PACKETS)
    )
    rows = np.flatnonzero(goes_on)
    rows = rows[np.argsort(packets[rows], kind="stable")]
    goes_on[rows[np.cumsum(packets[rows]) > MOST_PACKETS_IN_ALL]] = False
    return goes_on
