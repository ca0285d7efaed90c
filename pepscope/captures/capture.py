"""Captures: a file of packets as TCP connections, read by Rust and handed over as columns."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pepscope import _core
from pepscope.captures.connections import Connection, ConnectionSequence
from pepscope.captures.direction import DIRECTIONS
from pepscope.captures.opening.capture_files import CaptureFile, capture_name, readable_path
from pepscope.captures.opening.parts import capture_files, check_order, parts_name
from pepscope.captures.warnings import capture_warnings
from pepscope.errors import (
    CaptureError,
    FilterError,
    MalformedCaptureError,
    MissingCaptureError,
    UnreadableCaptureError,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from pepscope.captures.connection_source import HeldKeys, KeyForm
    from pepscope.captures.datagrams import DatagramFlow, DatagramSample
    from pepscope.captures.exchanges import Exchanges
    from pepscope.captures.packets import Direction, PacketColumns, PayloadSample, SackBlocks
    from pepscope.captures.references import References
    from pepscope.captures.senders import LoadResponses, Senders

    _Texts: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]

DEFAULT_MEMORY_BYTES = 1 << 30

#: Which payload samples of TCP streams to keep: all, none, or only what tells exchanges.
KeptPayload: TypeAlias = bool | Literal["exchanges"]

#: The frame number of a packet that a capture lacks.
NO_FRAME = -1

#: Connections whose texts are made at a time.
_BATCH = 4096


def open_capture(
    source: CaptureFile | Sequence[str | os.PathLike[str]],
    *,
    filter: str | None = None,  # noqa: A002
    memory_bytes: int | None = None,
    payload: KeptPayload = True,
    columns: bool = True,
    tcp_needed: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Capture:
    """Read a capture and analyse its TCP connections.

    - `source`: a pcap, pcapng or snoop file, plain or compressed (gzip, zstd, xz, bzip2, lz4), as a path, a file object
      open for bytes, or `-` for standard input. Several paths, and the captures in a directory, are read as one capture
      that a tool divided into files (`tcpdump -C`, `-G`), in the order of their first packets.
    - `filter`: an expression in libpcap's language; packets that do not match it are not read.
    - `memory_bytes`: packet columns (or, without them, connections) that take more than this (default: 1 GiB) are kept
      in temporary files and loaded in parts, with the same results. A connection is never divided.
    - `payload`, `columns`: whether to keep payload samples (of TCP streams and UDP flows) and packet columns. With
      "exchanges" only the samples of TCP streams are kept that `Capture.exchanges` needs, which takes less time and
      memory; methods for two captures need all.
    - `tcp_needed`: whether a capture without TCP is an error.
    - `progress`: called with the bytes of the file read so far and in all (0 if unknown).

    Raises MalformedCaptureError for a file that is no capture, for parts that ran at the same time and for a capture
    without TCP; MissingCaptureError and UnreadableCaptureError as the system reports them; FilterError for a filter
    that does not compile. A damaged capture is read up to the damage, which `Capture.warnings` reports.
    """
    programs = None
    if filter is not None:
        from pepscope.captures.opening.filters import compile_filter

        programs = compile_filter(filter)
    with _readable_files(source) as (files, name):
        try:
            core = _core.read_capture(
                files,
                filter_programs=programs,
                memory_bytes=DEFAULT_MEMORY_BYTES if memory_bytes is None else memory_bytes,
                payload=payload,
                columns=columns,
                progress=progress,
            )
        except CaptureError as error:
            shown = str(error) if len(files) > 1 else str(error).replace(files[0], name)
            raise _as_python_names_it(shown, files) from error
    check_order(name, core)
    if programs is not None:
        for link_type, link_name, frames, is_known in core.link_types:
            if is_known and frames and link_type not in programs:
                where = f"link type {link_name or 'unnamed'} of {name}"
                raise FilterError(f"the filter {filter!r} has no meaning on {where}")
    capture = Capture(name, core, capture_warnings(name, core))
    capture.filter = filter
    if os.path.isdir(name) or core.part_begins:
        capture.files = core.part_begins or [(files[0], 0)]
    if core.tcp_packet_count == 0 and tcp_needed:
        raise capture.nothing_to_analyse()
    return capture


@contextmanager
def _readable_files(source: CaptureFile | Sequence[str | os.PathLike[str]]) -> Iterator[tuple[list[str], str]]:
    """The files to read and the name to show."""
    if isinstance(source, Sequence) and not isinstance(source, str):
        given = [os.fsdecode(each) for each in source]
        yield capture_files(given), parts_name(given)
        return
    with readable_path(capture_name(source)) as (path, name):
        yield capture_files([path]), name


def _as_python_names_it(sentence: str, files: Sequence[str]) -> CaptureError:
    """The sentence as the exception that Python has for it; the system is asked once more for its kind."""
    for path in files:
        if path == "-":
            continue
        try:
            with open(path, "rb") as file:
                file.read(1)
        except FileNotFoundError:
            return MissingCaptureError(sentence)
        except OSError:
            return UnreadableCaptureError(sentence)
    return MalformedCaptureError(sentence)


class Capture:
    """A capture as read: its TCP connections and their packets. Made by `open_capture`."""

    def __init__(self, path: str, core: _core.Capture, warnings: tuple[str, ...]) -> None:
        self.path = path
        #: The files of the capture in their order, each with the number of frames before it.
        self.files: Sequence[tuple[str, int]] = [(path, 0)]
        #: Of the file as it stands on disk, where a caller took it, and the filter that it was read with.
        self.sha256: str | None = None
        self.filter: str | None = None
        self.warnings = warnings
        self._core = core
        self._latest: tuple[int, PacketColumns] | None = None
        self._columns: Mapping[str, npt.NDArray[Any]] | None = None
        self._exchanges: Exchanges | None = None
        self._senders: Senders | None = None

    def __repr__(self) -> str:
        return f"<Capture {self.path!r}: {self.packet_count} packets, {len(self.connections)} connections>"

    @property
    def packet_count(self) -> int:
        """Packets in the file, TCP or not, less those that the filter removed."""
        return self._core.packet_count

    def nothing_to_analyse(self) -> CaptureError:
        """The error to raise where a capture without TCP is of no use."""
        found = "; ".join(sentence.replace("the capture holds", "it holds") for sentence in self.warnings)
        return MalformedCaptureError(f"nothing to analyse in {self.path}: {found}")

    @property
    def tcp_packet_count(self) -> int:
        """TCP segments that were analysed."""
        return self._core.tcp_packet_count

    @property
    def time_span_ns(self) -> tuple[int, int] | None:
        """Times of the first and the last packet of any kind, those that the filter removed too: between them the
        capture ran. None where the file gives no packet a time."""
        return self._core.time_span_ns

    @property
    def counts(self) -> dict[str, int]:
        """Packets by what became of them, named as in the warnings (`frames`, `not_ip`, `cut_short`, ...)."""
        return self._core.counts

    @property
    def connections(self) -> Sequence[Connection]:
        """The connections by first packet; each object is made when it is asked for."""
        return ConnectionSequence(self._core)

    def connection_columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """Summaries of all connections as arrays, one element a connection, without an object for each.

        Names are those of `Connection` and, behind `up_` and `down_`, of `FlowSummary`; a value that is `None` there is
        -1 here (NaN in floats). Addresses are rows of 16 bytes (IPv4 behind ::ffff:0:0/96), close and tunnel are codes
        into `CLOSES` and `TUNNELS`. The SYN's option bytes are left out.
        """
        if self._columns is None:
            self._columns = self._core.connection_columns(0, self._core.connection_count)
        return self._columns

    def connection_batches(self, names: Sequence[str] | None = None) -> Iterator[Mapping[str, npt.NDArray[Any]]]:
        """`connection_columns` in pieces of some thousand connections (at least one piece), in bounded memory; only
        those with these names, where some are given."""
        count = self._core.connection_count
        for start in range(0, max(count, 1), _BATCH):
            yield self._core.connection_columns(start, min(start + _BATCH, count), names)

    def packets(self, connection_id: int) -> PacketColumns:
        """Packets of one connection, made of a compact form when asked for, and kept until those of another one are."""
        if self._latest is None or self._latest[0] != connection_id:
            self._latest = None  # let go of the old ones before the new ones are made
            self._latest = (connection_id, self._core.packet_columns(connection_id))
        return self._latest[1]

    def packet_keys(self, connection_ids: Sequence[int], forms: Sequence[KeyForm], most: int) -> list[HeldKeys]:
        """Keys of packets as `ConnectionSource` has them."""
        return _core.keys_of_connections(self._core, connection_ids, forms, most)

    def summaries(
        self, connection_ids: Sequence[int]
    ) -> tuple[Mapping[str, npt.NDArray[Any]], tuple[_Texts, _Texts], tuple[list[bytes], list[bytes]]]:
        """Numbers of summaries as arrays named as in `connection_columns` (None as -2**63), `ip:port` of clients and
        servers (for `SlicedTexts.behind_each_other`), and the SYN's options up and down, of some connections."""
        return self._core.summaries(connection_ids)

    def packet_counts(self, connection_ids: Sequence[int]) -> npt.NDArray[np.int64]:
        """How many packets some connections have."""
        return self._core.packet_counts(connection_ids)

    def load(
        self, connection_ids: Sequence[int], least_fall_ns: int
    ) -> tuple[list[PacketColumns], list[PayloadSample], list[PayloadSample], list[int], list[int]]:
        """Packets of some connections, their payload up and down, the places of those whose times fall by more than
        this from one packet to the next, and of those of which all payload of a stream is one byte repeated."""
        return self._core.load(connection_ids, least_fall_ns)

    def frame_numbers(self, connection_id: int) -> npt.NDArray[np.int64]:
        """The frame of each packet of one connection, from 1 as Wireshark counts.

        Frames that a filter removed and frames without TCP count too. Of a segment in IP fragments it is the frame that
        completes it. Of a capture of several files they are counted through all of them: `located` names the file.
        """
        return self._core.frame_numbers(connection_id)

    def frames_of_rows(
        self, connection_ids: Sequence[int], rows: Sequence[Sequence[int]]
    ) -> list[tuple[tuple[int, int] | None, list[int]]]:
        """The first and the last frame of some connections (None without packets), and those of some rows of the
        packets of each, counted as in `frame_numbers`."""
        return _core.frames_of_rows(self._core, connection_ids, rows)

    def frame_spans(self, connection_ids: Sequence[int]) -> npt.NDArray[np.int64]:
        """The first and the last of `frame_numbers` of some connections, a row a connection; `NO_FRAME` of those
        without packets."""
        return _core.frame_spans(self._core, connection_ids)

    def frames_at(
        self,
        connection_ids: npt.NDArray[np.int64],
        directions: npt.NDArray[np.uint8],
        times_ns: npt.NDArray[np.int64],
        carrying: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.int64]:
        """The frame of the first packet of each connection in this direction, at this time, and with payload where it
        is to carry some; `NO_FRAME` where there is none."""
        return _core.frames_at(self._core, connection_ids, directions, times_ns, carrying)

    def located(self, frame_number: int) -> tuple[str, int]:
        """The file that holds a frame, and the frame's number in it."""
        place = 0
        if len(self.files) > 1:
            place = max(bisect_left(self.files, frame_number, key=lambda file: file[1]) - 1, 0)
        file, before = self.files[place]
        return file, frame_number - before

    def sack_blocks(self, connection_id: int) -> SackBlocks:
        """Selective acknowledgements of one connection, as its packets carry them."""
        from pepscope.captures.packets import SackBlocks

        return SackBlocks(*self._core.sack_blocks(connection_id))

    def exchanges_and_senders(self) -> tuple[Exchanges, Senders]:
        """Both of what `exchanges` and `senders` give, from packets that are decoded once; raises as they do."""
        if self._exchanges is None and self._senders is None:
            from pepscope.captures.exchanges import exchange_tables
            from pepscope.captures.senders import Senders

            *exchanges, senders = _core.exchanges_and_senders(self._core)
            self._exchanges, self._senders = exchange_tables(*exchanges), Senders(**senders)
        return self.exchanges(), self.senders()

    def exchanges(self) -> Exchanges:
        """Exchanges of all connections, and the transport round trips of each; made when first asked for.

        Raises ValueError where the capture was opened without columns or without payload, CaptureError where temporary
        files cannot be read.
        """
        if self._exchanges is None:
            from pepscope.captures.exchanges import exchange_tables

            self._exchanges = exchange_tables(*self._core.exchanges())
        return self._exchanges

    def senders(self) -> Senders:
        """What each side of all connections sends, as far as it tells of stack and place; made when first asked for.

        Raises ValueError where the capture was opened without columns or without payload, CaptureError where temporary
        files cannot be read.
        """
        if self._senders is None:
            from pepscope.captures.senders import Senders

            self._senders = Senders(**self._core.senders())
        return self._senders

    def load_responses(self, connections: Sequence[int] | None = None) -> LoadResponses:
        """How round trips and windows of each side's data respond to load, of all connections or of those with these
        numbers; made when it is asked for. Raises as `senders` does, IndexError for a number that no connection has.
        """
        from pepscope.captures.senders import LoadResponses

        return LoadResponses(**self._core.load_responses(connections))

    @property
    def datagram_flows(self) -> Sequence[DatagramFlow]:
        """The UDP flows outside known tunnels, by first datagram; empty where no payload is kept."""
        from pepscope.captures.datagrams import DatagramFlow

        return [DatagramFlow(**self._core.datagram_flow(index)) for index in range(self._core.datagram_flow_count)]

    def datagram_samples(self, flow_id: int) -> tuple[DatagramSample, DatagramSample]:
        """The datagrams kept of each side of a UDP flow, its first sender's first."""
        import numpy as np

        from pepscope.captures.datagrams import DatagramSample

        first, second = (
            DatagramSample(
                np.asarray(rank, np.int64), np.asarray(time_ns, np.int64), np.asarray(length, np.int64), tuple(pieces)
            )
            for rank, time_ns, length, pieces in self._core.datagram_samples(flow_id)
        )
        return first, second

    def datagram_frame_numbers(self, flow_id: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The frame in the file of each datagram in `datagram_samples`, counted as in `frame_numbers`."""
        first, second = self._core.datagram_frame_numbers(flow_id)
        return first, second

    def references(self) -> References:
        """Round trips to hosts that no TCP split can shorten: answers to ICMP echo requests and UDP datagrams."""
        from pepscope.captures.references import References

        return References(**self._core.references())

    def payload(self, connection_id: int) -> dict[Direction, PayloadSample]:
        """The payload kept of each direction."""
        return dict(zip(DIRECTIONS, self._core.payload(connection_id), strict=True))

    def partition_of(self, connection_id: int) -> int:
        """Which partition holds the packets; ask for connections partition by partition and each is loaded once."""
        return self._core.partition_of(connection_id)

    @property
    def partition_count(self) -> int:
        """One where everything is in memory."""
        return self._core.partition_count

    @property
    def processes_at_most(self) -> int | None:
        """How many processes may each load partitions of their own in the memory allowed; None where all is shared."""
        return self._core.processes_at_most

    def divide_memory(self, processes: int) -> int:
        """Let go of loaded partitions, and leave each of so many processes an equal share of the memory allowed.

        Returns how many partitions a process keeps loaded from now on.
        """
        self._latest = None
        return self._core.divide_memory(processes)

    @property
    def temporary_bytes(self) -> tuple[int, int]:
        """Bytes written to temporary files, and those that this process has read back so far."""
        return self._core.temporary_bytes

    def to_frame(self) -> pd.DataFrame:
        """One row a connection: the columns of `connection_columns`, addresses as text, absent values as missing."""
        from pepscope.captures.tables.connection_frame import connection_frame

        return connection_frame(self)

    def json_chunks(self, *, exchanges: bool = False) -> Iterator[bytes]:
        """The JSON contract `inspect-1` in pieces, so that no capture is too large for it; on demand with exchanges."""
        from pepscope.captures.tables.connection_json import json_chunks

        return json_chunks(self, exchanges=exchanges)

    def connections_json(self, start: int, stop: int) -> bytes:
        """Some connections as the objects of `inspect-1`, with commas between them."""
        return self._core.connections_json(start, stop)
