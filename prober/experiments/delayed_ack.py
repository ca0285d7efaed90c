"""Who acknowledges, if the receiver holds its acknowledgements back? Method 3 of Wei et al. (TR 2005-59, III-A).

The receiver delays every ACK by T while an object is moved to it. End to end no round trip at the sender is shorter
than T. T is several times the largest round trip that the idle path showed, and grows while the sender's first round
trips lie neither well below it nor beyond it. Round trips come from captures (first copies only, by the detector's
`delayed_ack`) and, without any right at the sender, from its kernel: the mobile's first acknowledged payload (up), the
server's smoothed and least round-trip times (down).

What fools it: radio networks that make acknowledgements themselves. Where the captures show that the payload segments
are still the far end's, that is told as a fact and not taken for a split.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pepscope.packets import Direction
from pepscope.results import Evidence, Number, Outcome, PairResult
from prober.costs import transfer_cost
from prober.errors import ArchiveError, MeasurementError, PlanError
from prober.experiment import Application, Experiment, Flow, Json, Measurement, Seen, Task, Want
from prober.first_ack import FirstAcknowledgements
from prober.measured import entries, number, optional_number
from prober.objects import Kind, ObjectName
from prober.pictures import LEAST_BYTES as LEAST_PICTURE_BYTES
from prober.transfer import SUFFIXES, Transfer

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd
    from prober.plan import Plan

#: T over the largest idle round trip: a queue of the transfer's own may add to it what the path's round trip is.
PATH_FACTOR = 4.0
#: T must exceed what a path may do by so much before "not shorter than T" means that nobody nearer acknowledges.
SURE_FACTOR = 2.0
#: A SYN that was lost is sent again after a second, and its handshake takes so much longer.
LOST_SYN_S = 0.95
#: By how much T grows where the answer is ambiguous.
GROWTH = 3.0
#: Well below T, and not below: the sender's kernel is looked at every millisecond by a busy process.
CLEARLY_SHORT, CLEARLY_LONG = 0.5, 0.95
#: A smoothed round-trip time starts at the handshake's, which a firewall may have answered. A sample leaves seven
#: eighths of the past (RFC 6298): after three, a third of it is new. Of so many segments that came back to the server
#: three at least acknowledge something new, however many were provoked by retransmissions.
SMOOTHED_SHORT = 0.25
LEAST_ANSWERS = 20

_IDLE_LOOKS = 5
_MOST_ROUNDS = 3
_ROW_LOOKS = 8
_ROW_PAUSE_S = 0.25
_HELD = "held"
_METHOD_3 = "delayed_ack"
#: Round trips that a transfer takes under a hold, FTP's conversation included, for the plan's estimate.
_EXPECTED_DELAYS = {Application.FTP: 16.0}
_USUAL_DELAYS = 8.0


class DelayedAck(Experiment):
    """Moves objects while their receiver holds back its ACKs."""

    name = "delayed-ack"
    summary = "Hold back the receiver's ACKs, and see whether the sender gets some all the same (Method 3)."
    defaults: ClassVar[Mapping[str, Json]] = MappingProxyType(
        {"size_bytes": 100_000, "least_delay_s": 0.5, "most_delay_s": 6.0, "repeats": 1}
    )

    def tasks(self, plan: Plan) -> Iterable[Task]:
        """One task an application, a direction and a repeat."""
        settings = plan.experiments[self.name]
        size_bytes, repeats = int(settings["size_bytes"]), int(settings["repeats"])
        least_s, most_s = float(settings["least_delay_s"]), float(settings["most_delay_s"])
        if not 0.05 <= least_s <= most_s <= 20:
            raise PlanError(
                "experiments.delayed-ack: 0.05 s <= least_delay_s <= most_delay_s <= 20 s, "
                f"not {least_s:g} s and {most_s:g} s"
            )
        delay_s = min(most_s, max(least_s, PATH_FACTOR * plan.rates.round_trip_time_s))
        for repeat in range(1, repeats + 1):
            for application in plan.applications:
                for direction in plan.directions:
                    cost = transfer_cost(application, direction, size_bytes, plan.rates)
                    yield Task(
                        self.name,
                        repeat,
                        application,
                        direction,
                        {"size_bytes": size_bytes, "least_delay_s": least_s, "most_delay_s": most_s},
                        bytes_up=cost.bytes_up,
                        bytes_down=cost.bytes_down,
                        expected_s=cost.expected_s + delay_s * _EXPECTED_DELAYS.get(application, _USUAL_DELAYS),
                        wants=frozenset({Want.MOBILE_HOLD if direction is Direction.DOWN else Want.SERVER_HOLD}),
                    )

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Transfers under growing T; the last one counts."""
        assert task.application is not None
        port = end.port(task.application)
        idle = _idle_round_trips_s(end, port)
        largest_s, most_s = largest_round_trip_s(idle), float(task.parameters["most_delay_s"])
        delay_s: float | None = min(most_s, max(float(task.parameters["least_delay_s"]), PATH_FACTOR * largest_s))
        rounds: list[dict[str, Json]] = []
        flows: tuple[Flow, ...] = ()
        while delay_s is not None and len(rounds) < _MOST_ROUNDS:
            made = _Round(delay_s)
            moved = made.run(task, end, port)
            rounds.append(made.to_mapping())
            flows = tuple(Flow(flow.mobile_port, flow.server_port, _role(flow)) for flow in moved.flows)
            delay_s = next_delay_s(made, largest_s, most_s)
        values = {"idle_round_trips_s": idle, "rounds": rounds}
        return Measurement(values, flows, ack_delay_s=float(rounds[-1]["delay_s"]))

    def examine(self, seen: Sequence[Seen]) -> tuple[Evidence, ...]:
        """Findings: `acks-not-from-receiver` (split), `acks-only-from-receiver` (intact), the detector's too."""
        found: list[Evidence] = []
        for item in seen:
            if _acknowledged_without_split(item):
                continue
            found += [evidence for pair in _own_pairs(item) for evidence in pair.evidence if _speaks(evidence)]
            from_kernel = self._from_kernel(item)
            found += [] if from_kernel is None else [from_kernel]
        best: dict[Outcome, Evidence] = {}
        for evidence in found:
            if evidence.outcome not in best or evidence.strength > best[evidence.outcome].strength:
                best[evidence.outcome] = evidence
        return tuple(best.values())

    def _from_kernel(self, item: Seen) -> Evidence | None:
        """What the sender's kernel says of the last round."""
        values = item.observation.measurement.values
        made = _Round.from_values(values)
        largest_s = largest_round_trip_s(_idle(values))
        if made is None or made.held == 0 or made.round_trip_s is None:
            return None
        numbers: dict[str, Number] = {
            "ack_delay_s": made.delay_s,
            "round_trip_s": made.round_trip_s,
            "smoothed_round_trip_s": made.smoothed_s,
            "idle_round_trip_max_s": largest_s,
            "held_acks": made.held,
            "hold_error_max_s": made.largest_error_s,
        }
        caveats = ("Radio networks that make acknowledgements themselves do the same without splitting the payload.",)
        if made.is_clearly_short:
            return Evidence(
                self.name, Outcome.SPLIT, "acks-not-from-receiver", 0.9,
                f"The receiver held {made.held} acknowledgements back for {made.delay_s:.3g} s each, yet the sender's "
                f"kernel had some after {made.round_trip_s:.3g} s: somebody else acknowledges.", numbers, caveats,
            )  # fmt: skip
        if made.is_clearly_long:
            strength = 0.9 if made.delay_s >= SURE_FACTOR * largest_s else 0.3
            return Evidence(
                self.name, Outcome.INTACT, "acks-only-from-receiver", strength,
                f"The receiver held its acknowledgements back for {made.delay_s:.3g} s, and the sender's kernel had "
                f"none sooner than after {made.round_trip_s:.3g} s: nobody else acknowledges.", numbers,
            )  # fmt: skip
        return None

    def facts(self, seen: Sequence[Seen]) -> Mapping[str, Json]:
        """Every T that was tried, and whether acknowledgements were made on the way without a split."""
        rows = [dict(entry) for item in seen for entry in entries(item.observation.measurement.values, "rounds")]
        made_on_the_way = sum(_acknowledged_without_split(item) for item in seen)
        return {"rounds": rows, "acknowledged_on_the_way_without_split": made_on_the_way} if rows else {}


