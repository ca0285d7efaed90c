"""From capture files to verdicts. What judges two captures, and what judges one, is imported where it is needed, if
possible while captures are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from detector.detection.request import DetectionRequest, Work
from detector.options import (
    DECISION_PROBABILITY,
    DRIFT_LIMIT_PPM,
    LEAST_PAIRING_CONFIDENCE,
    ClockMode,
    DetectOptions,
    refuse_for_one_vantage,
)
from detector.presentation.provenance import stated_tool
from detector.presentation.requested import RequestedDetails, RequestedPackets
from pepscope.captures.at_once import open_captures
from pepscope.captures.capture import Capture, KeptPayload
from pepscope.captures.files.digest import FileDigest
from pepscope.captures.opening.capture_files import CaptureFile, capture_name
from pepscope.errors import UsageError
from pepscope.processes.garbage import garbage_kept
from pepscope.processes.logged import log_info

if TYPE_CHECKING:
    from detector.one_capture.networks import NetworkTable
    from pepscope.results.attention import EndPoints
    from pepscope.results.verdicts import DetectionResult

_LOG = "pepscope.detect"


def detect(
    first: CaptureFile,
    second: CaptureFile | None = None,
    *,
    clocks: ClockMode | str = ClockMode.GENERAL,
    ack_delay_s: float | None = None,
    drift_limit_ppm: float = DRIFT_LIMIT_PPM,
    taken_at: str | None = None,
    networks: str | None = None,
    same_transfers: bool = False,
    least_probability: float = DECISION_PROBABILITY,
    least_pairing_confidence: float = LEAST_PAIRING_CONFIDENCE,
    filter: str | None = None,  # noqa: A002
    memory_bytes: int | None = None,
    series: bool = False,
    connections: Sequence[EndPoints] = (),
    packets: int | RequestedPackets = 0,
    digests: bool = True,
    jobs: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> DetectionResult:
    """Judge every TCP connection in one or two captures.

    Captures, and what is known of them:

    - `first`, `second`: capture files taken at the two ends, in any order, as paths or as file objects open for bytes;
      `-` (once) is standard input. One alone is judged as `detect_vantage` does.
    - `filter`: an expression in libpcap's language; other packets are not read.
    - `taken_at`: the capture point of `first` if it is known, the `client` (the end that opens connections) or the
      `server`.
    - `networks`: for one capture, as in `detect_vantage`.
    - `same_transfers`: both captures show the same transfers: a pair with equal payload is not doubted because its
      addresses differ, and no pair is doubted because a clock is off by more than pairing allows for.
    - `ack_delay_s`: the delay that the receiver put on every ACK (Method 3).
    - `clocks`, `drift_limit_ppm`: what to assume of the capture clocks, and the fastest drift to allow for.

    When a connection gets a verdict: it is inconclusive if its class (end to end, or split) is less probable than
    `least_probability`, or if it is less sure than `least_pairing_confidence` that both captures show it.

    What results carry beside verdicts:

    - `series`: the series that a page draws, of `connections` (client and server of each, as results write them) or, if
      none are given, of those that deserve most attention.
    - `packets`: the packets that show evidence, at this many moments for each finding, for the thousand connections
      that deserve most attention.
    - `digests`: the SHA-256 of the files.

    How the work is done, which changes no result:

    - `memory_bytes`: the memory that both captures and the work on them may take together (default: 1 GiB for each
      capture). Packets that need more are kept in temporary files and judged in parts; judging the largest connection
      may still take some 250 bytes for each of its packets.
    - `jobs`: the number of processes that judge two captures. With two or more, both captures are read in parallel,
      while the judging code is imported. If captures are kept in temporary files, fewer processes judge where the
      memory has no room for what each of them loads.
    - `progress`: called with the work done and the work in all.

    Raises CaptureError where a capture cannot be read or holds no TCP, FilterError, and UsageError for options outside
    their range, or that have no meaning for one capture (`clocks`, `drift_limit_ppm`, `same_transfers`,
    `least_pairing_confidence`) or for two (`networks`).
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
    _check_meaning(paths, options, networks)
    table = None if networks is None else _network_table(networks)
    share_bytes = _share_bytes(memory_bytes, len(paths))
    digested = _digests_of(paths, are_wanted=digests)
    opened = partial(_opened, paths, filter, share_bytes, progress, at_once=jobs > 1)
    details = RequestedDetails(series, connections, RequestedPackets.of(packets))
    request = DetectionRequest(options, details, stated_tool(options, filter=filter, networks=networks), digested)
    if second is None:
        return _of_one_vantage(opened, table, request)
    return _of_two_captures(opened, request, Work(jobs, share_bytes, progress))


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
    packets: int | RequestedPackets = 0,
    digests: bool = True,
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
    table = None if networks is None else _network_table(networks)
    share_bytes = _share_bytes(memory_bytes, len(paths))
    digested = _digests_of(paths, are_wanted=digests)
    opened = partial(_opened, paths, filter, share_bytes, progress, at_once=False)
    tool = stated_tool(options, filter=filter, networks=networks, one_vantage=True)
    details = RequestedDetails(series, connections, RequestedPackets.of(packets))
    return _of_one_vantage(opened, table, DetectionRequest(options, details, tool, digested))


