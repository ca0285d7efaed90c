"""Does a middlebox answer the handshake sooner than the server can?

On an otherwise idle line, alternating: the time of a handshake with the application's port, of one with the free port,
of a datagram that the server echoes, and of a request that the server answers (a greeting, a TLS hello), less the
server's own think time. End to end no handshake can be shorter than the other times.

The rule compares least times by a rank test that assumes no distribution of times (precedence test, Nelson
1963): if handshakes and references came from one distribution, the k shortest of all n + m times would all be
handshakes with probability n(n-1)...(n-k+1) / (n+m)(n+m-1)...(n+m-k+1).

Possible errors: firewalls that answer SYNs instead of the server, and a network that prefers the port. Therefore it
never decides alone. The first rounds are left out: a radio bearer that sleeps adds seconds to them (RRC states, 3GPP TS
36.331).
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pepscope.results.finding import Finding, Weight, intact, split
from pepscope.results.verdicts import Evidence, Number
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.client.tls_hello import client_hello
from prober.client.transfer import Flow
from prober.errors import ArchiveError, MeasurementError
from prober.host.reset import reset_on_close
from prober.measurement.evidence_strength import WEAK
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.measured import FiniteNumber, Measured
from prober.measurement.task import Measurement, Task
from prober.protocol.application import Application
from prober.protocol.json_documents import Json
from prober.protocol.plain_requests import TcpRequest, echo_target

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope

#: Probability at which a coincidence is called none.
CHANCE = 1e-3
#: Fewer times on either side are no distribution: ten shortest of twenty are one coincidence in 184,756.
LEAST_TIMES = 10
#: What programs and schedulers at the ends, not the path, may take longer than a kernel's handshake.
ECHO_ALLOWANCE_S = 0.002
#: An answer takes a thread, a parser, a hash; a TLS hello a signature on top.
ANSWER_ALLOWANCE_S = 0.03
#: And it takes some hundred bytes more than a handshake each way: 0.1 s at GPRS's 40 kbit/s, whose round trips are
#: beyond 0.5 s. So much of the handshake's own time is allowed for it.
ANSWER_SHARE = 0.5
#: With its headers a datagram is then as long as a SYN with the usual options (60 bytes over IPv4, 80 over IPv6), so
#: that a slow link takes as long for one as for the other.
ECHO_BYTES = 32
#: Below that two floors are one: scheduling, serialisation of some bytes, clocks.
LEAST_GAP_S = 0.001

_HANDSHAKE, _FREE, _ECHO, _ANSWER = "handshake_s", "free_s", "echo_s", "answer_s"
_SKIPPED_ROUNDS = 2
#: A lost SYN is sent again after 1 and 3 s (RFC 6298); the times of such handshakes are long, which moves no floor.
_SYN_TIMEOUT_S = 5.0
_ECHO_TIMEOUT_S = 2.0
_ROUND_BYTES = 1_200


class HandshakeRttFinding(Finding):
    """How long handshakes take beside echoes."""

    HANDSHAKE_SHORTER_THAN_PATH = split(
        "handshake-shorter-than-path",
        Weight(
            "handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies in firewalls do so, too.",
        ),
    )  # fmt: skip
    HANDSHAKE_AS_LONG_AS_PATH = intact(
        "handshake-as-long-as-path",
        Weight(
            "handshake", 0.0, -0.5, -0.5, 0.0, "Splits that connect first do so, too.",
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Reference:
    """Times that no answer of the server can undercut, less what they may take at the ends."""

    name: str
    allowance_s: float
    strength: float
    words: str


#: Strengths: the echo is certainly the server's own; the free port may be treated otherwise for other reasons; what
#: an application takes at the server is known only where the server reports it.
_REFERENCES = (
    _Reference(_ECHO, ECHO_ALLOWANCE_S, 1.0, "an echo of the server"),
    _Reference(_FREE, 0.0, 0.8, "a handshake with the free port"),
    _Reference(_ANSWER, ANSWER_ALLOWANCE_S, 0.5, "an answer of the server"),
)


class HandshakeRttOptions(Table, frozen=True):
    """What a plan may set."""

    rounds: WholeNumber = 20
    pause_s: Amount = 0.05
    repeats: WholeNumber = 1


class HandshakeRttMeasured(Measured, frozen=True, kw_only=True):
    """Times in seconds, one a round in which something came back."""

    handshake_s: tuple[FiniteNumber, ...] = ()
    free_s: tuple[FiniteNumber, ...] = ()
    echo_s: tuple[FiniteNumber, ...] = ()
    answer_s: tuple[FiniteNumber, ...] = ()
    clock_resolution_s: FiniteNumber


class HandshakeRtt(Experiment[HandshakeRttOptions, HandshakeRttMeasured]):
    """Times handshakes against what only the server can answer."""

    name = "handshake-rtt"
    title = "handshake time"
    summary = "Compare the shortest handshakes with the shortest echoes and answers of the server."
    findings = (HandshakeRttFinding,)
    options = HandshakeRttOptions
    measured = HandshakeRttMeasured

    def tasks(self, options: HandshakeRttOptions, scope: Scope) -> Iterable[Task]:
        """One task an application; both directions share a handshake."""
        rounds, pause_s = options.rounds, options.pause_s
        for application in scope.applications:
            for repeat in range(1, options.repeats + 1):
                yield Task(
                    self.name,
                    repeat,
                    application,
                    None,
                    {"rounds": rounds, "pause_s": pause_s},
                    connections=2 * (rounds + _SKIPPED_ROUNDS),
                    bytes_up=rounds * _ROUND_BYTES,
                    bytes_down=rounds * _ROUND_BYTES,
                    expected_s=rounds
                    * (5 * scope.rates.round_trip_time_s + 3 * max(pause_s, scope.rates.round_trip_time_s)),
                    captured=False,
                )

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Rounds of one of each kind in random order, so that no kind always follows the same other."""
        assert task.application is not None
        usual, free = end.port(task.application), end.port(Application.TCP)
        kinds = [_HANDSHAKE, *([_FREE] if free != usual else []), *([_ECHO] if end.about.ports.udp_echo else [])]
        times: dict[str, list[float]] = {kind: [] for kind in (*kinds, _ANSWER)}
        flows: list[Flow] = []
        floors: dict[str, float] = {}
        chance = secrets.SystemRandom()
        for number_of_round in range(int(task.parameters["rounds"]) + _SKIPPED_ROUNDS):
            took: dict[str, float | None] = {}
            for kind in chance.sample(kinds, len(kinds)):
                if kind == _ECHO:
                    took[kind] = _echo(end)
                elif kind == _FREE:
                    took[kind] = _handshake(end, free)
                else:
                    took[kind], took[_ANSWER] = _handshake_and_answer(task.application, end, usual, flows)
                floors[kind] = min(floors.get(kind, _ECHO_TIMEOUT_S), took[kind] or _ECHO_TIMEOUT_S)
                # After a round trip what is left of an exchange has passed, and the line is idle.
                time.sleep(max(*floors.values(), float(task.parameters["pause_s"]) * chance.uniform(0.5, 1.5)))
            if number_of_round >= _SKIPPED_ROUNDS:
                for kind, taken in took.items():
                    times[kind] += [] if taken is None else [taken]
        if not times[_HANDSHAKE]:
            raise MeasurementError(f"no handshake with port {usual} completed in time")
        resolution_s = time.get_clock_info("perf_counter").resolution
        return Measurement.of(
            HandshakeRttMeasured(**{kind: tuple(times[kind]) for kind in times}, clock_resolution_s=resolution_s), flows
        )

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `handshake-shorter-than-path` (split), `handshake-as-long-as-path` (intact, weak); none decides."""
        measured = [self.kept(item) for item in observed]
        own = _times(measured, _HANDSHAKE)
        if len(own) < LEAST_TIMES:
            return ()
        resolution_s = max(values.clock_resolution_s for values in measured)
        gap_s = max(LEAST_GAP_S, 2 * resolution_s)
        known = {item: times for item in _REFERENCES if len(times := _times(measured, item.name)) >= LEAST_TIMES}
        certain = [item for item in known if item.name in (_ECHO, _FREE)]
        # An answer's transmission time and the server's work are too uncertain where another reference exists.
        references = {item: known[item] for item in certain or known}
        allowed = {item: _allowance_s(item, min(own)) for item in references}
        found = [item for item, times in references.items() if _is_shorter(own, times, allowed[item], gap_s)]
        numbers: dict[str, Number] = {
            "handshakes": len(own),
            "handshake_min_s": min(own),
            **{f"{item.name.removesuffix('_s')}_min_s": min(times) for item, times in known.items()},
        }
        if found:
            strongest = max(found, key=lambda item: item.strength)
            least_s = min(references[strongest])
            chance = chance_of_precedence(own, [one - allowed[strongest] for one in references[strongest]])
            return (
                HandshakeRttFinding.HANDSHAKE_SHORTER_THAN_PATH.evidence(
                    self.name, strongest.strength,
                    f"Handshakes take {min(own) * 1e3:.1f} ms at best, but {strongest.words} {least_s * 1e3:.1f} ms: "
                    "a nearer middlebox answers them.", {**numbers, "chance": chance},
                    ("Firewalls that answer SYNs in a server's stead do the same.",
                     "So does a network that carries this port faster."),
                ),
            )  # fmt: skip
        if not certain or any(min(own) < min(references[item]) - item.allowance_s - gap_s for item in certain):
            return ()
        return (
            HandshakeRttFinding.HANDSHAKE_AS_LONG_AS_PATH.evidence(
                self.name, WEAK,
                f"Handshakes take {min(own) * 1e3:.1f} ms at best, no less than {certain[0].words} "
                f"({min(references[certain[0]]) * 1e3:.1f} ms).", numbers,
                ("A split point that connects to the server first answers no sooner.",),
            ),
        )  # fmt: skip

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """Least, median and number of each kind of time, in seconds."""
        measured = [self.kept(item) for item in observed]
        rows = {}
        for kind in (_HANDSHAKE, _FREE, _ECHO, _ANSWER):
            times = sorted(_times(measured, kind))
            if times:
                rows[kind] = {"min": times[0], "median": times[len(times) // 2], "count": len(times)}
        return {"times": rows} if rows else {}


def chance_of_precedence(first: Sequence[float], second: Sequence[float]) -> float:
    """Probability that as many of `first` are below all of `second`, if both are drawn from one distribution."""
    least = min(second)
    below = sum(one < least for one in first)
    chance = 1.0
    for taken in range(below):
        chance *= (len(first) - taken) / (len(first) + len(second) - taken)
    return chance


def _allowance_s(reference: _Reference, handshake_s: float) -> float:
    return max(reference.allowance_s, ANSWER_SHARE * handshake_s if reference.name == _ANSWER else 0.0)


def _is_shorter(own: Sequence[float], reference: Sequence[float], allowance_s: float, gap_s: float) -> bool:
    lowered = [one - allowance_s for one in reference]
    return min(lowered) - min(own) > gap_s and chance_of_precedence(own, lowered) < CHANCE


def _times(measured: Iterable[HandshakeRttMeasured], kind: str) -> list[float]:
    """All times of a kind. Raises ArchiveError."""
    times: list[float] = [one for values in measured for one in getattr(values, kind)]
    if any(one <= 0 for one in times):
        raise ArchiveError(f"measurement.{kind} must hold times above 0, got {min(times):g}")
    return times


def _handshake(end: MobileEnd, port: int) -> float | None:
    with contextlib.suppress(TimeoutError), _timed_connection(end, port) as (_, connect_s):
        return connect_s
    return None


def _handshake_and_answer(
    application: Application, end: MobileEnd, port: int, flows: list[Flow]
) -> tuple[float | None, float | None]:
    """Times of a handshake and of what follows it, if both come in time."""
    handshake_s = answer_s = None
    with contextlib.suppress(TimeoutError), _timed_connection(end, port) as (link, connect_s):
        handshake_s = connect_s
        flows.append(Flow(link.getsockname()[1], port, "probe"))
        answer_s = _answer(application, end, link)
    return handshake_s, answer_s


@contextlib.contextmanager
def _timed_connection(end: MobileEnd, port: int) -> Iterator[tuple[socket.socket, float]]:
    began_s = time.perf_counter()
    link = end.connect(port, timeout_s=_SYN_TIMEOUT_S)
    connect_s = time.perf_counter() - began_s
    with link:
        link.settimeout(min(_ECHO_TIMEOUT_S, end.remaining_s))
        reset_on_close(link)
        yield link, connect_s


def _answer(application: Application, end: MobileEnd, link: socket.socket) -> float | None:
    """From the request to the first byte of the answer, less the server's think time where it is reported; `None`
    without one."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    question = _question(application, end)
    began_s = time.perf_counter()
    try:
        if question:
            link.sendall(question)
        answer = link.recv(4096)
    except OSError:
        return None  # the handshake's own time stands
    took_s = time.perf_counter() - began_s
    if not answer:
        return None
    return max(took_s - _think_time_s(answer), 1e-9)


