"""Packets of one connection as columns, of few packets (kept in Rust) and of many (kept in NumPy)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pepscope import _core
from pepscope.captures.packets import Direction, Mark, PacketColumns, TcpFlag

KINDS = {
    **dict.fromkeys(("direction", "ttl"), np.uint8),
    **dict.fromkeys(("flags", "ip_id", "marks"), np.uint16),
    **dict.fromkeys(("payload_bytes", "window_bytes", "tsval", "tsecr", "payload_hash"), np.uint32),
    **dict.fromkeys(("time_ns", "sequence_offset", "acknowledgement_offset", "round_trip_time_ns"), np.int64),
}

sizes = pytest.mark.parametrize("count", [0, 1, 4096, 4097])


def columns_of(count: int) -> dict[str, npt.NDArray[Any]]:
    random = np.random.default_rng(count)
    made = {name: random.integers(0, 99, count).astype(KINDS[name]) for name in PacketColumns.COLUMNS}
    return {**made, "direction": made["direction"] % np.uint8(2)}


@sizes
def test_columns_are_those_given(count):
    columns = columns_of(count)
    packets = PacketColumns(**columns)
    assert len(packets) == count
    assert set(PacketColumns.COLUMNS) == set(KINDS)
    for name, column in columns.items():
        found = getattr(packets, name)
        assert found.dtype == column.dtype
        np.testing.assert_array_equal(found, column)
        assert getattr(packets, name) is found
        assert not found.flags.writeable
        assert column.flags.writeable
    frame = packets.to_frame()
    assert list(frame.columns) == list(PacketColumns.COLUMNS)
    assert len(frame) == count


@sizes
def test_changed_arrays_change_no_packets(count):
    columns = columns_of(count)
    packets = PacketColumns(**columns)
    columns["ttl"][:] = 200
    assert not (packets.ttl == 200).any()


@sizes
def test_a_column_is_replaced(count):
    columns = columns_of(count)
    packets = PacketColumns(*columns.values())
    later = packets.replaced(time_ns=packets.time_ns + 5)
    np.testing.assert_array_equal(packets.time_ns, columns["time_ns"])
    np.testing.assert_array_equal(later.time_ns, columns["time_ns"] + 5)
    for name in set(KINDS) - {"time_ns"}:
        np.testing.assert_array_equal(getattr(later, name), columns[name])
    np.testing.assert_array_equal(packets.replaced().ttl, columns["ttl"])


@sizes
def test_packets_are_selected(count):
    columns = columns_of(count)
    packets = PacketColumns(**columns)
    np.testing.assert_array_equal(packets.going(Direction.DOWN), columns["direction"] == 1)
    np.testing.assert_array_equal(packets.flagged(TcpFlag.SYN | TcpFlag.FIN), (columns["flags"] & 3) != 0)
    np.testing.assert_array_equal(packets.marked(Mark.REORDERED), (columns["marks"] & 2) != 0)


@sizes
def test_columns_need_not_be_contiguous(count):
    columns = {name: np.repeat(column, 2)[::2] for name, column in columns_of(count).items()}
    packets = PacketColumns(**columns)
    again = packets.replaced(ttl=np.repeat(columns["ttl"], 3)[::3])
    for name, column in columns.items():
        np.testing.assert_array_equal(getattr(packets, name), column)
        np.testing.assert_array_equal(getattr(again, name), column)


@pytest.mark.parametrize("count", [1, 4096, 4097])
def test_columns_of_other_length_or_kind_are_refused(count):
    columns = columns_of(count)
    packets = PacketColumns(**columns)
    for name, column in columns.items():
        with pytest.raises(ValueError, match="the columns differ in length"):
            PacketColumns(**{**columns, name: column[1:]})
        with pytest.raises(ValueError, match="the columns differ in length"):
            packets.replaced(**{name: np.repeat(column, 2)})
        with pytest.raises(TypeError):
            PacketColumns(**{**columns, name: column.astype(np.float64)})
        with pytest.raises(TypeError):
            packets.replaced(**{name: column.astype(np.float64)})
    with pytest.raises(TypeError, match='packets have no column "ports"'):
        packets.replaced(ports=columns["ip_id"])


def test_rust_reads_few_and_many_alike():
    """The same packets, in one connection and with others behind them that change nothing."""
    few, many = columns_of(4096), columns_of(4096)
    for columns in few, many:
        columns["flags"][:] = TcpFlag.ACK
        columns["flags"][7::1000] = TcpFlag.ACK | TcpFlag.FIN
    many = {name: np.concatenate([column, column[:100]]) for name, column in many.items()}
    many["flags"][4096:] = TcpFlag.ACK
    counts, firsts = _core.fins([PacketColumns(**few), PacketColumns(**many)])
    assert counts[:, 0].tolist() == counts[:, 1].tolist()
    assert firsts[:, 0].tolist() == firsts[:, 1].tolist()
    with pytest.raises(TypeError):
        _core.fins([few])  # type: ignore[list-item]
