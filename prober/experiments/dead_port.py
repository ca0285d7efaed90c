"""Does a handshake complete although the server answers no SYN?

The mobile connects to the server's dead port, and to each application's port while the server leaves SYNs to it
unanswered for some seconds. A handshake that completes was answered by a middlebox. Then the mobile sends a request and
more: acknowledged payload was accepted by a middlebox, which cannot have forwarded it over a new connection. Where the
request reaches the server, the server's log shows the connection: one that existed before the silence began is older
than the mobile's, so two connections carried the request. HTTP proxies keep such connections to servers; an echo before
the silence makes them open one.

Possible errors: firewalls that answer SYNs instead of the server (SYN proxies) complete the handshake, too. They differ
in that they accept no payload before the server has answered them; load balancers that read the first request before
they choose a server accept a single segment of it. Splits that connect to the server first are not found.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from pepscope.results.finding import Finding, Weight, intact, split
from pepscope.results.verdicts import Evidence, Number
from pepscope.strict_reading import Amount, Table, WholeNumber
from prober.client.http_fetch import fetch
from prober.client.tls_hello import client_hello
from prober.client.transfer import Flow
from prober.errors import ImpossibleError, MeasurementError
from prober.host.reset import reset_on_close
from prober.host.tcp_info import tcp_info
from prober.measurement.evidence_strength import WEAK
from prober.measurement.experiment import Experiment, ObservedTask
from prober.measurement.intermediaries import IntermediaryFinding, older_connection_evidence
from prober.measurement.measured import Count, FiniteNumber, Measured
from prober.measurement.task import Measurement, Task
from prober.protocol.application import Application
from prober.protocol.json_documents import Json
from prober.protocol.plain_requests import TcpRequest, echo_target, upload_target

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd
    from prober.measurement.experiment import Scope
    from prober.protocol.control_messages import Served

#: A firewall that waits for a request before it chooses a server takes what fits into one segment, at most 9000 bytes.
FIRST_SEGMENT_BYTES = 9_000
#: Strength where no more than that was taken: half of what decides.
ONE_SEGMENT = 0.4

#: Offered beyond the request: twice what a firewall may take, and no more, since the next handshake waits behind it.
_OFFERED_BYTES = 20_000
_DEAD, _SILENCED = "dead", "silenced"
_SILENT, _REFUSED, _ANSWERED = "silent", "refused", "answered"
_LOOK_S = 0.05
#: What a server that did get a connection takes to write it down once it has ended.
_SETTLE_S = 0.5
#: Connections beside the attempts: the path before and after them, and a first request over HTTP.
_OTHER_CONNECTIONS = 3
_TLS_APPLICATION_DATA = b"\x17\x03\x03\x40\x00"
_PLAIN_HTTP = (Application.HTTP_DATA, Application.HTTP_IMAGE)


class DeadPortFinding(Finding):
    """What a port that answers nothing shows. Firewalls answer SYNs, so that a handshake alone does not decide."""

    DEAD_PORT_ANSWERED = split(
        "dead-port-answered",
        Weight(
            "handshake", -2.5, 0.0, 0.0, -2.5, "SYN proxies in firewalls do so, too.",
        ),
    )  # fmt: skip
    DEAD_PORT_SILENT = intact(
        "dead-port-silent",
        Weight(
            "handshake", 0.0, -0.5, -0.5, 0.0, "Splits that connect first do so, too.",
        ),
    )  # fmt: skip
    DEAD_PORT_TOOK_DATA = split(
        "dead-port-took-data",
        Weight(
            "taken-in-between", -6.0, 0.0, 0.0, 0.0, "No host was there to take it.",
        ),
    )  # fmt: skip


class DeadPortOptions(Table, frozen=True):
    """What a plan may set."""

    attempts: WholeNumber = 2
    connect_timeout_s: Amount = 4.0
    take_s: Amount = 3.0
    repeats: WholeNumber = 1


class Attempt(Measured, frozen=True, kw_only=True):
    """One handshake, and what the mobile's kernel had acknowledged of what it offered afterwards."""

    acked_bytes: Count
    sent_bytes: Count = 0
    answer_head: str = ""
    ending: str = ""
    #: `silent`, `refused` or `answered`.
    outcome: str
    connect_s: FiniteNumber = 0.0
    #: By how much the connection is older on which its request reached the server, if it did.
    older_by_s: FiniteNumber | msgspec.UnsetType = msgspec.UNSET


