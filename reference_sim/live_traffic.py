"""The transfers of a scenario between sockets of two real kernels."""

from __future__ import annotations

import contextlib
import hashlib
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pepscope.errors import LivePathError, ScenarioError
from reference_sim.live_network import FIRST_MOBILE, SERVER
from reference_sim.namespaces import Namespace

_CHUNK_BYTES = 1 << 18
_FIRST_CLIENT_PORT = 40_000  # as in captures of simulations
_ACCEPTING_S = 30.0
_TCP_NOTSENT_LOWAT = 25  # linux/tcp.h
_UNSENT_BYTES = 1 << 17


@dataclass(slots=True)
class _End:
    """What one end of a flow did; times are seconds of the path's time."""

    written_bytes: int = 0
    read_bytes: int = 0
    connected_s: float | None = None
    first_read_s: float | None = None
    last_read_s: float | None = None
    ended_s: float | None = None
    outcome: str = "open"
    congestion_control: str | None = None
    written: Any = field(default_factory=hashlib.sha256)
    read: Any = field(default_factory=hashlib.sha256)

    def report(self) -> dict[str, Any]:
        names = (
            "written_bytes", "read_bytes", "connected_s", "first_read_s", "last_read_s", "ended_s", "outcome",
            "congestion_control",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class _Flow:
    number: int
    entry: Mapping[str, Any]
    start_s: float
    server: _End = field(default_factory=_End)
    mobile: _End = field(default_factory=_End)

    @property
    def version(self) -> int:
        return int(self.entry["ip_version"])

    @property
    def port(self) -> int:
        return int(self.entry["server_port"])


class LiveTraffic:
    """Downloads and uploads, one thread an end."""

    def __init__(self, scenario: Any, server: Namespace, mobile: Namespace, started_ns: int, kind: str | None) -> None:
        """`kind` is what a detector should say of it. Raises ScenarioError for traffic that only a simulation has."""
        self._server, self._mobile = server, mobile
        self._started_ns = started_ns
        self._duration_s = scenario.duration_s
        self._class = kind
        self.flows = live_flows(scenario)
        self._failures: list[str] = []
        self._stopping = threading.Event()
        chance = random.Random(scenario.seed)
        # Text that nobody can compress away; flows begin at places of their own in it.
        self._content = chance.randbytes(4 * _CHUNK_BYTES)

    def run(self, check: Callable[[], None]) -> None:
        """Run all flows to their end or the scenario's; `check` is called now and then. Raises LivePathError."""
        threads = []
        with contextlib.ExitStack() as stack:
            stack.callback(self._stopping.set)
            for flow in self.flows:
                listener = stack.enter_context(self._server.call(_listen, flow))
                threads += [
                    threading.Thread(target=self._guard, args=(self._serve, flow, listener), daemon=True),
                    threading.Thread(target=self._guard, args=(self._fetch, flow), daemon=True),
                ]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads) and self._now() < self._duration_s + _ACCEPTING_S:
                check()
                time.sleep(0.02)
        if self._failures:
            raise LivePathError(self._failures[0])

    def report(self) -> list[dict[str, Any]]:
        """Flows as in a simulation's truth, as far as sockets tell."""
        return [
            {
                "flow": flow.number,
                "user": flow.entry["user"],
                "kind": flow.entry["kind"],
                "class": self._class,
                "start_s": flow.start_s,
                "delivered_exactly": {
                    "down": _is_same(flow.server, flow.mobile),
                    "up": _is_same(flow.mobile, flow.server),
                },
                "server": flow.server.report(),
                "mobile": flow.mobile.report(),
                "addresses": {
                    place: {
                        "server": {"address": SERVER[flow.version], "port": flow.port},
                        "mobile": {"address": FIRST_MOBILE[flow.version], "port": _FIRST_CLIENT_PORT + flow.number},
                    }
                    for place in ("server", "mobile")
                },
            }
            for flow in self.flows
        ]

    def _now(self) -> float:
        return (time.monotonic_ns() - self._started_ns) * 1e-9

    def _guard(self, function: Callable[..., None], flow: _Flow, *arguments: Any) -> None:
        try:
            function(flow, *arguments)
        except OSError as error:
            if not self._stopping.is_set():
                self._failures.append(f"flow {flow.number} ended badly: {error.strerror or error}")

    def _serve(self, flow: _Flow, listener: socket.socket) -> None:
        listener.settimeout(flow.start_s + _ACCEPTING_S)
        connection, _ = listener.accept()
        with connection:
            self._exchange(flow, connection, flow.server, "down")

    def _fetch(self, flow: _Flow) -> None:
        self._stopping.wait(max(0.0, flow.start_s - self._now()))
        with self._mobile.call(_client, flow) as connection:
            connection.settimeout(_ACCEPTING_S)
            connection.connect((SERVER[flow.version], flow.port))
            self._exchange(flow, connection, flow.mobile, "up")

    def _exchange(self, flow: _Flow, connection: socket.socket, end: _End, direction: str) -> None:
        end.connected_s = self._now()
        control = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        end.congestion_control = control.split(b"\0")[0].decode()
        connection.settimeout(self._duration_s + _ACCEPTING_S)
        # A transfer for a time ends when the time is over, not when all that a kernel would have taken has gone.
        connection.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        if _amount(flow.entry, direction) == 0:
            self._read(connection, end)
        else:
            arguments = (self._write, flow, connection, end, direction)
            writer = threading.Thread(target=self._guard, args=arguments, daemon=True)
            writer.start()
            self._read(connection, end)
            writer.join()
        connection.close()
        end.outcome = "closed"
        end.ended_s = self._now()

    def _write(self, flow: _Flow, connection: socket.socket, end: _End, direction: str) -> None:
        left = _amount(flow.entry, direction)
        until_s = flow.start_s + flow.entry["duration_s"] if left is None else self._duration_s
        place = (flow.number * 4099) % _CHUNK_BYTES
        while (left is None or left > 0) and self._now() < until_s and not self._stopping.is_set():
            length = _CHUNK_BYTES // 4 if left is None else min(left, _CHUNK_BYTES)
            chunk = memoryview(self._content)[place : place + length]
            connection.sendall(chunk)
            end.written.update(chunk)
            end.written_bytes += length
            if left is not None:
                left -= length
        connection.shutdown(socket.SHUT_WR)

    def _read(self, connection: socket.socket, end: _End) -> None:
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        while length := connection.recv_into(buffer):
            now = self._now()
            end.first_read_s = now if end.first_read_s is None else end.first_read_s
            end.last_read_s = now
            end.read.update(buffer[:length])
            end.read_bytes += length


