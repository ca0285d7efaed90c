"""Reading the JSON of `pepscope detect --json` back into typed results.

The types here are the contract `detect-2` (`pepscope/schemas/detect-2.json`) as a reader needs it: fields that are not
known are passed over, so that a newer writer may add some.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta, Struct

from pepscope.captures.files.named_packets import EvidencePacket
from pepscope.captures.provenance import Tool
from pepscope.results.verdicts import (
    CaptureSummary,
    DetectionResult,
    Evidence,
    GroupResult,
    GroupSide,
    HostResult,
    Mechanism,
    Number,
    Outcome,
    PairResult,
    SplitPlace,
    Stretch,
    VantageName,
    Verdict,
)
from pepscope.strict_reading import WholeNumber, between, read_as
from reports.errors import ReportError

#: Versions that can be read: the first one names no packets.
SCHEMA_VERSIONS = (1, 2)

Share: TypeAlias = Annotated[float, between(0.0, 1.0)]
Finite: TypeAlias = Annotated[float, between(-sys.float_info.max, sys.float_info.max)]


def time_of(text: str) -> int:
    """The Unix time (ns) of a time as RFC 3339 has it, in UTC. Raises ReportError for what is none."""
    try:
        time: np.datetime64 = np.datetime64(text.removesuffix("Z"), "ns")
    except (ValueError, OverflowError):
        time = np.datetime64("NaT", "ns")
    if np.isnat(time):
        raise ReportError(f"a time must be written as in 2026-01-31T12:00:00Z, got {text!r}")
    return int(time.astype(np.int64))


class ProbabilityDocument(Struct, frozen=True, rename="kebab"):
    """How probable each verdict is."""

    regular: Share
    split_tcp: Share
    tcp_proxy: Share

    def result(self) -> dict[Verdict, float]:
        """By verdict."""
        return {
            Verdict.REGULAR: self.regular,
            Verdict.SPLIT_TCP: self.split_tcp,
            Verdict.TCP_PROXY: self.tcp_proxy,
        }


class PacketDocument(Struct, frozen=True):
    """A packet that shows a finding."""

    capture: str
    frame: WholeNumber
    time: str
    shows: str

    def result(self) -> EvidencePacket:
        """As the detector has it."""
        return EvidencePacket(self.capture, self.frame, time_of(self.time), self.shows)


class EvidenceDocument(Struct, frozen=True):
    """What one method found."""

    method: str
    outcome: Outcome
    strength: Share
    summary: str
    numbers: dict[str, Number]
    finding: str = ""
    caveats: tuple[str, ...] = ()
    packets: tuple[PacketDocument, ...] | None = None

    def result(self) -> Evidence:
        """As the detector has it."""
        return Evidence(
            method=self.method,
            outcome=self.outcome,
            finding=self.finding,
            strength=self.strength,
            summary=self.summary,
            numbers=self.numbers,
            caveats=self.caveats,
            packets=None if self.packets is None else tuple(item.result() for item in self.packets),
        )


class VantageDocument(Struct, frozen=True):
    """Where a connection was seen."""

    capture: str
    client: str
    server: str
    transport: str = "tcp"
    frames: tuple[WholeNumber, WholeNumber] | None = None

    def result(self) -> VantageName:
        """As the detector has it."""
        return VantageName(self.capture, self.client, self.server, self.transport, self.frames)


class CaptureDocument(Struct, frozen=True):
    """One capture as read."""

    path: str
    packets: WholeNumber
    connections: WholeNumber
    warnings: tuple[str, ...]
    started: str | None = None
    ended: str | None = None
    sha256: str | None = None

    def result(self) -> CaptureSummary:
        """As the detector has it."""
        started_ns, ended_ns = (None if text is None else time_of(text) for text in (self.started, self.ended))
        return CaptureSummary(
            self.path, self.packets, self.connections, self.warnings, started_ns, ended_ns, self.sha256
        )


class ToolDocument(Struct, frozen=True):
    """What made the result."""

    version: str
    options: dict[str, Number] = {}  # msgspec copies it for each document

    def result(self) -> Tool:
        """As the detector has it."""
        return Tool(self.version, self.options)


class PayloadDocument(Struct, frozen=True):
    """Payload of a connection each way."""

    up: WholeNumber
    down: WholeNumber


class PairingDocument(Struct, frozen=True):
    """How sure it is that both vantages show one connection, and why."""

    confidence: Share
    ground: str | None = None


class StretchDocument(Struct, frozen=True):
    """Which stretch of the path two captures cover."""

    one_place: bool = False
    client_hops_beyond: WholeNumber | None = None
    server_hops_beyond: WholeNumber | None = None
    client_round_trip_beyond_s: Finite | None = None
    server_round_trip_beyond_s: Finite | None = None
    hops_between: WholeNumber | None = None
    round_trip_between_s: Finite | None = None

    def result(self) -> Stretch:
        """As the detector has it."""
        return Stretch(**{name: getattr(self, name) for name in self.__struct_fields__})


class PairDocument(Struct, frozen=True):
    """The verdict on one connection."""

    vantages: Annotated[tuple[VantageDocument, ...], Meta(min_length=1, max_length=2)]
    verdict: Verdict
    probability: ProbabilityDocument
    reason: str
    evidence: tuple[EvidenceDocument, ...]
    packets: WholeNumber = 0
    payload_bytes: PayloadDocument = PayloadDocument(0, 0)
    duration_s: Finite = 0.0
    started: str | None = None
    pairing: PairingDocument = PairingDocument(1.0)
    mechanism: Mechanism | None = None
    stretch: StretchDocument | None = None

    def result(self) -> PairResult:
        """As the detector has it, without series."""
        return PairResult(
            vantages=tuple(item.result() for item in self.vantages),
            verdict=self.verdict,
            probability=self.probability.result(),
            reason=self.reason,
            evidence=tuple(item.result() for item in self.evidence),
            packets=self.packets,
            payload_bytes_up=self.payload_bytes.up,
            payload_bytes_down=self.payload_bytes.down,
            duration_s=self.duration_s,
            pairing_confidence=self.pairing.confidence,
            pairing_ground=self.pairing.ground or "",
            mechanism=self.mechanism,
            started_ns=None if self.started is None else time_of(self.started),
            stretch=None if self.stretch is None else self.stretch.result(),
        )


class HostDocument(Struct, frozen=True):
    """What one vantage point shows of one far host."""

    host: str
    connections: WholeNumber
    exchanges: WholeNumber
    verdict: Verdict
    probability: ProbabilityDocument
    where: SplitPlace | None = None
    near_round_trip_s: Finite | None = None
    hidden_round_trip_s: Finite | None = None
    hidden_round_trip_interval_s: tuple[Finite, Finite] | None = None
    reference_round_trip_s: Finite | None = None

    def result(self) -> HostResult:
        """As the detector has it."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return HostResult(**fields | {"probability": self.probability.result()})


