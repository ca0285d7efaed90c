"""Does a middlebox answer a SYN that cannot reach the server?

SYNs that may cross only 1, 2, 3... routers go to the application's port, to the free port and, as datagrams, to the
server's UDP echo. The least number of hops at which the echo or the free port answers is the server's distance. A port
whose handshake always completes with fewer hops is answered by a nearer middlebox.

Possible errors: firewalls that answer SYNs instead of the server, and middleboxes that raise the time to live on one
port only. Therefore it never decides alone. Captures at both ends show a raised time to live: the SYN with too few hops
then reaches the server. Paths of different lengths (ECMP) would have to prefer one port in every try.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from pepscope.errors import CaptureError
from pepscope.results.finding import Finding, Weight, intact, split
from pepscope.results.verdicts import Evidence, Number
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.client.capabilities import Capability
from prober.client.transfer import Flow
from prober.errors import MeasurementError, PlanError
from prober.host.hop_probe import Answer, HopAnswer, probe_connections, probe_echo
from prober.measurement.evidence_strength import WEAK
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.measured import Count, Measured
from prober.measurement.task import Measurement, Task
from prober.protocol.application import Application
from prober.protocol.json_documents import Json

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: A chance difference of paths that favours one port half the time passes for a nearer answer, all tries on one port
#: and none on the other, with probability 2^-8 at this many tries each.
LEAST_TRIES = 4

#: Of the strength where only the UDP echo lies farther: the free port may be answered by the same middlebox, or a path
#: for UDP may be longer than the one for TCP.
ONLY_ECHO = 0.7

_USUAL, _FREE, _ECHO = "application", "free", "echo"
#: How many hops are probed at a time until an answer comes.
_STRIDE = 8
_PROBE_BYTES = 60


class TtlSynFinding(Finding):
    """How far SYNs travel before they are answered."""

    HANDSHAKE_ANSWERED_NEARER = split(
        "handshake-answered-nearer",
        Weight(
            "handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies in firewalls do so, too.",
        ),
    )  # fmt: skip
    HANDSHAKE_ANSWERED_AT_THE_END = intact(
        "handshake-answered-at-the-end",
        Weight(
            "handshake", 0.0, -1.0, -1.0, 0.0, "Splits that connect first do so, too.",
        ),
    )  # fmt: skip


class TtlSynOptions(Table, frozen=True):
    """What a plan may set."""

    rounds: WholeNumber = 5
    most_hops: WholeNumber = 32
    timeout_s: Amount = 2.5


class Probe(Measured, frozen=True, kw_only=True):
    """One probe and its answer."""

    target: str
    round: Count = 0
    hops: Count
    answer: Answer
    #: Address of the router that reported the drop, if any.
    router: str
    mobile_port: Count


class TtlSynMeasured(Measured, frozen=True, kw_only=True):
    """All probes; ports by target."""

    ports: dict[str, Count] = msgspec.field(default_factory=dict)
    probes: tuple[Probe, ...]


class TtlSyn(Experiment[TtlSynOptions, TtlSynMeasured]):
    """Sends SYNs that cannot reach the server."""

    name = "ttl-syn"
    title = "handshake with a short TTL"
    summary = "Send SYNs with too few hops to reach the server, port by port."
    findings = (TtlSynFinding,)
    options = TtlSynOptions
    measured = TtlSynMeasured

    def tasks(self, options: TtlSynOptions, scope: Scope) -> Iterable[Task]:
        """One task an application; both directions share a handshake."""
        most, rounds = options.most_hops, options.rounds
        if not (1 <= most <= 255 and 1 <= rounds <= 100):
            raise PlanError(f"experiments.ttl-syn must have 1 to 255 hops and 1 to 100 rounds, got {most} and {rounds}")
        for application in scope.applications:
            yield Task(
                self.name,
                1,
                application,
                None,
                {"rounds": rounds, "most_hops": most, "timeout_s": options.timeout_s},
                connections=2 * rounds * most,
                bytes_up=3 * rounds * most * _PROBE_BYTES,
                bytes_down=3 * rounds * most * _PROBE_BYTES,
                expected_s=rounds * options.timeout_s,
                requires=frozenset({Capability.ERROR_QUEUE}),
            )

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """All targets in every round, so that a change of the path touches all alike."""
        assert task.application is not None
        timeout_s = float(task.parameters["timeout_s"])
        ports = self._targets(task.application, end)
        farthest = int(task.parameters["most_hops"])
        probes: list[Probe] = []
        flows: list[Flow] = []
        for number_of_round in range(1, int(task.parameters["rounds"]) + 1):
            answered = [farthest]
            for target, port in ports.items():
                answers = _look(end, target, port, farthest, min(timeout_s, end.remaining_s))
                answered += [item.hops for item in answers if item.answer is Answer.ANSWERED][:1]
                probes += [
                    Probe(
                        target=target,
                        round=number_of_round,
                        hops=item.hops,
                        answer=item.answer,
                        router=item.router,
                        mobile_port=item.mobile_port,
                    )
                    for item in answers
                ]
                if target != _ECHO:
                    flows += [Flow(item.mobile_port, port, "probe") for item in answers]
            if number_of_round == 1:
                # Hops beyond the farthest answer need no probes.
                farthest = max(answered[1:], default=farthest)
        if not any(probe.answer is Answer.ANSWERED for probe in probes):
            raise MeasurementError(f"no host within {farthest} hops answered")
        return Measurement.of(TtlSynMeasured(ports=ports, probes=tuple(probes)), flows)

    def _targets(self, application: Application, end: MobileEnd) -> dict[str, int]:
        usual, free = end.port(application), end.port(Application.TCP)
        ports = {_USUAL: usual}
        if free != usual:
            ports[_FREE] = free
        if end.about.ports.udp_echo:
            ports[_ECHO] = end.about.ports.udp_echo
        return ports

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `handshake-answered-nearer` (split), `handshake-answered-at-the-end` (intact, weak); none decides.

        Nothing where the very SYN with too few hops arrived: a middlebox raised its time to live.
        """
        probes = [probe for item in observed for probe in self.kept(item).probes]
        tried = _tried(probes)
        nearer_than = {name: _nearer(tried, name) for name in (_FREE, _ECHO) if tried.get(name)}
        found = {name: at for name, at in nearer_than.items() if at is not None}
        distance = min((at for name in nearer_than if (at := _always(tried[name])) is not None), default=None)
        own = _always(tried.get(_USUAL, {}))
        numbers: dict[str, Number] = {
            "answered_at_hops": own,
            "server_at_hops": distance,
            "router_before": "" if own is None else _router(probes, own - 1),
            "tries": 0 if own is None else len(tried[_USUAL][own]),
        }
        if distance is None or own is None:
            return ()
        if not found:
            return (self._at_the_end(own, distance, numbers),) if own >= distance else ()
        arrived = sum(_arrived_all_the_same(item, self.kept(item).probes, distance) for item in observed)
        if arrived:
            return ()
        tries = len(tried[_USUAL][max(found.values())])
        strength = (1.0 if _FREE in found else ONLY_ECHO) * (1.0 - 0.5**tries)
        return (
            TtlSynFinding.HANDSHAKE_ANSWERED_NEARER.evidence(
                self.name, strength,
                f"Handshakes complete {_hops(own)} away{_behind(numbers)}, while the server is {_hops(distance)} away: "
                "a middlebox answers.", numbers,
                ("Firewalls that answer SYNs in a server's stead do the same and split nothing.",
                 "So does a middlebox that raises the time to live on this port only."),
            ),
        )  # fmt: skip

    def _at_the_end(self, own: int, distance: int, numbers: Mapping[str, Number]) -> Evidence:
        return TtlSynFinding.HANDSHAKE_ANSWERED_AT_THE_END.evidence(
            self.name, WEAK,
            f"No handshake completes nearer than the server itself, {_hops(distance)} away (here {own}).", numbers,
            ("A split point that connects to the server first answers no sooner either.",),
        )  # fmt: skip

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """For each target the routers by hop, and from how many hops on it answers."""
        tables: dict[str, Json] = {}
        for target in (_USUAL, _FREE, _ECHO):
            own = [probe for item in observed for probe in self.kept(item).probes if probe.target == target]
            if own:
                routers: dict[int, set[str]] = defaultdict(set)
                for probe in own:
                    if probe.router:
                        routers[probe.hops].add(probe.router)
                tables[target] = {
                    "answers_from_hops": _always(_tried(own)[target]),
                    "routers": {str(hops): sorted(routers[hops]) for hops in sorted(routers)},
                }
        return {"hops": tables} if tables else {}


