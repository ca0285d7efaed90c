"""The Rust crates in Python; `pepscope.captures.capture` is the interface for users."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = [
    "Abort",
    "AbortAtSender",
    "AnswerTimes",
    "AnsweringHopLimits",
    "Capture",
    "CaptureFrames",
    "ClockLineColumns",
    "CommonPackets",
    "Constraints",
    "ConstraintsOfMany",
    "ControlAcknowledgement",
    "FlowTimes",
    "HostTicks",
    "LivePath",
    "Packet",
    "PacketColumns",
    "PairSegments",
    "PayloadSample",
    "RoundTrips",
    "Simulated",
    "SimulatedPacket",
    "SlidingMode",
    "TransferSpans",
    "WindowCourse",
    "__version__",
    "abort",
    "abort_at_sender",
    "ack_delays",
    "acknowledgement_steps",
    "acknowledging_rows",
    "align_all_segments",
    "align_segments",
    "answer_times",
    "answering_hop_limits",
    "begins_like_capture",
    "check_scenario",
    "clock_bounds",
    "clock_falls",
    "coded_addresses",
    "coded_options",
    "comma_separated_rows",
    "common_packets",
    "compare_payload",
    "compare_payloads",
    "compared_segments",
    "connection_exchanges",
    "contradicting_times",
    "copy_with_comments",
    "data_ends",
    "data_ranges",
    "data_rows",
    "duration_texts",
    "early_acks",
    "early_own_acks",
    "exchange_kinds",
    "exchanges_and_senders",
    "filled_json",
    "filter_texts",
    "fin_leads_ns",
    "fin_offsets",
    "fingerprints",
    "fins",
    "first_arrivals",
    "first_copies",
    "first_flagged",
    "first_flagged_packets",
    "flow_numbers",
    "flow_times",
    "frame_spans",
    "frames_at",
    "frames_of_connections",
    "frames_of_rows",
    "furthest_acknowledgements",
    "header_kinds",
    "held_acknowledgements",
    "hop_limits",
    "is_release_build",
    "joined_texts",
    "keys_of_connections",
    "least_changed",
    "least_window_shares",
    "least_windows",
    "longest_pause_ns",
    "may_share_packets",
    "member_quantiles",
    "openings",
    "packed_columns",
    "packet_keys",
    "packet_twins",
    "plain_round_trips",
    "published",
    "read_capture",
    "read_frames",
    "receiver_times_s",
    "reference_kinds",
    "round_trips_below",
    "row_codes",
    "row_of_byte",
    "same_openings",
    "segment_counts",
    "sender_leads",
    "shut_by",
    "simulate",
    "sketch",
    "soonest_acknowledgements",
    "stream_openings",
    "strongest",
    "time_texts",
    "timestamp_steps",
    "transfer_spans",
    "unpacked_columns",
    "usable_processors",
    "vote",
    "voted_shifts",
    "window_course",
]

#: x and y of clock constraints (ns).
_Cloud: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
#: Slack, offset, drift, lowest and highest offset.
_Line: TypeAlias = tuple[float, float, float, float, float]
#: Columns of exchanges and of round trips by name.
_ExchangeTables: TypeAlias = tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]
#: Start, reference (client times), offset (server minus client, ns) and drift of a piece of a clock relation.
_ClockLine: TypeAlias = tuple[int, int, float, float]
_ClockLines: TypeAlias = Sequence[Sequence[_ClockLine]] | ClockLineColumns
#: Packets, and by direction the powers of two by which windows are divided, and when the sender reset the connection.
_VantageColumns: TypeAlias = tuple[PacketColumns, tuple[int, int], tuple[int | None, int | None]]
_Ranges: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
__version__: Final[str]
is_release_build: Final[bool]

def read_capture(
    paths: Sequence[str],
    filter_programs: Mapping[int, Sequence[tuple[int, int, int, int]]] | None,
    memory_bytes: int,
    payload: bool | Literal["exchanges"],
    columns: bool,
    progress: Callable[[int, int], object] | None,
) -> Capture:
    """Read and analyse a capture of one file or several parts; `progress` gets bytes read and in all. Raises
    CaptureError, OSError, ValueError for any other `payload`."""

def begins_like_capture(path: str) -> bool:
    """Whether a file begins like a capture that can be read."""

def filled_json(
    order: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    shapes: Sequence[tuple[Sequence[bytes], Sequence[Any]]],
    encode: Callable[[Any], bytes],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Documents one after the other: `order` says of which shape each is, of which `shapes` has the text between the
    gaps and a column a gap, with a row for each document of the shape. Columns are float64 (null where not finite),
    int64, bool, a list of values (bytes are JSON already), uint32 places in such a list, texts as a run of UTF-8 with
    the begin and the end of each, or uint32 places among such texts that are JSON already; `encode` writes values of
    other types. Also returns where the documents end that `ends` counts. Raises IndexError where a column is too
    short."""

#: Texts as a run of UTF-8 with the begin and the end of each, texts, whole numbers, or places in a list of texts.
_GivenTexts: TypeAlias = (
    tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]
    | list[str]
    | npt.NDArray[np.int64]
    | tuple[npt.NDArray[np.uint32], list[str]]
)
#: Texts one behind the other, and where each ends; the first of the ends is where the first begins.
_JoinedTexts: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]

def joined_texts(rows: int, pieces: list[str], columns: Sequence[_GivenTexts]) -> _JoinedTexts:
    """Of so many rows the first piece, the text in the first column, the second piece and so on. Raises IndexError
    where a column is too short, or there is not one piece more than columns."""

