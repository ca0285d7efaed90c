"""Real Dask schedulers and workers in processes of their own, to be killed and started again."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[3]

#: Runs the `dask` command where another version of a package seems to be installed.
_CHANGED = """
from importlib import metadata
installed = metadata.version
metadata.version = lambda name: {version!r} if name == {module!r} else installed(name)
from dask.__main__ import main
main()
"""

#: The dashboard's own port is another cluster's; Dask opens it even where it shows none.
_ANY_PORT = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")


class Cluster:
    """A scheduler on a port of its own, and workers with one thread each and no nanny."""

    def __init__(self, failures: int = 1) -> None:
        """Work that lost more workers than `failures` is to blame; Dask's default of 3 takes four to start."""
        self._failures = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures)}
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port: int = server.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._running: list[subprocess.Popen[bytes]] = []

    def start_scheduler(self, changed: tuple[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start it, again on the same port after the one before died; `changed` is a module and its other version."""
        arguments = ["scheduler", "--host", "127.0.0.1", "--port", str(self.port), *_ANY_PORT]
        scheduler = self._start(arguments, changed)
        deadline = time.monotonic() + 120
        while not self._answers():
            assert scheduler.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return scheduler

    def _answers(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def start_worker(self, changed: tuple[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start one; it waits for the scheduler."""
        return self._start(
            [
                "worker",
                self.address,
                "--nthreads",
                "1",
                "--no-nanny",
                "--dashboard-address",
                "127.0.0.1:0",
                "--death-timeout",
                "120",
            ],
            changed,
        )

    def _start(self, arguments: list[str], changed: tuple[str, str] | None) -> subprocess.Popen[bytes]:
        program = ["-m", "dask"] if changed is None else ["-c", _CHANGED.format(module=changed[0], version=changed[1])]
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            env=os.environ | {"PYTHONPATH": str(_ROOT)} | self._failures,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._running.append(process)
        return process

    @contextmanager
    def kept_at(self, workers: int) -> Iterator[None]:
        """Meanwhile start a worker for each that dies."""
        ended = threading.Event()

        def replace() -> None:
            while not ended.wait(0.1):
                alive = sum(process.poll() is None for process in self._running[1:])
                for _ in range(workers - alive):
                    self.start_worker()

        keeper = threading.Thread(target=replace)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()

    def workers(self) -> int:
        """How many the scheduler knows."""
        import distributed

        with distributed.Client(self.address, timeout=60, set_as_default=False) as client:
            return len(client.nthreads())

    def stop(self) -> None:
        """Kill all that still runs."""
        for process in self._running:
            process.kill()
            process.wait()


@contextmanager
def cluster(workers: int) -> Iterator[Cluster]:
    """A scheduler with so many workers."""
    running = Cluster()
    try:
        running.start_scheduler()
        for _ in range(workers):
            running.start_worker()
        yield running
    finally:
        running.stop()


@contextmanager
def local_cluster(*, processes: bool) -> Iterator[str]:
    """The address of a scheduler in this process, with one worker of one thread."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=processes, dashboard_address="127.0.0.1:0"
    ) as running:
        yield running.scheduler_address
    # Dask leaves sockets open that end with its objects: collected later, they would fail another test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
