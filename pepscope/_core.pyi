"""The Rust crates in Python; `pepscope.captures.capture` is the interface for users."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from pepscope.captures.packets import PacketColumns

__all__ = [
    "Capture",
    "CaptureFrames",
    "DirectionCounts",
    "FieldCounts",
    "LivePath",
    "PairSegments",
    "PositionCounts",
    "Simulated",
    "SlidingMode",
    "__version__",
    "acknowledgement_steps",
    "align_segments",
    "check_scenario",
    "data_ranges",
    "header_kinds",
    "is_release_build",
    "read_capture",
    "read_frames",
    "separable_stretches",
    "separate",
    "separate_most",
    "simulate",
    "thin",
]

#: x and y of clock constraints (ns).
_Cloud: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
#: Slack, offset, drift, lowest and highest offset.
_Line: TypeAlias = tuple[float, float, float, float, float]
#: Packets, and by direction the powers of two by which windows are divided, and when the sender reset the connection.
_VantageColumns: TypeAlias = tuple[PacketColumns, tuple[int, int], tuple[int | None, int | None]]
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

def data_ranges(direction: int, packets: PacketColumns) -> tuple[_Ranges, _Ranges]:
    """Data of `direction` as (start, end, time): ascending disjoint ranges beyond everything sent before, and the
    segments that begin below that, whole."""

def acknowledgement_steps(
    direction: int, packets: PacketColumns
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Acknowledgements of the data of `direction` that advance, without resets: value, time, and whether the packet
    carried no payload, SYN or FIN."""

def separate(lower: _Cloud, upper: _Cloud, drift_limit: float) -> _Line:
    """The line in the widest gap between two clouds over all drifts within the limit."""

def separate_most(
    lower: _Cloud,
    upper: _Cloud,
    drift_limit: float,
    lower_spared: int,
    upper_spared: int,
    drift_steps: int,
    exact: _Line | None,
) -> _Line:
    """The same where some points of each cloud may be ignored, over a grid of drifts; `exact` is what `separate` gave,
    where that is known."""

def thin(cloud: _Cloud, kept: int, bins: int, highest: bool) -> _Cloud | None:
    """The most binding points of each of `bins` stretches of time; None where all points would stay."""

def separable_stretches(
    lower: _Cloud,
    upper: _Cloud,
    drift_limit: float,
    lower_spared: int,
    upper_spared: int,
    drift_steps: int,
    needed_ns: float,
    most_steps: int,
) -> list[tuple[_Line, float, float]] | None:
    """The longest stretches of time, one after another, in which a line leaves `needed_ns` between the clouds: line,
    start and end. None where they are more than `most_steps` + 1."""

@final
class FieldCounts:
    """In how many segments of one class header fields agree between what was emitted and what arrived."""

    @property
    def arrived(self) -> int:
        """Arrived segments that were compared."""

    @property
    def partners(self) -> int:
        """Those of them that have a partner among the emitted segments."""

    @property
    def tsval_shift(self) -> int: ...
    @property
    def tsecr_shift(self) -> int: ...
    @property
    def stamped(self) -> int:
        """Partners that both have timestamps, with equal ones, and different emitted ones."""

    @property
    def stamps_equal(self) -> int: ...
    @property
    def stamps_distinct(self) -> int: ...
    @property
    def stamps_known(self) -> int:
        """Partners of which both captures show whether there are timestamps, and those where one has none."""

    @property
    def stamps_on_one_side(self) -> int: ...
    @property
    def ip_ids_vary(self) -> bool: ...
    @property
    def whole(self) -> int:
        """Partners of equal extent, and those of them with equal IP IDs."""

    @property
    def ip_ids_equal(self) -> int: ...
    @property
    def window_scale_shift(self) -> int:
        """The power of two between most windows; then counts of windows under it."""

    @property
    def windows_equal(self) -> int: ...
    @property
    def windows_narrowed(self) -> int: ...
    @property
    def windows_shrink(self) -> int:
        """How often emitted windows shrink from one segment to the next, and how many different ones there are."""

    @property
    def windows_distinct(self) -> int: ...
    @property
    def hops(self) -> int:
        """Most common difference of the hop limits."""

    @property
    def push_clear(self) -> int:
        """Of equal extent and no copy with another PSH, those with equal PSH, and emitted ones with it."""

    @property
    def push_equal(self) -> int: ...
    @property
    def push_set(self) -> int: ...
    @property
    def carried(self) -> int:
        """Different acknowledgements on emitted data of equal extent, and arrived ones that no copy carried."""

    @property
    def carried_elsewhere(self) -> int: ...
    @property
    def boundaries_equal(self) -> int:
        """Arrived data that begin and end where emitted data do."""

    @property
    def longest(self) -> int:
        """Bytes of the longest data segment on either side."""

