"""`pepscope probe serve` as its user meets it: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import contextlib
import ftplib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prober.client.control_client import ControlClient
from prober.errors import ControlError
from prober.protocol.control_messages import Key
from prober.server.identity import MARKER
from tests.prober.server.running import is_answered
from tests.prober.serving import without_root

PEPSCOPE = str(Path(sys.executable).with_name("pepscope"))
NAMES = ("control", "http", "https", "ftp", "tcp", "udp_echo", "dead", "http_free", "https_free", "ftp_free")
FREE = [text for name in NAMES for text in ("--port", f"{name}=0")]
#: Below what Linux gives to outgoing connections, and another range for each process that tests.
FIRST_DATA_PORT = 28_000 + os.getpid() % 1000 * 4


def command(state: Path, *options: str) -> list[str]:
    data = ["--port", f"ftp_data={FIRST_DATA_PORT}-{FIRST_DATA_PORT + 3}"]
    return [PEPSCOPE, "probe", "serve", "--state", str(state), *FREE, *data, "--log-format", "json", *options]


class Started:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self.key = Key.parse(process.stdout.readline().removeprefix("KEY "))
        self.mobile_line = process.stdout.readline().strip()
        self.ready: dict[str, Any] = json.loads(process.stderr.readline())

    def control(self) -> ControlClient:
        return ControlClient("127.0.0.1", self.ready["ports"]["control"], self.key, patience_s=2.0)

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@contextlib.contextmanager
def started(state: Path, *options: str) -> Iterator[Started]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command(state, "--listen", "127.0.0.1", *options), stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield Started(process)
        finally:
            if process.poll() is None:
                process.kill()


def test_it_prints_a_key_and_a_line_to_paste(tmp_path: Path) -> None:
    with started(tmp_path, "--host", "probe.example") as server:
        port = server.ready["ports"]["control"]
        assert server.ready["event"] == "ready"
        assert server.mobile_line == (
            f"MOBILE PEPSCOPE_PROBE_KEY={server.key} pepscope probe run plan.toml --server probe.example:{port}"
        )
        with server.control() as mobile:
            assert mobile.about().ports.to_json() == server.ready["ports"]
        assert server.end(signal.SIGTERM) == 0


def bound_ports(process: int) -> set[int]:
    """Ports at which a process listens, or takes datagrams, as its kernel says."""
    links = [str(path.readlink()) for path in Path(f"/proc/{process}/fd").iterdir()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    ports = set()
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def test_it_listens_at_declared_ports_and_nowhere_else(tmp_path: Path) -> None:
    with started(tmp_path) as server, server.control() as mobile, ftplib.FTP() as ftp:
        ports = mobile.about().ports
        declared = {ports.control, *ports.services, ports.dead, ports.udp_echo}
        assert bound_ports(server.process.pid) == declared
        ftp.connect("127.0.0.1", ports.ftp, timeout=60)
        ftp.login(mobile.session, "x")
        data_port = ftp.makepasv()[1]
        assert ports.ftp_data[0] <= data_port <= ports.ftp_data[1]
        assert bound_ports(server.process.pid) == {*declared, data_port}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: int) -> None:
    """In the middle of captures, holds, silences and a transfer: no file, no rule, no process stays."""
    with started(tmp_path) as server:
        mobile = server.control()
        mobile.start_capture("x", 100)
        ports = server.ready["ports"]
        hold = mobile.hold_acks(ports["tcp"][0], 0.2, 60)
        silence = mobile.silence(ports["http"], 60)
        hold.__enter__()
        silence.__enter__()
        assert list(tmp_path.glob("captures/*/*.pcap"))
        chains = chains_of(ports["tcp"][0])
        assert chains
        assert server.end(number) == 0
        mobile.close()
        with pytest.raises(Exception, match="closed"):
            hold.__exit__(None, None, None)
        with pytest.raises(Exception, match="closed"):
            silence.__exit__(None, None, None)
        assert server.process.stderr is not None
        assert not [line for line in server.process.stderr if "trace" in json.loads(line)]
    left = {path.name for path in tmp_path.iterdir()} - {MARKER}
    assert left == {"archives", "captures", "certificate.pem", "lock", "running-time", "token"}
    assert not list((tmp_path / "captures").iterdir())
    assert not lines_with(chains)


def rules() -> list[str]:
    """Of the whole host: other tests may have theirs there at the same time."""
    listing = ["iptables", "-w", "60", "-t", "mangle", "-S"]
    return subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines()


def chains_of(port: int) -> set[str]:
    """Names of the chains that hold ACKs of a server's port."""
    found = (re.match(rf"-A (PEPSCOPE-ACK-\d+) .*--sport {port} ", line) for line in rules())
    return {match[1] for match in found if match}


def lines_with(chains: set[str]) -> list[str]:
    """Rules in these chains or that lead to them, and the chains themselves."""
    return [line for line in rules() if chains & set(line.split())]


