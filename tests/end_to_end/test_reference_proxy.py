"""Every kind of proxy on real kernels: the bytes arrive unchanged, and the verdict equals the truth."""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end import proxied
from tests.end_to_end.network import (
    CLIENT_ADDRESS,
    MIDDLE_CLIENT_ADDRESS,
    MIDDLE_SERVER_ADDRESS,
    SERVER_ADDRESS,
    Network,
    running,
)
from tests.end_to_end.proxied import (
    CLIENT_ADDRESS_6,
    HTTP_PORT,
    PROXY_PORT,
    RAW_PORT,
    SERVER_ADDRESS_6,
    Seen,
    captured,
    cellular_network,
    fetch,
    judged,
    proxying,
    read_truth,
    through,
)
from tests.end_to_end.scheduling import ahead_of_other_work

LENGTH = 1_000_000
MOST_ATTEMPTS = 5
DIVERTED = ("--device", "client0", "--ports", f"{HTTP_PORT},{RAW_PORT}")
TRANSPARENT = ("--interception", "transparent", *DIVERTED)
ALLOWED = ("--allow", "10.213.2.0/24")

#: Buffers far smaller than the objects: what Split-TCP holds must not look like an object that is stored.
SMALL_BUFFERS = tuple(
    word
    for field in (
        "buffer_bytes",
        "mobile.send_buffer_bytes",
        "mobile.receive_buffer_bytes",
        "server.send_buffer_bytes",
        "server.receive_buffer_bytes",
    )
    for word in ("--set", f"{field}=32768")
)


@pytest.fixture(scope="module")
def names() -> Iterator[Network]:
    with cellular_network() as made:
        yield made


def check(
    seen: Seen,
    verdict: str,
    spoofed: bool,
    client: str = CLIENT_ADDRESS,
    down_verdicts: frozenset[str] = frozenset(),
    up_verdicts: frozenset[str] = frozenset(),
) -> None:
    """Two transfers, down and up: verdicts and the proxy's truth agree, and all bytes are accounted for.

    `down_verdicts` and `up_verdicts` are further verdicts that are right for the download and the upload.
    """
    reasons = "\n".join(f"{pair['verdict']} {pair['probability']}: {pair['reason']}" for pair in seen.pairs)
    down_pair, up_pair = seen.pairs
    assert down_pair["verdict"] in {verdict} | down_verdicts, reasons
    assert up_pair["verdict"] in {verdict} | up_verdicts, reasons
    assert [line["class"] for line in seen.truth] == [verdict, verdict]
    assert [line["ending"] for line in seen.truth] == ["finished", "finished"]
    down, up = seen.truth
    assert down["mobile_leg"]["given_bytes"] > LENGTH
    assert up["server_leg"]["given_bytes"] > LENGTH
    for line, port in zip(seen.truth, seen.source_ports, strict=True):
        host, _, seen_port = line["server_leg"]["local"].rpartition(":")
        assert (host.strip("[]") == client) == spoofed
        assert (int(seen_port) == port) == spoofed


@pytest.mark.parametrize(
    ("way", "options"),
    [
        pytest.param("direct", TRANSPARENT, id="transparent"),
        pytest.param("direct", ("--interception", "destination-transparent", *DIVERTED), id="destination-transparent"),
        pytest.param("connect", ALLOWED, id="connect"),
        pytest.param("absolute", ALLOWED, id="absolute"),
        pytest.param("socks", ALLOWED, id="socks"),
    ],
)
def test_a_splitting_proxy_is_found_whichever_way_connections_reach_it(
    names: Network, tmp_path: Path, way: str, options: tuple[str, ...]
) -> None:
    seen = through(names, tmp_path, "split", way, *options, *SMALL_BUFFERS)
    # A proxy that rewrites the request reads HTTP; that it relays the answer at once shows only in how windows change.
    others = frozenset({"tcp-proxy"} if way == "absolute" else ())
    check(seen, "split-tcp", spoofed="transparent" in options, down_verdicts=others, up_verdicts=others)
    assert seen.truth
    assert all(0 <= line["most_held_bytes"] <= 32_768 for line in seen.truth)


