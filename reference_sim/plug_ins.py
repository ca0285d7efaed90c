"""Links, queues, congestion controls and applications written in Python: slow, but part of every simulation.

A scenario names a link and an application by `kind = "plug-in"` and `plug_in` in its path or traffic, a control by
`control = "plug-in:NAME"`. A name is an entry point of the group `pepscope.links`, `pepscope.controls` or
`pepscope.applications`, or `package.module:Class`. docs/guide/simulation-plug-ins.md explains them with examples.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pepscope._core import ControlAcknowledgement, SimulatedPacket
from pepscope.errors import PepscopeError, ScenarioError

LINKS, CONTROLS, APPLICATIONS = "pepscope.links", "pepscope.controls", "pepscope.applications"

__all__ = [
    "APPLICATIONS",
    "CONTROLS",
    "LINKS",
    "Application",
    "Control",
    "ControlAcknowledgement",
    "Link",
    "PlugIns",
    "SimulatedPacket",
]


class Link(ABC):
    """A hop of a path, both directions of it. It does no I/O and never asks for the time; times are whole nanoseconds.

    After `handle_packet` or `handle_timeout` at a time, the simulator calls `poll_transmit` with that time until it
    gives None, and then `poll_timeout`. Time never goes back.
    """

    def __init__(self, settings: Mapping[str, Any], seed: int, name: str) -> None:  # noqa: B027 - nothing to set
        """With the scenario's `settings`. All random numbers must come from `seed` and `name`."""

    @abstractmethod
    def handle_packet(self, now_ns: int, packet: SimulatedPacket) -> None:
        """Take a packet that enters; it leaves in the direction in which it came, once `poll_transmit` gives it.

        `packet.discard()` drops it, now or as long as it is held; `packet.mark()` sets the congestion mark, if its
        sender understands that.
        """

    def handle_timeout(self, now_ns: int) -> None:  # noqa: B027 - few links need it
        """Do what is due."""

    @abstractmethod
    def poll_transmit(self, now_ns: int) -> SimulatedPacket | None:
        """The next packet that leaves by now."""

    @abstractmethod
    def poll_timeout(self) -> int | None:
        """When `handle_timeout` is due next."""


class Control(ABC):
    """A congestion control of one connection. The sender finds and repairs losses; a control sets windows."""

    #: Whether segments are spaced out at `pacing_rate_byte_s`.
    paces: bool = False
    #: Read after each call: the congestion window, the slow-start threshold if there is one, and the pace.
    window_bytes: int
    slow_start_threshold_bytes: int | None = None
    pacing_rate_byte_s: float | None = None

    def __init__(self, maximum_segment_bytes: int, initial_window_bytes: int) -> None:
        """At the start of a connection."""
        self.segment_bytes = maximum_segment_bytes
        self.window_bytes = initial_window_bytes

    @abstractmethod
    def on_acknowledged(self, acknowledgement: ControlAcknowledgement) -> None:
        """An ACK arrived that acknowledges data, cumulatively or by SACK."""

    @abstractmethod
    def on_congestion(self, now_ns: int, cause: str, in_flight_bytes: int) -> None:
        """Slow down; `cause` is `loss` (at most once a window), `timeout` or `mark`."""

    def on_recovery_ended(self, now_ns: int) -> None:  # noqa: B027 - few controls need it
        """All that was in flight when the last loss was found has been acknowledged."""

    def on_idle(self, now_ns: int) -> None:  # noqa: B027 - few controls need it
        """Nothing was sent for longer than the retransmission timeout."""


class Application(ABC):
    """One end of a connection. It does no I/O and never asks for the time; times are whole nanoseconds.

    In any method it may `write`, `wake_at` and `close`. What one call of `write` was given reaches the peer's `on_data`
    whole, once its connection has read all of it. Calls of one host come in the order of time, those of two hosts need
    not: the ends may share nothing else.
    """

    def __init__(self, settings: Mapping[str, Any], seed: int, name: str, is_client: bool) -> None:
        """With the scenario's `settings`. All random numbers must come from `seed` and `name`, alike at both ends."""
        self.settings, self.seed, self.name, self.is_client = settings, seed, name, is_client
        self._written: deque[bytes] = deque()
        self._wake_at_ns: int | None = None
        self._is_closed = False

    @abstractmethod
    def on_connected(self, now_ns: int) -> None:
        """The connection is established."""

    @abstractmethod
    def on_data(self, now_ns: int, data: bytes) -> None:
        """The peer wrote this."""

    def on_timer(self, now_ns: int) -> None:  # noqa: B027 - not all wait for a time
        """The time of `wake_at` has come."""

    def on_finished(self, now_ns: int) -> None:  # noqa: ARG002 - of any time
        """The peer closed; unless told otherwise, this end does too."""
        self.close()

    def write(self, data: bytes) -> None:
        """Send bytes, at least one, behind those that were written before."""
        if not data:
            raise ValueError("data must have at least one byte, got none")
        self._written.append(bytes(data))

    def wake_at(self, time_ns: int | None) -> None:
        """Have `on_timer` called then, in place of what was asked for before; None for never."""
        self._wake_at_ns = time_ns

    def close(self) -> None:
        """Finish once everything is sent."""
        self._is_closed = True

    def take(self) -> tuple[list[bytes], int | None, bool]:
        """What was asked for since the last call: for the simulator."""
        written = list(self._written)
        self._written.clear()
        return written, self._wake_at_ns, self._is_closed


class PlugIns:
    """What a simulation asks for plug-ins; each is loaded when it is first wanted."""

    def __init__(self) -> None:
        #: Names of those that were wanted.
        self.wanted: list[str] = []

    def link(self, name: str, settings: str, seed: int, hop: str) -> Link:
        """The link that a scenario names. Raises ScenarioError, and whatever the class raises."""
        link: Link = self._made(LINKS, name, Link, json.loads(settings), seed, hop)
        return link

    def control(self, name: str, maximum_segment_bytes: int, initial_window_bytes: int) -> Control:
        """The control that a scenario names. Raises ScenarioError, and whatever the class raises."""
        control: Control = self._made(CONTROLS, name, Control, maximum_segment_bytes, initial_window_bytes)
        return control

    def application(self, name: str, settings: str, seed: int, flow: str, is_client: bool) -> Application:
        """One end of what a scenario names. Raises ScenarioError, and whatever the class raises."""
        table = json.loads(settings)
        application: Application = self._made(APPLICATIONS, name, Application, table, seed, flow, is_client)
        return application

    def _made(self, group: str, name: str, base: type, *arguments: object) -> Any:
        self.wanted.append(name)
        kind = load(group, name, base)
        try:
            return kind(*arguments)
        except PepscopeError:
            raise
        except Exception as error:
            raise ScenarioError(f"the plug-in {name} refuses its settings: {error}") from error


def load(group: str, name: str, base: type) -> Any:
    """The class called `name`: an entry point of `group`, or `package.module:Class`. Raises ScenarioError."""
    found = next(iter(entry_points(group=group, name=name)), None)
    if found is None and ":" in name:
        found = EntryPoint(name, name, group)
    if found is None:
        raise ScenarioError(f"a plug-in must be an entry point of {group} or package.module:Class, got {name}")
    try:
        loaded = found.load()
    except (ImportError, AttributeError) as error:
        raise ScenarioError(f"the plug-in {name} cannot be loaded: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise ScenarioError(f"the plug-in {name} must be a subclass of reference_sim.plug_ins.{base.__name__}")
    return loaded
