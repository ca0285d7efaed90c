"""The settings of a proxy, with their bounds and defaults.

The tables of a TOML file are the fields of `Configuration` that are `Table`s themselves; all else stands at the top.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, TypeAlias

from pepscope.strict_reading import Table, between

Port: TypeAlias = Annotated[int, between(1, 65_535)]


class Mode(Enum):
    """What the proxy does between its two connections (RFC 3135, section 3)."""

    SPLIT = "split"
    STORE_AND_FORWARD = "store-and-forward"
    WINDOW_ADAPTATION = "window-adaptation"
    UDP_TUNNEL = "udp-tunnel"


class Interception(Enum):
    """How the requested destination is known; see `reference_proxy.interception.requested_destination`."""

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


class Limits(Table, frozen=True):
    """What one proxy takes upon itself; see `reference_proxy.limits`."""

    connections: Annotated[int, between(1, 1_000_000)] = 1024
    connections_per_client: Annotated[int, between(1, 1_000_000)] = 1024
    #: What all relays may hold together; a connection takes two buffers of it while it lives.
    memory_bytes: Annotated[int, between(1 << 20, 1 << 40)] = 1 << 30
    #: From accepting to knowing the destination, whatever trickles in.
    handshake_s: Annotated[float, between(0.05, 3600.0)] = 10.0
    connect_s: Annotated[float, between(0.05, 3600.0)] = 30.0
    #: Without a byte in either direction.
    idle_s: Annotated[float, between(0.05, 864_000.0)] = 300.0
    #: Between SIGTERM and the end of what still runs.
    drain_s: Annotated[float, between(0.0, 864_000.0)] = 30.0
    header_bytes: Annotated[int, between(256, 16 << 20)] = 64 << 10


class Leg(Table, frozen=True):
    """TCP of one leg; 0 and "" leave the kernel's choice."""

    congestion_control: str = ""
    receive_buffer_bytes: Annotated[int, between(0, 1 << 30)] = 0
    send_buffer_bytes: Annotated[int, between(0, 1 << 30)] = 0
    window_clamp_bytes: Annotated[int, between(0, 1 << 30)] = 0
    #: Segments before the first acknowledgement; a property of routes, so that only --setup installs it.
    initial_window_segments: Annotated[int, between(0, 1000)] = 0


class Store(Table, frozen=True):
    """Store-and-forward."""

    #: Pause of the sender after which raw TCP data count as an object.
    pause_s: Annotated[float, between(0.001, 3600.0)] = 0.5
    #: Larger ones are passed on as they come, once so much is held.
    object_bytes: Annotated[int, between(1024, 1 << 40)] = 64 << 20
    #: Media types of HTTP answers that are taken whole, such as `image/*`; other answers are passed on as they come.
    content_types: tuple[str, ...] = ("*/*",)
    #: What all objects under way may hold together.
    memory_bytes: Annotated[int, between(1 << 20, 1 << 40)] = 512 << 20
    #: Ports whose connections are taken for HTTP.
    http_ports: tuple[Port, ...] = (80, 8080)
    cache_bytes: Annotated[int, between(0, 1 << 40)] = 256 << 20
    cache_object_bytes: Annotated[int, between(0, 1 << 40)] = 16 << 20
    #: Share of the time since the last change that an answer without a lifetime stays fresh (RFC 9111, 4.2.2).
    heuristic_share: Annotated[float, between(0.0, 1.0)] = 0.1
    heuristic_limit_s: Annotated[float, between(0.0, 31_536_000.0)] = 86_400.0
    recompresses: bool = True
    image_quality: Annotated[int, between(1, 95)] = 40
    #: Larger images are passed on as they are: decoding takes four bytes a pixel.
    image_pixels: Annotated[int, between(1, 1 << 40)] = 25_000_000
    compresses_text: bool = True


class Adaptation(Table, frozen=True):
    """Window adaptation; the defaults are those of seed 003, section 5.1."""

    #: Where queue reports are received.
    reports: str = "127.0.0.1:9003"
    #: Addresses that reports may come from; none allows all.
    reporters: tuple[str, ...] = ()
    #: Without a report for so long, the proxy goes on as Split-TCP.
    silence_s: Annotated[float, between(0.01, 3600.0)] = 1.0
    rate_source: RateSource = RateSource.SERVED
    spreads_packets: bool = True
    step_s: Annotated[float, between(1e-4, 1000.0)] = 0.025
    delay_steps: Annotated[int, between(1, 1000)] = 1
    frames_per_packet: Annotated[float, between(1.0, 10_000.0)] = 13.0
    reference_frames: Annotated[float, between(0.0, 1e9)] = 100.0
    buffer_frames: Annotated[float, between(1.0, 1e9)] = 200.0
    smoothing: Annotated[float, between(0.0, 1.0)] = 0.85
    approach_per_s: Annotated[float, between(0.0, 1e6)] = 35.0
    switching_frames_s: Annotated[float, between(0.0, 1e9)] = 20.0
    extremes_steps: Annotated[int, between(1, 1_000_000)] = 200


class Tunnel(Table, frozen=True):
    """UDP tunnel."""

    end: TunnelEnd = TunnelEnd.SERVER
    #: Address of the server end, in digits; for the client end.
    server: str = ""
    #: Where the server end receives datagrams.
    listen: str = "127.0.0.1:9004"
    #: Payload of a datagram; with headers it must fit the path, since nothing here discovers its MTU.
    payload_bytes: Annotated[int, between(64, 8900)] = 1200
    window_bytes: Annotated[int, between(4096, 64 << 20)] = 256 << 10


class Rules(Table, frozen=True):
    """What --setup installs."""

    #: Interface that the clients' packets come in by; empty for connections that this machine itself makes.
    device: str = ""
    #: Destination ports to intercept.
    ports: tuple[Port, ...] = (80,)
    #: Of new connections one in so many is diverted, by turns; the others go their way untouched.
    every: Annotated[int, between(1, 1000)] = 1
    mark: Annotated[int, between(1, 0x7FFF_FFFF)] = 0x7065
    table: Annotated[int, between(1, 0x7FFF_FFFF)] = 0x7065


class Configuration(Table, frozen=True):
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
    buffer_bytes: Annotated[int, between(1024, 1 << 30)] = 256 << 10
    aborts: Aborts = Aborts.AT_ONCE
    abort_delay_s: Annotated[float, between(0.0, 86_400.0)] = 5.0
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
