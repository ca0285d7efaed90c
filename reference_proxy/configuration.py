"""What a proxy is told: from TOML and flags to frozen dataclasses, every value checked with one sentence.

The tables of a TOML file are the fields of `Configuration` that are dataclasses themselves; all else stands at the top.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from reference_proxy.errors import ConfigurationError

T = TypeVar("T")


class Mode(Enum):
    """What the proxy does between its two connections (RFC 3135, section 3)."""

    SPLIT = "split"
    STORE_AND_FORWARD = "store-and-forward"
    WINDOW_ADAPTATION = "window-adaptation"
    UDP_TUNNEL = "udp-tunnel"


class Interception(Enum):
    """How the wished destination is known; see `reference_proxy.interception`."""

    TRANSPARENT = "transparent"
    DESTINATION_TRANSPARENT = "destination-transparent"
    EXPLICIT = "explicit"
    FIXED = "fixed"

    @property
    def needs_rules(self) -> bool:
        """Whether packets must be diverted to the proxy."""
        return self in (Interception.TRANSPARENT, Interception.DESTINATION_TRANSPARENT)


class Aborts(Enum):
    """What becomes of one leg when the other was aborted."""

    AT_ONCE = "at-once"
    AFTER_DELAY = "after-delay"
    NEVER = "never"


class TunnelEnd(Enum):
    """Which end of a UDP tunnel this process is."""

    CLIENT = "client"
    SERVER = "server"


class RateSource(Enum):
    """Which number of a queue report is the rate of the control law."""

    SERVED = "served"
    OFFERED = "offered"


def number(default: float, low: float, high: float) -> Any:
    """A field with bounds."""
    return field(default=default, metadata={"low": low, "high": high})


def size(default: int, low: int, high: int = 1 << 40) -> Any:
    """A field in whole numbers, with bounds."""
    return field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True, slots=True)
class Limits:
    """What one proxy takes upon itself; see `reference_proxy.limits`."""

    connections: int = size(1024, 1, 1_000_000)
    connections_per_client: int = size(1024, 1, 1_000_000)
    #: What all relays may hold together; a connection takes two buffers of it while it lives.
    memory_bytes: int = size(1 << 30, 1 << 20)
    #: From accepting to knowing the destination, whatever trickles in.
    handshake_s: float = number(10.0, 0.05, 3600.0)
    connect_s: float = number(30.0, 0.05, 3600.0)
    #: Without a byte in either direction.
    idle_s: float = number(300.0, 0.05, 864_000.0)
    #: Between SIGTERM and the end of what still runs.
    drain_s: float = number(30.0, 0.0, 864_000.0)
    header_bytes: int = size(64 << 10, 256, 16 << 20)


@dataclass(frozen=True, slots=True)
class Leg:
    """TCP of one leg; 0 and "" leave the kernel's choice."""

    congestion_control: str = ""
    receive_buffer_bytes: int = size(0, 0, 1 << 30)
    send_buffer_bytes: int = size(0, 0, 1 << 30)
    window_clamp_bytes: int = size(0, 0, 1 << 30)
    #: Segments before the first acknowledgement; a property of routes, so that only --setup installs it.
    initial_window_segments: int = size(0, 0, 1000)


@dataclass(frozen=True, slots=True)
class Store:
    """Store-and-forward."""

    #: Silence of the sender after which raw TCP counts as an object.
    pause_s: float = number(0.5, 0.001, 3600.0)
    #: Larger ones are passed on as they come, once so much is held.
    object_bytes: int = size(64 << 20, 1024)
    #: Media types of HTTP answers that are taken whole, such as `image/*`; other answers are passed on as they come.
    content_types: tuple[str, ...] = ("*/*",)
    #: What all objects under way may hold together.
    memory_bytes: int = size(512 << 20, 1 << 20)
    #: Ports whose connections are taken for HTTP.
    http_ports: tuple[int, ...] = (80, 8080)
    cache_bytes: int = size(256 << 20, 0)
    cache_object_bytes: int = size(16 << 20, 0)
    #: Share of the time since the last change that an answer without a lifetime stays fresh (RFC 9111, 4.2.2).
    heuristic_share: float = number(0.1, 0.0, 1.0)
    heuristic_limit_s: float = number(86_400.0, 0.0, 31_536_000.0)
    recompresses: bool = True
    image_quality: int = size(40, 1, 95)
    #: Larger images are passed on as they are: decoding takes four bytes a pixel.
    image_pixels: int = size(25_000_000, 1)
    compresses_text: bool = True


