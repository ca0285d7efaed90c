"""Results of a detection: evidence, verdicts and the series behind the figures. Shared by detector and reports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from pepscope.captures.direction import Direction
from pepscope.captures.files.named_packets import EvidencePacket, connection_filter
from pepscope.captures.provenance import Tool
from pepscope.plugins import writer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa

FloatArray: TypeAlias = "npt.NDArray[np.float64]"
IntArray: TypeAlias = "npt.NDArray[np.int64]"
Number = float | int | str | bool | None


class Outcome(StrEnum):
    """What one method concluded about a connection."""

    SPLIT = "split"
    INTACT = "intact"
    INAPPLICABLE = "inapplicable"


class Verdict(StrEnum):
    """What a connection is; `INCONCLUSIVE` where the captures do not decide."""

    REGULAR = "regular"
    SPLIT_TCP = "split-tcp"
    TCP_PROXY = "tcp-proxy"
    INCONCLUSIVE = "inconclusive"

    @property
    def is_split(self) -> bool:
        """Whether the verdict is that a middlebox splits the connection, by any mechanism."""
        return self in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY)


#: The verdicts that a connection is split.
SPLIT_VERDICTS = tuple(verdict for verdict in Verdict if verdict.is_split)


class Mechanism(StrEnum):
    """How a split works, as far as the captures show it (RFC 3135 for the terms)."""

    RELAY = "relay"  # two concurrent connections
    STORE_AND_FORWARD = "store-and-forward"
    CACHE = "cache"
    REWRITING = "rewriting"  # heads written anew, or bodies recompressed
    TLS_INTERCEPTION = "tls-interception"
    LOCAL_ACKNOWLEDGEMENT = "local-acknowledgement"  # RFC 3135, section 3.1.2
    TUNNEL = "tunnel"  # one leg in another transport protocol
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one method found.

    `finding` is a short key (a `pepscope.results.finding.Finding` of the method) of *what* was found; `strength` is in
    [0, 1] (0 for inapplicable); `summary` is one sentence for an engineer; `numbers` are the figures behind it (times
    in seconds, names with units); `caveats` name what could have misled the method here. `packets` show it, the most
    telling first; None where they were not looked for.
    """

    method: str
    outcome: Outcome
    finding: str
    strength: float
    summary: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    packets: tuple[EvidencePacket, ...] | None = None

    @classmethod
    def inapplicable(
        cls,
        method: str,
        finding: str,
        summary: str,
        numbers: Mapping[str, Number] | None = None,
        caveats: tuple[str, ...] = (),
    ) -> Evidence:
        """Evidence of a method that could not decide, with what it lacked."""
        return cls(method, Outcome.INAPPLICABLE, finding, 0.0, summary, numbers or {}, caveats)


@dataclass(frozen=True, slots=True)
class VantageName:
    """Where a connection was seen: the capture's path as given and the end points as that capture shows them.

    `frames` are the connection's first and last frame in the file, where they were looked for.
    """

    capture: str
    client: str
    server: str
    transport: str = "tcp"  # or "udp", where the connection's bytes travel in datagrams
    frames: tuple[int, int] | None = None

    @property
    def display_filter(self) -> str:
        """The display filter with which Wireshark shows the connection in this capture."""
        return connection_filter(self.client, self.server, self.transport, self.frames)