class GroupDocument(Struct, frozen=True):
    """The verdict on the connections that one rule of the network governs."""

    side: GroupSide
    network: str
    port: WholeNumber
    hosts: tuple[str, ...]
    pairs: tuple[WholeNumber, ...]
    verdict: Verdict
    probability: ProbabilityDocument
    reason: str
    evidence: tuple[EvidenceDocument, ...]
    exchanges: WholeNumber | None = None
    mechanism: Mechanism | None = None
    where: SplitPlace | None = None
    near_round_trip_s: Finite | None = None
    hidden_round_trip_s: Finite | None = None
    hidden_round_trip_interval_s: tuple[Finite, Finite] | None = None
    by_host: tuple[HostDocument, ...] = ()

    def result(self) -> GroupResult:
        """As the detector has it."""
        return GroupResult(
            side=self.side,
            network=self.network,
            port=self.port,
            hosts=self.hosts,
            pairs=self.pairs,
            exchanges=self.exchanges,
            verdict=self.verdict,
            probability=self.probability.result(),
            mechanism=self.mechanism,
            where=self.where,
            near_round_trip_s=self.near_round_trip_s,
            hidden_round_trip_s=self.hidden_round_trip_s,
            hidden_round_trip_interval_s=self.hidden_round_trip_interval_s,
            reason=self.reason,
            evidence=tuple(item.result() for item in self.evidence),
            by_host=tuple(item.result() for item in self.by_host),
        )


class DetectDocument(Struct, frozen=True):
    """All of it; the number of the schema is looked at first."""

    captures: tuple[CaptureDocument, ...]
    pairs: tuple[PairDocument, ...]
    groups: tuple[GroupDocument, ...] = ()
    tool: ToolDocument | None = None


def read_document(document: object) -> DetectionResult:
    """Turn a parsed JSON document into a result without series; fields that are not known are passed over.

    Raises ReportError with one sentence that names the first place where the document is not what it must be.
    """
    if isinstance(document, Mapping):
        _check_schema(document)
    try:
        read = read_as(DetectDocument, document, ReportError)
    except ReportError as error:
        raise ReportError(f"this is no verdict that can be explained: {error}.") from None
    return DetectionResult(
        captures=tuple(item.result() for item in read.captures),
        pairs=tuple(item.result() for item in read.pairs),
        groups=tuple(item.result() for item in read.groups),
        tool=None if read.tool is None else read.tool.result(),
    )


def _check_schema(document: Mapping[str, object]) -> None:
    version = document.get("schema")
    if version not in SCHEMA_VERSIONS or isinstance(version, bool):
        what = "no 'schema' number" if version is None else f"schema {version!r}"
        raise ReportError(
            f"this is no verdict that can be explained: it has {what} where schema {SCHEMA_VERSIONS[-1]} is "
            "expected; give the output of 'pepscope detect --json'."
        )
    if "pairs" not in document and "connections" in document:
        raise ReportError(
            "this is the output of 'pepscope inspect --json', which holds no verdict; give that of 'pepscope detect "
            "--json'."
        )