class DeadPortMeasured(Measured, frozen=True, kw_only=True):
    """The attempts at one port."""

    target: str
    port: Count = 0
    attempts: tuple[Attempt, ...]


class DeadPort(Experiment[DeadPortOptions, DeadPortMeasured]):
    """Connects where the server does not answer."""

    name = "dead-port"
    title = "port that the server does not answer"
    summary = "Connect to ports while the server answers no SYN there."
    findings = (
        DeadPortFinding,
        IntermediaryFinding,
    )
    options = DeadPortOptions
    measured = DeadPortMeasured

    def tasks(self, options: DeadPortOptions, scope: Scope) -> Iterable[Task]:
        """One task for each application, whose port is silenced, and one for raw TCP with the dead port."""
        parameters = {
            "attempts": options.attempts,
            "connect_timeout_s": options.connect_timeout_s,
            "take_s": options.take_s,
        }
        longest_s = options.attempts * (options.connect_timeout_s + options.take_s)
        for application in scope.applications:
            targets = (_SILENCED, _DEAD) if application is Application.TCP else (_SILENCED,)
            for target in targets:
                for repeat in range(1, options.repeats + 1):
                    yield Task(
                        self.name,
                        repeat,
                        application,
                        None,
                        {"target": target, **parameters},
                        connections=options.attempts + _OTHER_CONNECTIONS,
                        bytes_up=options.attempts * _OFFERED_BYTES,
                        bytes_down=2_000,
                        expected_s=longest_s,
                    )

    def measure(self, task: Task, end: MobileEnd) -> Measurement:
        """Try to connect and to send while the server is silent; check before and after that the path works."""
        assert task.application is not None
        is_dead = task.parameters["target"] == _DEAD
        # The reference port: an interruption of the path affects it as well.
        beside = end.port(Application.TCP if is_dead else task.application)
        port = end.about.ports.dead if is_dead else beside
        if is_dead and not port:
            raise ImpossibleError("the server has no dead port")
        if not is_dead and end.about.can.silences:
            raise ImpossibleError(end.about.can.silences)
        attempts: list[dict[str, Json]] = []
        flows: list[Flow] = []
        _see_the_path(end, beside)
        if task.application in _PLAIN_HTTP and not is_dead:
            fetch(end, echo_target(end.control.session))
        with contextlib.ExitStack() as closing:
            before = end.control.last_served_number()
            if not is_dead:
                closing.enter_context(end.control.silence(port, task_s(task)))
            # Every connection that the mobile makes from here on is younger than this, by the server's own clock.
            silent_since_ns = end.control.clock().monotonic_ns
            for _ in range(int(task.parameters["attempts"])):
                nonce = secrets.randbits(60)
                attempt, mobile_port = _attempt(task, end, port, nonce)
                attempts.append({**attempt, "nonce": nonce})
                flows += [Flow(mobile_port, port, "probe")] if mobile_port else []
            time.sleep(_SETTLE_S)
            reached = [row for row in end.control.served(before) if row.local_port == port]
        _see_the_path(end, beside)
        note_arrivals(attempts, reached, silent_since_ns)
        return Measurement.of(
            DeadPortMeasured(
                target=str(task.parameters["target"]),
                port=port,
                attempts=tuple(Attempt(**attempt) for attempt in attempts),
            ),
            flows,
        )

    def examine(self, observed: Sequence[ObservedTask]) -> tuple[Evidence, ...]:
        """Findings: `request-on-older-connection`, `dead-port-took-data`, `dead-port-answered` (split).

        The last cannot decide; and `dead-port-silent` (intact, weak).
        """
        attempts = [attempt for item in observed for attempt in self.kept(item).attempts]
        return (*self._older(attempts), *self._answers(attempts))

    def _older(self, attempts: Sequence[Attempt]) -> tuple[Evidence, ...]:
        ages_s = [entry.older_by_s for entry in attempts if not isinstance(entry.older_by_s, msgspec.UnsetType)]
        if not ages_s:
            return ()
        numbers: dict[str, Number] = {
            "attempts": len(attempts),
            "reached_the_server": len(ages_s),
            "older_by_s": max(ages_s),
        }
        summary = (
            f"While the server answered no SYN, requests on {len(ages_s)} of {len(attempts)} new connections reached "
            f"it on a connection that had been there {max(ages_s):.3g} s before: a middlebox ends the mobile's "
            "connections and passes requests on over its own."
        )
        return (older_connection_evidence(self.name, summary, numbers),)

    def _answers(self, attempts: Sequence[Attempt]) -> tuple[Evidence, ...]:
        answered = [entry for entry in attempts if entry.outcome == _ANSWERED]
        taken = [float(entry.acked_bytes) for entry in answered if entry.acked_bytes > 0]
        silent = sum(entry.outcome == _SILENT for entry in attempts)
        numbers: dict[str, Number] = {
            "attempts": len(attempts),
            "answered": len(answered),
            "silent": silent,
            "taken_bytes": max(taken, default=0),
        }
        if taken:
            return (self._took(numbers, max(taken)),)
        if answered:
            return (
                DeadPortFinding.DEAD_PORT_ANSWERED.evidence(
                    self.name, 1.0 - 0.5 ** len(answered),
                    f"{len(answered)} of {len(attempts)} handshakes completed although the server answered none, but "
                    "no payload was taken: a middlebox answers, as firewalls against SYN floods do.",
                    numbers, ("Firewalls that answer SYNs in a server's stead do just this, and split nothing.",),
                ),
            )  # fmt: skip
        if silent and silent == len(attempts):
            return (
                DeadPortFinding.DEAD_PORT_SILENT.evidence(
                    self.name, WEAK,
                    f"None of {len(attempts)} handshakes completed while the server was silent.",
                    numbers, ("A split point that connects to the server first does not answer either.",),
                ),
            )  # fmt: skip
        return ()

    def _took(self, numbers: Mapping[str, Number], most: float) -> Evidence:
        is_more = most > FIRST_SEGMENT_BYTES
        caveats = () if is_more else (
            "Firewalls that read the first request before they choose a server take one segment, and split nothing.",
        )  # fmt: skip
        return DeadPortFinding.DEAD_PORT_TOOK_DATA.evidence(
            self.name, 1.0 if is_more else ONE_SEGMENT,
            f"While the server answered no SYN, a middlebox acknowledged {most:.0f} bytes of payload to the mobile.",
            numbers, caveats,
        )  # fmt: skip

    def metrics(self, observed: Sequence[ObservedTask]) -> Mapping[str, Json]:
        """What each attempt met."""
        rows = [
            {"target": values.target, **msgspec.to_builtins(attempt)}
            for values in map(self.kept, observed)
            for attempt in values.attempts
        ]
        return {"attempts": rows} if rows else {}


