"""Does a middlebox acknowledge while the receiver delays its ACKs? Method 3 of Wei et al. (TR 2005-59, III-A).

The receiver delays every ACK by T while an object is transferred to it. End to end no round trip at the sender is
shorter than T. T is several times the largest round trip of the idle path, and increases while the sender's first round
trips are neither far below it nor above it. Round trips come from captures (first copies only, by the detector's
`delayed_ack`) and, without special rights at the sender, from its kernel: the round trips of all payload (up), the
server's smoothed and least round-trip times (down). The object is large enough to show a middlebox that begins only
after some bytes.

An acknowledgement that arrives during the receiver's delay was sent by a middlebox. The middlebox splits the connection
if the acknowledgement came sooner than the path's own round trip, which the server's echoes give. Middleboxes that
regenerate acknowledgements after the bytes have passed (radio networks) are harmless. So where captures show that the
payload segments are still the far end's, and no acknowledgement was early, this is recorded in the metrics and is no
finding.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from pepscope.captures.direction import Direction
from pepscope.results.finding import Finding, Weight, split
from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Evidence, Number, Outcome, PairResult
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.client.capabilities import Capability
from prober.client.transfer import Flow
from prober.errors import PlanError
from prober.measurement.cost_estimate import transfer_cost
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.held_round import CLEARLY_SHORT, HeldRound
from prober.measurement.measured import FiniteNumber, Measured
from prober.measurement.task import Measurement, Task
from prober.protocol.application import Application
from prober.protocol.json_documents import Json

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: T over the largest idle round trip: a queue of the transfer's own may add to it what the path's round trip is.
PATH_FACTOR = 4.0
#: T must exceed what a path may do by so much before "not shorter than T" means that no middlebox acknowledges.
SURE_FACTOR = 2.0
#: A SYN that was lost is sent again after a second, and its handshake takes so much longer.
LOST_SYN_S = 0.95
#: By how much T grows where the answer is ambiguous.
GROWTH = 3.0
#: Acknowledgements within this share of the least echo came before the bytes can have reached the receiver and the news
#: of it the sender: a request for uplink resources varies a round trip of 50 ms on LTE by 10 ms (scheduling requests
#: every 10 ms, 3GPP TS 36.213, section 10.1), and the floor of echoes on the idle path is above the path's by as much.
EARLY_SHARE = 0.8
#: Echoes whose floor is believed.
LEAST_ECHOES = 3
#: Strength where acknowledgements came before T, but not shown to be early: below what decides, since a middlebox that
#: makes acknowledgements once the bytes have passed does it, too.
NOT_EARLY = 0.4

_IDLE_LOOKS = 5
_MOST_ROUNDS = 3
_HELD = "held"
_METHOD_3 = "delayed_ack"
#: Findings of the detector's identity that say that data segments arrive as they left.
_SAME_DATA = frozenset({"same-packets", "same-data", "acks-ahead-of-receiver", "acks-nobody-sent"})
#: Round trips that a transfer takes under a hold beside those of slow start, FTP's conversation included, for the
#: plan's estimate.
_EXPECTED_DELAYS = {Application.FTP: 12.0}
_USUAL_DELAYS = 4.0
#: Initial window of slow start (RFC 6928), in bytes.
_INITIAL_WINDOW_BYTES = 14_600


class HeldAckFinding(Finding):
    """Acknowledgements that the mobile held back."""

    ACKS_SOONER_THAN_PATH = split(
        "acks-sooner-than-path",
        Weight(
            "timing", -6.0, 0.0, 0.0, 0.0, "Held acknowledgements came sooner than anything comes back from the far "
            "end.",
        ),
    )  # fmt: skip


class DelayedAckOptions(Table, frozen=True):
    """What a plan may set."""

    size_bytes: WholeNumber = 1_000_000
    least_delay_s: Amount = 0.5
    most_delay_s: Amount = 6.0
    repeats: WholeNumber = 1


class DelayedAckMeasured(Measured, frozen=True, kw_only=True):
    """Round trips of the idle path, and every T that was tried; the last one counts."""

    idle_round_trips_s: Annotated[tuple[FiniteNumber, ...], Meta(min_length=1)]
    #: Those of the server's echoes alone; empty where an earlier version kept none apart.
    echo_round_trips_s: tuple[FiniteNumber, ...] = ()
    rounds: tuple[HeldRound, ...]


class DelayedAck(Experiment[DelayedAckOptions, DelayedAckMeasured]):
    """Moves objects while their receiver holds back its ACKs."""

    #: A megabyte: middleboxes that spare short flows begin within it, and slow start moves it within seven round trips
    #: of T.
    name = "delayed-ack"
    title = "delayed acknowledgements"
    summary = "Delay the receiver's ACKs, and check whether the sender gets earlier ones (Method 3)."
    findings = (
        HeldAckFinding,
        TransferFinding,
    )
    options = DelayedAckOptions
    measured = DelayedAckMeasured

    def tasks(self, options: DelayedAckOptions, scope: Scope) -> Iterable[Task]:
        """One task an application, a direction and a repeat."""
        size_bytes, repeats = options.size_bytes, options.repeats
        least_s, most_s = options.least_delay_s, options.most_delay_s
        if not 0.05 <= least_s <= most_s <= 20:
            raise PlanError(
                "experiments.delayed-ack must have 0.05 s <= least_delay_s <= most_delay_s <= 20 s, "
                f"got {least_s:g} s and {most_s:g} s"
            )
        delay_s = min(most_s, max(least_s, PATH_FACTOR * scope.rates.round_trip_time_s))
        for repeat in range(1, repeats + 1):
            for application in scope.applications:
                for direction in scope.directions:
                    cost = transfer_cost(application, direction, size_bytes, scope.rates)
                    yield Task(
                        self.name,
                        repeat,
                        application,
                        direction,
                        {"size_bytes": size_bytes, "least_delay_s": least_s, "most_delay_s": most_s},
                        connections=cost.connections + _IDLE_LOOKS,
                        bytes_up=cost.bytes_up,
                        bytes_down=cost.bytes_down,
                        expected_s=cost.expected_s + delay_s * _expected_delays(application, size_bytes),
                        requires=frozenset(
                            {Capability.MOBILE_HOLD if direction is Direction.DOWN else Capability.SERVER_HOLD}
                        ),
                    )

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Transfers under growing T; the last one counts."""
        assert task.application is not None
        port = end.port(task.application)
        handshakes, echoes = _idle_round_trips_s(end, port)
        idle = [*handshakes, *echoes]
        largest_s, most_s = largest_round_trip_s(idle), float(task.parameters["most_delay_s"])
        delay_s: float | None = min(most_s, max(float(task.parameters["least_delay_s"]), PATH_FACTOR * largest_s))
        rounds: list[HeldRound] = []
        flows: tuple[Flow, ...] = ()
        while delay_s is not None and len(rounds) < _MOST_ROUNDS:
            made = HeldRound(delay_s)
            moved = made.run(task, end, port)
            rounds.append(made)
            flows = tuple(Flow(flow.mobile_port, flow.server_port, _role(flow)) for flow in moved.flows)
            delay_s = next_delay_s(made, largest_s, most_s)
        values = DelayedAckMeasured(
            idle_round_trips_s=tuple(idle), echo_round_trips_s=tuple(echoes), rounds=tuple(rounds)
        )
        return Measurement.of(values, flows, ack_delay_s=rounds[-1].delay_s)

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `acks-not-from-receiver`, `acks-sooner-than-path` (split), `acks-only-from-receiver` (intact).

        The first and the last are the detector's, too.
        """
        early = [evidence for item in observed if (evidence := self._sooner_than_path(item)) is not None]
        return (*self._held(observed), *early[:1])

    def _held(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """The strongest evidence for a middlebox that acknowledges, and the strongest evidence against one."""
        found: list[Evidence] = []
        for item in observed:
            if _data_are_the_far_ends(item) and self._sooner_than_path(item) is None:
                continue
            found += [evidence for pair in _own_pairs(item) for evidence in pair.evidence if _speaks(evidence)]
            from_kernel = self._from_kernel(item)
            found += [] if from_kernel is None else [from_kernel]
        best: dict[Outcome, Evidence] = {}
        for evidence in found:
            if evidence.outcome not in best or evidence.strength > best[evidence.outcome].strength:
                best[evidence.outcome] = evidence
        return tuple(best.values())

    def _from_kernel(self, item: ObservedTask) -> Evidence | None:
        """Evidence from the sender's kernel in the last round."""
        values = self.kept(item)
        made = values.rounds[-1] if values.rounds else None
        largest_s = largest_round_trip_s(values.idle_round_trips_s)
        if made is None or made.held == 0 or made.round_trip_s is None:
            return None
        numbers: dict[str, Number] = {
            "ack_delay_s": made.delay_s,
            "round_trip_s": made.round_trip_s,
            "smoothed_round_trip_s": made.smoothed_s,
            "idle_round_trip_max_s": largest_s,
            "held_acks": made.held,
            "hold_error_max_s": made.largest_error_s,
            **_beginning(made),
        }
        caveats = ("Radio networks that make acknowledgements themselves do the same without splitting the payload.",)
        if made.is_clearly_short:
            floor_s = _least_echo_s(values)
            is_early = floor_s is None or made.typical_s < EARLY_SHARE * floor_s
            after = f", after {made.short_from_bytes} bytes" if made.short_from_bytes else ""
            return TransferFinding.ACKS_NOT_FROM_RECEIVER.evidence(
                self.name, 0.9 if is_early else NOT_EARLY,
                f"The receiver held {made.held} acknowledgements back for {made.delay_s:.3g} s each, yet the sender's "
                f"kernel had some after {made.shortest_s:.3g} s{after}: a middlebox acknowledges.",
                numbers, caveats,
            )  # fmt: skip
        if made.is_clearly_long:
            strength = 0.9 if made.delay_s >= SURE_FACTOR * largest_s else 0.3
            return TransferFinding.ACKS_ONLY_FROM_RECEIVER.evidence(
                self.name, strength,
                f"The receiver held its acknowledgements back for {made.delay_s:.3g} s, and the sender's kernel had "
                f"none sooner than after {made.shortest_s:.3g} s: nothing else acknowledges.", numbers,
            )  # fmt: skip
        return None

    def _sooner_than_path(self, item: ObservedTask) -> Evidence | None:
        """Acknowledgements that arrived sooner than the path's round trip to the receiver."""
        values = self.kept(item)
        made, floor_s = values.rounds[-1] if values.rounds else None, _least_echo_s(values)
        if made is None or floor_s is None or made.held == 0 or made.round_trip_s is None:
            return None
        known = [made.typical_s] if made.is_clearly_short else []
        # A queue at the sender itself lengthens the smoothed time. The least one may be that of a handshake that a
        # firewall answered; where a capture shows as much of data, it is not.
        known += [max(made.shortest_s, least_s) for least_s in _captured_least_s(item)]
        soonest_s = min(known, default=floor_s)
        if soonest_s >= EARLY_SHARE * floor_s:
            return None
        numbers: dict[str, Number] = {
            "round_trip_s": soonest_s,
            "echo_round_trip_min_s": floor_s,
            "ack_delay_s": made.delay_s,
            **_beginning(made),
        }
        return HeldAckFinding.ACKS_SOONER_THAN_PATH.evidence(
            self.name, 0.9,
            f"Acknowledgements reached the sender after {soonest_s:.3g} s, while nothing came back from the "
            f"server in less than {floor_s:.3g} s: they were made before the bytes can have reached the receiver.",
            numbers, ("Echoes whose way is longer than that of TCP would make acknowledgements look early.",),
        )  # fmt: skip

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """Every T that was tried, and whether acknowledgements were made on the way without a split."""
        rows = [msgspec.to_builtins(made) for item in observed for made in self.kept(item).rounds]
        made_on_the_way = sum(
            _data_are_the_far_ends(item) and self._sooner_than_path(item) is None for item in observed
        )
        return {"rounds": rows, "acknowledged_on_the_way_without_split": made_on_the_way} if rows else {}


