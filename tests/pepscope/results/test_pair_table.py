"""Pairs as columns: the same pairs come out, and little memory is taken."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.errors import UsageError
from pepscope.results.evidence.columns import Figure, Words, evidence_columns
from pepscope.results.evidence.table import EvidenceTable
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import OWN, PairRows, VantageRows
from pepscope.results.pairs.stretch import StretchRows, coverage
from pepscope.results.verdicts import DetectionResult, Evidence, Mechanism, Outcome, PairResult, Stretch, Verdict
from tests.pepscope.results.detections import DETECTIONS, PAIRS, comparable


@given(st.lists(PAIRS, max_size=6))
def test_pairs_come_out_as_they_went_in(pairs: list[PairResult]) -> None:
    table = PairTable(pairs)
    assert len(table) == len(pairs)
    assert [comparable(pair) for pair in table] == [comparable(pair) for pair in pairs]
    assert [comparable(table[place]) for place in range(len(pairs))] == [comparable(pair) for pair in pairs]
    assert [comparable(pair) for pair in pickle.loads(pickle.dumps(table))[1:]] == [
        comparable(pair) for pair in pairs[1:]
    ]


@given(st.lists(st.lists(PAIRS, max_size=3), max_size=4), st.integers(0, 70))
def test_tables_that_are_joined_hold_the_pairs_of_all(parts: list[list[PairResult]], repeated: int) -> None:
    joined, pairs = PairTable(), list[PairResult]()
    for part in parts:
        many = part * (1 + repeated // 35)
        joined.extend(pickle.loads(pickle.dumps(PairTable(many))))
        if many:
            joined.append(many[0])
        pairs += [*many, *many[:1]]
    assert [comparable(pair) for pair in joined] == [comparable(pair) for pair in pairs]
    assert [joined.forms(place) for place in range(len(joined))] == [PairTable([pair]).forms(0) for pair in pairs]


@given(st.lists(PAIRS, min_size=1, max_size=6), st.randoms())
def test_single_columns_are_those_of_the_pair(pairs: list[PairResult], random: object) -> None:
    order = list(range(len(pairs)))
    random.shuffle(order)  # type: ignore[attr-defined]
    table = PairTable(pairs).in_order(order)
    for place, row in enumerate(order):
        pair = pairs[row]
        assert comparable(table[place]) == comparable(pair)
        assert (table.verdict(place), table.mechanism(place)) == (pair.verdict, pair.mechanism)
        assert (table.probability(place), table.reason(place)) == (pair.probability, pair.reason)
        assert table.payload_bytes(place) == pair.payload_bytes_up + pair.payload_bytes_down
        assert (table.packets(place), table.is_seen_twice(place)) == (pair.packets, len(pair.vantages) == 2)
        assert table.at_one_place(place) == (pair.stretch.one_place if pair.stretch else None)
        assert list(table.strengths(place)) == [item.strength for item in pair.evidence]
        seen = [(each.capture, each.client, each.server, each.transport) for each in table.vantages(place)]
        assert seen == [(each.capture, each.client, each.server, each.transport) for each in pair.vantages]
        for number, (form, item) in enumerate(zip(table.forms(place), pair.evidence, strict=True)):
            assert (form.method, form.finding, form.outcome) == (item.method, item.finding, item.outcome)
            assert repr(table.evidence(place, number)) == repr(table[place].evidence[number])  # NaN is not NaN
    assert DetectionResult((), table).verdicts == [pairs[row].verdict for row in order]
    codes, verdicts = table.coded_verdicts()
    assert [verdicts[code] for code in codes.tolist()] == table.verdicts()
    ranks = {verdict: number % 2 for number, verdict in enumerate(Verdict)}
    assert table.ranked(ranks).tolist() == sorted(range(len(table)), key=lambda place: ranks[table.verdict(place)])
    some = np.array(order[::2], np.int64)
    assert table.verdicts(some) == [table.verdict(place) for place in some.tolist()]
    assert table.sizes_bytes(some).tolist() == [table.payload_bytes(place) for place in some.tolist()]
    pieces = table.pieces(some)
    found = zip(pieces.owner.tolist(), pieces.number.tolist(), pieces.form.tolist(), pieces.strength, strict=True)
    assert [(owner, number, pieces.forms[form], strength) for owner, number, form, strength in found] == [
        (owner, number, form, strength)
        for owner, place in enumerate(some.tolist())
        for number, (form, strength) in enumerate(zip(table.forms(place), table.strengths(place), strict=True))
    ]
    assert pieces.are(lambda form: not form.names).tolist() == [not pieces.forms[form].names for form in pieces.form]


def test_a_remark_and_series_belong_to_one_pair_wherever_it_stands(one_pair: PairResult) -> None:
    table = PairTable([one_pair, replace(one_pair, packets=7)]).in_order([1, 0])
    table.add_remarks(np.array([0], np.int64), "Its group is regular.")
    drawn: Any = ("drawn",)
    table.add_series(0, drawn)
    assert table[0].packets == 7
    assert [pair.reason for pair in table] == ["Why. Its group is regular.", "Why."]
    assert [pair.series for pair in table] == [drawn, ()]
    assert table == [replace(one_pair, packets=7, reason="Why. Its group is regular.", series=drawn), one_pair]
    assert table != [one_pair]


def test_findings_stay_members_of_their_enum() -> None:
    class Kind(Finding):
        SHORT = inapplicable("too-short", is_missing=True)

    table = EvidenceTable()
    table.append(
        [Kind.SHORT.undecided("own", "Too short."), Evidence("own", Outcome.INAPPLICABLE, "too-short", 0, "Too short.")]
    )
    assert [type(item.finding) for item in table[0]] == [Kind, str]


@pytest.fixture
def one_pair() -> PairResult:
    return next(iter(PairTable([_typical(0)])))


def _typical(number: int) -> PairResult:
    """A pair as most are: ten findings, sixty figures of which few repeat, sentences with figures."""
    from pepscope.results.verdicts import VantageName

    names = tuple(
        VantageName(path, f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}:40000", "203.0.113.1:443")
        for path in ("client.pcap", "server.pcap")
    )
    undecided = [
        Evidence(f"method{place}", Outcome.INAPPLICABLE, "too-short", 0.0, "Too little data to fill a buffer.")
        for place in range(7)
    ]
    decided = [
        Evidence(
            f"decided{place}", Outcome.INTACT, "same-packets", 0.99,
            f"The segments that arrive are the segments that left: timestamps agree over {number} segments.",
            {f"figure_{each}_s": number * 0.001 + each / 7 if each % 4 == 0 else each for each in range(20)},
        )
        for place in range(3)
    ]  # fmt: skip
    probability = {Verdict.REGULAR: 0.998, Verdict.SPLIT_TCP: 0.001, Verdict.TCP_PROXY: 0.001}
    return PairResult(names, Verdict.REGULAR, probability, "Why.", (*decided, *undecided), 34, 300, 8688, 0.1)


def test_a_pair_takes_less_than_a_kilobyte() -> None:
    count = 2000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        table = PairTable(map(_typical, range(count)))
        each = (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
    assert len(table) == count
    assert each < 1000


@given(DETECTIONS)
def test_frame_and_arrow_table_have_the_rows_of_the_pairs(result: DetectionResult) -> None:
    result = replace(
        result, pairs=[pair for pair in result.pairs if "\udce9.pcap" not in {v.capture for v in pair.vantages}]
    )
    frame, table = result.to_frame(), result.to_arrow()
    assert isinstance(table, pa.Table)
    assert table.column_names == list(frame.columns)
    assert frame.index.name == "pair"
    for row, pair in zip(table.to_pylist(), result.pairs, strict=True):
        second = pair.vantages[1] if len(pair.vantages) == 2 else None
        assert (row["client_a"], row["capture_b"]) == (pair.vantages[0].client, second.capture if second else None)
        assert (row["verdict"], row["packets"], row["reason"]) == (pair.verdict.value, pair.packets, pair.reason)
        assert row["probability_split_tcp"] == pair.probability.get(Verdict.SPLIT_TCP, 0.0)
    for name in frame.columns:
        left = [None if pd.isna(value) else value for value in frame[name]]
        assert left == table[name].to_pylist(), name


def test_arrow_without_pyarrow_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'pepscope\[parquet\]'"):
        DetectionResult((), ()).to_arrow()


class Seen(Finding):
    """What the made evidence says."""

    SEEN = inapplicable("seen")


def _said(numbers: Mapping[str, Any]) -> Words:
    return Words(f"Seen {numbers['seen']} times by {numbers['who']}.", ("It may be another.",))


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.floats(0, 1)), max_size=8), st.integers(0, 3))
def test_rows_in_columns_are_pairs_whose_evidence_gives_the_reason(
    made: list[tuple[int, bool, float]], before: int
) -> None:
    """Reasons are what the first piece of evidence says, but for those that are given."""
    count = len(made)
    numbers, owns, shares = [each[0] for each in made], [each[1] for each in made], [each[2] for each in made]
    evidence = evidence_columns(
        "seen", Seen.SEEN, np.arange(count), np.asarray(shares), [Figure("seen", numbers)], _said,
        [Figure("who", [f"host {number}" for number in numbers])],
    )  # fmt: skip
    counts = np.asarray(numbers, np.int64)
    item = np.where(owns, OWN, 0)
    captures = [f"{'ab'[number % 2]}.pcap" for number in numbers]
    seen = VantageRows(captures, [f"192.0.2.1:{number}" for number in numbers], ["[::1]:80"] * count, ["tcp"] * count)
    stretches = [Stretch(number == 3, number, None, 0.02) if number % 2 else None for number in numbers]
    rows = PairRows(
        (seen, VantageRows.nowhere(count)), [Verdict.REGULAR, Verdict.SPLIT_TCP], np.asarray(owns, np.int64),
        [None, Mechanism.UNDECIDED], (np.asarray(shares), 1 - np.asarray(shares), np.zeros(count)), item,
        dict.fromkeys(range(0, count, 2), "Its own."), counts, (counts, counts), np.asarray(shares), counts,
        np.asarray(shares), [f"ground {number}" for number in numbers], StretchRows.of(stretches),
    )  # fmt: skip
    table = PairTable([_typical(0)] * before)
    table.append_rows(rows, evidence)
    table.append(_typical(1))
    pairs = list(pickle.loads(pickle.dumps(table)))
    assert len(pairs) == before + count + 1
    for row, (number, own, share) in enumerate(made):
        pair = pairs[before + row]
        assert pair.evidence[0].summary == f"Seen {number} times by host {number}."
        text = "" if row % 2 else "Its own."
        said = (pair.evidence[0].summary, text, coverage(stretches[row]))
        whole = text if own else " ".join(part for part in said if part)
        assert pair.reason == table.reason(before + row) == whole
        assert (pair.stretch, pair.pairing_ground) == (stretches[row], f"ground {number}")
        assert (pair.verdict.is_split, pair.mechanism is None) == (own, not own)
        assert pair.probability[Verdict.REGULAR] == pair.evidence[0].strength == share
        assert pair.vantages[0].client == f"192.0.2.1:{number}"
        assert pair.vantages[0].capture == ("b.pcap" if number % 2 else "a.pcap")
    assert comparable(pairs[-1]) == comparable(_typical(1))
    assert PairTable(pairs) == table
    assert [*table.columns.reasons(range(len(table)))] == [pair.reason for pair in pairs]
    backwards = [*range(len(table))][::-2]
    assert [*table.columns.reasons(backwards)] == [pairs[row].reason for row in backwards]
