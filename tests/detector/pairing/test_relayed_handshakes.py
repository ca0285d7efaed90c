"""Many tiny connections through a transparent proxy, as on mobile networks: some reach the server, some never do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import pepscope
from detector.pairing.match import Ground
from pepscope.captures.packets import Direction, TcpFlag
from pepscope.results.verdicts import DetectionResult, GroupSide, Mechanism, PairResult, Verdict
from tests.captures.containers import LINK_RAW, Frame, write_pcap
from tests.captures.conversation import START_NS, Conversation, Endpoint

SECOND = 1_000_000_000
SERVER = "192.0.2.80"
#: The server's clock is behind by this much: more than most connections last.
BEHIND_NS = 2 * SECOND
NEAR_MS, FAR_MS = 400.0, 90.0
STARTS_S = (0.0, 1.1, 4.9, 6.6, 11.2, 12.5, 17.3)


@dataclass(frozen=True)
class Flow:
    """One connection of the client: when it starts, and whether it sends data (else it aborts after the SYN-ACK)."""

    start_s: float
    port: int
    asks: bool = True


FLOWS = [Flow(start, 40_001 + at) for at, start in enumerate(STARTS_S)]
UNFINISHED = [Flow(start, 50_001 + at, asks=False) for at, start in enumerate((2.6, 3.3, 8.1, 9.4))]


def plain(address: str, port: int, number: int) -> Endpoint:
    """A socket that offers no options but a segment size."""
    return Endpoint(address, port, number, window_scale=None, sack_permitted=False, timestamps=False)


def exchange(talk: Conversation, round_trip_ms: float) -> Conversation:
    talk.handshake(round_trip_ms).wait(1).send(Direction.UP, 0, 0, b"HELLO", TcpFlag.PSH)
    talk.wait(round_trip_ms).send(Direction.DOWN, 0, 5, b"OLLEH", TcpFlag.PSH)
    return talk.wait(0.1).send(Direction.UP, 5, 5).close(5, 5)


def at_client(flow: Flow) -> Conversation:
    chance = random.Random(flow.port)
    ends = plain("10.0.0.1", flow.port, chance.getrandbits(32)), plain(SERVER, 80, chance.getrandbits(32))
    talk = Conversation(*ends, START_NS + round(flow.start_s * SECOND))
    if flow.asks:
        return exchange(talk, NEAR_MS)
    talk.send(Direction.UP, -1, None, flags=TcpFlag.SYN).wait(NEAR_MS)
    talk.send(Direction.DOWN, -1, 0, flags=TcpFlag.SYN).wait(1)
    return talk.send(Direction.UP, 0, None, flags=TcpFlag.RST)


def at_server(flow: Flow) -> Conversation:
    """What the proxy makes of it: a connection of its own, with its own options, numbers and port."""
    chance = random.Random(-flow.port)
    proxy = Endpoint("198.51.100.7", chance.randrange(32_768, 60_999), chance.getrandbits(32), ttl=51)
    late_ns = round((NEAR_MS + chance.uniform(10, 60)) * 1e6) - BEHIND_NS
    server = Endpoint(SERVER, 80, chance.getrandbits(32))
    counters = [chance.getrandbits(15), chance.getrandbits(15)]
    talk = Conversation(proxy, server, START_NS + round(flow.start_s * SECOND) + late_ns, _ip_id=counters)
    talk.send(Direction.UP, -1, None, flags=TcpFlag.SYN, window=32_850).wait(0.1)
    talk.send(Direction.DOWN, -1, 0, flags=TcpFlag.SYN, window=65_160).wait(FAR_MS)
    talk.send(Direction.UP, 0, 0).wait(1).send(Direction.UP, 0, 0, b"HELLO", TcpFlag.PSH)
    talk.wait(0.1).send(Direction.DOWN, 0, 5, b"OLLEH", TcpFlag.PSH).wait(FAR_MS).send(Direction.UP, 5, 5)
    return talk.close(5, 5)


def passed_on(talk: Conversation) -> Conversation:
    """The client's own packets at the server, half the round trip away."""
    half_ns = round(NEAR_MS / 2 * 1e6)
    ways = zip(talk.segments, talk.directions, strict=True)
    moved = [replace(one, time_ns=one.time_ns + (half_ns if way is Direction.UP else -half_ns)) for one, way in ways]
    return replace(talk, segments=moved)


def frames(talks: Sequence[Conversation]) -> list[Frame]:
    found = [Frame(segment.time_ns, segment.packet()) for talk in talks for segment in talk.segments]
    return sorted(found, key=lambda frame: frame.time_ns)