def _question(application: Application, end: MobileEnd) -> bytes:
    """What makes the server answer; nothing for FTP, which greets as soon as the handshake's last segment is there."""
    match application:
        case Application.FTP:
            return b""
        case Application.TCP:
            return TcpRequest(end.control.session, "echo").to_line() + b"echo"
        case Application.HTTPS:
            return client_hello()
        case _:
            host = f"[{end.host}]" if ":" in end.host else end.host
            target = echo_target(end.control.session)
            return f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("ascii")


def _think_time_s(answer: bytes) -> float:
    for line in answer.split(b"\r\n\r\n")[0].split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"x-think-time":
            with contextlib.suppress(ValueError):
                return max(0.0, min(float(value), _ECHO_TIMEOUT_S))
    return 0.0


def _echo(end: MobileEnd) -> float | None:
    """Round-trip time of a datagram; `None` where none came back."""
    question = f"{end.control.session} {secrets.token_hex(ECHO_BYTES)}".encode("ascii")[:ECHO_BYTES]
    with socket.socket(end.family, socket.SOCK_DGRAM) as link:
        link.connect((end.address, end.about.ports.udp_echo))
        link.settimeout(min(_ECHO_TIMEOUT_S, end.remaining_s))
        began_s = time.perf_counter()
        try:
            link.send(question)
            while link.recv(2048) != question:
                pass
        except OSError:
            return None
        return time.perf_counter() - began_s