def coded_addresses(rows: int, end_points: _GivenTexts) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The addresses of so many end points (`ip:port`, IPv6 in brackets), as places in the list of those that differ.
    Raises IndexError where the column is too short, ValueError where a text has no port."""

def comma_separated_rows(
    rows: int, columns: Sequence[_GivenTexts | npt.NDArray[np.float64]], line_end: str
) -> npt.NDArray[np.uint8]:
    """So many rows of comma-separated values (RFC 4180): numbers as Python writes them, an empty field for NaN. Raises
    IndexError where a column is too short."""

def filter_texts(
    rows: int,
    clients: _GivenTexts,
    servers: _GivenTexts,
    transports: _GivenTexts,
    frames: npt.NDArray[np.int64] | None,
) -> _JoinedTexts:
    """Display filters of connections between end points (`ip:port`, IPv6 in brackets); `frames` are rows of the first
    and the last frame of each. Raises IndexError where a column is too short."""

def duration_texts(seconds: npt.NDArray[np.float64]) -> _JoinedTexts:
    """Times with three digits and a unit."""

def time_texts(times_ns: npt.NDArray[np.int64]) -> _JoinedTexts:
    """Unix times (ns) as RFC 3339 has them, in UTC and to the nanosecond."""

def packed_columns(columns: Sequence[npt.NDArray[Any]]) -> bytes:
    """Columns of float64, int64 or bool in few bytes, if many are the same in all rows or one of a few."""

def unpacked_columns(packed: bytes) -> list[npt.NDArray[Any]]:
    """The columns that `packed_columns` packed."""

def usable_processors() -> int:
    """How many processors this process may use at a time: those that it is bound to, as far as the quota of its control
    group (cgroups, cpu.max) lasts; 1 where the system does not tell."""

def data_ranges(direction: int, packets: PacketColumns) -> tuple[_Ranges, _Ranges]:
    """Data of `direction` as (start, end, time): ascending disjoint ranges beyond everything sent before, and the
    segments that begin below that, whole."""

def first_arrivals(direction: int, packets: PacketColumns) -> _Ranges:
    """First arrival of every byte of `direction` at its receiver as (start, end, time); what fills a hole counts when
    it arrives."""

def acknowledgement_steps(
    direction: int, packets: PacketColumns
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Acknowledgements of the data of `direction` that advance, without resets: value, time, and whether the packet
    carried no payload, SYN or FIN."""

def fin_offsets(packets: Sequence[PacketColumns]) -> npt.NDArray[np.int64]:
    """Greatest stream offset at which a FIN stands, behind the payload that it carries, up and down (rows) in many
    connections; -2**63 without a FIN."""

@final
class Packet:
    """One packet; members are named as the columns of `PacketColumns`, which says what they are."""

    time_ns: Final[int]
    direction: Final[int]
    sequence_offset: Final[int]
    acknowledgement_offset: Final[int]
    payload_bytes: Final[int]
    window_bytes: Final[int]
    flags: Final[int]
    tsval: Final[int]
    tsecr: Final[int]
    ip_id: Final[int]
    ttl: Final[int]
    payload_hash: Final[int]
    marks: Final[int]
    round_trip_time_ns: Final[int]

@final
class PacketColumns:
    """Packets of one connection in capture order; all arrays have the same length.

    Offsets count payload bytes of a direction's stream from the byte after its SYN (offset 0), in 64 bits across
    sequence wraps; a SYN stands at -1 and a FIN takes one offset after the last byte. Where the SYN is missing,
    offset 0 is the lowest sequence number seen in the first window of packets.

    The columns of few packets are Rust's, and an array is copied from one when it is first asked for; those of many are
    NumPy's from the beginning. Arrays are read-only, and the same whenever they are asked for.
    """

    COLUMNS: Final[tuple[str, ...]]
    """Names of the columns in their order."""

    def __new__(
        cls,
        time_ns: npt.NDArray[np.int64],
        direction: npt.NDArray[np.uint8],
        sequence_offset: npt.NDArray[np.int64],
        acknowledgement_offset: npt.NDArray[np.int64],
        payload_bytes: npt.NDArray[np.uint32],
        window_bytes: npt.NDArray[np.uint32],
        flags: npt.NDArray[np.uint16],
        tsval: npt.NDArray[np.uint32],
        tsecr: npt.NDArray[np.uint32],
        ip_id: npt.NDArray[np.uint16],
        ttl: npt.NDArray[np.uint8],
        payload_hash: npt.NDArray[np.uint32],
        marks: npt.NDArray[np.uint16],
        round_trip_time_ns: npt.NDArray[np.int64],
    ) -> PacketColumns:
        """Copies the arrays. Raises ValueError where they differ in length, TypeError for elements of another type."""

    def __len__(self) -> int: ...
    def packet(self, row: int) -> Packet:
        """One of the packets. Raises IndexError where there is no such row."""

    @property
    def time_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def direction(self) -> npt.NDArray[np.uint8]:
        """As in `Direction`."""

    @property
    def sequence_offset(self) -> npt.NDArray[np.int64]: ...
    @property
    def acknowledgement_offset(self) -> npt.NDArray[np.int64]:
        """In the reverse stream; NO_ACKNOWLEDGEMENT without ACK flag."""

    @property
    def payload_bytes(self) -> npt.NDArray[np.uint32]: ...
    @property
    def window_bytes(self) -> npt.NDArray[np.uint32]:
        """Scaled by the flow's window_shift; as on the wire where that is None."""

    @property
    def flags(self) -> npt.NDArray[np.uint16]:
        """As in `TcpFlag`."""

    @property
    def tsval(self) -> npt.NDArray[np.uint32]:
        """Valid where the marks have `HAS_TIMESTAMPS`, as is `tsecr`."""

    @property
    def tsecr(self) -> npt.NDArray[np.uint32]: ...
    @property
    def ip_id(self) -> npt.NDArray[np.uint16]: ...
    @property
    def ttl(self) -> npt.NDArray[np.uint8]: ...
    @property
    def payload_hash(self) -> npt.NDArray[np.uint32]:
        """Of the first 16 payload bytes; 0 where fewer were captured than min(16, payload_bytes)."""

    @property
    def marks(self) -> npt.NDArray[np.uint16]:
        """As in `Mark`."""

    @property
    def round_trip_time_ns(self) -> npt.NDArray[np.int64]:
        """On the ACK that completes a sample (Karn), else -1."""

    def going(self, direction: int) -> npt.NDArray[np.bool_]:
        """Which packets are of this flow."""

    def flagged(self, flags: int) -> npt.NDArray[np.bool_]:
        """Which packets bear any of these flags."""

    def marked(self, marks: int) -> npt.NDArray[np.bool_]:
        """Which packets have any of these marks."""

    def replaced(self, **columns: npt.NDArray[Any]) -> PacketColumns:
        """The same packets with these columns, copied, instead of their own. Raises ValueError where one differs in
        length, TypeError for a name that no column has and for elements of another type."""

    def to_frame(self) -> pd.DataFrame:
        """The columns as a pandas frame (arrays are not copied where pandas allows it)."""

