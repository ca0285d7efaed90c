"""What was made of blocks of connections stays as long as these are few, or were asked for last."""

from __future__ import annotations

from pepscope.results.evidence.recent import MOST_CONNECTIONS, RecentBlocks


def test_small_blocks_are_made_once_in_whatever_order_they_are_asked_for() -> None:
    made: list[int] = []
    recent = RecentBlocks[str]()

    def make(block: int) -> str:
        made.append(block)
        return str(block)

    asked = [block for _ in range(3) for block in range(8)]
    assert [recent.of(block, MOST_CONNECTIONS // 8, make) for block in asked] == [str(block) for block in asked]
    assert made == [*range(8)]


def test_of_large_blocks_those_asked_for_last_stay() -> None:
    made: list[int] = []
    recent = RecentBlocks[None]()
    for block in (0, 1, 0, 2, 0, 1, 2):
        recent.of(block, MOST_CONNECTIONS, made.append)
    assert made == [0, 1, 2, 1, 2]


def test_one_small_block_stays_beside_large_ones_that_pass_by() -> None:
    made: list[int] = []
    recent = RecentBlocks[int]()

    def make(block: int) -> int:
        made.append(block)
        return block

    for large in range(1, 5):
        recent.of(0, 10, make)
        recent.of(large, MOST_CONNECTIONS // 2, make)
        recent.of(0, 10, make)
    assert made == [0, 1, 2, 3, 4]
