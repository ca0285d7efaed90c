"""SYNs of another system than clients name, as evidence of groups that no verdict rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from detector.detection import detect
from detector.one_capture.reasons.findings import NamedSystemFinding
from pepscope.captures.packets import Direction, TcpFlag
from pepscope.results.verdicts import GroupResult, Outcome
from tests.captures.containers import LINK_RAW, Frame, write_pcap
from tests.captures.conversation import START_NS, Conversation, Endpoint
from tests.detector.one_capture.senders.test_named_systems import SAFARI, hello, request

#: Hop limit with which SYNs without timestamps are those of Windows.
WINDOWS = 120
WINDOWS_AGENT = b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36"
MACOS_AGENT = b"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#: A ServerHello of TLS 1.3 without extensions (RFC 8446, section 4.1.3).
SERVER_HELLO = b"\x16\x03\x03\x00\x2c\x02\x00\x00\x28\x03\x03" + bytes(range(32)) + b"\x00\x13\x01\x00\x00\x00"


def talk(number: int, opening: bytes, *, later_hop_limit: int = WINDOWS) -> Conversation:
    """A connection that Windows opens as a capture at the server shows it, 40 ms from its client."""
    address = f"198.51.100.{10 + number}"
    client = Endpoint(address, 40_000 + number, 1000 * number, timestamps=False, ttl=WINDOWS)
    talking = Conversation(client, Endpoint("192.0.2.80", 80, 77), START_NS + number * 1_000_000_000)
    talking.send(Direction.UP, -1, None, flags=TcpFlag.SYN, window=64_240).wait(0.1)
    talking.send(Direction.DOWN, -1, 0, flags=TcpFlag.SYN, window=65_160).wait(40)
    talking.client = replace(client, ttl=later_hop_limit)
    talking.send(Direction.UP, 0, 0).wait(0.5).send(Direction.UP, 0, 0, opening).wait(0.1)
    answer = SERVER_HELLO if opening.startswith(b"\x16") else PAGE
    return talking.send(Direction.DOWN, 0, len(opening), answer).wait(40).close(len(opening), len(answer))


def judged(directory: Path, talks: Sequence[Conversation]) -> GroupResult:
    """The group of these connections."""
    segments = sorted((each for made in talks for each in made.segments), key=lambda segment: segment.time_ns)
    frames = [Frame(each.time_ns, each.packet()) for each in segments]
    (directory / "made.pcap").write_bytes(write_pcap(frames, LINK_RAW))
    (group,) = detect(str(directory / "made.pcap"), taken_at="server").groups
    return group


def shown(directory: Path, talks: Sequence[Conversation]) -> list[str]:
    """What is said of them."""
    found = [each for each in judged(directory, talks).evidence if each.finding in list(NamedSystemFinding)]
    assert all(each.outcome is Outcome.SPLIT for each in found)
    return [each.summary for each in found]


@pytest.mark.parametrize("opening", [request(MACOS_AGENT), hello(SAFARI)], ids=["agent", "hello"])
def test_syns_of_another_system_than_clients_name_are_shown(tmp_path: Path, opening: bytes) -> None:
    (said,) = shown(tmp_path, [talk(number, opening) for number in range(3)])
    assert said.startswith("The clients of 3 of 3 connections name macOS or iOS as their system")
    assert "but their SYNs are of Windows" in said


def test_nothing_is_shown_of_clients_whose_own_stack_it_is(tmp_path: Path) -> None:
    assert shown(tmp_path, [talk(number, request(WINDOWS_AGENT)) for number in range(3)]) == []


def test_nothing_is_shown_of_clients_that_name_no_system(tmp_path: Path) -> None:
    assert shown(tmp_path, [talk(number, request(b"curl/8.5.0")) for number in range(3)]) == []


def test_one_client_in_disguise_is_no_sign(tmp_path: Path) -> None:
    others = [talk(number, request(WINDOWS_AGENT)) for number in range(3)]
    assert shown(tmp_path, [*others, talk(3, request(MACOS_AGENT))]) == []
    assert shown(tmp_path, [talk(0, request(MACOS_AGENT))]) == []


def test_syns_that_a_box_makes_for_clients_are_left_out(tmp_path: Path) -> None:
    """The hop limit tells a SYN proxy, whose SYNs are no split point's."""
    assert shown(tmp_path, [talk(number, request(MACOS_AGENT), later_hop_limit=50) for number in range(3)]) == []


def test_no_verdict_rests_on_it(tmp_path: Path) -> None:
    named, silent = (
        judged(tmp_path, [talk(number, request(agent)) for number in range(6)])
        for agent in (MACOS_AGENT, b"x" * len(MACOS_AGENT))
    )
    assert len(named.evidence) > len(silent.evidence)
    assert (named.verdict, named.probability, named.reason) == (silent.verdict, silent.probability, silent.reason)