def _check_meaning(paths: Sequence[str | BinaryIO], options: DetectOptions, networks: str | None) -> None:
    """Raise UsageError for one file given twice, and for options that have no meaning for so many captures."""
    if len(paths) == 2 and "-" not in paths and _is_same_file(*paths):
        raise UsageError(f"both captures are the same file, {paths[0]}: give the captures of two ends")
    if len(paths) == 1:
        refuse_for_one_vantage(options)
    elif networks is not None:
        raise UsageError("a table of networks is for one vantage point: two captures show where they meet")


def _of_two_captures(opened: Callable[..., list[Capture]], request: DetectionRequest, work: Work) -> DetectionResult:
    """What two captures show; `opened` reads them, and calls what imports the judging code meanwhile."""
    names_packets = request.details.packets.moments > 0
    captures = opened(True, meanwhile=partial(_import_judging, work.processes, names_packets=names_packets))
    from detector.detection.two_captures import judge_two_captures

    return judge_two_captures(captures, request, work)


def _of_one_vantage(
    opened: Callable[..., list[Capture]], networks: NetworkTable | None, request: DetectionRequest
) -> DetectionResult:
    """What captures of one vantage point show; `opened` reads them with as much of their payload as is needed."""
    from detector.one_capture.further_methods import further_methods

    methods = further_methods(request.options)
    payload: KeptPayload = True if methods or request.details.series else "exchanges"
    captures = opened(payload, meanwhile=_import_judging_of_one)
    from detector.detection.one_vantage import judge_one_vantage

    return judge_one_vantage(captures, methods, networks, request)


def _share_bytes(memory_bytes: int | None, captures: int) -> int | None:
    """What each capture may take, and the work on them."""
    if memory_bytes is None:
        return None
    if memory_bytes < 0:
        raise UsageError(f"memory_bytes must be 0 or above, got {memory_bytes}")
    return memory_bytes // (captures + 1)


def _network_table(path: str) -> NetworkTable:
    from detector.one_capture.networks import read_networks

    return read_networks(path)


def _digests_of(sources: Sequence[str | BinaryIO], *, are_wanted: bool) -> list[FileDigest]:
    """Begin to take the digests of files, while their packets are read; or only to see whether these change."""
    return [FileDigest(source, is_wanted=are_wanted) for source in sources]


def _import_judging_of_one() -> None:
    with garbage_kept():
        import detector.detection.one_vantage  # noqa: F401


def _import_judging(jobs: int, *, names_packets: bool) -> None:
    """Import what judges two captures by so many processes: that takes as long as reading some thousand connections."""
    with garbage_kept():
        import detector.detection.two_captures

        if names_packets:
            import detector.presentation.telling_packets.while_judging  # noqa: F401
        if jobs > 1:
            import pepscope.processes.forked_parts  # noqa: F401


def _opened(
    paths: Sequence[str | BinaryIO],
    expression: str | None,
    memory_bytes: int | None,
    progress: Callable[[int, int], object] | None,
    payload: KeptPayload,
    *,
    at_once: bool,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Capture]:
    """The captures, of which one at least holds TCP; each may keep so many bytes in memory. `meanwhile` is called."""
    if paths.count("-") > 1:
        raise UsageError("only one of the two captures can come from standard input")
    captures = open_captures(
        paths,
        filter=expression,
        memory_bytes=memory_bytes,
        payload=payload,
        tcp_needed=len(paths) == 1,
        progress=progress,
        at_once=at_once,
        meanwhile=meanwhile,
    )
    if not any(capture.tcp_packet_count for capture in captures):
        raise captures[0].nothing_to_analyse()
    _log_captures(captures)
    return captures


def _log_captures(captures: Sequence[Capture]) -> None:
    for capture in captures:
        log_info(
            _LOG, "read %s: TCP packets: %d, connections: %d",
            capture.path, capture.tcp_packet_count, len(capture.connections),
        )  # fmt: skip


def _options(
    clocks: ClockMode | str, ack_delay_s: float | None, drift_limit_ppm: float, taken_at: str | None
) -> DetectOptions:
    try:
        mode = ClockMode(clocks)
    except ValueError:
        raise UsageError(f"clocks must be one of {', '.join(ClockMode)}, got {clocks!r}") from None
    if ack_delay_s is not None and not 0 < ack_delay_s < math.inf:
        raise UsageError(f"the ACK delay must be a time greater than 0 s, got {ack_delay_s}")
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
