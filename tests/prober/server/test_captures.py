"""Captures at the server: what they hold, how they come over, and when they end early."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pepscope.captures.capture import open_capture
from prober.client.control_client import ControlClient
from prober.client.task_captures import LEAST_GRACE_S
from prober.errors import ControlError, MalformedMessageError
from prober.protocol.control_messages import CaptureSummary
from prober.protocol.plain_requests import TcpRequest, UploadReport
from tests.prober.server.running import Here, received, serving_here


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def here(state: Path) -> Iterator[Here]:
    with serving_here(state, captures=2, captures_kept=3) as here:
        yield here


def move(here: Here, size_bytes: int = 100_000) -> int:
    """An upload; the mobile's port."""
    with here.connect(here.ports.tcp[0]) as sock:
        sock.sendall(TcpRequest(here.session, "upload", size_bytes).to_line() + b"u" * size_bytes)
        assert UploadReport.parse(received(sock)).received_bytes == size_bytes
        return int(sock.getsockname()[1])


def packets_of(path: Path) -> list[dict[str, Any]]:
    """As tshark reads them."""
    fields = [
        "tcp.srcport",
        "tcp.dstport",
        "tcp.seq",
        "tcp.len",
        "tcp.flags.syn",
        "tcp.flags.fin",
        "frame.len",
        "frame.cap_len",
    ]
    options = [text for field in fields for text in ("-e", field)]
    run = subprocess.run(["tshark", "-r", str(path), "-T", "json", *options], capture_output=True, check=True)
    layers = [packet["_source"]["layers"] for packet in json.loads(run.stdout)]
    return [{name: int(values[0], 0) if values[0] not in ("True", "False") else int(values[0] == "True")
             for name, values in layer.items()} for layer in layers]  # fmt: skip


def files_in(state: Path) -> list[Path]:
    return [path for path in state.rglob("*.pcap*") if path.is_file()]


def test_a_capture_has_what_was_measured_and_nothing_else(here: Here, state: Path, tmp_path: Path) -> None:
    capture = here.control.start_capture("upload", 100)
    port = move(here)
    here.control.clock()  # the control channel is not part of it
    assert all(entry.is_over for entry in here.control.served(settle_s=60.0))
    time.sleep(LEAST_GRACE_S)
    summary = here.control.fetch_capture(capture, tmp_path / "c.pcap")
    packets = packets_of(tmp_path / "c.pcap")
    assert len(packets) == summary.packets > 10
    assert (summary.missed, summary.ended_early) == (0, "")
    assert {frozenset((packet["tcp.srcport"], packet["tcp.dstport"])) for packet in packets} == {
        frozenset((port, here.ports.tcp[0]))
    }
    # A busy machine sends some of it twice, even on loopback.
    for flag in ("tcp.flags.syn", "tcp.flags.fin"):
        assert {packet["tcp.srcport"] for packet in packets if packet[flag]} == {port, here.ports.tcp[0]}
    line = len(TcpRequest(here.session, "upload", 100_000).to_line())
    sent = [packet for packet in packets if packet["tcp.srcport"] == port]
    shown = {packet["tcp.seq"] + place for packet in sent for place in range(packet["tcp.len"])}
    assert len(shown) == 100_000 + line
    assert max(packet["frame.cap_len"] for packet in packets) == 100
    assert open_capture(str(tmp_path / "c.pcap")).packet_count == summary.packets
    data = (tmp_path / "c.pcap").read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (summary.size_bytes, summary.sha256)
    here.control.delete_capture(capture)
    assert files_in(state) == []
    with pytest.raises(ControlError, match="no capture of this name"):
        here.control.finish_capture(capture)


def test_there_are_only_so_many_at_once_and_kept(here: Here, state: Path) -> None:
    running = [here.control.start_capture("a", 100) for _ in range(2)]
    with pytest.raises(ControlError, match="2 captures at once"):
        here.control.start_capture("b", 100)
    for capture in running:
        here.control.finish_capture(capture)
    running.append(here.control.start_capture("c", 100))
    with pytest.raises(ControlError, match="a session must have at most 3 captures"):
        here.control.start_capture("d", 100)
    for capture in running:
        here.control.delete_capture(capture)
    assert files_in(state) == []