def test_split_over_ipv6(names: Network, tmp_path: Path) -> None:
    seen = through(names, tmp_path, "split", "direct", *TRANSPARENT, *SMALL_BUFFERS, server=SERVER_ADDRESS_6)
    check(seen, "split-tcp", spoofed=True, client=CLIENT_ADDRESS_6)


@pytest.mark.parametrize(
    ("way", "options", "port"),
    [
        pytest.param("direct", TRANSPARENT, HTTP_PORT, id="transparent-http"),
        pytest.param("direct", TRANSPARENT, RAW_PORT, id="transparent-raw"),
        pytest.param("absolute", ALLOWED, HTTP_PORT, id="absolute"),
        pytest.param("connect", ALLOWED, HTTP_PORT, id="connect"),
    ],
)
def test_store_and_forward(names: Network, tmp_path: Path, way: str, options: tuple[str, ...], port: int) -> None:
    pause = ("--set", "store.pause_s=0.3")
    # A proxy that gets too little processor time to read lets its receive window close, as only Split-TCP should.
    for attempt in range(MOST_ATTEMPTS):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        seen = through(names, directory, "store-and-forward", way, *options, *pause, port=port, length=2 * LENGTH)
        if not any(item["finding"] == "window-alternates" for pair in seen.pairs for item in pair["evidence"]):
            break
    # CONNECT asks for a relay, and where the receiver is the slower end its buffers may hold what a store holds.
    check(seen, "tcp-proxy", way == "direct", down_verdicts=frozenset({"split-tcp"} if way == "connect" else ()))


@pytest.mark.parametrize(
    ("way", "options"),
    [pytest.param("direct", TRANSPARENT, id="transparent"), pytest.param("connect", ALLOWED, id="connect")],
)
def test_window_adaptation(names: Network, tmp_path: Path, way: str, options: tuple[str, ...]) -> None:
    """The law keeps the queue in front of the slow link around its reference, and TCP loses nothing there."""
    frame_bytes, step_s, reference, limit = 100, 0.05, 500, proxied.QUEUE_BYTES // 100
    packet_frames = 15.14  # an Ethernet frame of 1514 bytes
    kept = tmp_path / "reports"
    law = {
        "reports": f'"{MIDDLE_CLIENT_ADDRESS}:9003"',
        "step_s": step_s,
        "frames_per_packet": packet_frames,
        "reference_frames": reference,
        "buffer_frames": limit,
        "approach_per_s": 10,
        "rate_source": '"offered"',
        "smoothing": 0.9,
    }
    node_b = [sys.executable, str(Path(__file__).with_name("node_b.py")), proxied.TO_CLIENT, str(proxied.RATE_BIT_S)]
    node_b += [MIDDLE_CLIENT_ADDRESS, "9003", str(frame_bytes), str(step_s), str(kept)]
    settings = [word for name, value in law.items() for word in ("--set", f"adaptation.{name}={value}")]
    # The server is to be held back, not the law.
    buffers = ("--set", "buffer_bytes=65536", "--set", "server.receive_buffer_bytes=32768", *SMALL_BUFFERS[-4:-2])
    # No law keeps a queue short that is reported late, or that it answers late.
    with ahead_of_other_work(), running(names.inside(proxied.radio(names), *node_b), "ready"):
        seen = through(names, tmp_path, "window-adaptation", way, *options, *buffers, *settings, length=3 * LENGTH)
    check(seen, "split-tcp", spoofed=way == "direct")
    reports = [tuple(map(int, line.split())) for line in kept.read_text().splitlines()]
    busy = [queued for queued, served, _ in reports if served > 0 and queued > 0]
    assert not any(dropped for _, _, dropped in reports)
    assert 0.5 * reference < statistics.median(busy) < 1.5 * reference


