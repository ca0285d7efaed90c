"""What a proxy is told: from TOML and flags to frozen dataclasses, every value checked with one sentence.

The tables of a TOML file are the fields of `Configuration` that are dataclasses themselves; all else stands at the top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pepscope.settings import bounded, read_settings
from reference_proxy.errors import ConfigurationError


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


def size(default: int, low: int, high: int = 1 << 40) -> Any:
    """A field in whole numbers, with bounds."""
    return bounded(default, low, high)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one proxy takes upon itself; see `reference_proxy.limits`."""

    connections: int = size(1024, 1, 1_000_000)
    connections_per_client: int = size(1024, 1, 1_000_000)
    #: What all relays may hold together; a connection takes two buffers of it while it lives.
    memory_bytes: int = size(1 << 30, 1 << 20)
    #: From accepting to knowing the destination, whatever trickles in.
    handshake_s: float = bounded(10.0, 0.05, 3600.0)
    connect_s: float = bounded(30.0, 0.05, 3600.0)
    #: Without a byte in either direction.
    idle_s: float = bounded(300.0, 0.05, 864_000.0)
    #: Between SIGTERM and the end of what still runs.
    drain_s: float = bounded(30.0, 0.0, 864_000.0)
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
    pause_s: float = bounded(0.5, 0.001, 3600.0)
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
    heuristic_share: float = bounded(0.1, 0.0, 1.0)
    heuristic_limit_s: float = bounded(86_400.0, 0.0, 31_536_000.0)
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
    silence_s: float = bounded(1.0, 0.01, 3600.0)
    rate_source: RateSource = RateSource.SERVED
    spreads_packets: bool = True
    step_s: float = bounded(0.025, 1e-4, 1000.0)
    delay_steps: int = size(1, 1, 1000)
    frames_per_packet: float = bounded(13.0, 1.0, 10_000.0)
    reference_frames: float = bounded(100.0, 0.0, 1e9)
    buffer_frames: float = bounded(200.0, 1.0, 1e9)
    smoothing: float = bounded(0.85, 0.0, 1.0)
    approach_per_s: float = bounded(35.0, 0.0, 1e6)
    switching_frames_s: float = bounded(20.0, 0.0, 1e9)
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
    abort_delay_s: float = bounded(5.0, 0.0, 86_400.0)
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

        configuration = read_settings(cls, document, ConfigurationError)
        check(configuration)
        return configuration
