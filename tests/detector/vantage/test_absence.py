"""Connections that one of two captures lacks: what detect makes of it, from files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import pepscope
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import DetectionResult, Evidence, Outcome, PairResult, Verdict
from tests.captures.containers import LINK_ETHERNET, LINK_RAW, CaptureFile, Frame, read_capture, write_pcap
from tests.captures.conversation import START_NS, Conversation, Endpoint, stream
from tests.captures.layers import ethernet
from tests.detector.corpus import CORPUS

SECOND = 1_000_000_000
SERVER = Endpoint("192.0.2.80", 80, 5_000_000)
REQUEST = b"GET /object HTTP/1.1\r\nHost: server.example\r\nAccept: */*\r\n\r\n"
ANSWER_BYTES = 60_000
ARP = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + bytes(46)
#: One way, and by how much the server's clock is ahead.
DELAY_NS, AHEAD_NS = 30_000_000, 7 * SECOND


def download(port: int, start_s: float) -> list[tuple[Frame, Direction]]:
    """One download as the client's capture sees it."""
    client = Endpoint("10.0.0.1", port, 1_000_000 * (port % 100))
    talk = Conversation(client, SERVER, START_NS + round(start_s * SECOND)).handshake(60)
    talk.wait(1).send(Direction.UP, 0, 0, REQUEST).wait(61)
    for offset in range(0, ANSWER_BYTES, 1200):
        talk.send(Direction.DOWN, offset, len(REQUEST), stream(offset, 1200)).wait(0.1)
        talk.send(Direction.UP, len(REQUEST), offset + 1200).wait(1)
    talk.close(len(REQUEST), ANSWER_BYTES)
    frames = [Frame(segment.time_ns, segment.packet()) for segment in talk.segments]
    return list(zip(frames, talk.directions, strict=True))


def as_at_server(frames: list[tuple[Frame, Direction]]) -> list[Frame]:
    """The same packets at the server, three routers away."""
    moved = [
        replace(
            frame,
            time_ns=frame.time_ns + AHEAD_NS + (DELAY_NS if way is Direction.UP else -DELAY_NS),
            data=with_hops(frame.data, 3) if way is Direction.UP else frame.data,
        )
        for frame, way in frames
    ]
    return sorted(moved, key=lambda frame: frame.time_ns)


def with_hops(packet: bytes, hops: int) -> bytes:
    return packet[:8] + bytes([packet[8] - hops]) + packet[9:]


def as_at_client(frames: list[tuple[Frame, Direction]]) -> list[Frame]:
    return [replace(f, data=with_hops(f.data, 3) if way is Direction.DOWN else f.data) for f, way in frames]


def detect(tmp_path: Path, client: list[Frame], server: list[Frame], link: int = LINK_RAW) -> DetectionResult:
    for name, frames in (("client", client), ("server", server)):
        (tmp_path / f"{name}.pcap").write_bytes(write_pcap(frames, link))
    return pepscope.detect(str(tmp_path / "client.pcap"), str(tmp_path / "server.pcap"))


def content(pair: PairResult) -> Evidence:
    (found,) = (item for item in pair.evidence if item.method == "content")
    return found


FIRST, SECOND_ONE = download(40_001, 0), download(40_002, 600)


def test_equal_downloads_and_a_server_capture_that_ended_between_are_no_cache(tmp_path: Path) -> None:
    """The server's capture begins after the first handshake and ends before the second download."""
    late = [frame for frame in as_at_server(FIRST) if frame.time_ns > START_NS + AHEAD_NS + SECOND // 10]
    result = detect(tmp_path, as_at_client(FIRST + SECOND_ONE), late)
    first, second = result.pairs
    assert first.verdict is Verdict.REGULAR
    assert second.verdict is Verdict.INCONCLUSIVE
    assert "The other capture ran from 2023-11-14 22:13:2" in second.reason
    assert "before the beginning of this connection" in second.reason


def cached(keep: bytes = b"") -> tuple[CaptureFile, CaptureFile]:
    """A real cache's captures, client's and server's, the server's with a packet that shows that it ran on."""
    client, server = (read_capture(CORPUS / f"prx_ngx_cache.{end}.pcap.gz") for end in ("mob", "srv"))
    if not keep:
        return client, server
    frames = [replace(f, data=ethernet(f.data), original_length=f.wire_length + 14) for f in server.frames]
    end = Frame(client.frames[-1].time_ns + SECOND, keep)
    return client, CaptureFile(LINK_ETHERNET, [*frames, end])


def written(tmp_path: Path, client: CaptureFile, server: CaptureFile) -> tuple[str, str]:
    paths = []
    for name, capture in (("client", client), ("server", server)):
        (tmp_path / f"{name}.pcap").write_bytes(write_pcap(capture.frames, capture.link_type))
        paths.append(str(tmp_path / f"{name}.pcap"))
    return paths[0], paths[1]


def alone(result: DetectionResult) -> PairResult:
    (pair,) = (pair for pair in result.pairs if len(pair.vantages) == 1)
    return pair


def test_a_packet_of_any_kind_proves_that_the_servers_capture_ran_on(tmp_path: Path) -> None:
    paths = written(tmp_path, *cached(ARP))
    pair = alone(pepscope.detect(*paths))
    assert pair.verdict is Verdict.TCP_PROXY
    found = content(pair)
    assert (found.finding, found.numbers["server_capture_watched"]) == ("served-from-cache", True)
    # A filter may remove what shows that it ran on, but not that it ran; what else it removed is not known.
    filtered = content(alone(pepscope.detect(*paths, filter="tcp port 80")))
    assert "the filter removed 1 packets" in " ".join((filtered.summary, *filtered.caveats))


def test_a_cache_that_answers_sooner_than_the_server_could_is_found_without_that(tmp_path: Path) -> None:
    found = content(alone(pepscope.detect(*written(tmp_path, *cached()))))
    assert (found.finding, found.numbers["server_capture_watched"]) == ("served-from-cache", False)


@pytest.mark.parametrize("slower_ms", [40, 400])
def test_a_later_answer_is_no_sign_of_a_cache(tmp_path: Path, slower_ms: int) -> None:
    client, server = cached()
    pause = next(
        at for at, (one, two) in enumerate(zip(client.frames, client.frames[1:], strict=False))
        if two.time_ns - one.time_ns > 2 * SECOND
    )  # fmt: skip
    # The second connection's first five packets are its handshake, the request and the acknowledgement of that.
    tail = [replace(frame, time_ns=frame.time_ns + slower_ms * 1_000_000) for frame in client.frames[pause + 6 :]]
    late = CaptureFile(client.link_type, [*client.frames[: pause + 6], *tail])
    pair = alone(pepscope.detect(*written(tmp_path, late, server)))
    assert (pair.verdict, content(pair).outcome) == (Verdict.INCONCLUSIVE, Outcome.INAPPLICABLE)
    assert "before the beginning of this connection" in pair.reason
