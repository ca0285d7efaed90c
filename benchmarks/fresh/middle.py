"""A middle between hosts, for middleboxes and proxies: its namespaces and processes while they exist."""

from __future__ import annotations

import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Self

from benchmarks.fresh import namespaces

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path(__file__).parents[2]
READY_S = 20.0


class MiddlePath(ABC):
    """Hosts on both sides of the namespace `middle`; a context manager that ends its processes and removes it all.

    `mobile_address` is that of a client, `directory` holds what processes write, and they draw by `seed`.
    """

    def __init__(self, directory: Path, seed: str, middle: str, mobile_address: str) -> None:
        self.directory = directory
        self.seed = seed
        self.middle = middle
        self.mobile_address = mobile_address
        self._namespaces: list[str] = []
        self._processes: list[subprocess.Popen[str]] = []

    @abstractmethod
    def _build(self) -> None:
        """Make namespaces and links."""

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for name in self._namespaces:
            namespaces.remove(name)

    def _create(self, namespace: str) -> str:
        """Make a namespace; it is removed with the path."""
        self._namespaces.append(namespace)
        namespaces.create(namespace)
        return namespace

    def start(self, namespace: str, *arguments: str, log: str = "") -> subprocess.Popen[str]:
        """Start a process in a namespace; it is ended with the path."""
        return self._spawn(["ip", "netns", "exec", namespace, *arguments], log or f"{len(self._processes)}.log")

    def start_python(self, namespace: str, module: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a module of `benchmarks.fresh` in a namespace."""
        return self.start(
            namespace, sys.executable, "-m", f"benchmarks.fresh.{module}", *arguments, log=f"{module}.out"
        )

    def _spawn(self, arguments: list[str], log: str) -> subprocess.Popen[str]:
        with (self.directory / log).open("w") as output:
            process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        self._processes.append(process)
        return process

    def _spawn_emulator(self, module: str, *arguments: str, errors_to: str) -> subprocess.Popen[str]:
        """Start the process that carries packets between namespaces, and wait until it does."""
        errors_path = self.directory / errors_to
        with errors_path.open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
            )
        self._processes.append(process)
        if process.stdout is None or process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the emulator did not start: {errors_path.read_text()[-300:]}")
        return process

    def wait_listening(self, namespace: str, *ports: int) -> None:
        """Wait until something listens on these TCP ports."""
        deadline = time.monotonic() + READY_S
        missing = set(ports)
        while time.monotonic() < deadline:
            heard = namespaces.inside(namespace, "ss", "-Hltn")
            missing = {port for port in ports if f":{port} " not in heard}
            if not missing:
                return
            time.sleep(0.05)
        raise RuntimeError(f"nothing listens on port {min(missing)} in {namespace}")