def test_captures_end_with_their_session(here: Here, state: Path) -> None:
    with here.another() as mobile:
        mobile.start_capture("a", 100)
        mobile.finish_capture(mobile.start_capture("b", 100))
        assert len(files_in(state)) == 2
    deadline = time.monotonic() + 60
    while files_in(state):
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"capture_bytes": 4096}, "at most 4096 bytes"),
        ({"capture_s": 3.0}, "takes at most 3 s"),
    ],
)
def test_a_capture_that_goes_too_far_is_ended(tmp_path: Path, limits: dict[str, Any], sentence: str) -> None:
    with serving_here(tmp_path, **limits) as here:
        capture = here.control.start_capture("x", 100)
        deadline = time.monotonic() + 60
        while (captured := [path for path in files_in(tmp_path) if path.suffix == ".pcap"]) and captured[0].exists():
            move(here)
            time.sleep(0.02)  # below the rate of connections that the server allows one address
            assert time.monotonic() < deadline
        summary = here.control.finish_capture(capture)
        assert sentence in summary.ended_early
        fetched = here.control.fetch_capture(capture, tmp_path / "c.pcap")
        assert fetched == summary
        assert open_capture(str(tmp_path / "c.pcap")).packet_count == summary.packets


def test_a_full_disk_is_reported_at_once(tmp_path: Path) -> None:
    with serving_here(tmp_path, free_disk_bytes=1 << 50) as here:
        with pytest.raises(ControlError, match="disk is nearly full"):
            here.control.start_capture("x", 100)
        move(here)


def test_a_missing_device_is_reported(tmp_path: Path) -> None:
    from prober.server.service import running
    from tests.prober.server.running import settings

    wanted = msgspec.structs.replace(settings(tmp_path), interface="no-such-device")
    with running(wanted) as (key, about, _):
        assert "no-such-device" in about.can.captures
        mobile = ControlClient("127.0.0.1", about.ports.control, key, patience_s=2.0)
        with contextlib.closing(mobile), pytest.raises(ControlError, match="no-such-device"):
            mobile.start_capture("x", 100)


class Lying(ControlClient):
    """A control channel whose server says and sends what the test wants."""

    def __init__(self, summary: CaptureSummary, pieces: list[list[bytes]]) -> None:
        super().__init__("127.0.0.1", 1, "pepscope1." + "t" * 30 + "." + "0" * 64, patience_s=0)
        self._summary, self._answers = summary, iter(pieces)

    def finish_capture(self, capture: str) -> CaptureSummary:
        return self._summary

    def _packed(self, capture: str, offset: int) -> Iterator[bytes]:
        yield from next(self._answers, [])


def summary_of(data: bytes, packed: bytes) -> CaptureSummary:
    return CaptureSummary(1, 0, len(data), len(packed), hashlib.sha256(data).hexdigest())


def test_a_capture_that_comes_in_pieces_is_put_together(tmp_path: Path) -> None:
    data = bytes(range(256)) * 100
    packed = gzip.compress(data)
    half = len(packed) // 2
    mobile = Lying(summary_of(data, packed), [[packed[:10], packed[10:half]], [packed[half:]]])
    mobile.fetch_capture("x", tmp_path / "c.pcap")
    assert (tmp_path / "c.pcap").read_bytes() == data


@pytest.mark.parametrize("lie", ["longer", "bomb", "shorter", "other", "no gzip", "cut", "nothing"])
def test_a_capture_with_another_digest_is_refused(tmp_path: Path, lie: str) -> None:
    data = b"capture" * 1000
    packed = gzip.compress(data)
    summary = summary_of(data, packed)
    sent = {
        "longer": [packed + b"more"],
        "bomb": [gzip.compress(bytes(1 << 24))],
        "shorter": [gzip.compress(data[:-1])],
        "other": [gzip.compress(data[::-1])],
        "no gzip": [b"x" * len(packed)],
        "cut": [packed[:-9]],
        "nothing": [],
    }[lie]
    if lie in ("bomb", "shorter", "other"):
        summary = msgspec.structs.replace(summary, packed_bytes=len(sent[0]))
    with pytest.raises(MalformedMessageError):
        Lying(summary, [sent]).fetch_capture("x", tmp_path / "c.pcap")
    assert list(tmp_path.iterdir()) == []
