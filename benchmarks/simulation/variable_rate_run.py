"""Seed 003's Fig. 8 for the simulator and its peers: one download, split before the cellular link or not."""

from __future__ import annotations

import json
import math
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pepscope import _core

PEERS = Path(__file__).parent / "peers"
PACKET_BYTES = 512
#: 89 packets a second on average, 25-175 % of it.
LOW_BIT_S, HIGH_BIT_S = (round(share * 89 * PACKET_BYTES * 8) for share in (0.25, 1.75))
NS3_LIBRARIES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")


@dataclass(frozen=True, slots=True)
class Setup:
    """One run."""

    period_s: float
    #: One way, over the cellular link.
    delay_s: float
    is_split: bool
    seed: int
    duration_s: float = 300.0

    def rates_bit_s(self) -> list[int]:
        """One rate a period; the same for whatever is sent over them and however."""
        source = random.Random(f"{self.seed}/{self.period_s}")
        periods = math.ceil(self.duration_s / self.period_s - 1e-9)
        return [round(source.uniform(LOW_BIT_S, HIGH_BIT_S)) for _ in range(periods)]

    def capacity_bytes(self) -> float:
        rates = self.rates_bit_s()
        last_s = self.duration_s - self.period_s * (len(rates) - 1)
        return (sum(rates[:-1]) * self.period_s + rates[-1] * last_s) / 8

    def words(self, directory: Path, duration_s: float | None = None) -> list[str]:
        """Arguments of the peers' programs; writes the file with the rates."""
        rates = directory / f"rates-{self.seed}-{self.period_s}.txt"
        if not rates.exists():
            rates.write_text("".join(f"{rate}\n" for rate in self.rates_bit_s()))
        seconds = self.duration_s if duration_s is None else duration_s
        return [str(rates), str(self.period_s), str(self.delay_s), str(int(self.is_split)), str(seconds)]

    def scenario(self, service: str = "frozen", recovery: str = "new-reno") -> dict[str, Any]:
        """As the peers have it: 15 packets wait and one is in service, an ACK for each segment, timeouts from 0.2 s."""
        end = {
            "control": "reno",
            "recovery": recovery,
            "sack": recovery == "sack",
            "timestamps": False,
            "maximum_segment_size_bytes": PACKET_BYTES - 40,
            "initial_window_segments": 2,
            "delayed_acknowledgement_segments": 1,
            "receive_buffer_bytes": 128 * (PACKET_BYTES - 40),
            "window_scale": -1,
            "restart_after_idle": False,
        }
        steps = [{"duration_s": self.period_s, "rate_bit_s": rate} for rate in self.rates_bit_s()]
        down = {"rates": {"kind": "steps", "steps": steps}, "service": service, "queue_packets": 15}
        back = {"rates": {"kind": "constant", "rate_bit_s": 720_000}, "delay_s": self.delay_s}
        wire = {"rate_bit_s": 100_000_000, "delay_s": 0.01, "queue_packets": 1000}
        proxy = {"kind": "split-proxy", "server_leg": end, "mobile_leg": end, "buffer_bytes": 65_536}
        return {
            "name": "variable-rate",
            "duration_s": self.duration_s,
            "stop_after_finish_s": -1,
            "seed": self.seed,
            "server": end,
            "mobile": end,
            "path": [
                {"kind": "wired", "down": wire},
                *([proxy] if self.is_split else []),
                {"kind": "variable-rate", "name": "cell", "down": down | {"delay_s": self.delay_s}, "up": back},
            ],
            "traffic": [{"kind": "download", "duration_s": self.duration_s}],
        }


def build_ns3(directory: Path) -> Path:
    """Compiles the program for Debian's ns-3 (`libns3-dev`)."""
    program = directory / "variable-rate-ns3"
    libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
    source = str(PEERS / "variable_rate.cc")
    subprocess.run(["g++", "-O2", "-o", str(program), source, *libraries], check=True)
    return program


def utilisation_of_ours(setup: Setup, service: str, recovery: str = "new-reno") -> float:
    """Bytes that the link delivered over those that its rates offered."""
    simulated = _core.simulate(json.dumps(setup.scenario(service, recovery)), None, None)
    counts = json.loads(simulated.truth_json)["hops"][-1]["down"]
    return float(8 * counts["delivered_bytes"] / counts["capacity_bits"])


def utilisation_of_peer(command: list[str], setup: Setup, directory: Path) -> float:
    """The same for a program that prints the bytes which the link sent."""
    done = subprocess.run([*command, *setup.words(directory)], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[0]) / setup.capacity_bytes()


def ns2_command() -> list[str]:
    return ["ns", str(PEERS / "variable_rate.tcl")]
