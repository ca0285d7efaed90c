"""Transfers of equal content behind a middlebox that renumbers them, paired by the packets that they share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detector.detection import detect
from detector.pairing import packet_sketch
from detector.pairing.match import Ground, Match
from detector.pairing.matching import Matcher
from detector.pairing.packet_sketch import shared_packets
from pepscope.captures.capture import Capture, open_capture
from pepscope.captures.packets import Direction, TcpFlag
from pepscope.results.verdicts import Verdict
from tests.captures import containers
from tests.captures.containers import Frame
from tests.captures.conversation import MILLISECOND_NS, START_NS, Conversation, Endpoint, stream
from tests.captures.segments import Segment

SERVER = "192.0.2.80"
REQUEST = b"GET /picture HTTP/1.1\r\nHost: server.example\r\n\r\n"
Change = Callable[[Segment, int], Segment]


def transfer(number: int, *, start_ms: float, segments: int = 12, stamps: bool = True, seed: int = 0) -> Conversation:
    """One download, as its client sees it; all have the same content, and the ACKs depend on the number."""
    chance = random.Random(1000 * seed + number)
    talk = Conversation(
        Endpoint("10.0.0.1", 40_000 + number, chance.getrandbits(32), timestamps=stamps),
        Endpoint(SERVER, 80, chance.getrandbits(32), timestamps=stamps, ttl=57),
        START_NS + round(start_ms * MILLISECOND_NS),
        _ip_id=[chance.getrandbits(16), chance.getrandbits(16)],
    ).handshake(20)
    talk.send(Direction.UP, 0, 0, REQUEST, TcpFlag.PSH).wait(20)
    for place in range(segments):
        talk.wait(chance.uniform(0.5, 3)).send(Direction.DOWN, 1400 * place, len(REQUEST), stream(1400 * place, 1400))
        if place % 2 or chance.random() < 0.3:
            talk.wait(0.2).send(Direction.UP, len(REQUEST), 1400 * place + 1400, window=500 + chance.randrange(50))
    return talk.close(len(REQUEST), 1400 * segments)


def renumbered(seed: int) -> Change:
    """A NAT with ports of its own and a firewall that shifts sequence numbers, each connection by its own amount."""
    shifts: dict[int, tuple[int, int, int]] = {}
    chance = random.Random(seed)

    def change(segment: Segment, number: int) -> Segment:
        if number not in shifts:
            shifts[number] = (20_000 + 100 * number + seed, chance.getrandbits(32), chance.getrandbits(32))
        port, up, down = shifts[number]
        if segment.source == SERVER:
            up, down = down, up
            moved = replace(segment, destination="203.0.113.9", destination_port=port)
        else:
            moved = replace(segment, source="203.0.113.9", source_port=port)
        acknowledged = segment.acknowledgement + down if segment.flags & TcpFlag.ACK else 0
        return replace(moved, sequence=segment.sequence + up & 0xFFFFFFFF, acknowledgement=acknowledged & 0xFFFFFFFF)

    return change


def at_server(segment: Segment, _: int = 0) -> Segment:
    """Ten milliseconds away from the client, and hops."""
    later = -10 if segment.source == SERVER else 10
    return replace(segment, time_ns=segment.time_ns + later * MILLISECOND_NS, ttl=segment.ttl - 3)


def write(
    path: Path, talks: Iterable[Conversation], *changes: Change, keep: Callable[[Segment], bool] = lambda _: True
) -> Path:
    """A capture of the conversations, each segment changed, those that `keep` leaves."""
    changed = []
    for number, talk in enumerate(talks):
        for segment in talk.segments:
            for change in changes:
                segment = change(segment, number)
            changed.append(segment)
    changed.sort(key=lambda segment: segment.time_ns)
    frames = [Frame(segment.time_ns, segment.packet()) for segment in changed if keep(segment)]
    path.write_bytes(containers.write_pcap(frames, containers.LINK_RAW))
    return path


def captures(client: Path, server: Path) -> tuple[Capture, Capture]:
    return open_capture(str(client)), open_capture(str(server))


def starts(first: Capture, second: Capture, matches: Iterable[Match]) -> set[tuple[int, int]]:
    """The matches by the client ports that each capture shows."""
    return {
        (first.connections[match.first].client_port, second.connections[match.second].client_port)
        for match in matches
        if match.first is not None and match.second is not None
    }


@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize("late_ms", [None, 60])
def test_equal_transfers_behind_other_numbers_are_regular(tmp_path: Path, stamps: bool, late_ms: int | None) -> None:
    talks = [transfer(number, start_ms=3 * number, segments=40, stamps=stamps) for number in range(6)]
    keep = (lambda s: s.time_ns > START_NS + late_ms * MILLISECOND_NS) if late_ms else (lambda _: True)
    client = write(tmp_path / "client", talks, keep=keep)
    server = write(tmp_path / "server", talks, at_server, renumbered(7), keep=keep)
    result = detect(str(client), str(server))
    assert [pair.pairing_ground for pair in result.pairs] == [Ground.PACKETS] * 6
    assert {pair.verdict for pair in result.pairs} <= {Verdict.REGULAR, Verdict.INCONCLUSIVE}
    if stamps:
        assert {pair.verdict for pair in result.pairs} == {Verdict.REGULAR}
    for pair in result.pairs:
        one, two = (vantage.client.rpartition(":")[2] for vantage in pair.vantages)
        assert int(two) == 20_007 + 100 * (int(one) - 40_000)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.floats(0.0, 0.3),
    st.integers(0, 1000),
)
def test_neither_argument_nor_connection_order_changes_the_pairs(
    tmp_path: Path, begins: list[int], stamps: bool, marked: bool, lost: float, seed: int
) -> None:
    """With packets that tell and without, with losses, whichever capture comes first."""
    talks = [transfer(n, start_ms=begin, stamps=stamps, seed=seed) for n, begin in enumerate(begins)]
    blank: Change = lambda segment, _: segment if marked else replace(segment, ip_id=0)  # noqa: E731
    chance = random.Random(seed)
    keep = lambda _: chance.random() >= lost  # noqa: E731
    client = write(tmp_path / "client", talks, blank, keep=keep)
    server = write(tmp_path / "server", talks, at_server, renumbered(seed), blank, keep=keep)
    first, second = captures(client, server)
    forth = Matcher(first, second).run()
    back = Matcher(second, first).run()
    assert starts(first, second, forth) == {(a, b) for b, a in starts(second, first, back)}
    grounds = {(m.first, m.second): m.ground for m in forth}
    assert {(m.second, m.first): m.ground for m in back} == grounds
    if marked and lost == 0.0:
        assert starts(first, second, forth) == {(40_000 + n, 20_000 + 100 * n + seed) for n in range(len(begins))}


def test_packets_are_shared_at_any_clock_offset(tmp_path: Path) -> None:
    talks = [transfer(0, start_ms=0)]
    hour: Change = lambda segment, _: replace(segment, time_ns=segment.time_ns + 3600 * 10**9)  # noqa: E731
    client, server = write(tmp_path / "client", talks), write(tmp_path / "server", talks, renumbered(3), hour)
    (match,) = Matcher(*captures(client, server)).run()
    assert match.ground is Ground.PACKETS


def test_a_relay_with_one_clock_for_both_legs_shares_no_packets(tmp_path: Path) -> None:
    """The stamps agree wherever a segment is relayed within a millisecond; the IP IDs do not."""
    talks = [transfer(number, start_ms=2 * number) for number in range(4)]
    legs = [transfer(number, start_ms=2 * number + 0.4, seed=9) for number in range(4)]
    client, server = write(tmp_path / "client", talks), write(tmp_path / "server", legs, renumbered(5))
    first, second = captures(client, server)
    ones, twos = (dict(enumerate(capture.connections)) for capture in (first, second))
    found = shared_packets(first, second, ones, twos)
    assert len(ones) == len(twos) == 4
    assert [pair for pair in found if pair.first != pair.second] == []


def test_keys_of_two_forms_made_at_once_are_those_made_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = [transfer(number, start_ms=3 * number, segments=40) for number in range(6)]
    client = write(tmp_path / "client", talks)
    server = write(tmp_path / "server", talks, renumbered(3), _other_ip_ids, at_server)
    first, second = captures(client, server)
    ones, twos = ({each.id: each for each in capture.connections} for capture in (first, second))
    at_once = shared_packets(first, second, ones, twos)
    monkeypatch.setattr(packet_sketch, "MOST_KEPT", 0)
    assert at_once == shared_packets(first, second, ones, twos)
    assert len(at_once) == len(talks)


def _other_ip_ids(segment: Segment, _: int) -> Segment:
    """A middlebox that gives IP IDs of its own."""
    return replace(segment, ip_id=(segment.ip_id * 7 + 11) & 0xFFFF)


def test_a_lost_answer_to_the_syn_leaves_the_clients_number(tmp_path: Path) -> None:
    syn = Conversation(Endpoint("10.0.0.1", 40_000, 77), Endpoint(SERVER, 80, 99)).send(
        Direction.UP, -1, None, flags=TcpFlag.SYN
    )
    answered = Conversation(Endpoint("10.0.0.1", 40_000, 77), Endpoint(SERVER, 80, 99)).handshake(20)
    behind_nat: Change = lambda segment, _: (  # noqa: E731
        replace(segment, destination="203.0.113.9")
        if segment.source == SERVER
        else replace(segment, source="203.0.113.9")
    )
    no_ack = lambda s: bool(s.flags & TcpFlag.SYN)  # noqa: E731
    first, second = captures(
        write(tmp_path / "client", [syn]), write(tmp_path / "server", [answered], at_server, behind_nat, keep=no_ack)
    )
    (match,) = Matcher(first, second).run()
    assert (match.first, match.second, match.ground) == (0, 0, Ground.SEQUENCE_NUMBERS)


def test_indistinguishable_equal_transfers_get_no_split_verdict(tmp_path: Path) -> None:
    """Without stamps and IP IDs the best pairing may be crosswise; then the rivals decide that nothing is decided."""
    talks = [transfer(number, start_ms=0.2 * number, stamps=False) for number in range(5)]
    blank: Change = lambda segment, _: replace(segment, ip_id=0)  # noqa: E731
    client = write(tmp_path / "client", talks, blank)
    server = write(tmp_path / "server", talks[::-1], at_server, renumbered(11), blank)
    result = detect(str(client), str(server))
    assert len(result.pairs) == 5
    assert {pair.verdict for pair in result.pairs} <= {Verdict.REGULAR, Verdict.INCONCLUSIVE}


def test_captures_that_do_not_overlap_hold_no_transfer_in_common(tmp_path: Path) -> None:
    """The server's capture ends before the client's begins: equal content is the same object, fetched again."""
    talks = [transfer(number, start_ms=400 * number) for number in range(8)]
    middle = START_NS + 1500 * MILLISECOND_NS
    client = write(tmp_path / "client", talks, keep=lambda segment: segment.time_ns > middle)
    server = write(tmp_path / "server", talks, at_server, renumbered(2), keep=lambda segment: segment.time_ns < middle)
    result = detect(str(client), str(server))
    assert {pair.verdict for pair in result.pairs} == {Verdict.INCONCLUSIVE}
