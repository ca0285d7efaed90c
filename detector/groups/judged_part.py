"""Connections that one process judged: their verdicts, and what groups need to know of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field

from detector.groups.membership import Members
from pepscope.captures.packets import Int64Array
from pepscope.results.pair_table import PairTable


class JudgedPart(Struct):
    """Connections that were judged in one piece: verdicts, and by their numbers rows among these and members."""

    pairs: PairTable = field(default_factory=PairTable)
    rows: list[tuple[Sequence[int], Int64Array]] = field(default_factory=list)
    members: list[tuple[Sequence[int], Members]] = field(default_factory=list)
    bytes_read: int = 0  # from temporary files

    def add(self, numbers: Sequence[int], table: PairTable, rows: Int64Array, members: Members) -> None:
        """Add connections, whose verdicts stand in `rows` of a table."""
        self.rows.append((numbers, len(self.pairs) + rows))
        self.members.append((numbers, members))
        self.pairs.extend(table)

    def extend(self, other: JudgedPart) -> None:
        """Add those of another part."""
        self.rows += [(numbers, len(self.pairs) + rows) for numbers, rows in other.rows]
        self.members += other.members
        self.pairs.extend(other.pairs)
        self.bytes_read += other.bytes_read

    def rows_in_order(self) -> list[int]:
        """The rows of all connections, in the order of their numbers."""
        order = np.zeros(len(self.pairs), np.int64)
        for numbers, rows in self.rows:
            order[np.asarray(numbers, np.int64)] = rows
        return order.tolist()
