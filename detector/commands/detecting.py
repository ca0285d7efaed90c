"""What `detect` does once it is known what is asked: judge captures, and write the reports. Without click."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from detector.commands.archives import is_archive
from detector.options import (
    DECISION_PROBABILITY,
    DRIFT_LIMIT_PPM,
    LEAST_PAIRING_CONFIDENCE,
    ClockMode,
    DetectOptions,
    refuse_for_one_vantage,
)
from pepscope.captures.warnings import temporary_files_note
from pepscope.command_line.progress import Progress
from pepscope.command_line.volume import announce, note, say
from pepscope.errors import UsageError
from pepscope.plugins import writer
from pepscope.processes.garbage import freeze_imports
from pepscope.terminal import is_coloured
from pepscope.whole_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from detector.presentation.requested import RequestedPackets
    from pepscope.results.attention import EndPoints
    from pepscope.results.verdicts import DetectionResult

PACKETS = 3
PACKETS_OF = 1000

#: What users know options about two ends by.
_NAMES_OF_OPTIONS = {
    "clocks": "--clocks",
    "same_transfers": "--same-transfers",
    "drift_limit_ppm": "--drift-limit",
    "least_pairing_confidence": "--least-pairing",
}

#: Reports that name packets.
_WITH_PACKETS = ("json", "jsonl", "html", "parquet", "sarif")

#: Reports whose text several processes make, where memory is not short: each has a piece of it in memory.
_MADE_BY_PROCESSES = ("json", "jsonl")

#: Objects that are made before Python looks for cycles among them: the objects of a connection hold none, and looking
#: for some after each 700 takes a fifth of the time. While packets are named, which are the most objects that there are
#: at once, a thousand connections have some 160,000; cycles among twice as many take some ten megabytes.
_GARBAGE_THRESHOLD = 400_000


class Detection(NamedTuple):
    """What is asked: captures, where each report is to go, and the options of the command by name."""

    captures: Sequence[str]
    files: Mapping[str, str | None]
    clocks: str = ClockMode.GENERAL.value
    ack_delay_s: float | None = None
    same_transfers: bool = False
    drift_limit_ppm: float = DRIFT_LIMIT_PPM
    least_probability: float = DECISION_PROBABILITY
    least_pairing_confidence: float = LEAST_PAIRING_CONFIDENCE
    taken_at: str | None = None
    one_vantage: bool = False
    networks: str | None = None
    filter_expression: str | None = None
    memory_bytes: int | None = None
    packets: int = PACKETS
    packets_of: int = PACKETS_OF
    jobs: int | None = None
    connection: EndPoints | None = None
    fail_on: frozenset[str] | None = None
    quiet: bool = False


def detect_files(captures: Sequence[str], as_json: bool) -> bool:
    """What `pepscope detect [--json] FILE...` does, a call without other options; False where the command's parser has
    to look at it, and nothing was done."""
    if any(map(is_archive, captures)):
        return False
    judge_captures(Detection(captures, {"json": STANDARD_OUTPUT} if as_json else {}))
    return True


def judge_captures(asked: Detection) -> None:
    """Judge, write the reports and the table; exits with 1 where a verdict is one of `fail_on`.

    Raises UsageError for options that do not fit together, CaptureError, FilterError, OSError.
    """
    check_options(asked)
    with Progress("detecting") as progress:
        result = _judged(asked, progress)
    freeze_imports()  # what judging imported
    traffic = result.temporary_bytes
    if (text := temporary_files_note(traffic.written, traffic.read)) is not None:
        note(text)
    _write(result, asked)
    if not asked.quiet and STANDARD_OUTPUT not in asked.files.values():
        writer("table")(result, sys.stdout, is_coloured(sys.stdout))
    if asked.fail_on is not None and _fails(result, asked.fail_on):
        raise SystemExit(1)


def check_options(asked: Detection) -> None:
    """Raise UsageError for options that do not fit together, or do nothing for so many captures."""
    captures = asked.captures
    if asked.connection is not None and asked.files.get("html") is None:
        raise UsageError("--connection chooses what the page shows: give --html, too.")
    if len(captures) > 2 and not asked.one_vantage:
        reports = [name for name, path in asked.files.items() if path == STANDARD_OUTPUT]
        named = f", or --{reports[0]}=FILE if one of them names the report" if reports else ""
        raise UsageError(
            f"detect takes the captures of one or two ends, got {len(captures)}: add --one-vantage if all were taken "
            f"at one{named}."
        )
    if asked.one_vantage or len(captures) == 1:
        of_two_ends = DetectOptions(
            ClockMode(asked.clocks),
            drift_limit_ppm=asked.drift_limit_ppm,
            same_transfers=asked.same_transfers,
            least_pairing_confidence=asked.least_pairing_confidence,
        )
        refuse_for_one_vantage(of_two_ends, "--one-vantage" if asked.one_vantage else "one capture", _NAMES_OF_OPTIONS)


def _judged(asked: Detection, progress: Progress) -> DetectionResult:
    gc.set_threshold(_GARBAGE_THRESHOLD)
    # Judging multiplies no matrices, but OpenBLAS starts a thread for each processor, which looks for work for 25 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from detector.detection import detect, detect_vantage

    freeze_imports()
    captures, are_of_one = asked.captures, asked.one_vantage and len(asked.captures) > 1
    connections = () if asked.connection is None else (asked.connection,)
    has_page = asked.files.get("html") is not None
    are_digested = any(asked.files.values())  # the table alone states none
    if are_of_one:
        return detect_vantage(
            captures,
            taken_at=asked.taken_at,
            networks=asked.networks,
            ack_delay_s=asked.ack_delay_s,
            least_probability=asked.least_probability,
            filter=asked.filter_expression,
            memory_bytes=asked.memory_bytes,
            series=has_page,
            connections=connections,
            packets=_requested_packets(asked),
            digests=are_digested,
            progress=progress,
        )
    return detect(
        *captures,
        clocks=asked.clocks,
        ack_delay_s=asked.ack_delay_s,
        drift_limit_ppm=asked.drift_limit_ppm,
        same_transfers=asked.same_transfers,
        least_probability=asked.least_probability,
        least_pairing_confidence=asked.least_pairing_confidence,
        taken_at=asked.taken_at,
        networks=asked.networks,
        filter=asked.filter_expression,
        memory_bytes=asked.memory_bytes,
        series=has_page,
        connections=connections,
        packets=_requested_packets(asked),
        digests=are_digested,
        jobs=_jobs(asked),
        progress=progress,
    )


def _requested_packets(asked: Detection) -> RequestedPackets:
    from detector.presentation.requested import RequestedPackets

    are_shown = any(asked.files.get(name) for name in _WITH_PACKETS)
    return RequestedPackets(asked.packets if are_shown else 0, asked.packets_of)


def _jobs(asked: Detection) -> int:
    if asked.jobs is None:
        from pepscope._core import usable_processors

        return usable_processors()
    return asked.jobs


def _write(result: DetectionResult, asked: Detection) -> None:
    """The reports that are asked for, by format; the page of one connection, if that is asked for."""
    for name, path in asked.files.items():
        if path is None:
            continue
        if name == "html" and asked.connection is not None:
            writer("connection-html")(result, path, asked.connection)
        elif name in _MADE_BY_PROCESSES and asked.memory_bytes is None:
            writer(name)(result, path, jobs=_jobs(asked))
            announce(path)
        else:
            written = writer(name)(result, path)
            announce(path, *(written or ()))


def _fails(result: DetectionResult, kinds: frozenset[str]) -> bool:
    """Whether a verdict is among `kinds`, or the user asked for one and there is none at all.

    A group's verdict counts like a connection's. That a group is inconclusive does not: its connections say it.
    """
    verdicts = {verdict.value for verdict in result.verdicts}
    verdicts |= {group.verdict.value for group in result.groups} - {"inconclusive"}
    if verdicts <= {"inconclusive"}:
        say("pepscope: no connection could be judged, which --fail-on does not take for success.")
        return True
    return bool(verdicts & kinds)
