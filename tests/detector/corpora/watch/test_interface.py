"""An interface in a network namespace: what is captured on it is judged, and what goes wrong is said."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.live.slices import SlicedCapture
from tests.prober.namespaces import Inside, inside

PATIENCE_S = 300
PORT = 8080
HERE, THERE = "198.18.7.1", "198.18.7.2"
PEPSCOPE = [sys.executable, "-m", "pepscope"]


class Pair:
    """Two namespaces and the pair of interfaces between them; `web` is reached from the first."""

    def __init__(self) -> None:
        name = f"watch-{uuid.uuid4().hex[:8]}"
        self.here, self.there = f"{name}-a", f"{name}-b"
        for each in (self.here, self.there):
            ip("netns", "add", each)
        ip("-n", self.here, "link", "add", "up0", "type", "veth", "peer", "name", "down0", "netns", self.there)
        for names, device, address in ((self.here, "up0", HERE), (self.there, "down0", THERE)):
            ip("-n", names, "address", "add", f"{address}/24", "dev", device)
            ip("-n", names, "link", "set", device, "up")
            ip("-n", names, "link", "set", "lo", "up")

    def command(self, *arguments: object) -> list[str]:
        return ["ip", "netns", "exec", self.here, *map(str, arguments)]

    def delete(self) -> None:
        for each in (self.here, self.there):
            ip("netns", "delete", each)


def answers(port: int) -> bool:
    """Whether something listens here."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    made = Pair()
    with inside(made.there) as server:
        web = server.call(ThreadingHTTPServer, (THERE, PORT), Page)
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        yield made
        web.shutdown()
        web.server_close()
        thread.join()
    made.delete()


@pytest.fixture
def client(pair: Pair) -> Iterator[Inside]:
    with inside(pair.here) as thread:
        yield thread


def fetch(requests: int = 3) -> None:
    with socket.create_connection((THERE, PORT), PATIENCE_S) as link:
        for _ in range(requests):
            link.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            found = b""
            while not found.endswith(b"hello"):
                found += link.recv(4096)


