"""What set-ups that are not scored say of this machine: the times of its ends, and of the devices between them.

Real runs pass two TUN devices and a thread that carries packets between them. A capture shows a packet before it enters
the first one and after it has left the second. What that takes beyond the path's own delay is known, since the path is:
in an empty line all of it, in a busy one how much later a packet leaves than the line would have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.real_or_simulated.runs import Captures
from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Mark, PacketColumns, TcpFlag
from reference_sim.host_times import End, Measured, measure_host_times
from reference_sim.host_times.fitting import LEAST_SAMPLES, Cooling, Floats, LogNormal, fit_cooling, fit_log_normal

ENDS = {"server": End.SERVER, "mobile": End.CLIENT}
#: The direction in which each end sends, as columns and as scenarios have it.
_SENT = {"server": (1, "down"), "mobile": (0, "up")}
#: The line must have been empty so long when a packet enters it.
_EMPTY_S = 2e-4
#: Beyond this a packet waited in the path: what is known of it was wrong.
_MOST_CROSSING_S = 2e-3
_IP_BYTES = {4: 20, 6: 40}
_TCP_BYTES, _TCP_SYN_BYTES = 32, 40
#: And busy so long.
_BUSY_S = 5e-5
#: Times beyond so many standard deviations are those of packets that waited for something else.
_LATE = 3.0
#: The median of a log-normal distribution of this spread, beside that of the differences of two of its times.
_MEDIAN_OF_DIFFERENCES = 1.54
_USUAL_SPREAD = 0.7
_NO_COOLING = Cooling(0.02, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Learned:
    """Of a machine: the times of its ends, and the hops beside them."""

    ends: dict[str, Measured]
    #: From the machine on.
    devices: dict[str, list[dict[str, Any]]]

    def scenario(self, set_up: dict[str, Any]) -> dict[str, Any]:
        """A set-up with the machine's times."""
        timed = {end: {**set_up[end], "times": self.ends[end].table()} for end in ENDS}
        path = [*self.devices["server"], *set_up["path"], *reversed(self.devices["mobile"])]
        return {**set_up, **timed, "path": path}

    def document(self) -> dict[str, Any]:
        """For JSON."""
        ends = {end: {"times": one.table(), "samples": one.samples} for end, one in self.ends.items()}
        return {"ends": ends, "devices": self.devices}


def learn(set_ups: Sequence[dict[str, Any]], runs: Sequence[Captures]) -> Learned:
    """The machine's times, by real runs of these set-ups."""
    ends = {end: measure_host_times((open_capture(str(run[end])), side) for run in runs) for end, side in ENDS.items()}
    devices: dict[str, list[dict[str, Any]]] = {end: [] for end in ENDS}
    for end, other in (("server", "mobile"), ("mobile", "server")):
        passages = [_passages(end, set_up, run) for set_up, run in zip(set_ups, runs, strict=True)]
        entering = [pair for passage in passages for pair in passage.entering]
        leaving_s = [late_s for passage in passages for late_s in passage.late_s]
        devices[end].insert(0, _entrance(end, entering))
        devices[other].append(_exit(other, leaving_s))
    return Learned(ends, devices)