def next_delay_s(made: HeldRound, largest_idle_s: float, most_s: float) -> float | None:
    """The T to try next; `None` where the answer is clear, or T can grow no more."""
    if made.round_trip_s is None or made.is_clearly_short or made.delay_s >= most_s:
        return None
    if made.smoothed_s is not None and made.smoothed_s >= CLEARLY_SHORT * made.delay_s and not made.is_clearly_long:
        return None  # a firewall answered the handshake; the captures show the rest
    if not made.is_clearly_long:
        return min(most_s, GROWTH * made.delay_s)
    # End to end, what exceeds T is the path's own round trip, now with the transfer's queue.
    path_s = max(largest_idle_s, made.round_trip_s - made.delay_s)
    return None if made.delay_s >= SURE_FACTOR * path_s else min(most_s, PATH_FACTOR * path_s)


def largest_round_trip_s(idle: Sequence[float]) -> float:
    """The largest of idle round trips, but for handshakes whose SYN was lost: these take a second more (RFC 6298)."""
    median_s = sorted(idle)[len(idle) // 2]
    return max(one for one in idle if one - median_s < LOST_SYN_S)


def _idle_round_trips_s(end: MobileEnd, port: int) -> tuple[list[float], list[float]]:
    """Handshakes with the port and echoes of the server; the first also wakes a radio bearer that sleeps."""
    handshakes, echoes = [], []
    for _ in range(_IDLE_LOOKS):
        began_s = time.perf_counter()
        with end.connect(port):
            handshakes.append(time.perf_counter() - began_s)
        echoed_s = _echo_s(end)
        echoes += [] if echoed_s is None else [echoed_s]
    return handshakes, echoes


def _expected_delays(application: Application, size_bytes: int) -> float:
    """Round trips during a hold: requests, answers and the doublings of slow start."""
    doublings = math.log2(1 + size_bytes / _INITIAL_WINDOW_BYTES)
    return _EXPECTED_DELAYS.get(application, _USUAL_DELAYS) + doublings


def _least_echo_s(values: DelayedAckMeasured) -> float | None:
    """The least round trip of the server's echoes; `None` where there are too few, or an earlier version kept none
    apart."""
    times = values.echo_round_trips_s
    return min(times) if len(times) >= LEAST_ECHOES else None


def _beginning(made: HeldRound) -> dict[str, Number]:
    """Where in the connection acknowledgements begin to come early, if not at its beginning."""
    return {"from_bytes": made.short_from_bytes} if made.short_from_bytes else {}


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


def _role(flow: Flow) -> str:
    """Held transfers fill buffers that others empty at once, so that they say nothing of a split's kind."""
    return _HELD if flow.role == "data" else flow.role


def _own_pairs(item: ObservedTask) -> list[PairResult]:
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


def _captured_least_s(item: ObservedTask) -> list[float]:
    """Least round trips of data at the sender, of captures in which many are shorter than T."""
    found = [evidence for pair in _own_pairs(item) for evidence in pair.evidence if _speaks(evidence)]
    least = [one.numbers.get("round_trip_min_s") for one in found if one.finding == "acks-not-from-receiver"]
    return [float(one) for one in least if isinstance(one, int | float) and not isinstance(one, bool)]


def _data_are_the_far_ends(item: ObservedTask) -> bool:
    """Whether a middlebox acknowledged although the captures show the far end's very data segments."""
    for pair in _own_pairs(item):
        found = {evidence.finding for evidence in pair.evidence}
        if "acks-not-from-receiver" in found and not _SAME_DATA.isdisjoint(found):
            return True
    return False
