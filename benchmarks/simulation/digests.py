"""Whether a change of the simulator changes what it simulates: digests of captures and truth of some hundred scenarios.

`python -m benchmarks.simulation.digests FILE [--seeds N]` writes one line for each scenario and seed: its name, the
digest of its captures and that of its truth without the number of events. With `--against OTHER` it compares instead of
only writing, names what differs, and fails if anything does. Library, examples, every family of hosts under every
congestion control and over every kind of hop, split points and applications.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pepscope import _core
from pepscope.errors import ScenarioError
from reference_sim.library import load_scenario, scenario_names
from reference_sim.scenario import Scenario

ROOT = Path(__file__).parents[2]
#: Plug-ins need Python for every packet; their hosts and links are compared without them.
EXAMPLES = ("scenario",)
HOSTS = ("ideal", "linux", "windows", "darwin")
LONGEST_S = 12.0

LOSSY: dict[str, Any] = {
    "kind": "wired",
    "down": {
        "rate_bit_s": 20_000_000,
        "delay_s": 0.02,
        "queue_packets": 60,
        "loss": {"kind": "independent", "probability": 0.002},
    },
    "up": {"rate_bit_s": 5_000_000, "delay_s": 0.02},
}
PLAIN: dict[str, Any] = {
    "kind": "wired",
    "down": {"rate_bit_s": 50_000_000, "delay_s": 0.01, "queue_packets": 200},
    "up": {"rate_bit_s": 20_000_000, "delay_s": 0.01},
}
SHARED = {"rate_bit_s": 30_000_000, "delay_s": 0.005}
BULK: dict[str, Any] = {"kind": "download", "duration_s": 6.0}
TRAFFIC: dict[str, list[dict[str, Any]]] = {
    "bulk": [BULK],
    "both ways": [
        {"kind": "download", "bytes": 2_000_000},
        {"kind": "upload", "bytes": 600_000, "start_s": 0.3},
        {"kind": "both", "down_bytes": 200_000, "up_bytes": 90_000, "start_s": 0.7},
        {"kind": "download", "bytes": 80_000, "start_s": 1.0, "ip_version": 6},
    ],
    "mobiles": [{**BULK, "user": user, "start_s": 0.1 * user} for user in range(4)],
    "pages": [{"kind": "http", "page_bytes": 60_000, "count": 4, "spacing_s": 2.0}],
    "web": [
        {
            "kind": "web",
            "document_bytes": 40_000,
            "pages": 2,
            "think_time_mean_s": 1.0,
            "objects": [{"name": "image", "bytes": 20_000, "count": 6}, {"name": "style", "bytes": 9_000}],
        },
        {"kind": "quic", "requests": 3, "think_time_mean_s": 1.0, "answer_bytes": 60_000},
        {"kind": "ping", "requests": 5},
    ],
    # Nothing else, so that the run ends once the last page has been read.
    "web alone": [
        {
            "kind": "web",
            "document_bytes": 30_000,
            "pages": 2,
            "think_time_mean_s": 0.5,
            "objects": [{"name": "image", "bytes": 15_000, "count": 8}, {"name": "script", "bytes": 40_000}],
        },
    ],
    "talk": [
        {"kind": "video", "segments": 4, "segment_s": 2.0, "buffer_s": 6.0},
        {"kind": "chat", "gap_mean_s": 1.0, "chat_s": 8.0},
        {"kind": "voice", "user": 1},
    ],
}
QUEUES = ("drop-tail", "red", "codel", "pie", "fq-codel")
CROSSES: tuple[dict[str, Any] | None, ...] = (
    None,
    {"kind": "poisson", "rate_bit_s": 8_000_000},
    {"kind": "even", "rate_bit_s": 5_000_000, "packet_bytes": 700},
    {"kind": "flows", "rate_bit_s": 6_000_000},
)
BOXES: dict[str, dict[str, Any]] = {
    "split": {"kind": "split-proxy"},
    "busy split": {"kind": "split-proxy", "takes_time": True, "opening": "after-accept", "read_bytes": 65_536},
    "split of kernels": {
        "kind": "split-proxy",
        "takes_time": True,
        "server_leg": {"host": "linux", "receive_buffer_bytes": 131_072},
        "mobile_leg": {"host": "linux"},
    },
    "acknowledger": {"kind": "local-acknowledger"},
    "impairments": {"kind": "impairments"},
    "policer": {"kind": "policer", "down": {"rate_bit_s": 8_000_000}},
    "radio states": {"kind": "radio-states"},
    "handover": {"kind": "handover"},
    "variable rate": {"kind": "variable-rate"},
    "lte": {"kind": "lte"},
    "hsdpa": {"kind": "hsdpa"},
    "umts": {"kind": "umts-dch"},
}


def controls() -> list[str]:
    """Names of all congestion controls, from the sentence that refuses one which there is not."""
    try:
        Scenario.from_mapping(described({"control": "none-of-this-name"}, [PLAIN], [BULK]))
    except ScenarioError as refusal:
        listed = re.search(r"must be (?:one of )?(.*), got", str(refusal))
        names = re.split(r", or | or |, ", listed[1]) if listed else []
        return [name.strip('"') for name in names if "{" not in name]
    raise AssertionError("a control of any name is accepted")


def described(host: dict[str, Any], path: list[dict[str, Any]], traffic: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": "digest",
        "duration_s": LONGEST_S,
        "server": host,
        "mobile": host,
        "path": path,
        "traffic": traffic,
        "record": {"series_interval_s": 0.5},
    }


def library() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in [*scenario_names(), *(str(ROOT / "examples" / f"{example}.toml") for example in EXAMPLES)]:
        scenario = load_scenario(name)
        shorter = scenario.with_values({"duration_s": min(scenario.duration_s, 2 * LONGEST_S)})
        yield f"library {Path(name).stem}", json.loads(shorter.to_json())


def made() -> Iterator[tuple[str, dict[str, Any]]]:
    for host in HOSTS:
        for control in controls():
            end = {"host": host, "control": control}
            yield f"{host} {control} lossy", described(end, [LOSSY], [BULK])
            yield f"{host} {control} plain", described(end | {"pacing": True}, [PLAIN, LOSSY], TRAFFIC["both ways"])
        for name, traffic in TRAFFIC.items():
            yield f"{host} {name}", described({"host": host}, [PLAIN], traffic)
            yield f"{host} {name} over three", described({"host": host}, [PLAIN, LOSSY, PLAIN], traffic)
        for queue in QUEUES:
            for number, cross in enumerate(CROSSES):
                down = SHARED | {"queue": {"kind": queue, "packets": 150}} | ({"cross": cross} if cross else {})
                hop = {"kind": "managed", "name": "shared", "down": down}
                branch = {"rate_bit_s": 1_000_000_000}
                terminals = [{"down": branch | {"delay_s": 0.004 + 0.01 * user}} for user in range(4)]
                branches = {"kind": "branches", "name": "own", "terminals": terminals}
                yield f"{host} {queue} {number}", described({"host": host}, [hop, branches], TRAFFIC["mobiles"])
        for name, box in BOXES.items():
            for kind in ("bulk", "both ways"):
                path = [PLAIN, {"name": "box", **box}, LOSSY]
                yield f"{host} {name} {kind}", described({"host": host}, path, TRAFFIC[kind])
        without = {"host": host, "timestamps": False, "recovery": "new-reno", "sack": False}
        yield f"{host} without options", described(without, [LOSSY], TRAFFIC["both ways"])
    for server, mobile in (("linux", "darwin"), ("linux", "windows"), ("ideal", "linux"), ("windows", "ideal")):
        mixed = described({"host": server}, [LOSSY], TRAFFIC["both ways"]) | {"mobile": {"host": mobile}}
        yield f"{server} to {mobile}", mixed


def digests(seeds: int) -> Iterator[str]:
    for name, scenario in [*library(), *made()]:
        for seed in range(1, seeds + 1):
            with tempfile.TemporaryDirectory() as directory:
                try:
                    simulated = _core.simulate(json.dumps(scenario | {"seed": seed}), directory, None)
                except ScenarioError as refusal:
                    yield f"{name} {seed}: refused: {refusal}"
                    continue
                files = sorted(Path(directory).glob("*.pcapng"))
                captures = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
            truth = json.loads(simulated.truth_json)
            truth.pop("events", None)
            yield f"{name} {seed}: {captures[:24]} {_digest(truth)}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--against", type=Path)
    chosen = parser.parse_args()
    lines = list(digests(chosen.seeds))
    chosen.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if chosen.against is not None:
        before = set(chosen.against.read_text(encoding="utf-8").splitlines())
        changed = [line for line in lines if line not in before]
        print(f"{len(lines)} runs, {len(changed)} differ", *changed, sep="\n")
        sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
