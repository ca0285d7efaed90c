"""What matching asks of every connection of a capture, as columns: most connections are settled without an object."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from pepscope.captures.capture import Capture
from pepscope.captures.connection_source import ConnectionSource
from pepscope.captures.connections import Connection
from pepscope.captures.packets import Int64Array

#: Stands for an initial sequence number that was not seen.
_UNSEEN = -1


class SummaryColumns(Struct, frozen=True, dict=True):
    """Columns by connection id; times in nanoseconds."""

    first_time_ns: Int64Array
    last_time_ns: Int64Array
    side_guessed: Int64Array
    up_syn_count: Int64Array
    up_initial_sequence_number: Int64Array  # `_UNSEEN` where it is None
    down_initial_sequence_number: Int64Array

    @classmethod
    def of(cls, source: ConnectionSource) -> SummaryColumns:
        """The columns of a capture, from its own ones where it has them."""
        names = cls.__struct_fields__
        if isinstance(source, Capture):
            batches = list(source.connection_batches(names))
            return cls(*(np.concatenate([batch[name] for batch in batches]).astype(np.int64) for name in names))
        rows = [_row(connection) for connection in source.connections]
        return cls(*np.array(rows, np.int64).reshape(len(rows), len(names)).T)

    @property
    def span_ns(self) -> int:
        """From the first packet to the last."""
        return int(self.last_time_ns.max() - self.first_time_ns.min()) if len(self.first_time_ns) else 0

    @cached_property
    def own_sequence_numbers(self) -> tuple[Int64Array, Int64Array]:
        """Both initial sequence numbers as one key, ascending, and the connections that alone have them."""
        up, down = self.up_initial_sequence_number, self.down_initial_sequence_number
        seen = np.flatnonzero((up != _UNSEEN) & (down != _UNSEEN))
        keys, first, counts = np.unique((up[seen] << 32) | down[seen], return_index=True, return_counts=True)
        return keys[counts == 1], seen[first[counts == 1]]


def same_sequence_numbers(ones: SummaryColumns, twos: SummaryColumns) -> tuple[Int64Array, Int64Array]:
    """Connections of two captures with both initial sequence numbers alike that no other connection of either has."""
    (left, left_ids), (right, right_ids) = ones.own_sequence_numbers, twos.own_sequence_numbers
    _, one, two = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    order = np.argsort(left_ids[one])
    return left_ids[one][order], right_ids[two][order]


def _row(connection: Connection) -> tuple[int, ...]:
    numbers = (connection.up.initial_sequence_number, connection.down.initial_sequence_number)
    return (
        connection.first_time_ns, connection.last_time_ns, connection.side_guessed, connection.up.syn_count,
        *(_UNSEEN if number is None else number for number in numbers),
    )  # fmt: skip