def detect(tmp_path: Path, near: Sequence[Conversation], far: Sequence[Conversation]) -> DetectionResult:
    for name, talks in (("client", near), ("server", far)):
        (tmp_path / f"{name}.pcap").write_bytes(write_pcap(frames(talks), LINK_RAW))
    return pepscope.detect(str(tmp_path / "client.pcap"), str(tmp_path / "server.pcap"))


def in_both(result: DetectionResult) -> list[PairResult]:
    return [pair for pair in result.pairs if len(pair.vantages) == 2]


def findings(pair: PairResult) -> set[str]:
    return {item.finding for item in pair.evidence}


def test_equal_lengths_and_one_rhythm_make_pairs_and_the_handshake_decides(tmp_path: Path) -> None:
    result = detect(tmp_path, [at_client(flow) for flow in FLOWS], [at_server(flow) for flow in FLOWS])
    assert [pair.verdict for pair in in_both(result)] == [Verdict.SPLIT_TCP] * len(FLOWS)
    assert {pair.pairing_ground for pair in result.pairs} == {Ground.LENGTHS_AND_STARTS}
    near = [pair.vantages[0].client for pair in result.pairs]
    assert near == [f"10.0.0.1:{flow.port}" for flow in FLOWS]


def drawn_flows(count: int, draw: int) -> list[Flow]:
    """Connections that start at random, three seconds apart in the mean."""
    chance = random.Random(f"{count}/{draw}")
    starts = [0.0]
    while len(starts) < count:
        starts.append(starts[-1] + 0.3 + chance.expovariate(1 / 3))
    return [Flow(start, 40_001 + place) for place, start in enumerate(starts)]


@pytest.mark.parametrize(("count", "is_judged"), [(2, False), (4, True), (6, True)])
@pytest.mark.parametrize("draw", range(3))
def test_four_tiny_connections_at_one_offset_suffice_and_two_do_not(
    tmp_path: Path, count: int, is_judged: bool, draw: int
) -> None:
    flows = drawn_flows(count, draw)
    found = in_both(detect(tmp_path, [at_client(flow) for flow in flows], [at_server(flow) for flow in flows]))
    assert len(found) == count
    assert {pair.verdict for pair in found} == {Verdict.SPLIT_TCP if is_judged else Verdict.INCONCLUSIVE}


def test_two_runs_that_have_only_sizes_in_common_are_not_judged(tmp_path: Path) -> None:
    others = [
        replace(flow, start_s=start) for flow, start in zip(FLOWS, (0.4, 3.0, 4.2, 8.8, 9.9, 14.5, 15), strict=True)
    ]
    result = detect(tmp_path, [at_client(flow) for flow in FLOWS], [at_server(flow) for flow in others])
    assert {pair.verdict for pair in result.pairs} == {Verdict.INCONCLUSIVE}


def test_an_answer_to_a_syn_that_never_came_is_the_boxs_that_splits_the_others(tmp_path: Path) -> None:
    near = [at_client(flow) for flow in (*FLOWS, *UNFINISHED)]
    result = detect(tmp_path, near, [at_server(flow) for flow in FLOWS])
    alone = [pair for pair in result.pairs if len(pair.vantages) == 1]
    assert len(alone) == len(UNFINISHED)
    assert all("answered-without-server" in findings(pair) for pair in alone)
    assert {pair.verdict for pair in alone} == {Verdict.SPLIT_TCP}
    assert {pair.mechanism for pair in alone} == {Mechanism.UNDECIDED}
    (group,) = (group for group in result.groups if group.side is GroupSide.CLIENT)
    assert group.verdict is Verdict.SPLIT_TCP


def test_where_others_arrive_whole_another_machine_may_have_answered(tmp_path: Path) -> None:
    """A server of several machines, of which one was captured."""
    talks = [at_client(flow) for flow in FLOWS]
    result = detect(tmp_path, [*talks, *map(at_client, UNFINISHED)], [passed_on(talk) for talk in talks])
    assert all("same-data" in findings(pair) for pair in in_both(result))
    alone = [pair for pair in result.pairs if len(pair.vantages) == 1]
    assert {pair.verdict for pair in alone} == {Verdict.INCONCLUSIVE}


def test_an_answer_after_the_servers_capture_may_have_ended_is_no_finding(tmp_path: Path) -> None:
    late = Flow(STARTS_S[-1] + 8, 60_001, asks=False)
    near = [at_client(flow) for flow in (*FLOWS, late)]
    result = detect(tmp_path, near, [at_server(flow) for flow in FLOWS])
    (alone,) = (pair for pair in result.pairs if len(pair.vantages) == 1)
    assert alone.verdict is Verdict.INCONCLUSIVE
