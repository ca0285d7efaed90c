"""Results with known content for the tests of the reports."""

from __future__ import annotations

import numpy as np

from pepscope.captures.packets import Direction
from pepscope.results.verdicts import (
    CaptureSummary,
    DetectionResult,
    Evidence,
    FloatArray,
    FlowSeries,
    GroupResult,
    GroupSeries,
    GroupSide,
    HostResult,
    Mechanism,
    Outcome,
    PairResult,
    SplitPlace,
    VantageName,
    Verdict,
)

REASON = "Only 4 of 1,998 segments arrive as they left, and half of the acknowledgements are early."
PROBABILITIES = {
    Verdict.REGULAR: {Verdict.REGULAR: 0.98, Verdict.SPLIT_TCP: 0.015, Verdict.TCP_PROXY: 0.005},
    Verdict.SPLIT_TCP: {Verdict.REGULAR: 0.001, Verdict.SPLIT_TCP: 0.96, Verdict.TCP_PROXY: 0.039},
    Verdict.TCP_PROXY: {Verdict.REGULAR: 0.001, Verdict.SPLIT_TCP: 0.019, Verdict.TCP_PROXY: 0.98},
    Verdict.INCONCLUSIVE: {Verdict.REGULAR: 0.5, Verdict.SPLIT_TCP: 0.3, Verdict.TCP_PROXY: 0.2},
}


def make_series(packets: int = 600, *, violations: int = 0, clock_offset_s: float = 5.0) -> FlowSeries:
    """One download: data 50 to 150 ms above the clock line, acknowledgements 50 ms below, the first few above."""
    at = np.linspace(0.0, 0.01 * (packets - 1), packets)
    queue: FloatArray = 0.05 + 0.05 * (1 + np.sin(at))
    offset = np.linspace(1448.0, 1448.0 * packets, packets)
    ack = np.full(packets, -0.05)
    ack[:violations] = 0.02
    empty = np.zeros(0)
    return FlowSeries(
        direction=Direction.DOWN,
        forward_time_s=at,
        forward_difference_s=clock_offset_s + queue,
        ack_time_s=at + 0.15,
        ack_difference_s=clock_offset_s + ack,
        ack_violates=ack > 0,
        line_offset_s=clock_offset_s,
        line_drift=0.0,
        sender_data_time_s=at,
        sender_data_offset=offset,
        sender_ack_time_s=at + 0.15,
        sender_ack_offset=offset,
        receiver_data_time_s=at + queue,
        receiver_data_offset=offset,
        receiver_ack_time_s=at + queue,
        receiver_ack_offset=offset,
        round_trip_time_s=queue + 0.05,
        round_trip_time_at_s=at + 0.15,
        sender_window_at_s=at,
        sender_window_bytes=np.where(np.arange(packets) % 50 < 25, 0.0, 65535.0),
        receiver_window_at_s=empty,
        receiver_window_bytes=empty,
        throughput_at_s=at[::10],
        throughput_bit_s=np.full(len(at[::10]), 1.2e6),
        one_way_delay_s=queue,
        in_flight_at_s=at,
        in_flight_bytes=np.minimum(offset, 65535.0),
        sent_again_at_s=at[::100],
        sent_again_offset=offset[::100],
    )


def make_pair(
    verdict: Verdict,
    *,
    client: str = "192.0.2.7:40001",
    server: str = "203.0.113.9:443",
    captures: tuple[str, ...] = ("mobile.pcap", "server.pcap"),
    payload_bytes: int = 2_500_000,
    reason: str = REASON,
    series: tuple[FlowSeries, ...] = (),
    evidence: tuple[Evidence, ...] | None = None,
) -> PairResult:
    if evidence is None:
        evidence = (
            Evidence(
                "identity",
                Outcome.INTACT if verdict is Verdict.REGULAR else Outcome.SPLIT,
                "segments",
                0.97,
                "Segments do not arrive as they left.",
                {"segments": 1998, "matched": 0.002, "slack_s": -0.5123, "rate_bit_s": 2_500_000.0},
                ("Both captures come from one host.",),
            ),
            Evidence("delayed_ack", Outcome.INAPPLICABLE, "no_delay", 0.0, "No delay was put on acknowledgements."),
        )
    return PairResult(
        vantages=tuple(VantageName(capture, client, server) for capture in captures),
        verdict=verdict,
        probability=PROBABILITIES[verdict],
        reason=reason,
        evidence=evidence,
        packets=4000,
        payload_bytes_up=120,
        payload_bytes_down=payload_bytes,
        duration_s=11.25,
        series=series,
    )