@dataclass(slots=True)
class _Round:
    """One transfer under one T, and what the sender's kernel saw."""

    delay_s: float
    #: Up: of the first payload. Down: the least one that the server's kernel saw, handshake included.
    round_trip_s: float | None = None
    #: Down only, with how many segments came back to the server.
    smoothed_s: float | None = None
    answered_segments: int = 0
    held: int = 0
    largest_error_s: float = 0.0
    moved_bytes: int = 0
    total_s: float = 0.0

    @property
    def is_clearly_short(self) -> bool:
        """Down, the smoothed time must be short as well: a firewall may have answered the handshake alone."""
        if self.round_trip_s is None or self.round_trip_s >= CLEARLY_SHORT * self.delay_s:
            return False
        if self.smoothed_s is None:
            return True
        return self.answered_segments >= LEAST_ANSWERS and self.smoothed_s < SMOOTHED_SHORT * self.delay_s

    @property
    def is_clearly_long(self) -> bool:
        return self.round_trip_s is not None and self.round_trip_s >= CLEARLY_LONG * self.delay_s

    def run(self, task: Task, end: MobileEnd, port: int) -> Transfer:
        """Move the object under the hold. Raises MeasurementError where the hold saw nothing."""
        assert task.application is not None
        assert task.direction is not None
        size_bytes = int(task.parameters["size_bytes"])
        if task.application is Application.HTTP_IMAGE:
            size_bytes = max(size_bytes, LEAST_PICTURE_BYTES)
        before = end.control.last_served_number()
        patience_s = 4 * self.delay_s + 5.0
        is_up = task.direction is Direction.UP
        with FirstAcknowledgements(patience_s) as watching, self._hold(task.direction, end, port):
            prepare = watching.watch if is_up else None
            moved = end.transfer(task.application, task.direction, size_bytes, prepare=prepare)
        if is_up:
            self.round_trip_s = watching.round_trip_s(moved.flows[0].mobile_port)
        if self.held == 0:
            raise MeasurementError("the hold at the receiver saw no acknowledgement, so nothing was held back")
        if not is_up:
            name = str(ObjectName(Kind(SUFFIXES[task.application]), size_bytes, moved.seed))
            self._ask_server(end, before, name)
        self.moved_bytes, self.total_s = moved.moved_bytes, moved.total_s
        return moved

    @contextlib.contextmanager
    def _hold(self, direction: Direction, end: MobileEnd, port: int) -> Iterator[None]:
        if direction is Direction.DOWN:
            ports = end.about.ports
            ranges = [(port, port), *([ports.ftp_data] if port in (ports.ftp, ports.ftp_free) else [])]
            with end.hold_acks(tuple(ranges), self.delay_s) as mobile_hold:
                yield
            report = mobile_hold.report()
            self.held, self.largest_error_s = report.held, report.largest_error_s
            return
        with end.control.hold_acks(port, self.delay_s, end.remaining_s + 60.0) as server_hold:
            yield
        if server_hold.report is not None:
            self.held, self.largest_error_s = server_hold.report.held, server_hold.report.largest_error_s

    def _ask_server(self, end: MobileEnd, before: int, name: str) -> None:
        """The server's view of the connection that carried the object: the shortest, if several did."""
        for _ in range(_ROW_LOOKS):
            rows = [row for row in end.control.served(before) if row.object == name and row.tcp_info.get("min_rtt")]
            if rows:
                facts = min((row.tcp_info for row in rows), key=lambda info: info["min_rtt"])
                self.round_trip_s = facts["min_rtt"] / 1e6
                self.smoothed_s = facts.get("rtt", 0) / 1e6
                self.answered_segments = facts.get("segs_in", 0)
                return
            time.sleep(_ROW_PAUSE_S)

    def to_mapping(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_values(cls, values: Mapping[str, Json]) -> _Round | None:
        """The last round of a measurement. Raises ArchiveError."""
        rows = entries(values, "rounds")
        if not rows:
            return None
        return cls(
            delay_s=number(rows[-1], "delay_s"),
            round_trip_s=optional_number(rows[-1], "round_trip_s"),
            smoothed_s=optional_number(rows[-1], "smoothed_s"),
            answered_segments=int(number(rows[-1], "answered_segments")),
            held=int(number(rows[-1], "held")),
            largest_error_s=number(rows[-1], "largest_error_s"),
            moved_bytes=int(number(rows[-1], "moved_bytes")),
            total_s=number(rows[-1], "total_s"),
        )


def next_delay_s(made: _Round, largest_idle_s: float, most_s: float) -> float | None:
    """The T to try next; `None` where the answer is clear, or T can grow no more."""
    if made.round_trip_s is None or made.is_clearly_short or made.delay_s >= most_s:
        return None
    if made.smoothed_s is not None and made.smoothed_s >= CLEARLY_SHORT * made.delay_s and not made.is_clearly_long:
        return None  # a firewall answered the handshake; of what follows the captures tell
    if not made.is_clearly_long:
        return min(most_s, GROWTH * made.delay_s)
    # End to end, what exceeds T is the path's own round trip, now with the transfer's queue.
    path_s = max(largest_idle_s, made.round_trip_s - made.delay_s)
    return None if made.delay_s >= SURE_FACTOR * path_s else min(most_s, PATH_FACTOR * path_s)


def largest_round_trip_s(idle: Sequence[float]) -> float:
    """The largest of idle round trips, but for handshakes whose SYN was lost: these take a second more (RFC 6298)."""
    median_s = sorted(idle)[len(idle) // 2]
    return max(one for one in idle if one < median_s + LOST_SYN_S)


def _idle_round_trips_s(end: MobileEnd, port: int) -> list[float]:
    """Handshakes with the port and echoes of the server; the first also wakes a radio bearer that sleeps."""
    times = []
    for _ in range(_IDLE_LOOKS):
        began_s = time.perf_counter()
        with end.connect(port):
            times.append(time.perf_counter() - began_s)
        echoed_s = _echo_s(end)
        times += [] if echoed_s is None else [echoed_s]
    return times


def _echo_s(end: MobileEnd) -> float | None:
    if not end.about.ports.udp_echo:
        return None
    with socket.socket(end.family, socket.SOCK_DGRAM) as link:
        link.settimeout(min(2.0, end.remaining_s))
        began_s = time.perf_counter()
        try:
            link.connect((end.address, end.about.ports.udp_echo))
            link.send(end.control.session.encode("ascii"))
            link.recv(2048)
        except OSError:
            return None
        return time.perf_counter() - began_s


def _idle(values: Mapping[str, Json]) -> list[float]:
    """Raises ArchiveError."""
    given = values.get("idle_round_trips_s")
    if not isinstance(given, list | tuple) or not given:
        raise ArchiveError("the measurement's idle_round_trips_s is a list of times")
    return [number({"idle_round_trips_s": one}, "idle_round_trips_s") for one in given]


def _role(flow: Flow) -> str:
    """Held transfers fill buffers that others empty at once, so that they say nothing of a split's kind."""
    return _HELD if flow.role == "data" else flow.role


def _own_pairs(item: Seen) -> list[PairResult]:
    """Verdicts on the connections of the last round: T is only true of these."""
    wanted = [{flow.mobile_port, flow.server_port} for flow in item.observation.measurement.flows if flow.role == _HELD]
    return [
        pair
        for pair in item.pairs
        if any({_port(vantage.client), _port(vantage.server)} in wanted for vantage in pair.vantages)
    ]


def _port(end_point: str) -> int:
    return int(end_point.rpartition(":")[2])


def _speaks(evidence: Evidence) -> bool:
    return evidence.method == _METHOD_3 and evidence.outcome is not Outcome.INAPPLICABLE


def _acknowledged_without_split(item: Seen) -> bool:
    """Whether somebody else acknowledged although the captures show the far end's very segments."""
    for pair in _own_pairs(item):
        outcomes = {evidence.finding: evidence for evidence in pair.evidence}
        if "acks-not-from-receiver" in outcomes and "same-packets" in outcomes:
            return True
    return False
