"""The traffic of a scenario between sockets of two real kernels."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pepscope.errors import LivePathError, ScenarioError
from reference_sim.live_path import http_pages
from reference_sim.live_path.flow_side import End, GivenUpError, Side, TimeIsUpError
from reference_sim.live_path.namespaces import Namespace
from reference_sim.live_path.network import FIRST_MOBILE, MOST_TERMINALS, SERVER, nth_address
from reference_sim.live_path.socket_series import SocketSampler, tcp_totals
from reference_sim.live_path.voice import Speakers

_CHUNK_BYTES = 1 << 18
_CONTENT_BYTES = 4 * _CHUNK_BYTES
_KINDS = ("download", "upload", "both", "http", "voice")
_FIRST_CLIENT_PORT = 40_000  # as in captures of simulations
_ACCEPTING_S = 30.0
_ASKED_S = 0.2


@dataclass(frozen=True, slots=True)
class _Flow:
    number: int
    entry: Mapping[str, Any]
    start_s: float
    user: int
    #: Flows of one number send the same bytes.
    content: int
    server: End = field(default_factory=End)
    mobile: End = field(default_factory=End)

    @property
    def version(self) -> int:
        return int(self.entry["ip_version"])

    @property
    def place(self) -> tuple[int, int]:
        """IP version and port of the server."""
        return self.version, int(self.entry["server_port"])

    @property
    def is_http(self) -> bool:
        return self.entry["kind"] == "http" or self.entry.get("application") == "http"

    @property
    def path(self) -> str:
        """What it asks for."""
        return f"/content-{self.content}"

    @property
    def mobile_address(self) -> str:
        return nth_address(FIRST_MOBILE[self.version], self.user)

    @property
    def mobile_port(self) -> int:
        return _FIRST_CLIENT_PORT + self.number

    def bytes(self, direction: str) -> int | None:
        """Bytes to send; None for as many as fit the duration."""
        kind = self.entry["kind"]
        if kind == "http":
            return int(self.entry["page_bytes"]) if direction == "down" else 0
        if kind == "both":
            amount = self.entry.get(f"{direction}_bytes")
        elif kind == {"down": "download", "up": "upload"}[direction]:
            amount = self.entry.get("bytes")
        else:
            return 0
        return None if amount is None else int(amount)


class LiveTraffic:
    """Transfers, pages and speech, one thread a side."""

    def __init__(
        self,
        scenario: Any,
        server: Namespace,
        mobile: Namespace,
        started_ns: int,
        kind: str | None,
        sampler: SocketSampler | None = None,
    ) -> None:
        """`kind` is what a detector should say of it. Raises ScenarioError for traffic that only a simulation has."""
        self._server, self._mobile = server, mobile
        self._started_ns = started_ns
        self._duration_s = scenario.duration_s
        self._seed = scenario.seed
        self._class = kind
        self._sampler = sampler
        self.flows = live_flows(scenario)
        self._speakers = Speakers(scenario, server, mobile, started_ns)
        self._unserved = list(self.flows)
        self._is_paced = {"server": scenario.server["pacing"], "mobile": scenario.mobile["pacing"]}
        self._choosing = threading.Lock()
        self._failures: list[str] = []
        self._stopping = threading.Event()
        chance = random.Random(scenario.seed)
        # Incompressible bytes; each content begins at its own offset in them.
        self._content = chance.randbytes(_CONTENT_BYTES) * 2

    def run(self, check: Callable[[], None]) -> None:
        """Run all flows to their end or the scenario's; `check` is called now and then. Raises LivePathError."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._speakers)
            stack.callback(self._stopping.set)
            for place in sorted({flow.place for flow in self.flows}):
                listener = stack.enter_context(self._server.call(_listen, place))
                threading.Thread(target=self._accept, args=(listener, place), daemon=True).start()
            threads = [threading.Thread(target=self._fetch, args=(flow,), daemon=True) for flow in self.flows]
            for thread in threads:
                thread.start()
            # Speech alone goes on to the end.
            while self._now() < self._duration_s and (
                not threads or any(thread.is_alive() for thread in threads) or not self._is_served()
            ):
                check()
                time.sleep(0.02)
            self._stopping.set()
            for thread in threads:
                thread.join(1.0)
        if self._failures:
            raise LivePathError(self._failures[0])

    def _is_served(self) -> bool:
        return all(flow.server.connected_s is None or flow.server.ended_s is not None for flow in self.flows)

    def report(self) -> list[dict[str, Any]]:
        """Flows as in a simulation's truth, as far as sockets report them."""
        return [
            {
                "flow": flow.number,
                "user": flow.user,
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
                        "server": {"address": SERVER[flow.version], "port": flow.place[1]},
                        "mobile": {"address": flow.mobile_address, "port": flow.mobile_port},
                    }
                    for place in ("server", "mobile")
                },
            }
            for flow in self.flows
        ]

    def voice(self) -> dict[str, Any]:
        """Voice frames sent and received."""
        return self._speakers.report()

    def _now(self) -> float:
        return (time.monotonic_ns() - self._started_ns) * 1e-9

    def _accept(self, listener: socket.socket, place: tuple[int, int]) -> None:
        listener.settimeout(_ASKED_S)
        while not self._stopping.is_set():
            try:
                connection, (_, port, *_) = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            flow = self._flow_of(place, port)
            if flow is None:
                connection.close()
            else:
                threading.Thread(target=self._serve, args=(flow, connection), daemon=True).start()

    def _flow_of(self, place: tuple[int, int], port: int) -> _Flow | None:
        """Whose connection it is: by the client's port, which a proxy may have changed; then the next in turn.

        A proxy may open several connections for one HTTP connection.
        """
        with self._choosing:
            here = [flow for flow in self._unserved if flow.place == place]
            named = [flow for flow in here if flow.mobile_port == port]
            chosen = next(iter(named or here), None)
            if chosen is not None:
                self._unserved.remove(chosen)
                return chosen
        return next((flow for flow in self.flows if flow.place == place and flow.is_http), None)

    def _serve(self, flow: _Flow, connection: socket.socket) -> None:
        with self._conversing(flow, connection, "server") as side:
            if flow.is_http:
                http_pages.serve(side, self._answer)
            else:
                self._exchange(flow, side, "down")

    def _fetch(self, flow: _Flow) -> None:
        if self._stopping.wait(max(0.0, flow.start_s - self._now())):
            return
        try:
            connection = self._mobile.call(_client, flow)
            try:
                connection.settimeout(min(_ACCEPTING_S, max(0.1, self._duration_s - self._now())))
                connection.connect((SERVER[flow.version], flow.place[1]))
            except BaseException:
                connection.close()
                raise
        except OSError as error:
            self._failures.append(f"flow {flow.number} could not connect: {error.strerror or error}")
            return
        with self._conversing(flow, connection, "mobile") as side:
            host = SERVER[flow.version] if flow.version == 4 else f"[{SERVER[6]}]"
            if flow.entry["kind"] == "http":
                chance = random.Random(f"{self._seed} think {flow.number}")
                http_pages.fetch_pages(side, flow.entry, host, flow.path, chance)
            elif flow.is_http:
                self._ask_once(flow, side, host)
            else:
                self._exchange(flow, side, "up")

    def _ask_once(self, flow: _Flow, side: Side, host: str) -> None:
        body_bytes = flow.bytes("up") or 0
        if body_bytes:
            head = http_pages.request("PUT", host, flow.path, body_bytes=body_bytes)
            http_pages.ask(side, "PUT", [head, *self._chunks(flow.content, body_bytes)])
        else:
            http_pages.ask(side, "GET", [http_pages.request("GET", host, flow.path)])
        side.finish()

    def _answer(self, path: str) -> memoryview:
        flow = next((flow for flow in self.flows if flow.path == path), None)
        length = 0 if flow is None else flow.bytes("down") or 0
        return memoryview(b"".join(self._chunks(0 if flow is None else flow.content, length)))

    @contextlib.contextmanager
    def _conversing(self, flow: _Flow, connection: socket.socket, place: str) -> Any:
        """A side that ends as its conversation does."""
        end: End = getattr(flow, place)
        with connection:
            side = Side(connection, end, flow.entry[place], self._now, self._duration_s, self._stopping)
            if self._is_paced[place]:
                side.space_out()
            if self._sampler is not None:
                self._sampler.add(place, flow.number, connection, lambda: end.read_bytes)
            try:
                yield side
                if end.peer_finished_s is None:
                    side.read_all()
                end.outcome = "closed"
            except GivenUpError:
                end.outcome = "aborted"
                side.reset()
            except TimeIsUpError:
                side.reset()
            except TimeoutError:
                end.outcome = "timed-out"
            except OSError as error:
                if isinstance(error, ConnectionError) or error.errno == errno.ENOTCONN:
                    end.outcome = "reset"
                else:
                    self._failures.append(f"flow {flow.number} ended badly: {error.strerror or error}")
            finally:
                with contextlib.suppress(OSError):
                    end.tcp = tcp_totals(connection)
                if self._sampler is not None:
                    self._sampler.remove(place, flow.number)
        end.ended_s = self._now()

    def _exchange(self, flow: _Flow, side: Side, direction: str) -> None:
        """Write and read at once."""
        if flow.bytes(direction) == 0:
            side.read_all()
            side.finish()
            return
        failure: list[BaseException] = []

        def write() -> None:
            try:
                self._write(flow, side, direction)
            except BaseException as error:  # it is raised again where the flow ends
                failure.append(error)
                side.give_up()

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        try:
            side.read_all()
        except GivenUpError:
            if not failure:
                raise
        finally:
            writer.join(1.0 if failure else None)
        if failure:
            raise failure[0]

    def _write(self, flow: _Flow, side: Side, direction: str) -> None:
        left = flow.bytes(direction)
        if left is not None:
            for chunk in self._chunks(flow.content, left):
                side.send(chunk)
        else:
            until_s = flow.start_s + flow.entry["duration_s"]
            place = (flow.content * 4099) % _CONTENT_BYTES
            chunk = memoryview(self._content)[place : place + _CHUNK_BYTES // 4]
            while side.send(chunk, until_s):
                pass
        side.finish()

    def _chunks(self, content: int, length: int) -> list[memoryview]:
        """The bytes of a content, as pieces of one text."""
        place = (content * 4099) % _CONTENT_BYTES
        whole = memoryview(self._content)[place : place + _CONTENT_BYTES]
        pieces = [whole] * (length // _CONTENT_BYTES)
        return [*pieces, whole[: length % _CONTENT_BYTES]]


def live_flows(scenario: Any) -> tuple[_Flow, ...]:
    """The TCP flows of a scenario's traffic. Raises ScenarioError for traffic that only a simulation has."""
    flows: list[_Flow] = []
    for number, entry in enumerate(scenario.traffic):
        if entry["kind"] not in _KINDS:
            kinds = ", ".join(_KINDS)
            raise ScenarioError(f"traffic[{number}].kind must be one of {kinds} on a live path, got {entry['kind']}")
        has_one_each = entry["kind"] == "voice" or entry["one_user_each"]
        last_user = entry["user"] + (entry["count"] - 1 if has_one_each else 0)
        if last_user >= MOST_TERMINALS:
            raise ScenarioError(
                f"traffic[{number}] must have mobiles below {MOST_TERMINALS} on a live path, got {last_user}"
            )
        if entry["kind"] == "voice":
            continue
        for place in ("mobile_tcp", "server_tcp"):
            if entry[place] is not None:
                raise ScenarioError(
                    f"traffic[{number}].{place} must be absent on a live path: a kernel has the same settings for "
                    "all connections of an end"
                )
        first = len(flows)
        for turn in range(entry["count"]):
            user = entry["user"] + (turn if entry["one_user_each"] else 0)
            start_s = entry["start_s"] + turn * entry["spacing_s"]
            content = first if entry["same_objects"] else len(flows)
            flows.append(_Flow(len(flows), entry, start_s, user, content))
    if not scenario.traffic:
        raise ScenarioError(f"{scenario.name} has no traffic: give a command to run")
    if len(flows) > 65_535 - _FIRST_CLIENT_PORT:
        raise ScenarioError(
            f"{scenario.name} must have at most as many flows as a live path has ports, got {len(flows)}"
        )
    return tuple(flows)


def _is_same(writer: End, reader: End) -> bool:
    return bool(writer.written_bytes == reader.read_bytes and writer.written.digest() == reader.read.digest())


def _listen(place: tuple[int, int]) -> socket.socket:
    version, port = place
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    return socket.create_server((SERVER[version], port), family=family, backlog=1024)


def _client(flow: _Flow) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if flow.version == 6 else socket.AF_INET)
    try:
        made.bind((flow.mobile_address, flow.mobile_port))
    except BaseException:
        made.close()
        raise
    return made
