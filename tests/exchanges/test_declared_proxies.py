"""Requests that clients make of proxies, as tshark dissects them and as exchanges have them."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.exchanges import ExchangeKind, exchanges_of

HERE = Path(__file__).parent
NAMES = ("proxies-far", "proxies-near")
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def kinds(name: str) -> Counter[str]:
    """How many exchanges of each kind clients ask for."""
    found = open_capture(str(HERE / f"{name}.pcap.xz")).exchanges()
    return Counter(ExchangeKind(kind).label for kind in found.kind[found.asked == 0].tolist())


@pytest.fixture(scope="module", params=NAMES)
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("proxies") / f"{request.param}.pcap"
    path.write_bytes(lzma.decompress((HERE / f"{request.param}.pcap.xz").read_bytes()))
    return path


def dissected(path: Path, keep: str, *fields: str) -> list[tuple[str, ...]]:
    """Fields of packets, by tshark."""
    command = ["tshark", "-n", "-r", str(path), "-Y", keep, "-T", "fields"]
    command += ["-d", "tcp.port==1081,socks", "-d", "tcp.port==8888,http", "-d", "tcp.port==8000,http"]
    command += [part for field in fields for part in ("-e", field)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [tuple(line.split("\t")) for line in output.splitlines()]


@needs_tshark
def test_tshark_sees_the_same_requests_and_grants(capture: Path) -> None:
    found = kinds(capture.stem)
    # Of packets that were cut tshark dissects the first line, which is all that is asked for here.
    requests = dissected(capture, "http.request", "tcp.stream", "http.request.method", "http.request.uri")
    responses = dissected(capture, "http.response", "tcp.stream", "http.response.code")
    statuses = {stream: code for stream, code in responses}  # noqa: C416
    connects = [stream for stream, method, _ in requests if method == "CONNECT"]
    absolute = [stream for stream, _, uri in requests if uri.startswith("http://")]
    assert connects
    assert found["proxy-connect"] == sum(statuses[stream] == "200" for stream in connects)
    assert found["proxy-request"] + found["absolute-request"] == len(absolute)
    granted = dissected(capture, "socks.results == 0", "tcp.stream")
    assert found["socks-request"] == len({*granted}) > 0


@pytest.mark.parametrize("name", NAMES)
def test_all_payload_tells_the_same_as_what_is_kept(name: str) -> None:
    chosen = open_capture(str(HERE / f"{name}.pcap.xz"), payload="exchanges").exchanges()
    capture = open_capture(str(HERE / f"{name}.pcap.xz"))
    whole = capture.exchanges()
    assert np.array_equal(chosen.kind, whole.kind)
    for connection in capture.connections:
        packets, payload = capture.packets(connection.id), capture.payload(connection.id)
        alone = exchanges_of(packets, payload, connection.server_port)
        assert np.array_equal(alone.kind, whole.kind[whole.connection == connection.id])
        without_port = exchanges_of(packets, payload)
        assert ExchangeKind.PROXY_REQUEST not in without_port.kind


def test_what_tunnels_carry_is_timed_as_without_them() -> None:
    found = open_capture(str(HERE / "proxies-far.pcap.xz")).exchanges()
    hellos = (found.kind == ExchangeKind.TLS_HELLO) & (found.asked == 0)
    assert np.count_nonzero(hellos & found.strict) >= 12
    # The hidden leg takes 40 ms, the near one 10 ms.
    assert found.exchange_ns[hellos].min() > 50_000_000
    greetings = found.kind == ExchangeKind.SOCKS_GREETING
    assert np.median(found.exchange_ns[greetings]) < 13_000_000
    assert found.exchange_ns[found.kind == ExchangeKind.SOCKS_REQUEST].min() > 50_000_000
