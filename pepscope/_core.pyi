"""The Rust crates as Python sees them; `pepscope.capture` is the interface for people."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Capture",
    "LivePath",
    "Simulated",
    "SlidingMode",
    "__version__",
    "acknowledgement_steps",
    "check_scenario",
    "data_ranges",
    "is_release_build",
    "read_capture",
    "simulate",
]

_Ranges: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]

__version__: Final[str]
is_release_build: Final[bool]

def read_capture(
    path: str,
    filter_programs: Mapping[int, Sequence[tuple[int, int, int, int]]] | None,
    memory_bytes: int,
    payload: bool,
    columns: bool,
    progress: Callable[[int, int], object] | None,
) -> Capture:
    """Read and analyse a capture; `progress` gets bytes read and in all. Raises CaptureError, OSError."""

def data_ranges(
    wanted: int,
    time_ns: npt.NDArray[np.int64],
    direction: npt.NDArray[np.uint8],
    sequence_offset: npt.NDArray[np.int64],
    payload_bytes: npt.NDArray[np.uint32],
) -> tuple[_Ranges, _Ranges]:
    """Data of direction `wanted` as (start, end, time): ascending disjoint ranges beyond everything sent before, and
    the segments that begin below that, whole."""

def acknowledgement_steps(
    wanted: int,
    time_ns: npt.NDArray[np.int64],
    direction: npt.NDArray[np.uint8],
    acknowledgement_offset: npt.NDArray[np.int64],
    payload_bytes: npt.NDArray[np.uint32],
    flags: npt.NDArray[np.uint16],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Acknowledgements of the data of direction `wanted` that advance, without resets: value, time, and whether the
    packet carried neither payload nor SYN or FIN."""

@final
class Capture:
    """A capture as read."""

    @property
    def packet_count(self) -> int: ...
    @property
    def tcp_packet_count(self) -> int: ...
    @property
    def time_span_ns(self) -> tuple[int, int] | None:
        """Times of the first and the last frame of any kind."""

    @property
    def connection_count(self) -> int: ...
    @property
    def partition_count(self) -> int: ...
    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def link_types(self) -> list[tuple[int, str]]:
        """Number and name of the known link types that have packets."""

    def connection(self, index: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Fields of the connection, of its flow up and of its flow down."""

    def connection_columns(self, start: int, stop: int) -> dict[str, npt.NDArray[Any]]:
        """Summaries of these connections as arrays."""

    def connections_json(self, start: int, stop: int) -> bytes:
        """JSON objects of these connections with commas between them."""

    def partition_of(self, index: int) -> int:
        """Which part holds the packets of a connection."""

    def packet_columns(self, index: int) -> tuple[npt.NDArray[Any], ...]:
        """The packets of a connection: columns as in PacketColumns."""

    def sack_blocks(self, index: int) -> tuple[npt.NDArray[Any], ...]:
        """Row, left and right edge of the SACK blocks of a connection."""

    @property
    def datagram_flow_count(self) -> int: ...
    def datagram_flow(self, index: int) -> dict[str, Any]:
        """Fields of one UDP flow."""

    def datagram_samples(self, index: int) -> list[tuple[list[int], list[int], list[int], list[bytes]]]:
        """Rank, time, length and kept bytes of the datagrams kept of each side."""

    def payload(self, index: int) -> list[tuple[list[int], list[bytes]]]:
        """Stream offsets and pieces of each direction."""

def check_scenario(scenario: str) -> str:
    """Check a scenario (JSON); gives it back with every default filled in. Raises ScenarioError."""

def simulate(
    scenario: str,
    directory: str | None,
    progress: Callable[[float, int], object] | None,
) -> Simulated:
    """Run a scenario (JSON), with captures in `directory` unless it is None.

    `progress` gets the simulated seconds and the events so far. Raises ScenarioError, SimulationError.
    """

@final
class Simulated:
    """A simulation that has run."""

    @property
    def ending(self) -> str:
        """`finished` or `time-is-up`."""

    @property
    def wall_s(self) -> float:
        """Time that the run itself took, without reading the scenario and building the parts."""

    @property
    def simulated_s(self) -> float: ...
    @property
    def events(self) -> int: ...
    @property
    def captures(self) -> list[tuple[str, Path]]:
        """Name and file of each capture."""

    @property
    def truth_json(self) -> str:
        """What really happened."""

    def series_times(self) -> npt.NDArray[Any]:
        """True times of the samples, in seconds."""

    def series_columns(self) -> list[tuple[str, int | None, str, npt.NDArray[Any]]]:
        """Place, flow, quantity (with its unit) and values; NaN where it did not exist."""

    def arrivals(self) -> dict[str, npt.NDArray[Any]]:
        """Every segment that arrived at an end of a leg, if the scenario keeps them."""

@final
class SlidingMode:
    """The control law of a window-adaptation proxy (seed 003, equation 36); one `step` for each report."""

    def __new__(
        cls,
        *,
        step_s: float,
        delay_steps: int,
        frames_per_packet: float,
        reference_frames: float,
        buffer_frames: float,
        smoothing: float,
        approach_per_s: float,
        switching_frames_s: float,
        extremes_steps: int,
    ) -> SlidingMode:
        """Raises ValueError where a parameter breaks the paper's guideline (equation 43, section 5.2)."""

    def step(self, queued_frames: float, rate_frames_s: float) -> float:
        """Packets to send during the step that begins now, never below 0."""

    def correct_last(self, packets: float) -> None:
        """Say that only this many of the last quota were sent, for want of data."""

    @property
    def mean_rate_frames_s(self) -> float: ...

@final
class LivePath:
    """Some hops of a scenario between two TUN devices, in real time."""

    def __new__(
        cls,
        scenario: str,
        first_hop: int,
        end_hop: int,
        server_device: int,
        mobile_device: int,
        *,
        start_ns: int,
        spin_ns: int,
        packet_bytes: int,
        first_ipv4: int,
        first_ipv6: int,
        terminals: int,
        reports: tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address, int] | None,
    ) -> LivePath:
        """Hops `first_hop` up to before `end_hop` of a scenario (JSON) between the devices of these descriptors.

        `start_ns` is the monotonic time that is the path's zero; the loop watches the clock for `spin_ns` before
        something is due; `packet_bytes` is the longest packet; a cell's `terminals` have addresses one after another;
        `reports` are from whom to whom a Node-B's reports go, and the port of both. Raises ScenarioError,
        LivePathError.
        """

    def run(self) -> None:
        """Carry packets on this thread until stopped. Raises LivePathError."""

    def stop(self) -> None:
        """End `run`, from any thread."""

    def totals_json(self) -> str:
        """What it has done: packets, hops as in a simulation's truth, lateness; at most a quarter second old."""

    def series_times(self) -> npt.NDArray[Any]:
        """Path times of the samples, in seconds, once `run` has ended."""

    def series_columns(self) -> list[tuple[str, int | None, str, npt.NDArray[Any]]]:
        """Place, flow, quantity (with its unit) and values; NaN where it did not exist."""
