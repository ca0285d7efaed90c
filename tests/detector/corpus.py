"""The corpus of real captures for the detector's tests, and variations of it made from the packet columns."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from detector.options import DetectOptions
from detector.pair import Pair
from detector.pairing.captures import pair_captures
from pepscope import _core
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Mark, PacketColumns, TcpFlag

CORPUS = Path(__file__).parents[1] / "corpus"
RUNS = {run["id"]: run for run in json.loads((CORPUS / "manifest.json").read_text())["runs"]}

#: What a run's captures look like, without what happened on the network.
_FORM = (
    "class", "direction", "app", "proxy_software", "transparent", "active", "trap", "edge", "offload", "nat", "ip",
    "mss_clamp",
)  # fmt: skip
_FILE_FORM = ("container", "linktype", "precision", "snaplen")


def forms(run_id: str) -> set[tuple[str, str]]:
    """Protocols, formats, and what was done to the captures, which stands behind `__` in the run's name."""
    run = RUNS[run_id]
    changed = run_id.partition("__")[2].rstrip("0123456789")
    of_files = {(name, str(file.get(name))) for file in run["files"].values() for name in _FILE_FORM}
    return {("changed", changed), *((name, str(run[name])) for name in _FORM), *of_files}


@functools.lru_cache(maxsize=4)
def capture(name: str):
    return open_capture(str(CORPUS / name))


@dataclass(frozen=True)
class Variation:
    """What to do to a capture: clock changes in seconds and ppm, a step in the middle, lost packets."""

    offset_s: float = 0.0
    drift_ppm: float = 0.0
    step_s: float = 0.0
    lost_share: float = 0.0
    timestamps: bool = True
    seed: int = 0


class WithoutDatagrams:
    """What a capture without UDP flows says of them."""

    datagram_flows = ()

    def datagram_samples(self, number: int):
        raise IndexError(number)

    def packets(self, number: int) -> PacketColumns:
        """Those of one connection, in the captures that derive from this one."""
        raise IndexError(number)

    def packet_keys(self, numbers, forms, most: int):
        """Keys of the packets as they are given, connection by connection."""
        return [_keys([(number, self.packets(number)) for number in numbers], form, most) for form in forms]


def _keys(connections, form: tuple[bool, bool, bool], most: int):
    made = [(number, *_core.packet_keys(packets, *form, most)) for number, packets in connections]
    values = [np.zeros(0, np.uint64), *(value for _, value, _ in made)]
    holders = [np.zeros(0, np.int64), *(np.full(len(value), number, np.int64) for number, value, _ in made)]
    directions = [np.zeros(0, np.int64), *(direction for _, _, direction in made)]
    return np.concatenate(values), np.concatenate(holders), np.concatenate(directions)


class Varied(WithoutDatagrams):
    """A capture with one variation applied to every connection's columns."""

    def __init__(self, source, variation: Variation) -> None:
        self.path = source.path
        self.connections = source.connections
        self._source = source
        self._variation = variation

    def payload(self, number: int):
        return self._source.payload(number)

    def packets(self, number: int) -> PacketColumns:
        return vary(self._source.packets(number), self._variation)


def vary(packets: PacketColumns, variation: Variation) -> PacketColumns:
    time = packets.time_ns.astype(np.int64)
    begin, end = int(time.min()), int(time.max())
    moved = time + np.rint((time - begin) * variation.drift_ppm * 1e-6).astype(np.int64)
    moved += round(variation.offset_s * 1e9)
    moved += np.where(time > (begin + end) // 2, round(variation.step_s * 1e9), 0)
    marks = packets.marks if variation.timestamps else packets.marks & ~np.uint16(Mark.HAS_TIMESTAMPS)
    changed = packets.replaced(time_ns=moved, marks=marks)
    random = np.random.default_rng(variation.seed)
    kept = (random.random(len(time)) >= variation.lost_share) | ((packets.flags & TcpFlag.SYN) != 0)
    return PacketColumns(**{name: getattr(changed, name)[kept] for name in PacketColumns.COLUMNS})


def pairs(run_id: str, mobile: Variation | None = None, server: Variation | None = None, options=None) -> list[Pair]:
    files = RUNS[run_id]["files"]
    sides = [capture(files[side]["name"]) for side in ("mobile", "server")]
    first, second = (Varied(side, how) if how else side for side, how in zip(sides, (mobile, server), strict=True))
    found = list(pair_captures(first, second, options or DetectOptions()))
    # A test that looks at every pair would otherwise hold of none.
    assert len(found) >= len(RUNS[run_id]["flows"]), f"{run_id} has {len(found)} pairs"
    return found


def end_points(pair: Pair) -> tuple[str | None, str | None]:
    """Client end points as the mobile's and the server's capture show them."""
    names = {Path(v.capture).name.split(".")[1][:3]: v.connection.client for v in pair.vantages}
    return names.get("mob"), names.get("srv")


def truth(run_id: str) -> dict[tuple[str | None, str | None], dict[str, Any]]:
    return {(_client(flow, "mobile"), _client(flow, "server")): flow for flow in RUNS[run_id]["flows"]}


def _client(flow: dict[str, Any], side: str) -> str | None:
    shown = flow.get(f"{side}_capture")
    return shown.split(" > ")[0] if shown else None