@pytest.mark.parametrize("transparent", [True, False], ids=["transparent", "connect"])
def test_udp_tunnel(names: Network, tmp_path: Path, transparent: bool) -> None:
    """No TCP on the mobile's link at all: the detector finds the stream in the datagrams."""
    truth = tmp_path / "truth.jsonl"
    tunnel = f"{MIDDLE_CLIENT_ADDRESS}:9004"
    server_end = ("--set", f"tunnel.listen={tunnel}", *ALLOWED, *SMALL_BUFFERS, "--truth", str(truth))
    client_end: tuple[str, ...] = ("--set", "tunnel.end=client", "--set", f"tunnel.server={tunnel}")
    client_end += ("--interception", "destination-transparent") if transparent else ()
    client_end += ("--listen", f"{'0.0.0.0' if transparent else '127.0.0.1'}:{PROXY_PORT}")
    with contextlib.ExitStack() as stack:
        stack.enter_context(proxying(names, names.middle, "udp-tunnel", *server_end))
        stack.enter_context(proxying(names, names.client, "udp-tunnel", *client_end))
        with captured(names, tmp_path) as captures:
            way = "direct" if transparent else "connect"
            fetch(names, way, port=HTTP_PORT, length=LENGTH, proxy="127.0.0.1", server=SERVER_ADDRESS)
    pairs = judged(*captures)
    assert [pair["verdict"] for pair in pairs] == ["split-tcp", "split-tcp"], [pair["reason"] for pair in pairs]
    lines = read_truth(truth)
    assert [line["mobile_leg"]["protocol"] for line in lines] == ["udp", "udp"]
    assert [line["ending"] for line in lines] == ["finished", "finished"]
    assert all(line["server_leg"]["local"].startswith(MIDDLE_SERVER_ADDRESS) for line in lines)


@pytest.mark.parametrize("server", [SERVER_ADDRESS, SERVER_ADDRESS_6])
def test_a_plain_path_raises_no_alarm(names: Network, tmp_path: Path, server: str) -> None:
    """Also after proxies have come and gone: teardown leaves nothing behind that splits."""
    with captured(names, tmp_path) as captures:
        fetch(names, "direct", port=HTTP_PORT, length=LENGTH, proxy="-", server=server)
    assert [pair["verdict"] for pair in judged(*captures)] == ["regular", "regular"]


@pytest.mark.parametrize("port", [HTTP_PORT, RAW_PORT])
def test_what_is_not_intercepted_goes_by(names: Network, tmp_path: Path, port: int) -> None:
    """Providers split some ports only (seed 004, section IV): of two, one is chosen."""
    options = ("--interception", "transparent", "--device", "client0", "--ports", str(HTTP_PORT))
    seen = through(names, tmp_path, "split", "direct", *options, *SMALL_BUFFERS, port=port)
    assert {pair["verdict"] for pair in seen.pairs} == {"split-tcp" if port == HTTP_PORT else "regular"}
    assert len(seen.truth) == (2 if port == HTTP_PORT else 0)


def test_setup_and_teardown_may_be_repeated(names: Network) -> None:
    """The initial window is a property of routes; what setup adds, teardown takes away, both however often."""

    def state() -> str:
        shown: list[tuple[str, ...]] = [("ip", version, what) for version in ("-4", "-6") for what in ("rule", "route")]
        shown += [("nft", "list", "ruleset"), ("ip", "route", "show", "table", "all")]
        return "\n".join(proxied.run(names, names.middle, *command) for command in shown)

    options = ("split", *TRANSPARENT, "--listen", "0.0.0.0:8888", "--set", "mobile.initial_window_segments=3")
    command = (proxied.PEPSCOPE, "proxy", *options)
    before = state()
    proxied.run(names, names.middle, *command, "--setup")
    once = state()
    proxied.run(names, names.middle, *command, "--setup")
    assert state() == once
    assert "initcwnd 3" in once
    assert once.count("fwmark 0x7065") == 1
    for _ in range(2):
        proxied.run(names, names.middle, *command, "--teardown")
        assert state() == before