@dataclass(frozen=True, slots=True)
class Adaptation:
    """Window adaptation; the defaults are those of seed 003, section 5.1."""

    #: Where queue reports are received.
    reports: str = "127.0.0.1:9003"
    #: Addresses that reports may come from; none allows all.
    reporters: tuple[str, ...] = ()
    #: Without a report for so long, the proxy goes on as Split-TCP.
    silence_s: float = number(1.0, 0.01, 3600.0)
    rate_source: RateSource = RateSource.SERVED
    spreads_packets: bool = True
    step_s: float = number(0.025, 1e-4, 1000.0)
    delay_steps: int = size(1, 1, 1000)
    frames_per_packet: float = number(13.0, 1.0, 10_000.0)
    reference_frames: float = number(100.0, 0.0, 1e9)
    buffer_frames: float = number(200.0, 1.0, 1e9)
    smoothing: float = number(0.85, 0.0, 1.0)
    approach_per_s: float = number(35.0, 0.0, 1e6)
    switching_frames_s: float = number(20.0, 0.0, 1e9)
    extremes_steps: int = size(200, 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class Tunnel:
    """UDP tunnel."""

    end: TunnelEnd = TunnelEnd.SERVER
    #: Address of the server end, in digits; for the client end.
    server: str = ""
    #: Where the server end receives datagrams.
    listen: str = "127.0.0.1:9004"
    #: Payload of a datagram; with headers it must fit the path, since nothing here discovers its MTU.
    payload_bytes: int = size(1200, 64, 8900)
    window_bytes: int = size(256 << 10, 4096, 64 << 20)


@dataclass(frozen=True, slots=True)
class Rules:
    """What --setup installs."""

    #: Interface that the clients' packets come in by; empty for connections that this machine itself makes.
    device: str = ""
    #: Destination ports to intercept.
    ports: tuple[int, ...] = (80,)
    mark: int = size(0x7065, 1, 0x7FFF_FFFF)
    table: int = size(0x7065, 1, 0x7FFF_FFFF)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything; `mode` is the only field without a default."""

    mode: Mode
    interception: Interception = Interception.EXPLICIT
    #: Where connections are accepted.
    listen: tuple[str, ...] = ("127.0.0.1:8888",)
    #: The server of `fixed` interception.
    target: str = ""
    #: Destinations that are served: `HOST`, `NETWORK`, `*`, each with `:PORT,...`; explicit modes serve no others.
    allow: tuple[str, ...] = ()
    #: Bytes that each direction of a connection may hold in the proxy.
    buffer_bytes: int = size(256 << 10, 1024, 1 << 30)
    aborts: Aborts = Aborts.AT_ONCE
    abort_delay_s: float = number(5.0, 0.0, 86_400.0)
    #: File that gets one JSON line a connection; empty for none, `-` for standard output.
    truth: str = ""
    #: Address at which Prometheus finds the metrics; empty for none.
    metrics: str = ""
    limits: Limits = Limits()
    mobile: Leg = Leg()
    server: Leg = Leg()
    store: Store = Store()
    adaptation: Adaptation = Adaptation()
    tunnel: Tunnel = Tunnel()
    rules: Rules = Rules()

    @classmethod
    def from_mapping(cls, document: Mapping[str, Any]) -> Configuration:
        """Check every value, and that they fit together. Raises ConfigurationError."""
        from reference_proxy.consistency import check

        configuration = _read_table(cls, document, "")
        check(configuration)
        return configuration


def read_toml(path: str | Path) -> dict[str, Any]:
    """The document in a TOML file. Raises ConfigurationError, OSError."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None


def merge(document: dict[str, Any], name: str, value: Any) -> None:
    """Set the field called `name` (`limits.connections`) in a document. Raises ConfigurationError."""
    *tables, last = name.split(".")
    place: Any = document
    for table in tables:
        place = place.setdefault(table, {})
        if not isinstance(place, dict):
            raise ConfigurationError(f"{name} leads nowhere: {table} is a value, not a table")
    place[last] = value


def _read_table(kind: type[T], document: Mapping[str, Any], place: str) -> T:
    known = {entry.name: entry for entry in fields(cast(Any, kind))}
    for name in document:
        if name not in known:
            raise ConfigurationError(f"there is no field {place}{name}; there are {', '.join(sorted(known))}")
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, entry in known.items():
        if name in document:
            values[name] = _read_value(hints[name], document[name], place + name, entry.metadata)
        elif entry.default is MISSING:
            raise ConfigurationError(f"{place}{name} is missing")
    return kind(**values)


def _read_value(kind: Any, value: Any, name: str, bounds: Mapping[str, Any]) -> Any:
    if is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"{name} must be a table, but is {value!r}")
        return _read_table(cast(Any, kind), value, f"{name}.")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _read_choice(kind, value, name)
    if get_origin(kind) is tuple:
        (inner, *_) = get_args(kind)
        listed = [value] if isinstance(value, (str, int)) and not isinstance(value, bool) else value
        if not isinstance(listed, (list, tuple)):
            raise ConfigurationError(f"{name} must be a list, but is {value!r}")
        return tuple(_read_value(inner, item, name, bounds) for item in listed)
    return _read_scalar(kind, value, name, bounds)


def _read_choice(kind: type[Enum], value: Any, name: str) -> Enum:
    try:
        return value if isinstance(value, kind) else kind(value)
    except ValueError:
        allowed = ", ".join(str(member.value) for member in kind)
        raise ConfigurationError(f"{name} must be one of {allowed}, but is {value!r}") from None


def _read_scalar(kind: Any, value: Any, name: str, bounds: Mapping[str, Any]) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        wanted = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
        raise ConfigurationError(f"{name} must be {wanted}, but is {value!r}")
    if bounds and not bounds["low"] <= value <= bounds["high"]:
        raise ConfigurationError(f"{name} must lie between {bounds['low']} and {bounds['high']}, but is {value}")
    return value