def task_s(task: Task) -> float:
    """The longest silence of the server: all attempts, and a margin for the control channel."""
    tries = int(task.parameters["attempts"])
    each_s = float(task.parameters["connect_timeout_s"]) + float(task.parameters["take_s"])
    return tries * (each_s + 1.0) + 20.0


def _see_the_path(end: MobileEnd, port: int) -> None:
    """Connect where the server answers. Raises MeasurementError where silence would prove nothing."""
    try:
        with end.connect(port) as link:
            reset_on_close(link)
    except OSError as error:
        raise MeasurementError(f"port {port} does not answer although the server does ({error})") from None


def note_arrivals(attempts: list[dict[str, Json]], reached: Sequence[Served], silent_since_ns: int) -> None:
    """Note of each attempt by how much the connection is older on which its request reached the server.

    Raises MeasurementError where a request arrived on a connection that is not older: the server was not silent.
    """
    names = [str(entry.pop("nonce")).encode("ascii") for entry in attempts]
    for row in reached:
        older_by_s = (silent_since_ns - row.connection_accepted_ns) / 1e9
        own = [entry for entry, name in zip(attempts, names, strict=True) if name in row.request_head]
        if not own or row.connection_accepted_ns == 0 or older_by_s <= 0:
            raise MeasurementError(f"the server was not silent on port {row.local_port}: a request reached it")
        own[0]["older_by_s"] = older_by_s