@final
class PositionCounts:
    """Where pure acknowledgements stand, each place counted once."""

    @property
    def emitted(self) -> int:
        """Places where they were emitted."""

    @property
    def possible(self) -> int:
        """Ends of the data that could be acknowledged, from the first to the last place of either side."""

    @property
    def arrived(self) -> int:
        """Places where they arrived, but for ranges in which the emitter's capture missed data."""

    @property
    def hits(self) -> int:
        """Those of them where they were emitted too."""

    @property
    def irregular(self) -> int:
        """Those of the hits to which the emitter's stride was not its most common one."""

@final
class DirectionCounts:
    """Counts over one packet direction, arrived against emitted."""

    @property
    def data(self) -> FieldCounts | None:
        """None where either side shows no data."""

    @property
    def acknowledgements(self) -> FieldCounts:
        """Pure acknowledgements within the span that the emitter's capture covers."""

    @property
    def positions(self) -> PositionCounts | None:
        """None where no place can be compared."""

    @property
    def of_data(self) -> FieldCounts:
        """Those pure acknowledgements that acknowledge data within a stream, and their places."""

    @property
    def of_data_positions(self) -> PositionCounts | None: ...
    @property
    def emitted_acknowledgements(self) -> int:
        """Acknowledgements emitted within the span of those that arrived."""

    @property
    def places(self) -> tuple[int, int, int, int]:
        """Places acknowledged at both ends, where they were emitted only, where they arrived only, and at neither."""

    @property
    def shown(self) -> int:
        """Segments that the emitter's capture shows; of the reverse flow only data."""

    @property
    def uncovered(self) -> float:
        """Share of the span of the emitter's data that its capture does not show; 0 where it is sampled."""

    @property
    def uncovered_reverse(self) -> float:
        """The same of the data of the reverse flow, in the emitter's capture."""

@final
class PairSegments:
    """Segments of a connection at the client's and at the server's capture point, in the client side's offsets."""

    def compare(self, direction: int) -> DirectionCounts:
        """Counts over the packets of one direction."""

    def cut_data(self, direction: int, parts: int, fewest: int) -> list[tuple[int, FieldCounts, FieldCounts]]:
        """The arrived data of one direction cut in two at the places that divide them into equal parts and leave
        `fewest` on either side: from which byte on, and counts before and after it. Empty where none were emitted."""

def align_segments(
    client: _VantageColumns,
    server: _VantageColumns,
    *,
    shifts: tuple[int, int],
    supported: tuple[bool, bool],
    sampled_every: int,
    fewest_sampled: int,
    fewest_joined: int,
    copies: int,
    majority: float,
) -> PairSegments | None:
    """Read the segments of both captures, without SYN and RST and what follows a reset, and lay them over each other.

    The pairs are by direction. `shifts` are added to the server side's offsets, unless a `majority` of at least
    `fewest_joined` packets that look alike says otherwise; None where neither these nor what is `supported` align a
    stream. Every so many-th region is kept, unless that leaves fewer than `fewest_sampled` segments. At most `copies`
    of one byte are compared, and a `majority` must agree on shifts and scales."""

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
    def damage(self) -> tuple[int, str] | None:
        """Where reading ended too early (offset in the capture), and what is wrong there."""

    @property
    def not_captured(self) -> dict[str, int]:
        """Connections and packets of which something was not captured, by what that is."""

    @property
    def oversize(self) -> tuple[int, int, tuple[int, int], tuple[int, int]] | None:
        """Where a partition takes more memory than was allowed: bytes allowed, partitions, packets and bytes of the
        largest connection, packets and bytes of the largest partition."""

    @property
    def link_types(self) -> list[tuple[int, str | None, int, bool]]:
        """Number, name and frames of the link-layer types in the capture, and whether they can be read."""

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

def header_kinds() -> list[str]:
    """Names of the kinds of headers, by their number."""

def read_frames(path: str) -> CaptureFrames:
    """Read a whole capture into memory; up to the damage where it is damaged. Raises CaptureError."""

@final
class CaptureFrames:
    """The frames of a capture; `pepscope.captures.frames` gives the columns their names."""

    def frames(self) -> list[bytes]:
        """The captured bytes of each frame."""

    def headers(
        self,
    ) -> tuple[
        tuple[npt.NDArray[Any], ...],
        tuple[npt.NDArray[Any], ...],
        list[tuple[int, bytes, int, bool, tuple[npt.NDArray[Any], ...]]],
    ]:
        """Per frame: length on the wire, link-layer type, whether it ends in TCP or UDP, the index behind its last
        header, the number of the datagram of which it holds a fragment (-1 for none), and where in the datagram the
        fragment begins. Per header: kind, offset, length, end.

        Then the datagrams that the fragments make, each as the index of the frame that completes it, its captured
        bytes, its length on the wire, whether it ends in TCP or UDP, and its headers."""

    def with_frames(self, frames: Sequence[bytes | None]) -> bytes:
        """The file with other frames in the places of its own, `None` for one to leave out."""

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
        """Report that only this many of the last quota were sent, because there were no more data."""

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
