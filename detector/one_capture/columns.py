"""The captures of one vantage point as columns: connections, their exchanges, references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from detector.clocks.untimed_exchanges import timed
from detector.one_capture.networks import distinct_addresses
from detector.one_capture.senders.declared_proxies import Declared, declared_proxies
from detector.one_capture.senders.guessed_ends import untimed_from_wrong_ends
from pepscope.captures.capture import Capture
from pepscope.captures.exchanges import Exchanges, RoundTripColumns
from pepscope.captures.references import References
from pepscope.captures.senders import Senders
from pepscope.captures.tables.texts import SlicedTexts, joined

#: What is read of each connection's summary, of some eighty columns.
_NAMES = (
    "client_address", "client_port", "server_address", "server_port", "packets", "first_time_ns", "last_time_ns",
    "handshake_syn_ack_ns", "handshake_ack_ns", "up_last_data_time_ns", "up_fin_time_ns", "down_last_data_time_ns",
    "down_fin_time_ns", "down_reset_time_ns", "down_retransmitted_packets",
    *(
        f"{way}_{name}"
        for way in ("up", "down")
        for name in (
            "stream_bytes", "round_trip_time_min_ns", "maximum_segment_size", "options_captured", "window_scale",
        )
    ),
)  # fmt: skip

#: What is read beside that, and not kept: whether it was guessed which end is the client.
_GUESSED = "side_guessed"


class VantageColumns(Struct, frozen=True, dict=True):
    """What the captures of one vantage point show; connections are counted through all of them.

    `columns` are some of those of `Capture.connection_columns`, `capture` the number of each connection's capture.
    """

    captures: Sequence[Capture]
    columns: Mapping[str, npt.NDArray[Any]]
    capture: npt.NDArray[np.int64]
    exchanges: Exchanges
    references: References
    senders: Senders

    @cached_property
    def declared(self) -> Declared:
        """What the connections declare of proxies."""
        return declared_proxies(self.exchanges, self.columns)

    @cached_property
    def clients(self) -> Sequence[str]:
        """The client's address of each connection."""
        addresses, which = distinct_addresses(self.columns["client_address"])
        return joined(len(which), ["", ""], [(which.astype(np.uint32), addresses)])

    @cached_property
    def servers(self) -> Sequence[str]:
        """The server's address of each connection."""
        addresses, which = distinct_addresses(self.columns["server_address"])
        return joined(len(which), ["", ""], [(which.astype(np.uint32), addresses)])

    def end_points(self, end: str) -> SlicedTexts:
        """The `client` or the `server` of each connection as `ip:port`, IPv6 in brackets."""
        addresses, which = distinct_addresses(self.columns[f"{end}_address"])
        bracketed = [f"[{address}]" if ":" in address else address for address in addresses]
        ports = self.columns[f"{end}_port"].astype(np.int64)
        return joined(len(which), ["", ":", ""], [(which.astype(np.uint32), bracketed), ports])


def vantage_columns(captures: Sequence[Capture]) -> VantageColumns:
    """Read the columns of all captures."""
    every = [_columns(capture) for capture in captures]
    counts = [len(columns["first_time_ns"]) for columns in every]
    starts = np.cumsum([0, *counts[:-1]])
    exchanges, senders = zip(*(capture.exchanges_and_senders() for capture in captures), strict=True)
    columns = dict(every[0]) if len(every) == 1 else _concatenated(every)
    guessed = columns.pop(_GUESSED).astype(np.bool_)
    every_exchange = _joined_exchanges([timed(*each) for each in zip(captures, every, exchanges, strict=True)], starts)
    return VantageColumns(
        captures,
        columns,
        np.repeat(np.arange(len(captures)), counts),
        untimed_from_wrong_ends(columns, guessed, every_exchange),
        _joined(References, [capture.references() for capture in captures]),
        _joined(Senders, [_moved(each, start) for each, start in zip(senders, starts, strict=True)]),
    )


def joined_vantages(every: Sequence[VantageColumns]) -> VantageColumns:
    """What one vantage point shows at several times, as one; `captures` are those of all."""
    counts = [len(each.capture) for each in every]
    starts = np.cumsum([0, *counts[:-1]])
    first_captures = np.cumsum([0, *(len(each.captures) for each in every[:-1])])
    return VantageColumns(
        tuple(capture for each in every for capture in each.captures),
        _concatenated([each.columns for each in every]),
        np.concatenate([each.capture + first for each, first in zip(every, first_captures, strict=True)]),
        _joined_exchanges([each.exchanges for each in every], starts),
        _joined(References, [each.references for each in every]),
        _joined(Senders, [_moved(each.senders, start) for each, start in zip(every, starts, strict=True)]),
    )


def selected(vantage: VantageColumns, rows: npt.NDArray[np.int64], references: npt.NDArray[np.bool_]) -> VantageColumns:
    """Some connections, in ascending order, and some references."""
    numbers = np.full(len(vantage.capture), -1, np.int64)
    numbers[rows] = np.arange(len(rows))
    both = np.stack([2 * rows, 2 * rows + 1], axis=1).reshape(-1)  # rows of each connection's two directions

    def of(kind: Any, which: npt.NDArray[Any]) -> Any:
        names = [name for name in kind.__struct_fields__ if name != "round_trips"]
        columns = {name: getattr(kind, name)[which] for name in names}
        columns["connection"] = numbers[columns["connection"]].astype(kind.connection.dtype)
        return columns

    exchanges = of(vantage.exchanges, numbers[vantage.exchanges.connection] >= 0)
    return VantageColumns(
        vantage.captures,
        {name: column[rows] for name, column in vantage.columns.items()},
        vantage.capture[rows],
        Exchanges(**exchanges, round_trips=RoundTripColumns(**of(vantage.exchanges.round_trips, both))),
        vantage.references.of(references),
        Senders(**of(vantage.senders, both)),
    )


def _columns(capture: Capture) -> dict[str, npt.NDArray[Any]]:
    return _concatenated([*capture.connection_batches((*_NAMES, _GUESSED))])


def _concatenated(every: Sequence[Mapping[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    return {name: np.concatenate([columns[name] for columns in every]) for name in every[0]}


def _joined_exchanges(every: Sequence[Exchanges], starts: npt.NDArray[np.int64]) -> Exchanges:
    if len(every) == 1:
        return every[0]
    moved = [_moved(each, start) for each, start in zip(every, starts, strict=True)]
    every_round_trip = [_moved(each.round_trips, start) for each, start in zip(every, starts, strict=True)]
    round_trips = _joined(RoundTripColumns, every_round_trip)
    columns = {
        name: np.concatenate([getattr(each, name) for each in moved])
        for name in Exchanges.__struct_fields__
        if name != "round_trips"
    }
    return Exchanges(**columns, round_trips=round_trips)


def _moved(rows: Any, start: np.int64) -> Any:
    """The same rows of connections that are counted from `start`."""
    return replace(rows, connection=(rows.connection + start).astype(rows.connection.dtype))


def _joined(kind: type[Any], every: Sequence[Any]) -> Any:
    if len(every) == 1:
        return every[0]
    return kind(**{name: np.concatenate([getattr(each, name) for each in every]) for name in kind.__struct_fields__})