def test_what_a_kill_leaves_the_next_start_and_the_keeper_clean_up(tmp_path: Path) -> None:
    with started(tmp_path) as server, contextlib.closing(server.control()) as mobile:
        mobile.start_capture("x", 100)
        mobile.session  # noqa: B018
        port = server.ready["ports"]["tcp"][0]
        hold = mobile.hold_acks(port, 0.2, 60)
        hold.__enter__()
        chains = chains_of(port)
        assert chains
        key = server.key
        server.end(signal.SIGKILL)
        mobile.close()
        with pytest.raises(Exception, match="closed"):
            hold.__exit__(None, None, None)
    assert list(tmp_path.glob("captures/*/*.pcap"))
    deadline = time.monotonic() + 60
    while lines_with(chains):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with started(tmp_path) as server:
        assert server.key == key
        assert not list(tmp_path.glob("captures/*/*.pcap"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--port", "smtp=25"], "must name one of"),
        (["--port", "http"], "must be http=NUMBER"),
        (["--port", "http=80,81"], "must give http one port"),
        (["--port", "http=70000"], "ports.http must be a whole number between 0 and 65535, got 70000"),
        (["--port", "ftp_data=50-40"], "ports.ftp_data must be the first and the last port"),
        (["--set", "limits.sessions"], "--set must be FIELD=VALUE"),
        (["--set", "limits.sessions=many"], "limits.sessions must be a whole number"),
        (["--set", "limits.head_s=nan"], "limits.head_s must be a number between 0.05 and 600, got nan"),
        (["--set", "limits.nothing=1"], "limits.nothing is not a field; fields of limits are"),
        (["--set", "limits=1"], "limits must be a table"),
        (["--set", "listen.x=1"], "listen must be a list"),
        (["--config", "/nonexistent.toml"], "No such file"),
        (["--listen", "192.0.2.77"], "cannot listen on 192.0.2.77"),
        (["--listen", "here"], "cannot listen on here"),
    ],
)
def test_invalid_settings_are_refused_in_one_sentence(tmp_path: Path, options: list[str], sentence: str) -> None:
    run = subprocess.run(command(tmp_path, *options), capture_output=True, text=True, timeout=600)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("pepscope: ")
    assert sentence in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_port_in_use_is_reported_with_the_remedy(tmp_path: Path) -> None:
    with started(tmp_path / "one") as server:
        port = server.ready["ports"]["http"]
        options = ["--listen", "127.0.0.1", "--port", f"http={port}"]
        run = subprocess.run(command(tmp_path / "two", *options), capture_output=True, text=True, timeout=600)
    assert run.returncode == 2
    assert f"port {port} (http): Address already in use; choose another: --port http=PORT" in run.stderr


def test_a_configuration_file_counts_less_than_flags(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        'interface = "lo"\n[limits]\nsessions = 3\nobject_bytes = "2MB"\ncapture_bytes = "1MiB"\n'
    )
    options = ["--config", str(tmp_path / "c.toml"), "--set", "limits.object_bytes=3MB"]
    with started(tmp_path / "state", *options) as server, server.control() as mobile:
        limits = mobile.about().limits
    assert (limits["object_bytes"], limits["capture_bytes"]) == (3_000_000, 1 << 20)


def test_without_root_the_server_lists_missing_capabilities(tmp_path: Path) -> None:
    """Captures and holds are told as impossible; everything else is served, and the dead port is dead."""
    pipe = subprocess.PIPE
    bare = [*without_root(), *command(tmp_path, "--listen", "127.0.0.1")]
    with subprocess.Popen(bare, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            server = Started(process)
            with server.control() as mobile:
                about = mobile.about()
                assert "CAP_NET_RAW" in about.can.captures
                assert "CAP_NET_ADMIN" in about.can.holds
                assert not is_answered(about.ports.dead)
                assert all(is_answered(port) for port in about.ports.services)
                with pytest.raises(ControlError, match=r"(?i)permi"):
                    mobile.start_capture("x", 100)
                with pytest.raises(ControlError, match="CAP_NET_ADMIN"):
                    mobile._begin("holds", {"port": about.ports.http, "delay_s": 1}, "hold")
                if about.can.silences:
                    with pytest.raises(ControlError, match="not permitted"):
                        mobile._begin("silences", {"port": about.ports.http}, "silence")
            assert server.end(signal.SIGTERM) == 0
        finally:
            process.kill()


def test_without_root_a_low_port_is_refused_with_the_way_out(tmp_path: Path) -> None:
    if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 81:
        return  # this host lets everybody have it
    bare = [*without_root(), *command(tmp_path, "--listen", "127.0.0.1", "--port", "http=81")]
    run = subprocess.run(bare, capture_output=True, text=True, timeout=600)
    assert run.returncode == 2
    assert "CAP_NET_BIND_SERVICE, or choose another: --port http=PORT" in run.stderr


def test_missing_packages_are_named_with_the_install_command(tmp_path: Path) -> None:
    program = "import sys; sys.modules['pyftpdlib'] = None; from pepscope.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", program, *command(tmp_path)[1:]], capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 2
    assert run.stderr.startswith("pepscope: the server needs the package pyftpdlib")
    assert "pip install 'pepscope[probe]'" in run.stderr
