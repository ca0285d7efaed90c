"""Network namespaces of one experiment: made, used and removed again."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Every namespace that this package makes begins so.
PREFIX = "pepscope-fresh"
_CLONE_NEWNET = 0x40000000
_DIRECTORY = Path("/run/netns")


def create(name: str) -> None:
    """Make a namespace with its loopback up and no filter on where packets come from."""
    command("ip", "netns", "add", name)
    inside(name, "ip", "link", "set", "lo", "up")
    settings = {
        "net.ipv4.ip_forward": "1",
        "net.ipv6.conf.all.forwarding": "1",
        "net.ipv4.conf.all.rp_filter": "0",
        "net.ipv4.conf.default.rp_filter": "0",
        "net.ipv6.conf.all.accept_dad": "0",
        "net.ipv6.conf.default.accept_dad": "0",
    }
    sysctl(name, settings)


def remove(name: str) -> None:
    """End what still runs in the namespace and delete it; nothing happens where there is none."""
    if not (_DIRECTORY / name).exists():
        return
    listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
    for process in listed.split():
        try:
            os.kill(int(process), signal.SIGKILL)
        except ProcessLookupError:
            continue
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def enter(name: str) -> None:
    """Move the calling thread into a namespace."""
    with (_DIRECTORY / name).open() as handle:
        _setns(handle.fileno())


def _setns(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter the network namespace")


def command(*arguments: str) -> str:
    """Run a command that must succeed; its standard output."""
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def inside(name: str, *arguments: str) -> str:
    """Run a command that must succeed inside a namespace; its standard output."""
    return command("ip", "netns", "exec", name, *arguments)


def sysctl(name: str, settings: Mapping[str, str]) -> None:
    """Set kernel parameters of a namespace."""
    if settings:
        inside(name, "sysctl", "-q", "-w", *(f"{key}={value}" for key, value in settings.items()))
