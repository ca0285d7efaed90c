"""Clock relations of many connections as columns."""

from __future__ import annotations

import pytest

from detector.clocks.relation_columns import line_columns
from pepscope import _core

LINES = [[(1, 2, 3.0, 4.0)], [], [(5, 6, 7.0, 8.0), (9, 10, 11.0, 12.0)]]


def test_columns_hold_the_lines_of_each_connection() -> None:
    columns = line_columns(LINES)
    assert [columns[row] for row in range(3)] == LINES
    some = columns.at([2, 0, 2])
    assert [some[row] for row in range(3)] == [LINES[2], LINES[0], LINES[2]]
    assert len(line_columns([])) == 0


def test_connections_that_are_not_there_are_refused() -> None:
    with pytest.raises(IndexError):
        line_columns(LINES).at([3])
    with pytest.raises(IndexError):
        line_columns(LINES)[3]


@pytest.mark.parametrize(("owners", "starts"), [([1, 0], [1, 2]), ([0, 2], [1, 2]), ([0, 1], [1])])
def test_columns_that_do_not_belong_together_are_refused(owners: list[int], starts: list[int]) -> None:
    with pytest.raises(ValueError, match="owner"):
        _core.ClockLineColumns(2, owners, starts, [0, 0], [0.0, 0.0], [0.0, 0.0])