def make_group(verdict: Verdict, *pairs: int, network: str = "192.0.2.0/24", reason: str = REASON) -> GroupResult:
    split = verdict in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
    return GroupResult(
        side=GroupSide.BOTH,
        network=network,
        port=443,
        hosts=("203.0.113.9",),
        pairs=pairs,
        exchanges=None,
        verdict=verdict,
        probability=PROBABILITIES[verdict],
        mechanism=Mechanism.RELAY if split else Mechanism.UNDECIDED,
        where=SplitPlace.NETWORK if split else None,
        near_round_trip_s=0.041,
        hidden_round_trip_s=0.0153 if split else None,
        hidden_round_trip_interval_s=None,
        reason=reason,
        evidence=make_pair(verdict).evidence,
    )


def make_vantage_group(
    verdict: Verdict,
    *pairs: int,
    network: str = "192.0.2.0/24",
    side: GroupSide = GroupSide.CLIENT,
    where: SplitPlace | None = SplitPlace.NETWORK,
    hosts: int = 3,
    exchanges: int = 60,
    series: bool = False,
) -> GroupResult:
    """A group that one capture holds, with far hosts 10, 20, ... ms behind a split point at 40 ms."""
    split = verdict.is_split
    by_host = tuple(
        HostResult(
            host=f"203.0.113.{number + 1}",
            connections=2,
            exchanges=exchanges // hosts,
            verdict=verdict,
            probability=PROBABILITIES[verdict],
            where=where if split else None,
            near_round_trip_s=0.04,
            hidden_round_trip_s=0.01 * (number + 1) if split else None,
            hidden_round_trip_interval_s=(0.008, 0.05) if split else None,
            reference_round_trip_s=0.04 + 0.01 * (number + 1),
        )
        for number in range(hosts)
    )
    return GroupResult(
        side=side,
        network=network,
        port=443,
        hosts=tuple(host.host for host in by_host),
        pairs=pairs,
        exchanges=exchanges,
        verdict=verdict,
        probability=PROBABILITIES[verdict],
        mechanism=Mechanism.UNDECIDED if split else None,
        where=where if split else None,
        near_round_trip_s=0.04,
        hidden_round_trip_s=0.02 if split else None,
        hidden_round_trip_interval_s=(0.008, 0.05) if split else None,
        reason=REASON,
        evidence=make_pair(verdict).evidence,
        by_host=by_host,
        series=make_group_series(hosts, exchanges) if series else None,
    )


def make_group_series(hosts: int = 3, exchanges: int = 60) -> GroupSeries:
    """Exchanges of hosts 10, 20, ... ms behind a split point at 40 ms; the second half of all are not kept."""
    host = np.arange(exchanges) % hosts
    each = np.arange(hosts)
    return GroupSeries(
        exchange_host=host,
        exchange_kind=tuple("tls-hello" if number % 4 == 0 else "tls-data" for number in range(exchanges)),
        exchange_s=np.asarray(0.041 + 0.01 * (host + 1), np.float64),
        exchange_transport_s=np.full(exchanges, 0.04),
        exchange_count=2 * exchanges,
        handshake_host=each,
        handshake_s=np.full(hosts, 0.041),
        handshake_count=hosts,
        reference_host=np.repeat(each, 2),
        reference_kind=("icmp-echo", "quic-initial") * hosts,
        reference_s=np.asarray(0.04 + 0.01 * (np.repeat(each, 2) + 1), np.float64),
        reference_count=2 * hosts,
    )


def make_result(
    *pairs: PairResult, warnings: tuple[str, ...] = (), groups: tuple[GroupResult, ...] = ()
) -> DetectionResult:
    return DetectionResult(
        (CaptureSummary("mobile.pcap", 2000, 1, warnings), CaptureSummary("server.pcap", 2000, 1)), pairs, groups
    )
