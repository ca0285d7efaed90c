"""What this machine has: packages, capabilities, devices, programs. Each check says what it found, and a remedy."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pepscope.captures.opening import libpcap
from pepscope.extras import requirements

_BASE = "base"
#: Numbers of Linux capabilities (linux/capability.h).
CAPABILITIES = {"CAP_NET_BIND_SERVICE": 10, "CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}
_TUN_DEVICE = Path("/dev/net/tun")
_UNSHARE_NETWORK = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x40000000) != 0)"  # CLONE_NEWNET


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a command may need. `remedy` says how to get it, and is empty where it is there."""

    name: str
    passed: bool
    found: str
    remedy: str = ""


def all_checks() -> dict[str, Check]:
    """Every check by its name."""
    made = [*_extras(), _core(), _libpcap(), _linux(), *_capabilities(), _tun(), _namespaces(), *_programs()]
    return {check.name: check for check in made}


def interfaces() -> list[str]:
    """Names of the network interfaces."""
    try:
        return [name for _, name in socket.if_nameindex()]
    except OSError:
        return []


def _extras() -> list[Check]:
    return [_packages(extra or _BASE, names) for extra, names in requirements().items()]


def _packages(extra: str, names: list[str]) -> Check:
    found, missing = [], []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    told = ", ".join(found + [f"{name} missing" for name in missing])
    install = "pip install pepscope" if extra == _BASE else f"pip install 'pepscope[{extra}]'"
    return Check(f"extra {extra}" if extra != _BASE else _BASE, not missing, told, install if missing else "")


def _core() -> Check:
    try:
        from pepscope import _core as compiled
    except ImportError as error:
        return Check("core", passed=False, found=str(error), remedy="pip install --force-reinstall pepscope")
    build = "release build" if compiled.is_release_build else "debug build, slow"
    return Check("core", passed=True, found=f"pepscope._core {compiled.__version__}, {build}")


def _libpcap() -> Check:
    try:
        return Check("libpcap", passed=True, found=libpcap.library().pcap_lib_version().decode())
    except OSError as error:
        return Check("libpcap", passed=False, found=" ".join(str(error).split(": ")[:1]), remedy=libpcap.REMEDY)


def _linux() -> Check:
    is_linux = sys.platform == "linux"
    return Check("Linux", is_linux, sys.platform, "" if is_linux else "this needs a Linux machine, virtual or real")


def _capabilities() -> list[Check]:
    held = _effective_capabilities()
    return [
        Check(name, bool(held >> bit & 1), "held" if held >> bit & 1 else "not held", _remedy(bool(held >> bit & 1)))
        for name, bit in CAPABILITIES.items()
    ]


def _remedy(is_held: bool) -> str:
    return "" if is_held else "run as root, for example with sudo"


def _effective_capabilities() -> int:
    """The effective set of this process as a bit mask; none where the system has no capabilities."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


def _tun() -> Check:
    try:
        os.close(os.open(_TUN_DEVICE, os.O_RDWR))
    except OSError as error:
        remedy = "modprobe tun; in a container: --device /dev/net/tun"
        return Check("TUN", passed=False, found=f"{_TUN_DEVICE}: {error.strerror}", remedy=remedy)
    return Check("TUN", passed=True, found=f"{_TUN_DEVICE} opens")


def _namespaces() -> Check:
    """Whether a process may make a network namespace; a child tries, so that we stay where we are."""
    if sys.platform != "linux":
        return Check("namespaces", passed=False, found=sys.platform, remedy="this needs a Linux machine")
    tried = subprocess.run([sys.executable, "-S", "-c", _UNSHARE_NETWORK], capture_output=True, check=False)
    if tried.returncode == 0:
        return Check("namespaces", passed=True, found="network namespaces can be made")
    remedy = "run as root (CAP_SYS_ADMIN); in a container: --privileged"
    return Check("namespaces", passed=False, found="network namespaces are refused", remedy=remedy)


def _programs() -> list[Check]:
    firewall = next((path for name in ("nft", "iptables") if (path := shutil.which(name))), None)
    ip = shutil.which("ip")
    return [
        Check("ip", ip is not None, ip or "not found", "" if ip else "install the system's package iproute2"),
        Check(
            "firewall",
            firewall is not None,
            firewall or "neither nft nor iptables",
            "" if firewall else "install the system's package nftables",
        ),
    ]