#: Target -> hops -> whether each try was answered.
_Tried = Mapping[str, Mapping[int, Sequence[bool]]]


def _look(end: MobileEnd, target: str, port: int, farthest: int, timeout_s: float) -> list[HopAnswer]:
    """Probe one target from near to far, until a stride holds an answer."""
    answers: list[HopAnswer] = []
    for first in range(1, farthest + 1, _STRIDE):
        hops = range(first, min(first + _STRIDE, farthest + 1))
        if target == _ECHO:
            question = f"{end.control.session} {secrets.token_hex(4)}".encode()
            answers += probe_echo(end.address, port, hops, timeout_s, question)
        else:
            answers += probe_connections(end.address, port, hops, timeout_s)
        if any(item.answer is Answer.ANSWERED for item in answers):
            break
    return answers


def _tried(probes: Iterable[Probe]) -> dict[str, dict[int, list[bool]]]:
    tried: dict[str, dict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for probe in probes:
        tried[probe.target][probe.hops].append(probe.answer is Answer.ANSWERED)
    return tried


def _always(tries: Mapping[int, Sequence[bool]]) -> int | None:
    """The fewest hops from which every try was answered, so far as it was tried often enough."""
    return min((hops for hops, answers in tries.items() if len(answers) >= LEAST_TRIES and all(answers)), default=None)


def _nearer(tried: _Tried, reference: str) -> int | None:
    """Fewest hops at which the application's port always answers and the reference never does."""
    usual, other = tried.get(_USUAL, {}), tried.get(reference, {})
    if _always(other) is None:
        return None
    both = [hops for hops in usual if min(len(usual[hops]), len(other.get(hops, ()))) >= LEAST_TRIES]
    return min((hops for hops in both if all(usual[hops]) and not any(other[hops])), default=None)


def _router(probes: Iterable[Probe], hops: int) -> str:
    """The routers that dropped what might cross `hops` hops."""
    return ", ".join(sorted({probe.router for probe in probes if probe.hops == hops and probe.router}))


def _hops(count: int) -> str:
    return "1 hop" if count == 1 else f"{count} hops"


def _behind(numbers: Mapping[str, Number]) -> str:
    return f", behind {numbers['router_before']}" if numbers["router_before"] else ""


def _arrived_all_the_same(item: ObservedTask, probes: Iterable[Probe], distance: int) -> int:
    """How many SYNs with too few hops the server's capture shows with the very sequence number they left with."""
    if item.mobile_capture is None or item.server_capture is None:
        return 0
    from pepscope.captures.capture import open_capture

    low = {probe.mobile_port for probe in probes if probe.target == _USUAL and probe.hops < distance}
    try:
        left = open_capture(str(item.mobile_capture)).connections
        arrived = open_capture(str(item.server_capture)).connections
    except CaptureError:
        return 0  # judging the captures reports their errors better
    sent = {found.up.initial_sequence_number for found in left if found.client_port in low and found.up.syn_count}
    came = {found.up.initial_sequence_number for found in arrived if found.up.syn_count}
    return len((sent & came) - {None})
