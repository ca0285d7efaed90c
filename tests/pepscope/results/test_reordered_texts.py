"""Pairs that stand in another order than their blocks are written in their order, and each block is made once."""

from __future__ import annotations

import resource
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.results.encoding.pairs import PairTexts
from pepscope.results.encoding.reordered import reordered
from pepscope.results.encoding.templates import Layout, Octets
from pepscope.results.evidence import recent
from pepscope.results.evidence.columns import Int64Array
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import Evidence, Outcome, PairResult, VantageName, Verdict

#: Pairs that a table packs together where they are added one by one.
TOGETHER = 32

PAIR = PairResult(
    (VantageName("a.pcap", "192.0.2.1:1024", "203.0.113.1:443"),),
    Verdict.REGULAR,
    {Verdict.REGULAR: 1.0},
    "Why.",
    (Evidence("identity", Outcome.INTACT, "same-packets", 1.0, "The same.", {"segments": 7}, ()),),
    4,
    100,
    200,
    1.5,
)


@given(st.lists(st.lists(st.binary(max_size=5), max_size=4), max_size=5), st.randoms(), st.integers(1, 4))
def test_texts_of_blocks_come_in_their_order(blocks: list[list[bytes]], random: object, together: int) -> None:
    texts = [text for block in blocks for text in block]
    order = list(range(len(texts)))
    random.shuffle(order)  # type: ignore[attr-defined]
    made = ((b"".join(block), np.cumsum([len(text) for text in block], dtype=np.int64)) for block in blocks)
    chunks = list(reordered(made, np.array(order, np.int64), together))
    assert b"".join(chunks) == b"".join(texts[row] for row in order)
    assert len(chunks) == -(-len(order) // together)


def test_a_directory_of_temporary_files_that_is_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as full:
            list(reordered([(bytes(20_000), np.array([20_000]))], np.zeros(1, np.int64), 1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert full.value.filename == str(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stride", [37, 1], ids=["from block to block", "block by block"])
def test_each_block_of_pairs_is_made_once(monkeypatch: pytest.MonkeyPatch, stride: int) -> None:
    monkeypatch.setattr(recent, "MOST_CONNECTIONS", 2 * TOGETHER)
    pairs = [replace(PAIR, packets=number) for number in range(5 * TOGETHER)]
    rows = [(number * stride + TOGETHER) % len(pairs) for number in range(len(pairs))]
    in_order, elsewhere = PairTable([pairs[row] for row in rows]), PairTable(pairs).in_order(rows)
    expected = b"".join(PairTexts(in_order, Layout(2), 2).chunks())
    made = list[int]()

    def of_block(self: PairTexts, block: int) -> tuple[Octets, Int64Array]:
        made.append(block)
        return unwatched(self, block)

    unwatched = PairTexts._of_block
    monkeypatch.setattr(PairTexts, "_of_block", of_block)
    assert b"".join(PairTexts(elsewhere, Layout(2), 2).chunks()) == expected
    assert sorted(made) == [*range(5)]