@final
class PayloadSample:
    """Captured payload of one direction, kept for the same stream regions in every capture.

    Regions are blocks of 64 KiB: the first eight, then ever sparser ones chosen by the block number alone, so that two
    captures of one stream keep the same places. `offsets[i]` is the stream offset of `pieces[i]`; overlaps may occur.
    """

    def __new__(cls, offsets: Sequence[int] | npt.NDArray[np.int64], pieces: Sequence[bytes]) -> PayloadSample:
        """Raises ValueError where there are not as many offsets as pieces."""

    def __len__(self) -> int:
        """How many pieces there are."""

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Stream offsets of the pieces; made when first asked for, and read-only."""

    @property
    def pieces(self) -> tuple[bytes, ...]:
        """The pieces in order of capture; made when first asked for."""

    @property
    def opening(self) -> bytes | None:
        """The longest piece at the stream's first byte; None where none was captured."""

    @property
    def captured_bytes(self) -> int:
        """Bytes of all pieces together."""

    @property
    def is_one_byte_repeated(self) -> bool:
        """Whether no two bytes differ; so without any."""

    @property
    def most_distinct_bytes(self) -> int:
        """Different bytes in the piece that has most."""

def compare_payload(
    left: PayloadSample, right: PayloadSample, shift: int, most: int, overlap_bytes: int
) -> tuple[int, int]:
    """Pieces of `left`, moved by `shift`, that were compared with what `right` holds there, and how many agree.

    At most `most` pieces, evenly spread, of those that overlap one of the other stream by `overlap_bytes`."""

def keys_of_connections(
    capture: Capture, connections: Sequence[int], forms: Sequence[tuple[bool, bool, bool]], most: int
) -> list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """`packet_keys` of some connections of a capture, connection by connection, for each of one form or two (whether
    stamps, IP IDs and places are in a key): keys, connections and directions. Raises ValueError for more forms, or
    where the capture was read without packets."""