def _attempt(task: Task, end: MobileEnd, port: int, nonce: int) -> tuple[dict[str, Json], int]:
    """One handshake and what it took; the mobile's port where one came about."""
    assert task.application is not None
    began_s = time.monotonic()
    result: dict[str, Json] = {"acked_bytes": 0, "sent_bytes": 0, "answer_head": "", "ending": ""}
    try:
        link = end.connect(port, timeout_s=float(task.parameters["connect_timeout_s"]))
    except TimeoutError:
        return {**result, "outcome": _SILENT, "connect_s": time.monotonic() - began_s}, 0
    except OSError as error:
        return {**result, "outcome": _REFUSED, "connect_s": time.monotonic() - began_s, "ending": str(error)}, 0
    connect_s = time.monotonic() - began_s
    with link:
        mobile_port = int(link.getsockname()[1])
        reset_on_close(link)
        result |= _offer(link, _payload(task.application, end, nonce), float(task.parameters["take_s"]))
    return {**result, "outcome": _ANSWERED, "connect_s": connect_s}, mobile_port


def _offer(link: socket.socket, payload: bytes, take_s: float) -> dict[str, Json]:
    """Offer payload until all of it is acknowledged, the connection ends, or the time is over."""
    link.setblocking(False)
    sent_bytes = acked_bytes = 0
    answer, ending = b"", "open"
    deadline_s = time.monotonic() + take_s
    while time.monotonic() < deadline_s and ending == "open" and acked_bytes < len(payload):
        try:
            with contextlib.suppress(BlockingIOError):
                sent_bytes += link.send(payload[sent_bytes:])
            with contextlib.suppress(BlockingIOError):
                piece = link.recv(4096)
                answer += piece[: 100 - len(answer)]
                ending = ending if piece else "closed"
        except OSError as error:
            ending = error.strerror or type(error).__name__
        with contextlib.suppress(OSError):
            # The SYN counts as one byte.
            acked_bytes = max(acked_bytes, tcp_info(link).get("bytes_acked", 1) - 1)
        time.sleep(_LOOK_S)
    return {
        "sent_bytes": sent_bytes,
        "acked_bytes": acked_bytes,
        "answer_head": answer.decode("ascii", errors="replace"),
        "ending": ending,
    }


def _payload(application: Application, end: MobileEnd, nonce: int) -> bytes:
    """A request that asks to upload, and the beginning of what it announces; the server's log would show the nonce."""
    filler = b"\n" * _OFFERED_BYTES
    match application:
        case Application.TCP:
            return TcpRequest(end.control.session, "upload", _OFFERED_BYTES, nonce).to_line() + filler
        case Application.HTTPS:
            return client_hello() + _TLS_APPLICATION_DATA + filler[:16_384]
        case Application.FTP:
            return f"USER {end.control.session}\r\n".encode() + b"NOOP\r\n" * (_OFFERED_BYTES // 6)
        case _:
            host = f"[{end.host}]" if ":" in end.host else end.host
            head = (
                f"PUT {upload_target(end.control.session, f'dead-port-{nonce}')} HTTP/1.1\r\nHost: {host}\r\n"
                f"Content-Length: {_OFFERED_BYTES}\r\n\r\n"
            )
            return head.encode("ascii") + filler
