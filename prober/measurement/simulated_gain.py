"""What a split gained in simulation where the object and the time without one were the most alike.

The cells are those of the campaign `split-gain` (docs/models/split_gain.md); `python -m benchmarks.split_gain --write`
writes them.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files

import msgspec

#: A cell further off in size or in time than this factor says nothing about a measurement.
FURTHEST = 2.0

_ACCESSES = {"lte": "LTE", "nr": "NR", "satellite": "a satellite", "wlan": "a wireless LAN"}
_CONTROLS = {"cubic": "CUBIC", "bbr": "BBR"}


class SimulatedGain(msgspec.Struct, frozen=True):
    """One cell: the throughput that a split gains, as a share, with both ends of its 95 % interval."""

    access: str
    size_bytes: int
    server_control: str
    #: Of the split point's leg to the mobile.
    box_control: str
    #: Time of the download without a split, mean over the seeds.
    end_to_end_s: float
    gain: float
    gain_low: float
    gain_high: float

    @property
    def reading(self) -> str:
        """The cell in a sentence."""
        size = f"{self.size_bytes / 1e6:g} MB" if self.size_bytes >= 1_000_000 else f"{self.size_bytes / 1e3:g} kB"
        return (
            f"In the nearest simulated cell ({size} over {_ACCESSES[self.access]} in {self.end_to_end_s:.2f} s, "
            f"{_CONTROLS[self.server_control]} at the server, {_CONTROLS[self.box_control]} at the box) a split gains "
            f"{round(100 * self.gain)} % ({round(100 * self.gain_low)} to {round(100 * self.gain_high)} %)."
        )


def nearest_simulated_gain(size_bytes: float, end_to_end_s: float) -> SimulatedGain | None:
    """The cell with the least distance of logarithms of size and time; None where none is within `FURTHEST` in both."""

    def distance(cell: SimulatedGain) -> float:
        return math.hypot(math.log(cell.size_bytes / size_bytes), math.log(cell.end_to_end_s / end_to_end_s))

    near = [
        cell
        for cell in _cells()
        if max(abs(math.log(cell.size_bytes / size_bytes)), abs(math.log(cell.end_to_end_s / end_to_end_s)))
        <= math.log(FURTHEST)
    ]
    return min(near, key=distance, default=None)


@cache
def _cells() -> tuple[SimulatedGain, ...]:
    text = files("prober").joinpath("assets", "split_gain.json").read_bytes()
    return msgspec.json.decode(text, type=tuple[SimulatedGain, ...])
