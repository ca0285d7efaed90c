"""`pepscope proxy split` beside HAProxy in TCP mode, bulk and connections.

As root, on Linux. Both run in the same namespaces, in turn, each on one processor with what loads it on the others; the
medians of their rates are compared, and the processor time that each took. HAProxy has the fastest settings that were
found: it splices always, through pipes of 1 MiB. The server answers as the client asks: one process in its namespace,
another in the client's.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.end_to_end.network import MIDDLE_CLIENT_ADDRESS, SERVER_ADDRESS, Network, network, running

PEPSCOPE = str(Path(sysconfig.get_path("scripts")) / "pepscope")
PROXY_PORT = 8888
PORT = 5001
BULK_CHUNK = 1 << 18
TICKS_S = os.sysconf("SC_CLK_TCK")

HAPROXY = f"""
global
    nbthread 1
    maxconn 4000
    tune.pipesize 1048576
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option splice-request
    option splice-response
listen split
    bind {MIDDLE_CLIENT_ADDRESS}:{PROXY_PORT} backlog 4096
    server only {SERVER_ADDRESS}:{PORT}
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What one proxy did in one run: bytes or connections a second, and the time that it had a processor."""

    rate: float
    processor_s: float


def serve() -> None:
    """`b`: bytes until the client leaves; anything else: one byte back, and the end."""
    listener = socket.create_server((SERVER_ADDRESS, PORT), backlog=4096)
    piece = bytes(BULK_CHUNK)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    while True:
        sock, _ = listener.accept()
        if sock.recv(1) != b"b":
            sock.send(b"x")
            sock.close()
        elif os.fork() == 0:
            try:
                while True:
                    sock.sendall(piece)
            except OSError:
                os._exit(0)
        else:
            sock.close()


def load(kind: str, seconds: str) -> None:
    """Take bytes, or make connections one after another, for so long; print the rate."""
    until = time.monotonic() + float(seconds)
    begun = time.monotonic()
    count = 0
    address = MIDDLE_CLIENT_ADDRESS, PROXY_PORT
    if kind == "bulk":
        buffer = bytearray(1 << 20)
        with socket.create_connection(address) as sock:
            sock.sendall(b"b")
            while time.monotonic() < until:
                count += sock.recv_into(buffer)
    else:
        while time.monotonic() < until:
            with socket.create_connection(address) as sock:
                sock.sendall(b"c")
                while sock.recv(10):
                    pass
            count += 1
    print(json.dumps({"rate": count / (time.monotonic() - begun)}))


def processor_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


@contextmanager
def proxy(names: Network, name: str, directory: str) -> Iterator[subprocess.Popen[str]]:
    """One of the two, on the first processor."""
    if name == "haproxy":
        file = Path(directory, "haproxy.conf")
        file.write_text(HAPROXY)
        command = ["haproxy", "-db", "-f", str(file)]
    else:
        listen = f"{MIDDLE_CLIENT_ADDRESS}:{PROXY_PORT}"
        command = [PEPSCOPE, "proxy", "split", "--listen", listen, "--target", f"{SERVER_ADDRESS}:{PORT}"]
        # As HAProxy, without a line a connection.
        command += [
            "--log-level",
            "warning",
            "--set",
            "limits.connections=4000",
            "--set",
            "limits.memory_bytes=4294967296",
        ]
    inside = names.inside(names.middle, "taskset", "-c", "0", *command)
    with subprocess.Popen(inside, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            await_listener(names)
            yield process
        finally:
            process.terminate()


def await_listener(names: Network) -> None:
    """Wait until something listens at the proxy's port."""
    asked = names.inside(names.middle, "ss", "-Hltn", f"sport = :{PROXY_PORT}")
    deadline = time.monotonic() + 10
    while not subprocess.run(asked, capture_output=True, check=True).stdout:
        if time.monotonic() > deadline:
            raise RuntimeError("the proxy does not listen")
        time.sleep(0.05)


def measure(names: Network, name: str, kind: str, seconds: float, directory: str, clients: int) -> Run:
    """Load one proxy."""
    loading = [sys.executable, "-m", "benchmarks.loads.proxy_throughput", "load", kind, str(seconds)]
    with proxy(names, name, directory) as process:
        before = processor_s(process.pid)
        command = names.inside(names.client, *loading)
        loads = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(clients)]
        rates = [json.loads(one.communicate(timeout=seconds + 30)[0])["rate"] for one in loads]
        return Run(sum(rates), processor_s(process.pid) - before)


def main() -> int:
    """Run both in turn; exit status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one run")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    goals = {"bulk": 0.5, "connections": 0.3}
    results = {}
    with network() as names, tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        serving = names.inside(names.server, sys.executable, "-m", "benchmarks.loads.proxy_throughput", "serve")
        stack.enter_context(running(serving, "ready"))
        for kind in goals:
            runs: dict[str, list[Run]] = {"haproxy": [], "pepscope": []}
            for _ in range(arguments.repetitions):
                for name, done in runs.items():
                    done.append(measure(names, name, kind, arguments.seconds, directory, 1 if kind == "bulk" else 4))
            results[kind] = summarise(kind, runs, arguments.seconds)
    print(json.dumps(results, indent=2))
    return int(any(results[kind]["ratio"] < goal for kind, goal in goals.items()))


def summarise(kind: str, runs: dict[str, list[Run]], seconds: float) -> dict[str, float]:
    """Medians, and pepscope's share of HAProxy's; `per_processor_ratio` counts processor time only."""
    rate = {name: statistics.median(run.rate for run in done) for name, done in runs.items()}
    efficiency = {
        name: statistics.median(run.rate * seconds / max(run.processor_s, 1 / TICKS_S) for run in done)
        for name, done in runs.items()
    }
    unit, scale = ("Gbit/s", 8e-9) if kind == "bulk" else ("connections/s", 1.0)
    return {
        f"haproxy {unit}": round(rate["haproxy"] * scale, 3),
        f"pepscope {unit}": round(rate["pepscope"] * scale, 3),
        "ratio": round(rate["pepscope"] / rate["haproxy"], 3),
        "per_processor_ratio": round(efficiency["pepscope"] / efficiency["haproxy"], 3),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["load"]:
        load(*sys.argv[2:])
    else:
        raise SystemExit(main())