def live_flows(scenario: Any) -> tuple[_Flow, ...]:
    """The flows of a scenario's traffic. Raises ScenarioError for traffic that only a simulation has."""
    flows: list[_Flow] = []
    for number, entry in enumerate(scenario.traffic):
        if entry["kind"] not in ("download", "upload", "both") or entry.get("application", "plain") != "plain":
            raise ScenarioError(
                f"traffic[{number}] is of a kind that only a simulation has: give a command to run instead, "
                "or plain downloads and uploads"
            )
        for place in range(entry["count"]):
            flows.append(_Flow(len(flows), entry, entry["start_s"] + place * entry["spacing_s"]))
    ports = {(flow.version, flow.port) for flow in flows}
    if not flows:
        raise ScenarioError(f"{scenario.name} has no traffic: give a command to run")
    if len(ports) < len(flows):
        return tuple(
            _Flow(flow.number, {**flow.entry, "server_port": flow.port + flow.number}, flow.start_s) for flow in flows
        )
    return tuple(flows)


def _amount(entry: Mapping[str, Any], direction: str) -> int | None:
    """Bytes to send; None for as many as fit the duration."""
    kind = entry["kind"]
    if kind == "both":
        amount = entry.get(f"{direction}_bytes")
    elif kind == {"down": "download", "up": "upload"}[direction]:
        amount = entry.get("bytes")
    else:
        return 0
    return None if amount is None else int(amount)


def _is_same(writer: _End, reader: _End) -> bool:
    return writer.written_bytes == reader.read_bytes and writer.written.digest() == reader.read.digest()


def _listen(flow: _Flow) -> socket.socket:
    family = socket.AF_INET6 if flow.version == 6 else socket.AF_INET
    return socket.create_server((SERVER[flow.version], flow.port), family=family)


def _client(flow: _Flow) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if flow.version == 6 else socket.AF_INET)
    made.bind((FIRST_MOBILE[flow.version], _FIRST_CLIENT_PORT + flow.number))
    return made
