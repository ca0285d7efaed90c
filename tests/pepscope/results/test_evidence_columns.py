"""Evidence in columns: figures as they would be of one connection, and words when they are read."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pepscope.results.encoding.pieces import piece_documents
from pepscope.results.evidence.columns import Figure, Words, evidence_columns, rounded
from pepscope.results.evidence.reading import EvidenceReader
from pepscope.results.evidence.table import EvidenceTable
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.verdicts import Evidence

decimals = st.integers(-10_000, 10_000).map(lambda thousandths: thousandths / 1000)


class Kind(Finding):
    """Found in these tests."""

    SHORT = inapplicable("too-short", is_missing=True)


def worded(figures: Mapping[str, Any]) -> Words:
    return Words(f"{figures['bytes']} bytes of {figures['of']}, {figures.get('hops')} hops.", (figures["of"],))


@given(st.lists(st.floats(-1e6, 1e6) | decimals, max_size=20), st.sampled_from([2, 4]))
def test_numbers_are_rounded_as_each_alone(values: list[float], digits: int) -> None:
    assert rounded(np.array(values, np.float64), digits).tolist() == [round(value, digits) for value in values]


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9), st.text(max_size=3)), max_size=12))
def test_columns_are_worded_as_each_connection_would_be(rows: list[tuple[int, int | None, str]]) -> None:
    wanted = [
        Kind.SHORT.undecided(
            "own",
            f"{size} bytes of {of}, {hops} hops.",
            {"bytes": size} | ({} if hops is None else {"hops": hops}),
            (of,),
        )
        for size, hops, of in rows
    ]
    parts = evidence_columns(
        "own", Kind.SHORT, np.arange(len(rows)), np.zeros(len(rows)),
        [
            Figure("bytes", np.array([size for size, *_ in rows], np.int64)),
            Figure("hops", np.array([row[1] or 0 for row in rows]), np.array([row[1] is not None for row in rows])),
        ],
        worded, [Figure("of", [of for *_, of in rows])],
    )  # fmt: skip
    made: dict[int, Evidence] = {}
    for part in parts:
        made |= {row: part.evidence(place) for place, row in enumerate(part.rows.tolist())}
    assert [made[row] for row in range(len(rows))] == wanted
    table = EvidenceTable()
    table.append_columns(len(rows), parts)
    joined = EvidenceTable()
    joined.append(wanted[:1])
    joined.extend(pickle.loads(pickle.dumps(table)))
    assert [joined[row + 1] for row in range(len(rows))] == [(item,) for item in wanted]
    reader = EvidenceReader(joined, piece_documents)
    for row, item in enumerate(wanted):
        (document,) = reader.on(row + 1)
        assert (document["summary"], document["numbers"], document["caveats"]) == (
            item.summary,
            item.numbers,
            item.caveats,
        )


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2)), max_size=3), max_size=9), st.booleans())
def test_evidence_without_words_has_the_figures_that_are_asked_for(
    connections: list[list[tuple[int, str]]], is_read_at_once: bool
) -> None:
    table = EvidenceTable()
    rows = np.arange(len(connections))
    for number in range(3):
        chosen = np.array([row for row, each in enumerate(connections) if number < len(each)], np.int64)
        if number == 0:
            parts = []
        sizes, names = ([connections[row][number][place] for row in chosen.tolist()] for place in (0, 1))
        figures = [Figure("bytes", sizes), Figure("of", names)]
        parts += [
            part.at(chosen)
            for part in evidence_columns(
                f"method {number}", Kind.SHORT, np.arange(len(chosen)), np.zeros(len(chosen)), figures, worded
            )
        ]
    table.append_columns(len(connections), parts)
    if not is_read_at_once:
        joined = EvidenceTable()
        joined.extend(table)
        table = joined
    found = table.unworded(rows[::-1], frozenset({"of"}))
    assert [[(item.method, item.numbers) for item in of_row] for of_row in found] == [
        [(f"method {number}", {"of": name}) for number, (_, name) in enumerate(each)] for each in connections[::-1]
    ]