HAPROXY = f"""
global
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    option tcp-smart-accept
global
    tune.bufsize 16384
    tune.rcvbuf.server 32768
    tune.sndbuf.client 32768
    tune.rcvbuf.client 32768
    tune.sndbuf.server 32768
listen split
    bind {MIDDLE_CLIENT_ADDRESS}:{PROXY_PORT}
    server only {SERVER_ADDRESS}:{HTTP_PORT}
"""

NGINX = f"""
user root;
daemon off;
worker_processes 1;
pid {{directory}}/nginx.pid;
error_log stderr notice;
events {{{{ worker_connections 64; }}}}
http {{{{
    access_log off;
    client_body_temp_path {{directory}}/body;
    proxy_temp_path {{directory}}/proxy;
    fastcgi_temp_path {{directory}}/fastcgi;
    uwsgi_temp_path {{directory}}/uwsgi;
    scgi_temp_path {{directory}}/scgi;
    client_max_body_size 0;
    server {{{{
        listen {MIDDLE_CLIENT_ADDRESS}:{PROXY_PORT};
        location / {{{{
            proxy_pass http://{SERVER_ADDRESS}:{HTTP_PORT};
            proxy_request_buffering on;
            proxy_buffering on;
        }}}}
    }}}}
}}}}
"""


@pytest.mark.parametrize(
    ("name", "configuration", "ready", "directions", "verdict"),
    [
        ("haproxy", HAPROXY, "Available polling systems", "down,up", "split-tcp"),
        ("nginx", NGINX, "start worker process", "up", "tcp-proxy"),
    ],
)
def test_proxies_of_others(
    names: Network, tmp_path: Path, name: str, configuration: str, ready: str, directions: str, verdict: str
) -> None:
    """Third-party proxies get the same verdicts as ours."""
    file = tmp_path / f"{name}.conf"
    file.write_text(configuration.format(directory=tmp_path) if name == "nginx" else configuration)
    command = [name, "-d", "-f", str(file)] if name == "haproxy" else [name, "-e", "stderr", "-c", str(file)]
    with (
        running(names.inside(names.middle, *command), ready),
        captured(names, tmp_path) as captures,
    ):
        fetch(
            names,
            "direct",
            port=PROXY_PORT,
            length=LENGTH,
            directions=directions,
            proxy="-",
            server=MIDDLE_CLIENT_ADDRESS,
        )
    # nginx connects from its own address, so the pairing may be too uncertain without `--same-transfers`.
    unvouched = {pair["verdict"] for pair in judged(*captures)}
    assert unvouched <= ({verdict, "inconclusive"} if name == "nginx" else {verdict}), unvouched
    pairs = judged(*captures, same_transfers=name == "nginx")
    assert {pair["verdict"] for pair in pairs} == {verdict}, [pair["reason"] for pair in pairs]
    assert len(pairs) == len(directions.split(","))


def test_a_proxy_with_its_own_address_is_judged_with_same_transfers(names: Network, tmp_path: Path) -> None:
    """nginx writes requests and heads anew: its downloads are paired, and without more look like two fetches.

    It reads ahead of answers in memory and files, so that split and stored are both right.
    """
    file = tmp_path / "nginx.conf"
    file.write_text(NGINX.format(directory=tmp_path))
    command = ["nginx", "-e", "stderr", "-c", str(file)]
    with (
        running(names.inside(names.middle, *command), "start worker process"),
        captured(names, tmp_path) as captures,
    ):
        where, port = MIDDLE_CLIENT_ADDRESS, PROXY_PORT
        fetch(names, "direct", port=port, length=LENGTH, directions="down", proxy="-", server=where)
    ((doubted,), (vouched,)) = (judged(*captures), judged(*captures, same_transfers=True))
    assert doubted["verdict"] == "inconclusive"
    assert doubted["pairing"]["ground"] == vouched["pairing"]["ground"] == "same payload"
    assert vouched["verdict"] in ("split-tcp", "tcp-proxy"), vouched["reason"]
