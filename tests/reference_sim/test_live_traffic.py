"""What applications do on live paths, between two sockets of this machine; none of this needs root."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pepscope.errors import ScenarioError
from reference_sim.live_path import http_pages
from reference_sim.live_path.flow_side import End, GivenUpError, Side, TimeIsUpError
from reference_sim.live_path.socket_series import SocketSampler, tcp_info, tcp_totals
from reference_sim.live_path.traffic import live_flows
from reference_sim.live_path.voice import frames
from reference_sim.scenario import Scenario

MANNER = {
    "reads_byte_s": None, "read_chunk_bytes": 16_384, "pauses": (), "aborts_after_s": None, "aborts_after_bytes": None,
}  # fmt: skip


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as one:
        other, _ = listener.accept()
        with other:
            yield one, other


def side(connection: socket.socket, until_s: float = 10.0, **manner: Any) -> Side:
    started = time.monotonic()
    return Side(connection, End(), {**MANNER, **manner}, lambda: time.monotonic() - started, until_s, threading.Event())


def scenario(*traffic: dict[str, Any]) -> Scenario:
    return Scenario.from_mapping({"name": "live", "duration_s": 1, "path": [{"kind": "wired"}], "traffic": traffic})


def test_pages_are_asked_for_and_answered(ends: tuple[socket.socket, socket.socket]) -> None:
    client, server = side(ends[0]), side(ends[1])
    asked = []

    def answer(path: str) -> memoryview:
        asked.append(path)
        return memoryview(b"x" * 50_000)

    serving = threading.Thread(target=http_pages.serve, args=(server, answer))
    serving.start()
    entry = {"pages": 3, "request_bytes": 300, "think_time_mean_s": 0.0}
    http_pages.fetch_pages(client, entry, "203.0.113.10", "/content-0", random.Random(1))
    client.read_all()
    serving.join()
    assert asked == ["/content-0"] * 3
    assert client.end.written_bytes == server.end.read_bytes == 900
    assert client.end.read.digest() == server.end.written.digest()
    assert client.end.read_bytes == 3 * (50_000 + len(http_pages.response(50_000)))
    assert client.end.answers == 3
    assert 0 < client.end.longest_answer_s <= client.end.answer_time_s


def test_a_body_is_put_and_answered(ends: tuple[socket.socket, socket.socket]) -> None:
    client, server = side(ends[0]), side(ends[1])
    serving = threading.Thread(target=http_pages.serve, args=(server, lambda _: memoryview(b"")))
    serving.start()
    http_pages.ask(client, "PUT", [http_pages.request("PUT", "h", "/c", body_bytes=70_000), bytes(70_000)])
    client.finish()
    serving.join()
    assert server.end.read_bytes == client.end.written_bytes > 70_000
    assert client.end.answers == 1


def test_what_is_no_http_is_an_error_and_no_hang(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[1].sendall(b"what do you want\r\n\r\n")
    with pytest.raises(OSError, match="must be HTTP"):
        http_pages.ask(side(ends[0]), "GET", [http_pages.request("GET", "h", "/c")])
    ends[0].sendall(b"a b c d e\r\n\r\n")
    ends[0].shutdown(socket.SHUT_WR)
    server = side(ends[1])
    with pytest.raises(OSError, match="must be HTTP"):
        http_pages.serve(server, lambda _: memoryview(b""))


@pytest.mark.parametrize("least_bytes", [120, 300, 1460])
def test_a_request_has_the_length_that_is_asked_for(least_bytes: int) -> None:
    assert len(http_pages.request("GET", "203.0.113.10", "/content-0", least_bytes)) == least_bytes


def test_a_slow_reader_keeps_its_pace(ends: tuple[socket.socket, socket.socket]) -> None:
    reader = side(ends[0], reads_byte_s=100_000, read_chunk_bytes=5_000)
    ends[1].sendall(bytes(30_000))
    ends[1].shutdown(socket.SHUT_WR)
    reader.read_all()
    assert reader.end.last_read_s is not None
    assert reader.end.first_read_s is not None
    assert reader.end.last_read_s - reader.end.first_read_s >= 0.25 - 1e-3


def test_a_reader_pauses(ends: tuple[socket.socket, socket.socket]) -> None:
    reader = side(ends[0], pauses=({"start_s": 0.0, "duration_s": 0.2},))
    ends[1].sendall(b"x")
    ends[1].shutdown(socket.SHUT_WR)
    reader.read_all()
    assert reader.end.first_read_s is not None
    assert reader.end.first_read_s >= 0.2


def test_a_side_gives_up_with_a_reset(ends: tuple[socket.socket, socket.socket]) -> None:
    reader = side(ends[0], aborts_after_bytes=1000)
    ends[1].sendall(bytes(2000))
    with pytest.raises(GivenUpError):
        reader.read_all()
    reader.reset()
    ends[0].close()
    with pytest.raises(ConnectionResetError):
        ends[1].recv(1)


def test_a_side_gives_up_after_a_time_and_at_the_end(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(GivenUpError):
        side(ends[0], aborts_after_s=0.05).read_all()
    with pytest.raises(TimeIsUpError):
        side(ends[1], until_s=0.05).read_all()


def test_a_kernel_counts_the_bytes_that_it_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].sendall(bytes(10_000))
    received = 0
    while received < 10_000:
        received += len(ends[1].recv(65_536))
    totals = tcp_totals(ends[0])
    assert totals["payload_bytes_sent"] == 10_000
    assert totals["retransmitted_bytes"] == 0
    assert totals["data_segments_sent"] == tcp_totals(ends[1])["data_segments_received"] >= 1
    assert tcp_info(ends[0])["window_segments"] >= 10


def test_sockets_are_sampled_at_multiples_of_the_interval(ends: tuple[socket.socket, socket.socket]) -> None:
    """A busy machine may skip some of the times, never move one."""
    sampled = threading.Semaphore(0)

    def read_bytes() -> int:
        sampled.release()
        return 17

    began_ns = time.monotonic_ns()
    with SocketSampler(0.02, began_ns) as sampler:
        sampler.add("server", 3, ends[0], read_bytes)
        for _ in range(4):
            assert sampled.acquire(timeout=60)
        sampler.remove("server", 3)
    passed = int((time.monotonic_ns() - began_ns) * 1e-9 / 0.02) + 1
    columns = {(one.place, one.flow, one.name): one.values for one in sampler.quantities(passed)}
    read = columns["server", 3, "delivered_bytes"]
    assert len(read) == passed
    assert np.isnan(read[0])
    assert (read == 17).sum() >= 4
    assert (columns["server", 3, "congestion_window_bytes"] > 0).sum() >= 4


def test_speech_has_bursts_and_descriptors() -> None:
    entry = {"start_s": 1.0, "mean_talk_s": 2.0, "mean_silence_s": 2.0}
    sent = list(frames(entry, 401.0, random.Random(5)))
    times = [at_s for at_s, _ in sent]
    assert times == sorted(times)
    assert times[0] >= 1.0
    assert times[-1] < 401.0
    speech = sum(payload_bytes == 22 for _, payload_bytes in sent)
    silence = sum(payload_bytes == 7 for _, payload_bytes in sent)
    # Half of 20,000 frames are speech; of the others one in eight or a bit more is a descriptor.
    assert 7_000 < speech < 13_000
    assert 1 / 9 < silence / (20_000 - speech) < 1 / 5


def test_flows_have_mobiles_ports_and_contents_of_their_own() -> None:
    page = {"kind": "http", "page_bytes": 10, "count": 2}
    flows = live_flows(scenario({**page, "one_user_each": True, "user": 4}, {**page, "same_objects": True}))
    assert [flow.user for flow in flows] == [4, 5, 0, 0]
    assert [flow.mobile_address for flow in flows[:2]] == ["10.45.0.6", "10.45.0.7"]
    assert [flow.path for flow in flows] == ["/content-0", "/content-1", "/content-2", "/content-2"]
    assert len({flow.mobile_port for flow in flows}) == 4
    assert live_flows(scenario({"kind": "voice"})) == ()


@pytest.mark.parametrize(
    ("traffic", "words"),
    [
        ({"kind": "download", "bytes": 1, "mobile_tcp": {}}, "must be absent on a live path"),
        ({"kind": "web"}, "traffic\\[0\\].kind must be one of .* on a live path, got web"),
        ({"kind": "voice", "user": 200, "count": 51}, "mobiles below 250 on a live path, got 250"),
    ],
)
def test_traffic_that_no_kernel_has_is_refused(traffic: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        live_flows(scenario(traffic))