def _entrance(end: str, entering: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """A hop for what `end` sends, from times through it and the pauses before, in seconds."""
    hop: dict[str, Any] = {"kind": "device", "name": f"{end} sends"}
    if len(entering) < LEAST_SAMPLES:
        return hop
    times_s, pauses_s = (np.array(column) for column in zip(*entering, strict=True))
    cooling = fit_cooling(times_s, pauses_s) or _NO_COOLING
    warm_s = times_s / cooling.factors(pauses_s)
    first = fit_log_normal(warm_s)
    is_late = first.above(warm_s) > _LATE * max(first.spread, 0.2)
    hop[_SENT[end][1]] = _written(fit_log_normal(warm_s[~is_late]))
    cold = {"cold": cooling.most, "cooling_s": cooling.full_s, "cooling_exponent": cooling.exponent}
    return hop | cold | _interruption(times_s, is_late)


def _exit(end: str, late_s: Sequence[float]) -> dict[str, Any]:
    """A hop for what arrives at `end`, from how much later than the one before it each packet was, in seconds."""
    hop: dict[str, Any] = {"kind": "device", "name": f"{end} receives"}
    differences_s = np.array(late_s)
    if len(differences_s) < LEAST_SAMPLES:
        return hop
    usual_s = float(np.median(np.abs(differences_s))) * _MEDIAN_OF_DIFFERENCES
    is_late = differences_s > 10 * usual_s
    way = "up" if end == "server" else "down"
    hop[way] = _written(LogNormal(0.0, usual_s, _USUAL_SPREAD))
    return hop | _interruption(differences_s, is_late)


def _interruption(times_s: Floats, is_late: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Packets that waited for something else, if there were enough."""
    if np.count_nonzero(is_late) < LEAST_SAMPLES:
        return {}
    return {"interrupted_share": float(np.mean(is_late)), "interruption": _written(fit_log_normal(times_s[is_late]))}


def _written(time: LogNormal) -> dict[str, float]:
    return {"least_s": time.least_s, "median_s": time.median_s, "spread": time.spread}


@dataclass(slots=True)
class _Passages:
    """Of packets that one end sent, in seconds."""

    #: How long they took beyond the line's time, where it was empty, and the pauses before them.
    entering: list[tuple[float, float]] = field(default_factory=list)
    #: How much later they left than the one before, beyond the line's time, where it was busy.
    late_s: list[float] = field(default_factory=list)


def _passages(end: str, set_up: dict[str, Any], run: Captures) -> _Passages:
    way, _ = _SENT[end]
    line, version = set_up["path"][0]["down"], set_up["traffic"][0]["ip_version"]
    here, there = (open_capture(str(run[place])) for place in (end, "mobile" if end == "server" else "server"))
    arrivals = _arrivals(there, way)
    departures = Counter(key for key, _ in _passing(here, way))
    passages = _Passages()
    free_s, last_s = 0.0, -1.0
    before_s: float | None = None
    for key, at_s, headers_known, payload_bytes, is_syn, is_sent in _in_order(here, way):
        pause_s, last_s = (at_s - last_s if last_s >= 0 else -1.0), at_s
        if not is_sent:
            continue
        length = _IP_BYTES[version] + (_TCP_SYN_BYTES if is_syn else _TCP_BYTES) + payload_bytes
        serialisation_s = 8 * length / line["rate_bit_s"]
        empty_s = at_s - free_s
        free_s = max(free_s, at_s) + serialisation_s
        arrival_s = arrivals.get(key) if headers_known and departures[key] == 1 else None
        if arrival_s is not None and empty_s > _EMPTY_S:
            taken_s = arrival_s - at_s - line["delay_s"] - serialisation_s
            if 0 < taken_s < _MOST_CROSSING_S:
                passages.entering.append((taken_s, pause_s))
        elif arrival_s is not None and before_s is not None and empty_s < -_BUSY_S:
            passages.late_s.append(arrival_s - before_s - serialisation_s)
        before_s = arrival_s
    return passages


_Key = tuple[int, ...]


def _arrivals(capture: Capture, way: int) -> dict[_Key, float]:
    """When packets that nothing else looks like passed a capture."""
    passed: dict[_Key, list[float]] = {}
    for key, at_s in _passing(capture, way):
        passed.setdefault(key, []).append(at_s)
    return {key: times[0] for key, times in passed.items() if len(times) == 1}


def _passing(capture: Capture, way: int) -> Iterator[tuple[_Key, float]]:
    for key, at_s, *_, is_sent in _in_order(capture, way):
        if is_sent:
            yield key, at_s


def _in_order(capture: Capture, way: int) -> Iterator[tuple[_Key, float, bool, int, bool, bool]]:
    """All packets of a capture: key, time, whether its TCP header is of usual length, payload, SYN, sent `way`."""
    rows = []
    for connection in capture.connections:
        packets = capture.packets(connection.id)
        for row in range(len(packets)):
            rows.append((int(packets.time_ns[row]), connection.client_port, packets, row))
    rows.sort(key=lambda one: one[0])
    for time_ns, port, packets, row in rows:
        flags = int(packets.flags[row])
        is_usual = not int(packets.marks[row]) & Mark.HAS_SACK
        is_syn = bool(flags & TcpFlag.SYN)
        is_sent = int(packets.direction[row]) == way
        yield _key(port, packets, row), time_ns * 1e-9, is_usual, int(packets.payload_bytes[row]), is_syn, is_sent


def _key(port: int, packets: PacketColumns, row: int) -> _Key:
    columns = (
        packets.direction, packets.sequence_offset, packets.acknowledgement_offset, packets.payload_bytes,
        packets.flags, packets.tsval, packets.tsecr, packets.ip_id,
    )  # fmt: skip
    return (port, *(int(column[row]) for column in columns))
