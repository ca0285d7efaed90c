"""Unnamed network namespaces: the kernel removes them when this process ends, however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeVar

from pepscope.errors import LivePathError

_CLONE_NEWNET = 0x40000000
_LISTENING = "0A"  # TCP_LISTEN as /proc/net/tcp writes it
_ENDING_S = 2.0
_WATCHDOG = Path(__file__).with_name("cleanup_watchdog.py")

Result = TypeVar("Result")


class Namespace:
    """A network namespace, and the thread of this process that is in it.

    That thread starts the processes inside, and the kernel ends them when the thread ends. The kernel removes the
    namespace itself once no process, thread or descriptor holds it.
    """

    def __init__(self, name: str) -> None:
        """Make one. Raises LivePathError without the privilege to do so."""
        self.name = name
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"pepscope-{name}")
        self._processes: list[subprocess.Popen[str]] = []
        try:
            self._task = self._thread.submit(_unshare).result()
        except BaseException:
            self._thread.shutdown()
            raise
        self.inode = Path(self.path).stat().st_ino

    @property
    def path(self) -> str:
        """Its file, for `nsenter --net=PATH`."""
        return f"/proc/{os.getpid()}/task/{self._task}/ns/net"

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function inside. Sockets made there stay there."""
        return self._thread.submit(function, *arguments).result()

    def ip(self, *lines: str) -> None:
        """Run lines of `ip -batch` inside. Raises LivePathError."""
        done = self.call(_run_batch, "\n".join(lines) + "\n")
        if done.returncode != 0:
            complaint = " ".join(done.stderr.split())
            raise LivePathError(f"ip could not set up the namespace of the {self.name}: {complaint}")

    def set_parameters(self, parameters: Mapping[str, str]) -> None:
        """Set kernel parameters (`net.ipv4.ip_forward`) of the namespace; one that the kernel lacks is an error."""
        self.call(_write_parameters, parameters)

    def start(self, arguments: Sequence[str], *, detached: bool, **options: Any) -> subprocess.Popen[str]:
        """Start a process inside; a `detached` one has a session of its own and so no terminal's Ctrl-C.

        Raises LivePathError where there is no such command.
        """
        search_path = options.get("env", os.environ).get("PATH")
        if shutil.which(arguments[0], path=search_path) is None:
            raise LivePathError(f"there is no command {arguments[0]}")
        # Ends the process with our thread, and so with us even if we are killed.
        guard = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        process: subprocess.Popen[str] = self.call(
            lambda: subprocess.Popen([*guard, *arguments], text=True, start_new_session=detached, **options)
        )
        self._processes.append(process)
        return process

    def listens(self) -> bool:
        """Whether any TCP or UDP socket inside is listening."""
        return self.call(_listens)

    def end_processes(self) -> None:
        """Ask processes to end, then end all that is left in the namespace."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + _ENDING_S
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        end_all_in({self.inode})
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING_S)
        self._processes.clear()

    def close(self) -> None:
        """End all processes inside and release the namespace."""
        self.end_processes()
        self._thread.shutdown()


class CleanupWatchdog:
    """A process that kills everything in the namespaces if this process ends without closing it, even by SIGKILL."""

    def __init__(self, namespaces: Iterable[Namespace]) -> None:
        inodes = [str(namespace.inode) for namespace in namespaces]
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_WATCHDOG), *inodes], stdin=subprocess.PIPE, start_new_session=True
        )

    def close(self) -> None:
        """End the watchdog process."""
        stdin: IO[bytes] | None = self._process.stdin
        if stdin is not None:
            stdin.close()
        self._process.wait()


def end_all_in(inodes: set[int]) -> None:
    """Kill every process whose network namespace is one of these, but for ourselves, until there is none."""
    deadline = time.monotonic() + _ENDING_S
    while time.monotonic() < deadline:
        found = [process for process in _processes() if process != os.getpid() and _inode_of(process) in inodes]
        if not found:
            return
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _inode_of(process: int) -> int:
    """0 for a process that is gone or a zombie."""
    try:
        return Path(f"/proc/{process}/ns/net").stat().st_ino
    except OSError:
        return 0


def _unshare() -> int:
    """Put this thread into a namespace of its own; its number."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(_CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise LivePathError(f"network namespaces need root (CAP_SYS_ADMIN): {reason}")
    return threading.get_native_id()


def _run_batch(lines: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["ip", "-batch", "-"], input=lines, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LivePathError("the command `ip` is not installed (Debian's package iproute2)") from None


def _write_parameters(parameters: Mapping[str, str]) -> None:
    for name, value in parameters.items():
        # What /proc/sys/net shows is the namespace of the thread that opens it.
        try:
            Path("/proc/sys", *name.split(".")).write_text(value, encoding="ascii")
        except OSError as error:
            raise LivePathError(f"the kernel does not take {name} = {value}: {error.strerror}") from None


def _listens() -> bool:
    directory = Path("/proc/thread-self/net")
    for table, state in (("tcp", _LISTENING), ("tcp6", _LISTENING), ("udp", None), ("udp6", None)):
        try:
            rows = (directory / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        if any(state is None or row.split()[3] == state for row in rows):
            return True
    return False
