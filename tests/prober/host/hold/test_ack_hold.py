"""Held ACKs: none leaves early, all in order, and nothing stays behind whatever ends a hold; real kernels."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.live.one_file import LiveCapture
from prober.errors import ImpossibleError, MeasurementError
from prober.host.hold import ack_hold
from prober.host.hold.ack_hold import AckHold, hold_acks
from prober.host.hold.packet_rules import HeldTraffic, iptables_rules, nft_rules
from prober.host.hold.tun_hold import TunHolding
from tests.end_to_end.network import SERVER_ADDRESS, Network, network
from tests.prober.namespaces import Inside, inside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PORT = 5001
DELAY_S = 0.4
SERVER_ADDRESS_6, CLIENT_ADDRESS_6 = "fd00:213:2::2", "fd00:213:1::2"

HOLDER = """
import sys, time
from prober.host.hold import ack_hold
from prober.host.hold.packet_rules import HeldTraffic
from prober.host.hold.tun_hold import TunHolding
if sys.argv[1] == "tun":
    ack_hold._QueueHolding = TunHolding
with ack_hold.AckHold(HeldTraffic(((5001, 5001),), "10.213.2.2"), 0.5):
    print("holding", flush=True)
    time.sleep(60)
"""


def test_a_hold_that_broke_off_is_no_measurement(client: Inside) -> None:
    def hold() -> None:
        with hold_acks(SERVER_ADDRESS, PORT, 0.05) as held:
            held._line.failure = "the hold on ACKs broke off: for a test"

    with pytest.raises(MeasurementError, match="broke off: for a test"):
        client.call(hold)


def test_rules_take_every_acknowledgement_but_those_on_syn_and_rst() -> None:
    mobile = iptables_rules(HeldTraffic(((80, 80),), "192.0.2.1"), 7)
    (line,) = [" ".join(command) for command in mobile.install if "NFQUEUE" in command]
    assert "-d 192.0.2.1 -p tcp --dport 80:80 --tcp-flags SYN,RST,ACK ACK -j NFQUEUE --queue-num 7" in line
    server = iptables_rules(HeldTraffic(((21, 21), (30_000, 30_010))), 7)
    lines = [" ".join(command) for command in server.install if "NFQUEUE" in command]
    assert [line.split()[0] for line in lines] == ["iptables", "iptables", "ip6tables", "ip6tables"]
    assert "--sport 30000:30010" in lines[1]
    (table,) = nft_rules(HeldTraffic(((21, 21), (30_000, 30_010)), "2001:db8::1"), 7).install
    assert "ip6 daddr 2001:db8::1 tcp dport { 21, 30000-30010 }" in table[1]
    assert "tcp flags & (syn | rst | ack) == ack queue" in table[1]


@pytest.mark.parametrize("host", ["", "192.0.2.1", "2001:db8::1"])
def test_nft_understands_its_rules(client: Inside, host: str) -> None:
    """Without the queue itself, which kernels offer to iptables and to nft apart."""
    rules = nft_rules(HeldTraffic(((21, 21), (30_000, 30_010)), host), 7)
    (words,) = rules.install
    text = words[1].replace("queue flags bypass to 7", "accept")
    for command in (["nft", text], list(rules.listing), *map(list, rules.remove)):
        done = client.call(lambda words=command: subprocess.run(words, capture_output=True, text=True))
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("delay_s", [0, -1, float("nan"), float("inf"), 31])
def test_delays_that_cannot_be_held_are_refused(delay_s: float) -> None:
    with pytest.raises(ValueError, match="must be at most 30 s"):
        hold_acks("192.0.2.1", 80, delay_s)


@pytest.fixture(scope="module")
def names() -> Iterator[Network]:
    with network() as made:
        _add_ipv6(made)
        with inside(made.server) as server:
            listener = server.call(_listen)
            yield made
            listener.close()


@pytest.fixture
def client(names: Network) -> Iterator[Inside]:
    with inside(names.client) as thread:
        yield thread


@pytest.fixture(params=["nfqueue", "tun"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "tun":
        monkeypatch.setattr(ack_hold, "_QueueHolding", TunHolding)
    return str(request.param)


def connected(address: str) -> tuple[socket.socket, float, float]:
    """A connection, when it was begun, and how long its handshake took.

    A handshake that is held takes too long each time, a busy machine's only now and then.
    """
    for _ in range(10):
        begun = time.monotonic()
        link = socket.create_connection((address, PORT), 60)
        connect_s = time.monotonic() - begun
        if connect_s < DELAY_S:
            break
        link.close()
    return link, begun, connect_s


@pytest.mark.parametrize("address", [SERVER_ADDRESS, SERVER_ADDRESS_6])
@pytest.mark.usefixtures("names")
def test_a_mobile_holds_all_but_the_handshake(client: Inside, means: str, address: str, tmp_path: Path) -> None:
    def measure() -> tuple[float, float, Any]:
        capture = LiveCapture("up0", tmp_path / "mobile.pcap", 128, f"tcp port {PORT}")
        with hold_acks(address, PORT, DELAY_S) as hold:
            link, begun, connect_s = connected(address)
            link.sendall(b"question")
            assert link.recv(6) == b"answer"
            answer_s = time.monotonic() - begun
            link.close()
        capture.finish()
        return connect_s, answer_s, hold.report()

    connect_s, answer_s, report = client.call(measure)
    assert report.means == means
    assert report.held == report.released >= 4
    assert report.dropped == 0
    # The handshake passes, the question waits; without the hold both take the same time.
    assert connect_s < DELAY_S < answer_s
    table = open_capture(str(tmp_path / "mobile.pcap"))
    packets = table.packets(len(table.connections) - 1)
    is_ack = (packets.flags & 0x12) == 0x10
    first_ns = packets.time_ns[(packets.flags & 0x12) == 0x12][0]
    ours = is_ack & (packets.direction == 0)
    assert (packets.time_ns[ours][0] - first_ns) / 1e9 >= DELAY_S - 0.001
    # FIN is held like all others: it left in order, and after the acknowledgement of the answer.
    ends = packets.time_ns[ours & ((packets.flags & 1) == 1)]
    assert len(ends)
    assert (ends[0] - first_ns) / 1e9 >= 2 * DELAY_S - 0.001


def test_a_server_holds_what_leaves_its_port(names: Network, client: Inside, means: str) -> None:
    with inside(names.server) as server:
        hold = AckHold(HeldTraffic(((PORT, PORT),)), DELAY_S)
        server.call(hold.__enter__)
        link, begun, connect_s = client.call(connected, SERVER_ADDRESS)
        link.sendall(b"question")
        assert link.recv(6) == b"answer"
        answer_s = time.monotonic() - begun
        link.close()
        report = server.call(hold.close)
        assert report.means == means
        assert connect_s < DELAY_S < answer_s
        assert report.held == report.released > 0
        assert _is_clean(names, server=True)


def test_a_server_without_ipv6_holds_the_rest(
    names: Network, client: Inside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ack_hold, "_IPV6", tmp_path / "missing")
    with inside(names.server) as server:
        hold = AckHold(HeldTraffic(((PORT, PORT),)), 0.01)
        server.call(hold.__enter__)
        shown = names.inside(names.server, "ip6tables", "-w", "60", "-t", "mangle", "-S")
        assert "PEPSCOPE" not in subprocess.run(shown, check=True, capture_output=True, text=True).stdout
        client.call(socket.create_connection, (SERVER_ADDRESS, PORT), 60).close()
        assert server.call(hold.close).held > 0


@pytest.mark.usefixtures("names")
def test_two_holds_of_one_port_do_not_mix(client: Inside) -> None:
    """The first would let go what the second should hold longer."""

    def hold_twice() -> None:
        with (
            hold_acks(SERVER_ADDRESS, PORT, 0.05),
            hold_acks(SERVER_ADDRESS, PORT + 1, 0.05),
            pytest.raises(MeasurementError, match=f"port {PORT} are being held already"),
        ):
            hold_acks(SERVER_ADDRESS, PORT, 5.0).__enter__()
        with hold_acks(SERVER_ADDRESS, PORT, 0.05):
            pass

    client.call(hold_twice)


@pytest.mark.usefixtures("means")
def test_an_exception_ends_a_hold_at_once_and_leaves_nothing(names: Network, client: Inside) -> None:
    def fail() -> None:
        with hold_acks(SERVER_ADDRESS, PORT, 20.0):
            link = socket.create_connection((SERVER_ADDRESS, PORT), 60)
            link.sendall(b"question")
            link.close()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.call(fail)
    assert _is_clean(names)


@pytest.mark.parametrize("kind", ["nfqueue", "tun"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_dies_leaves_nothing(names: Network, kind: str, number: signal.Signals) -> None:
    with _holder(names, kind) as process:
        assert not _is_clean(names)
        process.send_signal(number)
        process.wait()
        _await_clean(names)


def test_the_next_hold_removes_what_a_crash_left_that_took_the_keeper_too(names: Network, client: Inside) -> None:
    with _holder(names, "nfqueue") as process:
        # The keeper is in a session of its own, so it is found by its parent.
        for child in _children(process.pid):
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()
    assert not _is_clean(names)

    def hold() -> None:
        with hold_acks(SERVER_ADDRESS, PORT, 0.01):
            pass

    client.call(hold)
    assert _is_clean(names)


def test_without_rights_the_reason_is_reported(client: Inside) -> None:
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c"]
    script = "from prober.host.hold.ack_hold import lacking; print(lacking())"
    done = client.call(lambda: subprocess.run([*bare, script], capture_output=True, text=True, check=True))
    assert "root" in done.stdout
    assert done.stdout.count("\n") == 1


def test_with_rights_nothing_is_lacking(names: Network, client: Inside) -> None:
    assert client.call(ack_hold.lacking) == ""
    assert _is_clean(names)


def test_an_impossible_hold_has_its_reason(client: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ImpossibleError, match=r"neither iptables nor nft is installed.*TUN"):
        client.call(hold_acks(SERVER_ADDRESS, PORT, 1.0).__enter__)


def _add_ipv6(names: Network) -> None:
    for namespace, device, address in (
        (names.client, "up0", CLIENT_ADDRESS_6),
        (names.middle, "client0", "fd00:213:1::1"),
        (names.middle, "server0", "fd00:213:2::1"),
        (names.server, "up0", SERVER_ADDRESS_6),
    ):
        _ip("-n", namespace, "address", "add", f"{address}/64", "dev", device, "nodad")
    _ip("-n", names.client, "-6", "route", "add", "default", "via", "fd00:213:1::1")
    _ip("-n", names.server, "-6", "route", "add", "default", "via", "fd00:213:2::1")
    for namespace, setting in (
        (names.middle, "net.ipv6.conf.all.forwarding=1"),
        # As many hosts have it: an answer must come from where segments go.
        (names.client, "net.ipv4.conf.all.rp_filter=1"),
        (names.server, "net.ipv4.conf.all.rp_filter=1"),
    ):
        subprocess.run(["ip", "netns", "exec", namespace, "sysctl", "-qw", setting], check=True)


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def _listen() -> socket.socket:
    listener = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = listener.accept()
                threading.Thread(target=_answer, args=(link,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener


def _answer(link: socket.socket) -> None:
    with link, contextlib.suppress(OSError):
        if link.recv(100):
            link.sendall(b"answer")
            link.recv(1)


@contextlib.contextmanager
def _holder(names: Network, kind: str) -> Iterator[subprocess.Popen[str]]:
    command = names.inside(names.client, sys.executable, "-c", HOLDER, kind)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        try:
            yield process
        finally:
            process.kill()


def _children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]


def _is_clean(names: Network, *, server: bool = False) -> bool:
    """No rule of ours, no device, and the filters against spoofed addresses as they were."""
    namespace = names.server if server else names.client
    commands = (
        ["iptables", "-w", "60", "-t", "mangle", "-S"],
        ["ip6tables", "-w", "60", "-t", "mangle", "-S"],
        ["ip", "rule"],
        ["ip", "-6", "rule"],
        ["ip", "link"],
        ["cat", "/proc/sys/net/ipv4/conf/up0/rp_filter"],
    )
    shown = [
        subprocess.run(names.inside(namespace, *command), check=True, capture_output=True, text=True).stdout
        for command in commands
    ]
    return (
        "PEPSCOPE" not in "".join(shown)
        and not any("0x5045" in text or "pepack" in text for text in shown)
        and (shown[-1].strip() == "0")
    )


def _await_clean(names: Network) -> None:
    deadline = time.monotonic() + 60
    while not _is_clean(names):
        assert time.monotonic() < deadline, "rules stayed behind"
        time.sleep(0.05)