@dataclass(frozen=True, slots=True)
class FlowSeries:
    """Everything a page draws for one data direction of a pair. Times in seconds from the pair's first packet.

    Arrays of one name prefix have one length; empty where the vantage is missing.
    """

    direction: Direction
    forward_time_s: FloatArray  # sender's time of each datum
    forward_difference_s: FloatArray  # receiver's time minus sender's time
    ack_time_s: FloatArray  # sender's time of each acknowledgement
    ack_difference_s: FloatArray  # receiver's sending time minus sender's time
    ack_violates: npt.NDArray[np.bool_]
    line_offset_s: float | None  # best separating line: offset + drift * time
    line_drift: float
    sender_data_time_s: FloatArray
    sender_data_offset: FloatArray
    sender_ack_time_s: FloatArray
    sender_ack_offset: FloatArray
    receiver_data_time_s: FloatArray
    receiver_data_offset: FloatArray
    receiver_ack_time_s: FloatArray
    receiver_ack_offset: FloatArray
    round_trip_time_s: FloatArray
    round_trip_time_at_s: FloatArray
    sender_window_at_s: FloatArray  # receive window as the sender saw it advertised
    sender_window_bytes: FloatArray
    receiver_window_at_s: FloatArray  # receive window as the receiver advertised it
    receiver_window_bytes: FloatArray
    throughput_at_s: FloatArray  # sender's payload per bin
    throughput_bit_s: FloatArray
    one_way_delay_s: FloatArray  # by sending order, clock line removed
    in_flight_at_s: FloatArray  # sent and not acknowledged yet, after each packet, at the sender where it was captured
    in_flight_bytes: FloatArray
    sent_again_at_s: FloatArray  # retransmissions, likewise
    sent_again_offset: FloatArray


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which stretch of the path two captures of a connection cover; None where a value is not known.

    `..._hops_beyond` are routers between an end host and its side's capture, by the hop limits that the host's packets
    arrive with; `..._round_trip_beyond_s` is the least time after which that host answered what the capture saw go
    there. `hops_between` and `round_trip_between_s` lie between the captures, where both show the same handshake.
    """

    one_place: bool  # both captures were taken at one place: nothing lies between them
    client_hops_beyond: int | None = None
    server_hops_beyond: int | None = None
    client_round_trip_beyond_s: float | None = None
    server_round_trip_beyond_s: float | None = None
    hops_between: int | None = None
    round_trip_between_s: float | None = None


@dataclass(frozen=True, slots=True)
class PairResult:
    """The verdict on one connection seen at one or two vantage points, with its evidence."""

    vantages: tuple[VantageName, ...]
    verdict: Verdict
    probability: Mapping[Verdict, float] = field(repr=False)  # regular, split-tcp and tcp-proxy, of sum 1
    reason: str
    evidence: tuple[Evidence, ...] = field(repr=False)
    packets: int
    payload_bytes_up: int
    payload_bytes_down: int
    duration_s: float
    series: tuple[FlowSeries, ...] = field(default=(), repr=False)
    pairing_confidence: float = 1.0  # that the vantages show the same transfer; 1 where there is only one
    pairing_ground: str = ""  # what they were paired on, in words; empty where there is only one
    mechanism: Mechanism | None = None  # of a split; None where the verdict is no split
    started_ns: int | None = None  # first packet at the first vantage, Unix time by its capture's clock
    #: What two captures cover of the path; None unless both hold the connection in TCP.
    stretch: Stretch | None = field(default=None, repr=False)


#: Findings of groups whose clients ask for a proxy, whether it shows that there is one or not.
ASKING_FINDINGS = ("proxy-asked-for", "asked-as-proxy")


class GroupSide(StrEnum):
    """Whose captures hold the connections of a group."""

    CLIENT = "client"
    SERVER = "server"
    BOTH = "both"


class SplitPlace(StrEnum):
    """Where a split point stands: in the network between, with the servers (a load balancer, a CDN), or at the proxy
    that the client itself asks for."""

    NETWORK = "network"
    SERVER = "server"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True)
class HostResult:
    """What one capture shows of one far host of a group; round trips as in `GroupResult`."""

    host: str
    connections: int
    exchanges: int
    verdict: Verdict
    probability: Mapping[Verdict, float]
    where: SplitPlace | None
    near_round_trip_s: float | None
    hidden_round_trip_s: float | None
    hidden_round_trip_interval_s: tuple[float, float] | None
    reference_round_trip_s: float | None  # of what no TCP split shortens (ICMP echo, UDP), where the capture holds it


@dataclass(frozen=True, slots=True)
class GroupSeries:
    """Everything a page draws of a group that one capture holds: times in seconds, NaN where nothing was measured.

    Arrays of one name prefix have one length; `..._host` are places in `GroupResult.by_host`. An exchange takes
    `exchange_s` from its question's last byte to its answer's first, of which the transport takes
    `exchange_transport_s`: what is left is the excess that is judged. Handshakes are by connection (SYN to SYN-ACK, or
    SYN-ACK to ACK at the server's side), references by round trip. `..._count` are how many the group has, where only
    some are kept.
    """

    exchange_host: IntArray
    exchange_kind: tuple[str, ...]  # such as `tls-hello`
    exchange_s: FloatArray
    exchange_transport_s: FloatArray
    exchange_count: int
    handshake_host: IntArray
    handshake_s: FloatArray
    handshake_count: int
    reference_host: IntArray
    reference_kind: tuple[str, ...]  # such as `icmp-echo`
    reference_s: FloatArray
    reference_count: int


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The verdict on the connections that one rule of the network governs: one server port, one network of clients.

    `network` (/24, /48 for IPv6), `port` and `hosts` (the servers' addresses, sorted) are as the server's side shows
    them where it was captured. Round trips are the least of the group, in seconds: `near` from the client to whatever
    answers its handshake (from the server to whatever answers its own, where only the server's side was captured),
    `hidden` across the other leg of a split, with an interval where it was inferred rather than measured.
    """

    side: GroupSide
    network: str
    port: int
    hosts: tuple[str, ...]
    pairs: tuple[int, ...]  # places of its connections in `DetectionResult.pairs`
    exchanges: int | None  # questions with their answers, in the connections that one capture holds; None: not counted
    verdict: Verdict
    probability: Mapping[Verdict, float]  # regular, split-tcp and tcp-proxy, summing to 1
    mechanism: Mechanism | None  # of a split; None where the verdict is no split
    where: SplitPlace | None  # None without a split, or where its place is unknown
    near_round_trip_s: float | None
    hidden_round_trip_s: float | None
    hidden_round_trip_interval_s: tuple[float, float] | None
    reason: str
    #: What connections found, each finding once in its firmest form, and what all together show.
    evidence: tuple[Evidence, ...] = field(repr=False)
    by_host: tuple[HostResult, ...] = field(default=(), repr=False)  # the far hosts, where one capture was judged
    series: GroupSeries | None = field(default=None, compare=False, repr=False)  # only where a page is to be drawn

    @property
    def asks_proxy(self) -> bool:
        """Whether its clients ask for a proxy. Connections of the same network and port that ask for none are another
        group."""
        return any(item.finding in ASKING_FINDINGS for item in self.evidence)


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """One capture file as read: counts, what was wrong with it, and what tells it from every other file.

    `started_ns` and `ended_ns` are the times of its first and its last packet of any kind; `sha256` is that of the file
    as it stands on disk, None for standard input.
    """

    path: str
    packets: int
    connections: int
    warnings: tuple[str, ...] = ()
    started_ns: int | None = None
    ended_ns: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class TemporaryBytes:
    """What captures that memory had no room for wrote to temporary files and read back, in bytes."""

    written: int = 0
    read: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class DetectionResult:
    """Everything that one detection found: the captures as read, a verdict on each pair and on each group of pairs."""

    captures: tuple[CaptureSummary, ...]
    #: From `detect` a `pepscope.results.pair_table.PairTable`: columns, from which pairs are made when asked for.
    pairs: Sequence[PairResult]
    groups: tuple[GroupResult, ...] = ()
    #: What made the result; None where a file of an older version does not say it.
    tool: Tool | None = None
    #: How much work it was, which is no part of the result: no file holds these numbers.
    temporary_bytes: TemporaryBytes = TemporaryBytes()

    def __repr__(self) -> str:
        counts = Counter(verdict.value for verdict in self.verdicts)
        found = ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "no connection"
        captures = " and ".join(repr(capture.path) for capture in self.captures)
        return f"<DetectionResult of {captures or 'no capture'}: {found}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdicts on groups and on the connections that matter most."""
        return str(writer("notebook")(self))

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict on each pair, without making the pairs."""
        from pepscope.results.pair_table import PairTable

        if isinstance(self.pairs, PairTable):
            return self.pairs.columns.verdict.of(self.pairs.rows)
        return [pair.verdict for pair in self.pairs]

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `detect-2` (see `pepscope/schemas`) as plain dictionaries and lists."""
        document: dict[str, Any] = writer("document")(self)
        return document

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON text."""
        return str(writer("json-text")(self, indent))

    def to_json_lines(self) -> str:
        """The JSON contract `detect-lines-2`: a line with the captures, then one a pair, then one a group."""
        return str(writer("jsonl-text")(self))

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The page of `detect --html` as text, or written to `path`. Raises ReportError, an OSError, where it cannot.

        The page has figures of connections and groups where `detect` was asked for `series`.
        """
        if path is None:
            return str(writer("html-text")(self))
        writer("html")(self, path)
        return None

    def to_frame(self) -> pd.DataFrame:
        """One row a pair: both vantages, verdict, probabilities, sizes (bytes), duration (seconds) and the reason."""
        from pepscope.results.frames import detection_frame

        return detection_frame(self)

    def to_arrow(self) -> pa.Table:
        """`to_frame` as an Arrow table, and as cheap. Raises UsageError where pyarrow is not installed."""
        from pepscope.results.frames import detection_table

        return detection_table(self)

    def groups_frame(self) -> pd.DataFrame:
        """One row a group: side, network, port, hosts, counts, verdict, probabilities, round trips (s), the reason."""
        from pepscope.results.frames import groups_frame

        return groups_frame(self)

    def hosts_frame(self) -> pd.DataFrame:
        """One row a far host of a group that one capture holds; `group` is its row in `groups_frame`."""
        from pepscope.results.frames import hosts_frame

        return hosts_frame(self)
