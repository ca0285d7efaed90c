"""The captures of one task, judged by the detector, and which of their connections the task itself made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from detector.detection import detect
from detector.options import LEAST_PAIRING_CONFIDENCE
from pepscope.errors import PepscopeError
from pepscope.results.audits import AuditConnection
from pepscope.results.verdicts import DetectionResult, PairResult
from prober.client.transfer import Flow
from prober.measurement.task import Observation

#: The role of connections that carry what the cell is about.
DATA = "data"


@dataclass(frozen=True, slots=True)
class CapturedTask:
    """An observation and its captures as files; `None` where none was taken."""

    observation: Observation
    mobile: Path | None
    server: Path | None


@dataclass(frozen=True, slots=True)
class JudgedTask:
    """Verdicts on the connections of a task."""

    #: Those of the task's flows first, in the flows' order, then others in the captures.
    pairs: tuple[PairResult, ...]
    #: Those of the task's flows only.
    connections: tuple[AuditConnection, ...]
    warnings: tuple[str, ...]


def judge_captures(task: CapturedTask, *, series: bool) -> JudgedTask:
    """Judge what was captured: nothing where there are no captures, a warning where they cannot be judged."""
    # The mobile opens all connections.
    ends = {path: end for path, end in ((task.server, "server"), (task.mobile, "client")) if path is not None}
    if not ends:
        return JudgedTask((), (), ())
    measurement, key = task.observation.measurement, task.observation.task.key
    result, note = _detect(ends, measurement.ack_delay_s, series=series)
    warnings = [f"{key}: {note}"] if note else []
    if result is None:
        return JudgedTask((), (), tuple(warnings))
    names = {
        str(path): name
        for path, name in (
            (task.mobile, task.observation.mobile_capture),
            (task.server, task.observation.server_capture),
        )
        if path is not None
    }
    warnings += [
        f"{key}: {names[capture.path]}: {_with_names(text, names)}"
        for capture in result.captures
        for text in capture.warnings
    ]
    found = _of_flows(result.pairs, measurement.flows, _holding(result, str(task.mobile)))
    warnings += [
        f"{key}: the connection from port {flow.mobile_port} is not in the captures"
        for flow, pair in zip(measurement.flows, found, strict=True)
        if pair is None and flow.protocol == "tcp" and flow.role == DATA
    ]
    own = [(flow, result.pairs[at]) for flow, at in zip(measurement.flows, found, strict=True) if at is not None]
    others = [pair for at, pair in enumerate(result.pairs) if at not in found]
    experiment = task.observation.task.experiment
    return JudgedTask(
        pairs=tuple(_renamed(pair, names) for pair in (*(pair for _, pair in own), *others)),
        connections=tuple(
            AuditConnection(
                key,
                experiment,
                flow.role,
                _renamed(pair, names),
                _set_aside(flow, pair),
                task.observation.started_unix_ns,
            )
            for flow, pair in own
        ),
        warnings=tuple(warnings),
    )


def _holding(result: DetectionResult, path: str) -> str | None:
    """`path` if that capture was used and holds connections, in TCP or in datagrams that carry them."""
    has_tcp = any(capture.path == path and capture.connections for capture in result.captures)
    seen = {vantage.capture for pair in result.pairs for vantage in pair.vantages}
    return path if has_tcp or path in seen else None


def _detect(ends: Mapping[Path, str], ack_delay_s: float | None, *, series: bool) -> tuple[DetectionResult | None, str]:
    """The detector's result, and what went wrong; one capture is judged alone where the other is of no use."""
    note, paths = "", list(ends)
    for chosen in (paths, *([path] for path in paths if len(paths) > 1)):
        try:
            return detect(*map(str, chosen), ack_delay_s=ack_delay_s, taken_at=ends[chosen[0]], series=series), note
        except PepscopeError as error:
            note = note or _without_directory(str(error), paths)
    return None, note


def _without_directory(text: str, paths: Sequence[Path]) -> str:
    for path in paths:
        text = text.replace(f"{path.parent}/", "")
    return text


def _of_flows(pairs: Sequence[PairResult], flows: Sequence[Flow], mobile: str | None) -> list[int | None]:
    """For each flow the place of its pair; `mobile` is the mobile's capture.

    The mobile's kernel names the port. Without a capture there a NAT may have changed it: then the port counts where
    it is kept, or else the order, where the server saw as many connections to that port as the task made. The order
    counts, too, where the mobile's connections travel in datagrams, whose ports are a tunnel's.
    """
    taken: set[int] = set()
    found: list[int | None] = []
    for flow in flows:
        at = _by_port(pairs, flow, mobile, taken)
        if at is not None:
            taken.add(at)
        found.append(at)
    in_datagrams = {at for at, pair in enumerate(pairs) if any(name.transport == "udp" for name in pair.vantages)}
    _fill_by_order(pairs, flows, found, taken, set(range(len(pairs))) if mobile is None else in_datagrams)
    return found


def _by_port(pairs: Sequence[PairResult], flow: Flow, capture: str | None, taken: set[int]) -> int | None:
    for at, pair in enumerate(pairs):
        for vantage in pair.vantages:
            ends = {_port(vantage.client), _port(vantage.server)}
            if at not in taken and capture in (None, vantage.capture) and ends == {flow.mobile_port, flow.server_port}:
                return at
    return None


def _fill_by_order(
    pairs: Sequence[PairResult], flows: Sequence[Flow], found: list[int | None], taken: set[int], among: set[int]
) -> None:
    """Give flows that have no pair yet those `among` the pairs that the server saw at their port, if equally many."""
    for port in {flow.server_port for flow in flows}:
        wanting = [i for i, flow in enumerate(flows) if flow.server_port == port and found[i] is None]
        offered = [
            at
            for at, pair in enumerate(pairs)
            if at in among
            and at not in taken
            and any(port in {_port(name.client), _port(name.server)} for name in pair.vantages)
        ]
        if len(wanting) == len(offered):
            for place, at in zip(wanting, offered, strict=True):
                found[place] = at
                taken.add(at)


def _port(end_point: str) -> int:
    return int(end_point.rpartition(":")[2])


def _set_aside(flow: Flow, pair: PairResult) -> str:
    if flow.role != DATA:
        return f"It is no transfer of this application ({flow.role})."
    if pair.pairing_confidence < LEAST_PAIRING_CONFIDENCE:
        return f"The captures may show two different transfers ({pair.pairing_ground})."
    return ""


def _with_names(text: str, names: Mapping[str, str]) -> str:
    """The sentence with the archive's names of captures instead of where they were unpacked."""
    for path, name in names.items():
        text = text.replace(path, name)
    return text


def _renamed(pair: PairResult, names: dict[str, str]) -> PairResult:
    """The pair with captures named as in the archive, not by where they were unpacked to."""
    return replace(
        pair,
        vantages=tuple(
            replace(vantage, capture=names.get(vantage.capture, vantage.capture)) for vantage in pair.vantages
        ),
    )
