"""What an archive should remember of the circumstances: both clocks, the mobile's host and device, the user's notes."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pepscope
from pepscope.errors import UsageError
from prober import devices, kernel_clock
from prober.experiment import Json

if TYPE_CHECKING:
    from prober.control_client import ControlClient
    from prober.protocol import About

SCHEMA = 1
#: Exchanges for one estimate; the fastest counts, whose offset is bounded best.
EXCHANGES = 5
#: What of TCP's settings changes how a transfer looks, as files below /proc/sys/net.
_SETTINGS = (
    "ipv4/tcp_congestion_control",
    "ipv4/tcp_available_congestion_control",
    "ipv4/tcp_rmem",
    "ipv4/tcp_wmem",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_sack",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_ecn",
    "ipv4/tcp_fastopen",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_no_metrics_save",
    "ipv4/tcp_mtu_probing",
    "ipv4/ip_default_ttl",
    "core/default_qdisc",
    "core/rmem_max",
    "core/wmem_max",
)
_MOST_NOTES = 50
_NOTE_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,60}")
_LONGEST_NOTE = 500


@dataclass(frozen=True, slots=True)
class ClockSample:
    """How far the server's clock was ahead of the mobile's, in one exchange over the control channel.

    The truth lies within `uncertainty_s` of `offset_s` (half the round trip; RFC 5905, section 8, with the server's
    two times equal), however unlike the two ways are.
    """

    at_unix_ns: int
    offset_s: float
    uncertainty_s: float
    server_synchronised: bool


def sample_clocks(control: ControlClient, exchanges: int = EXCHANGES) -> ClockSample:
    """Ask the server's clock several times, and keep the answer that came fastest. Raises ControlError."""
    samples = []
    for _ in range(exchanges):
        # The wall clock may be set meanwhile, so that only the steady one tells how long the exchange took.
        sent_unix_ns, sent_ns = time.time_ns(), time.monotonic_ns()
        clock = control.clock()
        taken_ns = time.monotonic_ns() - sent_ns
        offset_ns = clock.unix_ns - (sent_unix_ns + taken_ns // 2)
        samples.append(ClockSample(sent_unix_ns, offset_ns / 1e9, taken_ns / 2e9, clock.synchronised))
    return min(samples, key=lambda sample: sample.uncertainty_s)


def host_facts(device: str | None) -> dict[str, Json]:
    """The mobile's kernel, its TCP settings, and the device that leads to the server."""
    facts: dict[str, Json] = {
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "pepscope": pepscope.__version__,
        "clock_synchronised": kernel_clock.is_synchronised(),
        "settings": {name: value for name in _SETTINGS if (value := _setting(name)) is not None},
    }
    if device is not None:
        facts["device"] = {
            "name": device,
            "mtu_bytes": devices.mtu_bytes(device),
            "offloads": devices.offloads(device),
        }
    return facts


def _setting(name: str) -> str | None:
    try:
        return " ".join(Path("/proc/sys/net", name).read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return None


def parse_note(text: str) -> tuple[str, str]:
    """`KEY=VALUE` of the command line. Raises UsageError."""
    name, mark, value = text.partition("=")
    if not mark or _NOTE_NAME.fullmatch(name) is None or not 0 < len(value) <= _LONGEST_NOTE:
        raise UsageError(f"a note reads KEY=VALUE, such as operator=CDMA-I, not {text[:60]!r}")
    return name, value


def parse_notes(texts: tuple[str, ...]) -> dict[str, str]:
    """All notes of a command line. Raises UsageError."""
    notes = dict(parse_note(text) for text in texts)
    if len(texts) > _MOST_NOTES or len(notes) < len(texts):
        raise UsageError(f"notes have different keys, and there are at most {_MOST_NOTES}")
    return notes


def circumstances(device: str | None, about: About) -> dict[str, Json]:
    """What is known of both ends before anything was measured."""
    return {
        "mobile": host_facts(device),
        "server": {"version": about.version, **dict(about.host)},
        "server_can": about.can.to_json(),
        "server_ports": about.ports.to_json(),
    }


def run_facts(known: Mapping[str, Json], clocks: list[ClockSample], notes: Mapping[str, str]) -> dict[str, Json]:
    """The document `facts.json` of an archive."""
    return {"schema": SCHEMA, **known, "clock": [asdict(sample) for sample in clocks], "notes": dict(notes)}