def fetched_until_ended(running: subprocess.Popen[str], client: Inside) -> tuple[str, str]:
    """What a capture that ends by itself says; there is traffic until then, however late this process comes to it."""
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(running.communicate, timeout=PATIENCE_S)
        while not ended.done():
            client.call(fetch)
            time.sleep(0.05)
        return ended.result()


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(pair: Pair, tmp_path: Path) -> Iterator[Start]:
    """Starts a command of pepscope inside; none is left behind."""
    running = []
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def begin(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            pair.command(*PEPSCOPE, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )  # fmt: skip
        running.append(process)
        # A file of the capture is there as soon as packets are captured.
        wait_until(lambda: process.poll() is not None or any(tmp_path.rglob("*.pcap")))
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def wait_until(happened: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < ends_s
        time.sleep(0.05)


def test_an_interface_is_judged_until_a_signal(start: Start, client: Inside, tmp_path: Path) -> None:
    spool, log, port = tmp_path / "spool", tmp_path / "log", 9467
    running = start(
        "watch", "-i", "up0", "--taken-at", "client", "--json", "--slice", "1s", "--metrics", f"127.0.0.1:{port}",
        "--spool", spool, "--keep", 2, "--log", log,
    )  # fmt: skip

    def judged() -> float:
        """Connections by the metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as response:
            lines = response.read().decode().splitlines()
        return float(next(line for line in lines if line.startswith("pepscope_watch_connections_total")).split()[1])

    wait_until(lambda: client.call(answers, port))
    for _ in range(12):
        client.call(fetch)
    # Connections linger for two seconds behind their end, in case that packets come late.
    wait_until(lambda: client.call(judged) == 12)
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, errors
    found: dict[str, Any] = json.loads(output)
    (group,) = found["groups"]
    assert (group["side"], group["network"], group["port"]) == ("client", "198.18.7.0/24", PORT)
    assert group["verdict"] == "regular"
    assert (group["connections"], group["exchanges"]) == (12, 36)
    assert found["packets"]["received"] > 12 * 9
    assert found["packets"]["dropped"] == 0
    assert len(list(spool.iterdir())) <= 2
    assert json.loads(log.read_text().splitlines()[-1])["verdict"] == "regular"


def test_an_interface_that_goes_away_ends_the_watch(pair: Pair, start: Start) -> None:
    ip("-n", pair.here, "link", "add", "gone0", "type", "veth", "peer", "name", "gone1")
    for end in ("gone0", "gone1"):
        ip("-n", pair.here, "link", "set", end, "up")
    running = start("watch", "-i", "gone0", "--json")
    ip("-n", pair.here, "link", "delete", "gone0")
    output, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 2
    assert errors.splitlines()[-1].startswith("pepscope: the capture on gone0 ended: ")
    assert "Traceback" not in errors
    assert json.loads(output)["groups"] == []


def test_what_cannot_be_captured_ends_in_one_sentence(pair: Pair, tmp_path: Path) -> None:
    def sentence(*arguments: object, without: Sequence[str] = ()) -> str:
        command = pair.command(*without, *PEPSCOPE, *arguments)
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert ended.returncode == 2, ended.stderr
        return ended.stderr

    for command in ("watch", "detect", "inspect"):
        said = sentence(command, "-i", "none0")
        assert said.splitlines()[-1].startswith("pepscope: libpcap cannot capture on none0: ")
    said = sentence("watch", "-i", "up0", without=("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"))
    assert said.splitlines()[-1].startswith("pepscope: libpcap cannot capture on up0, which ")
    assert "needs root or CAP_NET_RAW" in said
    assert "does not compile" in sentence("watch", "-i", "up0", "--filter", "no filter")
    (tmp_path / "file").write_bytes(b"")
    assert sentence("watch", "-i", "up0", "--spool", tmp_path / "file" / "below").startswith(
        f"pepscope: the spool {tmp_path / 'file' / 'below'} cannot be used: "
    )


def test_a_spool_that_is_full_ends_the_watch(start: Start, client: Inside, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(spool)], check=True)
    try:
        running = start("watch", "-i", "up0", "--json", "--slice", "1s", "--spool", spool)
        for _ in range(40):
            client.call(fetch)
        _, errors = running.communicate(timeout=PATIENCE_S)
    finally:
        subprocess.run(["umount", str(spool)], check=True)
    assert running.returncode == 2
    assert "could not be written to its end; is the disk full?" in errors.splitlines()[-1]


def test_slices_of_a_capture_lack_nothing(client: Inside, tmp_path: Path) -> None:
    def capture() -> tuple[list[Path], int]:
        sliced = SlicedCapture(
            "up0", tmp_path, 160, f"tcp port {PORT}", slice_s=0.3, slice_bytes=1 << 30, waiting_bytes=1 << 30
        )
        for _ in range(30):
            fetch()
            time.sleep(0.03)
        time.sleep(0.3)
        sliced.finish()
        sliced.finish()
        paths = []
        while (taken := sliced.take(0)) is not None:
            paths.append(taken.path)
        assert sliced.failure is None
        return paths, sliced.counts.received

    paths, received = client.call(capture)
    assert len(paths) > 2
    assert sum(open_capture(str(path), tcp_needed=False).packet_count for path in paths) == received > 30 * 9


def test_of_too_many_slices_the_oldest_go(client: Inside, tmp_path: Path) -> None:
    def capture() -> tuple[int, int]:
        sliced = SlicedCapture("up0", tmp_path, 160, slice_s=0.2, slice_bytes=1 << 30, waiting_bytes=1)
        for _ in range(30):
            fetch()
            time.sleep(0.03)
        sliced.finish()
        return sliced.lost_slices, sliced.waiting

    lost, waiting = client.call(capture)
    assert lost > 0
    assert waiting == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("how", ["duration", "signal", "size"])
def test_detect_captures_and_judges(start: Start, client: Inside, how: str) -> None:
    options = {"duration": ["--duration", "3s"], "signal": [], "size": ["--capture-size", "1MiB"]}[how]
    running = start("detect", "-i", "up0", "--json", *options)
    if how == "duration":
        output, errors = fetched_until_ended(running, client)
    else:
        for requests in (3, 9000 if how == "size" else 3):
            client.call(fetch, requests)
        if how == "signal":
            time.sleep(0.3)  # the kernel hands packets over in blocks of 100 ms
            running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, errors
    assert [group["port"] for group in json.loads(output)["groups"]] == [PORT]
    assert "capturing on up0" in errors
    if how == "size":
        assert "the capture on up0 ended at its largest size (1,048,576 bytes)" in errors


def test_inspect_captures_and_lists(start: Start, client: Inside) -> None:
    running = start("inspect", "-i", "up0", "--duration", "2s", "--filter", f"tcp port {PORT}")
    output, errors = fetched_until_ended(running, client)
    assert running.returncode == 0, errors
    assert re.search(r"[\d,]+ packets, [\d,]+ TCP connection", output)


def test_a_capture_is_kept_for_whom_wants_to_look(start: Start, client: Inside, tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcap"
    running = start("detect", "-i", "up0", "--duration", "2s", "--filter", f"tcp port {PORT}", "-w", kept, "--json")
    output, errors = fetched_until_ended(running, client)
    assert running.returncode == 0, errors
    assert f"the capture is kept as {kept}" in errors
    assert open_capture(str(kept)).packet_count >= 9
    assert json.loads(output)["captures"][0]["path"] == str(kept)


def test_an_interface_without_packets_has_nothing_to_judge(start: Start, tmp_path: Path) -> None:
    running = start("detect", "-i", "up0", "--duration", "1s", "--filter", "tcp port 9")
    _, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 2
    assert errors.splitlines()[-1] == "pepscope: nothing to judge: no packet that matches 'tcp port 9' came on up0"
    (tmp_path / "one.pcap").write_bytes(b"")
    assert main_says("inspect", tmp_path / "one.pcap", "-w", "x") == (
        "pepscope: --write-capture is for captures of an interface: give one with -i"
    )


def main_says(*arguments: object) -> str:
    command = [*PEPSCOPE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False).stderr.strip()