def packet_keys(
    packets: PacketColumns, stamps: bool, ip_id: bool, places: bool, most: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The `most` least keys of a connection's packets without SYN and RST, ascending and each once, and the directions
    of these packets. A key is a hash of the length and of timestamps, of the IP ID and of the places in both streams,
    as asked for; with neither stamps nor places, of IP ID, length and first bytes of a segment and of its direction's
    next one. A direction whose IP ID never changes has none that are made of it."""

def packet_twins(
    direction: int, left: PacketColumns, right: PacketColumns, by_timestamp: bool
) -> tuple[int, int, int] | None:
    """Data packets with a twin by TSval (else IP ID) and length: the shift that most have, right offset minus left
    offset, the number of twins, and how many have that shift. None without twins."""

class _Fingerprints(Protocol):
    """Fingerprints of many streams, columns of one length."""

    @property
    def value(self) -> npt.NDArray[np.uint64]: ...
    @property
    def stream(self) -> npt.NDArray[np.int64]: ...
    @property
    def offset(self) -> npt.NDArray[np.int64]: ...

def fingerprints(sample: PayloadSample, least_distinct: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Hash and stream offset of all fingerprints with at least so many different bytes, in the order of the pieces."""

def sketch(
    sample: PayloadSample, least_distinct: int, most: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The `most` fingerprints with the least hashes, ascending. Retransmissions count once, what occurs at several
    offsets not at all."""

def vote(
    left: _Fingerprints, right: _Fingerprints, common_pairs: int, spread_bytes: int
) -> list[npt.NDArray[np.int64]]:
    """Pairs of streams with fingerprints in common: left and right stream, left offset minus right offset, how many,
    and in how many parts of the left stream, `spread_bytes` long. Hashes in more than `common_pairs` pairs are left
    out."""

def compare_payloads(
    left: Sequence[PayloadSample], right: Sequence[PayloadSample], most: int, overlap_bytes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """`compare_payload` of many streams without a shift, as arrays: how many pieces were compared, how many agree."""

def same_openings(left: Sequence[PayloadSample], right: Sequence[PayloadSample]) -> npt.NDArray[np.bool_]:
    """Of which streams `PayloadSample.opening` is the same in both captures, or None in both."""

def voted_shifts(
    left: PayloadSample,
    right: PayloadSample,
    least_distinct: int,
    most_fingerprints: int,
    common_pairs: int,
    most: int,
) -> list[int]:
    """The `most` right offsets minus left offsets on which most fingerprints of two streams agree, best first."""

@final
class FlowTimes:
    """Times (ns) of one flow by the captures at its sender and at its receiver; 2**63 - 1 where one is not known.

    `data_*`: first copies that left, and their first arrival. `ack_*`: acknowledgements as they reached the sender, and
    when the receiver first sent one as high; `arrival_ns`: when the last byte that each covers had arrived, and
    `earliest_ack_ns` the lesser of both. `own_ack`: plain ones of exactly that value at both ends. `round_trip_ns`: at
    the sender, first copy of the byte to its acknowledgement, where it was sent once (Karn).
    """

    @property
    def data_sent_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def data_arrived_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def ack_value(self) -> npt.NDArray[np.int64]: ...
    @property
    def ack_seen_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def ack_sent_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def arrival_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def earliest_ack_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def round_trip_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def own_ack(self) -> npt.NDArray[np.bool_]: ...
    @property
    def data_count(self) -> int: ...
    @property
    def ack_count(self) -> int: ...
    @property
    def timed_ack_count(self) -> int:
        """Acknowledgements whose `earliest_ack_ns` is known."""

    @property
    def round_trip_count(self) -> int: ...
    @property
    def least_round_trip_ns(self) -> int | None: ...
    @property
    def least_hold_ns(self) -> int | None:
        """Least time from the arrival of what an acknowledgement covers to its sending, at the receiver."""

    @property
    def first_delay_ns(self) -> int | None:
        """Receiver's minus sender's time of the first datum."""

    @property
    def least_delay_ns(self) -> int | None: ...
    @property
    def sender_missed(self) -> tuple[float, int]:
        """Data packets that the sender's capture admits to have missed, and those that it holds."""

    @property
    def receiver_missed(self) -> tuple[float, int]: ...

def flow_times(
    directions: Sequence[int],
    senders: Sequence[PacketColumns],
    receivers: Sequence[PacketColumns],
    shifts: Sequence[int],
    senders_began: Sequence[bool],
    receivers_began: Sequence[bool],
    points_limit: int,
    same_copy_ns: int,
) -> list[FlowTimes | None]:
    """Times of flows by the captures at their senders and receivers; None where the sender's holds no data.

    `shifts` are added to the receivers' offsets to have the senders'; `*_began`: the capture holds the beginning of the
    stream. Of more than `points_limit` data, or acknowledgements, every k-th is taken. A copy within `same_copy_ns` of
    the first is the capture's own.
    """

def flow_numbers(flows: Sequence[FlowTimes]) -> dict[str, npt.NDArray[Any]]:
    """The numbers of `FlowTimes` as columns: counts and times, -2**63 for those that are None there; `sender_lost` and
    `sender_held` are `sender_missed`, and so for the receiver."""

@final
class ClockLineColumns:
    """The clock relations of many connections, each of some lines."""

    def __new__(
        cls,
        count: int,
        owners: Sequence[int] | npt.NDArray[np.int64],
        start_ns: Sequence[int] | npt.NDArray[np.int64],
        reference_ns: Sequence[int] | npt.NDArray[np.int64],
        offset_ns: Sequence[float] | npt.NDArray[np.float64],
        drift: Sequence[float] | npt.NDArray[np.float64],
    ) -> ClockLineColumns:
        """Of so many connections; `owners` ascend and say whose each line is. Raises ValueError for others."""

    def at(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> ClockLineColumns:
        """Those of some connections."""

    def __len__(self) -> int: ...
    def __getitem__(self, row: int, /) -> list[_ClockLine]:
        """The lines of one connection."""

def early_acks(
    flows: Sequence[FlowTimes], lines: _ClockLines, spared: Sequence[int], error_ns: float
) -> npt.NDArray[np.int64]:
    """Acknowledgements of each flow that came before all but `spared` of the data of their piece of the clock relation
    allow, and those that were compared (rows)."""

def early_own_acks(
    flows: Sequence[FlowTimes], lines: _ClockLines, spared: Sequence[int], error_ns: float
) -> npt.NDArray[np.int64]:
    """The same by the times at which the receiver sent acknowledgements of the same values: of the piece, or of the
    half of a connection with one, in which the smallest share is early."""

def published(
    flows: Sequence[FlowTimes], theta_ns: Sequence[int] | npt.NDArray[np.int64], error_s: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Acknowledgements of each flow with a time at both ends, and how many of them came too early by a given offset
    (rows); and the least margin (s), infinite without any."""

def round_trips_below(
    flows: Sequence[FlowTimes], limits_ns: Sequence[float] | npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """How many acknowledgement round trips of each flow are below its limit."""

def fin_leads_ns(
    flows: Sequence[FlowTimes],
    sent_ns: Sequence[int] | npt.NDArray[np.int64],
    arrived_ns: Sequence[int] | npt.NDArray[np.int64],
    lines: _ClockLines,
) -> npt.NDArray[np.float64]:
    """By how much FINs against the data of flows arrived too early (ns), with the clocks moved as far as these data
    allow; NaN where no data stand in the same piece of the clock."""

def clock_bounds(
    flows: Sequence[Sequence[FlowTimes]],
    spared: Sequence[tuple[int, int]],
    bins: int,
    drift_limit: float,
    drift_steps: int | None,
) -> tuple[ConstraintsOfMany, dict[str, npt.NDArray[Any]]]:
    """What the flows of each connection say of its clocks: the constraints at client times, and columns.

    Lines are columns of `_Line`: `exact` as `Constraints.separate` gives it, `data` that of data alone with none
    spared, and `most` as `Constraints.separate_most` gives it (without `drift_steps`: `exact`). Numbers of the
    constraints are named as there; `span_ns` has two rows, 0 where there are no points. `spared` are lower and upper
    points.
    """

@final
class ConstraintsOfMany:
    """The constraints of many connections; an object is made of one that is asked for."""

    def __len__(self) -> int: ...
    def __getitem__(self, row: int, /) -> Constraints:
        """Those of one connection."""

@final
class Constraints:
    """Lower and upper bounds on the difference of two clocks, relative to a time and a difference (ns)."""

    def __new__(
        cls, lower: _Cloud, upper: _Cloud, reference_ns: int, base_ns: int, lower_spared: int, upper_spared: int
    ) -> Constraints:
        """From columns of one length each; raises ValueError for others."""

    @staticmethod
    def of_flows(
        flows: Sequence[FlowTimes], server_clock: bool, lower_spared: int, upper_spared: int, bins: int
    ) -> Constraints:
        """What data and acknowledgements say: the most binding points of each of `bins` stretches of time, at client
        times or at server times."""

    def thinned(self, bins: int) -> Constraints:
        """The most binding points of each of `bins` stretches of time."""

    def separate(self, drift_limit: float) -> _Line:
        """The line in the widest gap between the clouds over all drifts within the limit."""

    def separate_most(self, drift_limit: float, drift_steps: int, exact: _Line) -> _Line:
        """The same where points may be ignored, over a grid of drifts; `exact` is what `separate` gave."""

    def separable_stretches(
        self, drift_limit: float, drift_steps: int, needed_ns: float, most_steps: int
    ) -> list[tuple[_Line, float, float]] | None:
        """The longest stretches of time, one after another, in which a line leaves `needed_ns` between the clouds:
        line, start and end. None where they are more than `most_steps` + 1."""

    def unspared_bounds_ns(self) -> tuple[float, float]:
        """The greatest lower and the least upper bound at no drift that are not spared; infinite where all are."""

    @property
    def span_ns(self) -> tuple[float, float] | None:
        """The first and the last time; None without points."""

    @property
    def reference_ns(self) -> int: ...
    @property
    def base_ns(self) -> int: ...
    @property
    def lower_spared(self) -> int: ...
    @property
    def upper_spared(self) -> int: ...
    @property
    def lower_count(self) -> int: ...
    @property
    def upper_count(self) -> int: ...
    @property
    def lower(self) -> _Cloud: ...
    @property
    def upper(self) -> _Cloud: ...

@final
class HostTicks:
    """What the TCP timestamps of the host that sends in `direction` counted, SYNs left out."""

    def __new__(cls, packets: PacketColumns, direction: int) -> HostTicks: ...
    def rate_hz(self, most: int, stretch_ticks: int, fewest: int) -> float | None:
        """Ticks a second: the median over at most `most` stretches of at least `stretch_ticks` ticks each; None where
        fewer than `fewest` of them count on."""

    def level_ns(self, tick_ns: float, start_ns: float, end_ns: float, count: int) -> float | None:
        """Median of the capture's time less the host's (any constant) over the first `count` segments from a capture
        time on, before another; None of fewer."""

    def swing_ns(self, tick_ns: float, count: int) -> float | None:
        """By how much the capture's time less the host's ranges (ns), by medians of `count` successive segments; None
        of fewer."""

def clock_falls(packets: PacketColumns, least_ns: int) -> list[int]:
    """Rows before which a capture's clock fell by more than `least_ns`, without a packet that stands too late alone."""

def strongest(score: npt.NDArray[np.float64], most: int, least: float) -> list[int]:
    """Places of high scores above `least`, the highest first: of those above it in `most` stretches the highest of
    each, of equal ones the first. NaN never counts."""

def least_windows(packets: PacketColumns, direction: int, most: int) -> list[tuple[int, int]]:
    """Rows and windows of at most so many packets in a direction, without SYN and RST, that advertise least: the least
    of all first, then those of parts of the connection, as `strongest` has them."""

def held_acknowledgements(
    sender: PacketColumns,
    receiver: PacketColumns,
    direction: int,
    shift: int,
    origin_ns: int,
    start_ns: int,
    lines: Sequence[tuple[int, int, float, float]] | None,
    raise_ns: float,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """By packet of `acknowledging_rows` at the sender: by how many seconds it came before the last of its data had
    arrived (negative: behind; NaN where that is not known), bytes that it acknowledges and that had not arrived, and
    where the arrival of the last of its data begins, by the receiver's offsets (-1 where that is not known).

    `shift` added to a receiver's offset gives the sender's; times as in `receiver_times_s`.
    """

def row_of_byte(packets: PacketColumns, direction: int, offset: int) -> int | None:
    """The first packet that carries a byte of the stream of `direction`; None where there is none."""

def data_rows(packets: PacketColumns, direction: int) -> npt.NDArray[np.int64]:
    """Packets with payload in a direction."""

def first_copies(packets: PacketColumns, direction: int) -> npt.NDArray[np.int64]:
    """Packets of a direction whose payload lies beyond all before, or fills a hole."""

def acknowledging_rows(packets: PacketColumns, direction: int) -> npt.NDArray[np.int64]:
    """Packets that acknowledge more of the data of `direction` than any before."""

def first_flagged(packets: PacketColumns, direction: int, flags: int) -> int | None:
    """The first packet of a direction that bears any of these flags."""

def stream_openings(packets: Sequence[PacketColumns], directions: Sequence[int]) -> list[tuple[int, int] | None]:
    """The packet with the first byte of the stream of each of many flows, without any the first with data, and its
    payload in bytes; None without data."""

def data_ends(
    packets: Sequence[PacketColumns], directions: Sequence[int], only_new: bool
) -> list[tuple[int, int] | None]:
    """The first and the last packet with data of each of many flows; None without any. With `only_new` of those whose
    payload lies beyond all before, or fills a hole."""

def furthest_acknowledgements(
    packets: Sequence[PacketColumns], directions: Sequence[int]
) -> list[tuple[int, int] | None]:
    """The first packet that acknowledges as much of the data of each of many flows as any, and how far; None without
    any."""

def first_flagged_packets(
    packets: Sequence[PacketColumns], direction: int, flags: int
) -> list[tuple[int, Packet] | None]:
    """The first packet of a direction that bears any of these flags, of many connections: its row and itself."""

def soonest_acknowledgements(
    senders: Sequence[PacketColumns],
    receivers: Sequence[PacketColumns],
    directions: Sequence[int],
    shifts: Sequence[int],
    lines: Sequence[Sequence[tuple[int, int, float, float]] | None],
    raised_ns: Sequence[float],
    most: int,
) -> list[list[tuple[int, int, float, int | None]]]:
    """Acknowledgements at the senders of many flows that came soonest behind the arrival of their data, or before it,
    at most so many of each flow, the soonest first, spread over all.

    Of each its row, how far it acknowledges, by how many seconds it came before its data (negative: behind), and the
    receiver's row that brought the last of these. Times at the receiver are brought onto the sender's clock by `lines`
    (see `receiver_times_s`; None: both ends start together), raised by so much.
    """

def compared_segments(
    clients: Sequence[PacketColumns],
    servers: Sequence[PacketColumns],
    shifts: Sequence[Sequence[int | None]],
    order: int,
    looked_at: int,
    most: int,
) -> list[list[tuple[int, tuple[int, Packet], tuple[int, Packet]]]]:
    """Arrived data segments of many connections, at most `most` of each: direction, the packet that held the first byte
    when it left with its row, and the one that arrived.

    `order`: 0 those with fewest changes first, 1 with most, 2 the same without those that did not change (see
    `least_changed`). `shifts` up and down, added to a receiver's offset, give the sender's; None where the streams are
    not aligned. Of each direction `looked_at` segments are compared, evenly spread.
    """

def receiver_times_s(
    time_ns: npt.NDArray[np.int64],
    is_up: bool,
    origin_ns: int,
    start_ns: int,
    lines: Sequence[tuple[int, int, float, float]] | None,
    raise_ns: float,
) -> npt.NDArray[np.float64]:
    """Times of the receiver's capture in seconds on the sender's clock (the client's where `is_up`), from `origin_ns`.

    `lines` are those of `detector.clocks.relation.ClockRelation`, and `raise_ns` is added to them; without any the
    clocks agree where the receiver's shows `start_ns`.
    """

def longest_pause_ns(time_ns: npt.NDArray[np.int64], start_ns: float, end_ns: float) -> int | None:
    """The longest time between two successive packets of which one lies in a stretch of time; None where none does."""

def timestamp_steps(packets: Sequence[PacketColumns], most: int) -> npt.NDArray[np.int64]:
    """Steps between the first `most` timestamps of connections (columns): how many, how many of no time, and the least
    forward (ns; -2**63 without any)."""

def contradicting_times(
    packets: Sequence[PacketColumns], most: int, quickest_ns: int, least_ns: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What of the times of connections (columns) contradicts itself: steps between the first `most`, 0 where they are
    not all equal; the most turns in a row of these without more than `quickest_ns` between, 0 where the clock ticks
    coarsely; acknowledgements that come more than `least_ns` before what they acknowledge, and all that were compared
    (rows: up and down, by turns, what comes before the SYN, what acknowledges the SYN alone, what acknowledges bytes).
    """

@final
class WindowCourse:
    """How the windows of one direction went: full-shut-full cycles, how often shut, extremes in bytes, and the least
    share of the largest so far."""

    @property
    def cycles(self) -> int: ...
    @property
    def times_shut(self) -> int: ...
    @property
    def least_bytes(self) -> int: ...
    @property
    def largest_bytes(self) -> int: ...
    @property
    def least_share(self) -> float: ...

def shut_by(
    sender: tuple[PacketColumns, int | None], receiver: tuple[PacketColumns, int | None], advertising: int, shift: int,
    shut_share: float,
) -> int:  # fmt: skip
    """Who may have shut the windows that packets in the `advertising` direction show the sender (at most `shut_share`
    of the largest so far): 0 the receiver, in packets that its capture lacks, 1 a middlebox in the receiver's packets,
    2 another host. A side is its packets and the power of two by which it scales these windows, where known; `shift` is
    added to what the receiver's capture holds acknowledged."""

def window_course(direction: int, packets: PacketColumns, shut_share: float, open_share: float) -> WindowCourse:
    """The course of the windows that packets in `direction` advertise: shut at `shut_share` of the largest so far, open
    from `open_share` of it."""

def least_window_shares(
    directions: Sequence[int], packets: Sequence[PacketColumns], shut_share: float, open_share: float
) -> npt.NDArray[np.float64]:
    """The `least_share` of the courses of windows of many connections, each in a direction of its own."""

@final
class Abort:
    """A receiver's abort: time of its first FIN or RST, and the highest offset it had received or acknowledged."""

    @property
    def time_ns(self) -> int: ...
    @property
    def reached_bytes(self) -> int: ...

def abort(direction: int, packets: PacketColumns) -> Abort | None:
    """Whether the receiver of `direction` reset the connection before that stream's FIN was seen."""

@final
class AbortAtSender:
    """What a sender's capture shows of a connection that its receiver aborted."""

    @property
    def acknowledged_bytes(self) -> int: ...
    @property
    def largest_payload_bytes(self) -> int: ...
    @property
    def end_ns(self) -> int | None:
        """Time of the first FIN or RST that came from the receiver."""

    @property
    def zero_window_probes(self) -> int: ...

def abort_at_sender(direction: int, packets: PacketColumns) -> AbortAtSender:
    """How far the sender of `direction` was acknowledged, other than by resets, and when the other end ended."""

def fins(packets: Sequence[PacketColumns]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """FINs up and down (rows) of many connections (columns): how many were sent, and the time of the first; -2**63
    without any, or where the first was sent again after one that was missed."""

def hop_limits(packets: Sequence[PacketColumns]) -> npt.NDArray[np.int64]:
    """The most frequent hop limit up and down (rows) of many connections, the lowest of equally frequent ones;
    -2**63 where there are no packets."""

@final
class AnsweringHopLimits:
    """Hop limits of packets that acknowledge, without resets: of the first SYN, and the most frequent of the others."""

    @property
    def opening(self) -> int | None: ...
    @property
    def later(self) -> int | None: ...

def answering_hop_limits(direction: int, packets: PacketColumns) -> AnsweringHopLimits:
    """The hop limits of `direction`'s answer to a handshake and of what followed."""

@final
class AnswerTimes:
    """Answers that acknowledge their question whole, without those of which a part was sent again; least_ns is from a
    question's last byte to its answer's first."""

    @property
    def count(self) -> int: ...
    @property
    def least_ns(self) -> int | None: ...

def exchange_kinds() -> tuple[str, ...]:
    """Names of the kinds of exchanges by their codes."""

def exchanges_and_senders(
    capture: Capture,
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """What `Capture.exchanges` and `Capture.senders` give, from packets that are decoded once; raises as they do."""

def member_quantiles(
    values: npt.NDArray[np.float64], owners: npt.NDArray[np.int64], members: int, share: float
) -> npt.NDArray[np.float64]:
    """Of each member the value with rank `(count - 1) * share`, rounded down, of its known values; NaN of none.

    `owners` has the member of each value; negative ones count for none. Raises ValueError for one that is no member.
    """

def row_codes(
    columns: Sequence[npt.NDArray[np.int64] | npt.NDArray[np.uint64] | npt.NDArray[np.float64]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number for each row, equal for equal rows, and of each of these numbers the first row that has it.

    The numbers count the distinct rows from 0, by the first column, then the second and so on; NaN comes last. Raises
    ValueError where the columns differ in length."""

def frame_spans(capture: Capture, connections: Sequence[int]) -> npt.NDArray[np.int64]:
    """The first and the last frame of some connections, a row a connection; -1 of those without packets."""

def frames_of_rows(
    capture: Capture, connections: Sequence[int], rows: Sequence[Sequence[int]]
) -> list[tuple[tuple[int, int] | None, list[int]]]:
    """The first and the last frame of some connections (None without packets), and those of some rows of each.

    Raises ValueError where there are not as many `rows` as connections, IndexError where there is no such packet."""

def frames_at(
    capture: Capture,
    connections: npt.NDArray[np.int64],
    directions: npt.NDArray[np.uint8],
    times_ns: npt.NDArray[np.int64],
    carrying: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int64]:
    """The frame of the first packet of each connection in this direction, at this time, and with payload where it is to
    carry some; -1 where there is none."""

def connection_exchanges(
    packets: PacketColumns, up: PayloadSample, down: PayloadSample, server_port: int | None = None
) -> _ExchangeTables:
    """Columns of `pepscope.captures.exchanges.Exchanges` and `RoundTripColumns` of one connection, by name."""

def answer_times(asked: int, packets: PacketColumns) -> AnswerTimes:
    """How often questions in `asked` were answered, and how soon; `pepscope.captures.exchanges` has each of them."""

def ack_delays(
    directions: Sequence[int], packets: Sequence[PacketColumns]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Acknowledgements of the data of flows that carry no payload, SYN, FIN or RST, at their receivers: how many, and
    the least time from the arrival of the last byte that one covers to its sending (-2**63 without any)."""

@final
class RoundTrips:
    """At the sender, from the first copy of the last byte that each plain acknowledgement covers (Karn)."""

    @property
    def count(self) -> int: ...
    @property
    def least_s(self) -> float: ...
    @property
    def short(self) -> int:
        """How many are shorter than the limit."""

    @property
    def short_at_once(self) -> int:
        """Most of the short ones that ended within the time of the longest round trip."""

def plain_round_trips(direction: int, packets: PacketColumns, limit_s: float) -> RoundTrips:
    """Round trips of `direction`'s data at its sender, by acknowledgements without payload, SYN, FIN and RST."""

@final
class CommonPackets:
    """Packets that two captures have in common, without those that occur twice in either."""

    @property
    def count(self) -> int: ...
    @property
    def comparable(self) -> int:
        """Packets of the capture that has fewer which could have been found in the other."""

    @property
    def other_hop_limits(self) -> int: ...
    @property
    def resolution_ns(self) -> int: ...
    @property
    def uneven(self) -> int:
        """How often the difference of their times changes by more than the resolution."""

    @property
    def round_trips_ns(self) -> tuple[float, float, float] | None:
        """Round trips between the captures without odd ones: lowest, median, highest; None if all travel one way."""

def may_share_packets(one: PacketColumns, two: PacketColumns) -> bool:
    """Whether any packet of one capture may be one of the other, by fields that no router changes, whatever its stream
    offset: where none may, `common_packets` finds nothing."""

def common_packets(
    one: PacketColumns,
    two: PacketColumns,
    shifts: tuple[int, int],
    finest_ns: int,
    coarsest_ns: int,
    odd_share: float,
) -> CommonPackets:
    """Packets with the same fields. `shifts` (up, down) added to the first's stream offsets give the second's; times
    are rounded to a power of ten between `finest_ns` and `coarsest_ns`; `odd_share` of the round trips are odd at
    either end."""

def least_changed(
    direction: int, emitted: PacketColumns, arrived: PacketColumns, shift: int, places: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Arrived packets of these places, the emitted data packet of `direction` that held the first byte of each and of
    which fewest of extent, IP ID, timestamps and window changed, and how many changed. Without those whose first byte
    no emitted packet holds. `shift` added to an arrived offset gives the emitter's."""

@final
class TransferSpans:
    """Times that a common byte range took: first sent to acknowledged, and first to last arrival."""

    @property
    def sender_ns(self) -> int: ...
    @property
    def receiver_ns(self) -> int: ...
    @property
    def bytes(self) -> int: ...

def transfer_spans(
    direction: int, sender: PacketColumns, receiver: PacketColumns, shift: int, shortest_bytes: int
) -> TransferSpans | None:
    """How long the bytes of `direction` that both captures hold, and that were acknowledged to the sender, took; None
    below `shortest_bytes`. `shift` added to a receiver-side offset gives the sender's."""

def sender_leads(
    flows: Sequence[FlowTimes],
    receivers: Sequence[PacketColumns],
    windows: Sequence[PacketColumns | None],
    shifts: Sequence[int],
    lines: _ClockLines,
    clocks_given: Sequence[bool],
    error_ns: int,
    buffers: tuple[int, int, int, int, int],
) -> dict[str, npt.NDArray[np.int64]]:
    """How far the senders of flows are ahead of their receivers under the friendliest clock: bytes acknowledged to the
    one, less those that arrived. -2**63 where too few times are known.

    `most_bytes` is the most at any time; `delivered_when_done_bytes` had arrived when the last byte was acknowledged to
    the sender, `acknowledged_at_start_bytes` were acknowledged when the first byte arrived; `silence_ns` is from the
    first byte sent to the first that arrived; `beyond_buffers_bytes` the most by which the lead exceeded what a relay's
    buffers could hold then, `buffers_bytes`.

    `windows` are the senders' captures where they hold the windows advertised to them in bytes; `shifts` added to
    receivers' offsets give senders'. With a given clock the receiver's times are taken as the lines have them.
    `buffers`: what a relay's application and send buffer hold whatever was delivered, the size of a segment, what they
    hold for each segment, the window before its buffer grows, and how large it may become for each byte that was read.
    """

@final
class PairSegments:
    """Segments of a connection at the client's and at the server's capture point, in the client side's offsets."""

    def cut_data(
        self, direction: int, parts: int, fewest: int, least_alike: float | None = None
    ) -> tuple[list[int], dict[str, npt.NDArray[np.int64]]]:
        """The arrived data of one direction cut in two at the places that divide them into equal parts and leave
        `fewest` on either side: from which bytes on, and counts by name, a row before and one after. Empty where none
        were emitted. With `least_alike` only where in one of both more than this share of the segments may be those
        emitted, by timestamps or by IP IDs."""

def coded_options(octets: Sequence[bytes], blanked: int) -> tuple[npt.NDArray[np.int64], list[bytes]]:
    """TCP options of SYNs as places in a list of those that differ by more than the values of timestamps, which are
    zeros there. Options with so many bytes of padding in a row are kept as they are."""

def openings(clients: Sequence[PacketColumns], servers: Sequence[PacketColumns]) -> dict[str, npt.NDArray[np.int64]]:
    """SYN and SYN-ACK (rows) of connections (columns) by the client's and the server's packets, all copies together.

    Copies, hop limits of the first and least windows (0 where there is none), as they left and arrived. `windows`,
    `tsvals`, `ip_ids` and `ecn` say whether some copies agree: 0 unknown, 1 yes, 2 no, 3 that one side has only 0;
    `ecn_left` and `ecn_arrived` are the greatest flags."""

def segment_counts(compared: Sequence[PairSegments], most_skipped: int) -> dict[str, Any]:
    """Counts over the packets of connections by name, arrays with a row a direction and a column a connection.

    Those of fields and of places are dictionaries; all are 0 where there is nothing to compare. `most_skipped`: the
    widest gap between two IP IDs in which a third shows that its host sent it."""

def align_all_segments(
    clients: tuple[Sequence[PacketColumns], npt.NDArray[np.int64], npt.NDArray[np.int64]],
    servers: tuple[Sequence[PacketColumns], npt.NDArray[np.int64], npt.NDArray[np.int64]],
    *,
    shifts: npt.NDArray[np.int64],
    supported: npt.NDArray[np.bool_],
    sampled_every: Sequence[int],
    fewest_sampled: int,
    fewest_joined: int,
    copies: int,
    majority: float,
) -> list[PairSegments | None]:
    """`align_segments` of many connections: of each vantage packets, window shifts and times of resets (-2**63 without
    one); numbers of connections are two rows, up and down."""

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
    def left_in_file_order(self) -> int:
        """Connections whose times fall back, but whose packets could not be read again in the order of time."""

    @property
    def oversize(self) -> tuple[int, int, tuple[int, int], tuple[int, int]] | None:
        """Where a partition takes more memory than was allowed: bytes allowed, partitions, packets and bytes of the
        largest connection, packets and bytes of the largest partition."""

    @property
    def temporary_bytes(self) -> tuple[int, int]:
        """Bytes written to temporary files, and read back by this process so far."""

    @property
    def processes_at_most(self) -> int | None:
        """How many processes may each load partitions of their own; None where everything is in memory."""

    def divide_memory(self, processes: int) -> int:
        """Lets go of partitions in memory and leaves this process one of so many shares of the memory allowed; gives
        how many partitions it keeps from now on."""

    @property
    def part_damage(self) -> list[tuple[str, int, str]]:
        """Of a capture of several parts: those that broke off before its end, with place and cause."""

    @property
    def part_begins(self) -> list[tuple[str, int]]:
        """Of a capture of several parts: the parts in their order, each with the number of frames before it."""

    @property
    def part_overlaps(self) -> list[tuple[str, str, int]]:
        """Of a capture of several parts: those that begin before the one before ended, that one, and by how many
        nanoseconds."""

    @property
    def contents(self) -> list[tuple[str, int, bool]]:
        """What the packets without TCP hold, such as `IP protocol 17 (UDP)`, their number, and whether TCP may be
        inside all the same; of the first 64 contents."""

    @property
    def link_types(self) -> list[tuple[int, str | None, int, bool]]:
        """Number, name and frames of the link-layer types in the capture, and whether they can be read."""

    def connection(
        self, index: int, closes: tuple[Any, ...], missing: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
        """Values of the connection, of its flow up and of its flow down, in the order of the fields in
        `pepscope.captures.connections`; `closes` and `missing` stand for the codes of either."""

    def connection_columns(
        self, start: int, stop: int, names: Sequence[str] | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Summaries of these connections as arrays, of all fields or of those with these names."""

    def connections_json(self, start: int, stop: int) -> bytes:
        """JSON objects of these connections with commas between them."""

    def partition_of(self, index: int) -> int:
        """Which part holds the packets of a connection."""

    def packet_columns(self, index: int) -> PacketColumns:
        """The packets of a connection."""

    def frame_numbers(self, index: int) -> npt.NDArray[np.int64]:
        """Frame number of each packet of a connection, from 1."""

    def sack_blocks(self, index: int) -> tuple[npt.NDArray[Any], ...]:
        """Row, left and right edge of the SACK blocks of a connection."""

    def exchanges(self) -> _ExchangeTables:
        """Columns of exchanges and of round trips of all connections, by name.

        Raises ValueError where the capture was opened without columns or payload.
        """

    @property
    def datagram_flow_count(self) -> int: ...
    def datagram_flow(self, index: int) -> dict[str, Any]:
        """Fields of one UDP flow."""

    def datagram_samples(self, index: int) -> list[tuple[list[int], list[int], list[int], list[bytes]]]:
        """Rank, time, length and kept bytes of the datagrams kept of each side."""

    def senders(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of `pepscope.captures.senders.Senders` of all connections, by name.

        Raises ValueError where the capture was opened without columns or payload.
        """

    def load_responses(self, connections: Sequence[int] | None = None) -> dict[str, npt.NDArray[Any]]:
        """Columns of `pepscope.captures.senders.LoadResponses` of some connections or all, by name.

        Raises as `senders` does, and IndexError for a connection that is not there.
        """

    def datagram_frame_numbers(self, index: int) -> list[npt.NDArray[np.int64]]:
        """Frame numbers, from 1, of the datagrams that were kept of each side of one UDP flow."""

    def references(self) -> dict[str, npt.NDArray[Any]]:
        """Round trips that no TCP split can shorten, as arrays."""

    def summaries(
        self, indices: Sequence[int]
    ) -> tuple[dict[str, npt.NDArray[Any]], tuple[_JoinedTexts, _JoinedTexts], tuple[list[bytes], list[bytes]]]:
        """Numbers of summaries of some connections as arrays, -2**63 where one was not seen, the end points of clients
        and of servers, and options of SYNs up and down."""

    def packet_counts(self, indices: Sequence[int]) -> npt.NDArray[np.int64]:
        """Packets of some connections."""

    def load(
        self, indices: Sequence[int], least_fall_ns: int
    ) -> tuple[list[PacketColumns], list[PayloadSample], list[PayloadSample], list[int], list[int]]:
        """Packets of some connections, their payload up and down, the places of those whose times fall by more than
        that, and of those of which all payload of a stream is one byte repeated."""

    def payload(self, index: int) -> tuple[PayloadSample, PayloadSample]:
        """The payload kept of each direction."""

def reference_kinds() -> list[str]:
    """Names of the kinds of references, by their number."""

def header_kinds() -> list[str]:
    """Names of the kinds of headers, by their number."""

def copy_with_comments(
    path: str, destination: str, section: str, interface: str, frames: Mapping[int, str], application: str
) -> tuple[int, list[int], tuple[int, str] | None]:
    """Write a copy of a capture as pcapng to a file that exists, with comments on sections, interfaces and frames.

    `frames` are comments by frame number, from 1. Gives how many frames were copied, the numbers of those that could
    not get their comment, and the byte at which the capture broke off, with the reason. Raises CaptureError for what is
    no capture, OSError where writing fails.
    """

def read_frames(path: str) -> CaptureFrames:
    """Read a whole capture into memory; up to the damage where it is damaged. Raises CaptureError."""

def frames_of_connections(path: str, connections: Sequence[tuple[tuple[bytes, int], tuple[bytes, int], int]]) -> bytes:
    """The content of a capture, not compressed, with no frames but those of some TCP connections.

    `connections` are ends in either order (16 bytes of address, port) and the time in nanoseconds from which on frames
    are kept. Of segments that came in fragments the last fragment alone is. Raises CaptureError.
    """

@final
class CaptureFrames:
    """The frames of a capture; `pepscope.captures.files.frames` gives the columns their names."""

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
    plug_ins: object | None = None,
) -> Simulated:
    """Run a scenario (JSON), with captures in `directory` unless it is None.

    Links and congestion controls in Python come from the methods `link` and `control` of `plug_ins`; what they raise
    ends the run and is raised here.

    `progress` gets the simulated seconds and the events so far. Raises ScenarioError, SimulationError.
    """

@final
class SimulatedPacket:
    """A packet that a link in Python holds."""

    @property
    def number(self) -> int:
        """Which one of those that the link was given, from 0."""

    @property
    def length_bytes(self) -> int:
        """Of the IP packet."""

    @property
    def user(self) -> int:
        """The mobile that sends or receives it."""

    @property
    def flow(self) -> int: ...
    @property
    def is_up(self) -> bool:
        """Whether it travels from the mobile to the server."""

    @property
    def understands_marks(self) -> bool:
        """Whether its sender understands congestion marks."""

    def discard(self) -> None:
        """Drop it."""

    def mark(self) -> bool:
        """Set the congestion mark; false where its sender does not understand that."""

@final
class ControlAcknowledgement:
    """An acknowledgement as a congestion control in Python sees it."""

    @property
    def now_ns(self) -> int: ...
    @property
    def newly_acknowledged_bytes(self) -> int:
        """By which the cumulative acknowledgement advanced; 0 for a duplicate ACK."""

    @property
    def newly_delivered_bytes(self) -> int:
        """Acknowledged for the first time, cumulatively or by SACK."""

    @property
    def delivered_bytes(self) -> int:
        """Since the start."""

    @property
    def in_flight_bytes(self) -> int:
        """Before this ACK."""

    @property
    def round_trip_time_ns(self) -> int | None: ...
    @property
    def delivery_rate_byte_s(self) -> int | None: ...
    @property
    def newly_lost_bytes(self) -> int: ...
    @property
    def is_marked(self) -> bool: ...
    @property
    def in_recovery(self) -> bool: ...
    @property
    def is_window_limited(self) -> bool:
        """Whether the congestion window limited what was in flight before this ACK."""

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
