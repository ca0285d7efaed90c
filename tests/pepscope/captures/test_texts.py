"""Texts that are kept as one run of UTF-8 read as the texts that they were made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pepscope.captures.connections import address_of, endpoint
from pepscope.captures.tables.texts import SlicedTexts, are_same, coded_addresses, filters, gathered, joined

TEXTS = st.lists(st.text(st.characters(codec=None), max_size=5), max_size=8)  # surrogates among them


@given(TEXTS, st.data())
def test_texts_read_as_they_were_wherever_they_stand(texts: list[str], data: st.DataObject) -> None:
    sliced = SlicedTexts.of(texts)
    assert [*sliced] == texts
    assert [sliced[row] for row in range(len(sliced))] == texts
    assert sliced.lengths.tolist() == [len(text.encode("utf-8", "surrogatepass")) for text in texts]
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=6) if texts else st.just([]))
    some = sliced.at(np.asarray(rows, np.int64))
    assert [*some] == [texts[row] for row in rows]
    content, ends = some.run()
    assert content.tobytes() == "".join(some).encode("utf-8", "surrogatepass")
    assert ends.tolist() == np.cumsum(some.lengths).tolist()
    assert [*sliced[1:3]] == texts[1:3]


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(-9, 9), st.integers(0, 1)), max_size=8))
def test_rows_are_joined_from_columns_of_every_kind(rows: list[tuple[str, int, int]]) -> None:
    texts, numbers = [row[0] for row in rows], np.asarray([row[1] for row in rows], np.int64)
    coded = np.asarray([row[2] for row in rows], np.uint32), ["no", "ja, \N{SNOWMAN}"]
    made = joined(len(rows), ["<", " ", "=", "|", ">"], [texts, SlicedTexts.of(texts), numbers, coded])
    assert [*made] == [f"<{text} {text}={number}|{coded[1][code]}>" for text, number, code in rows]


def test_columns_that_are_too_short_are_refused() -> None:
    with pytest.raises(IndexError):
        joined(2, ["", ""], [["one"]])
    with pytest.raises(IndexError):
        joined(1, [""], [["one"]])


@given(TEXTS)
def test_texts_are_gathered_from_where_they_stand(texts: list[str]) -> None:
    places = np.arange(len(texts))
    parts = [(places[place::3], SlicedTexts.of(texts[place::3])) for place in range(3)]
    assert [*gathered(parts, places)] == texts
    assert [*gathered(parts, np.append(places[::-1], -1))] == [*texts[::-1], ""]


@given(TEXTS, TEXTS)
def test_columns_are_the_same_where_each_text_is(one: list[str], other: list[str]) -> None:
    for left, right in ((one, other), (one, one), (one, one[::-1]), (["".join(one), ""], ["", "".join(one)])):
        assert are_same(SlicedTexts.of(left), SlicedTexts.of(right)) == (left == right)
        assert are_same(left, SlicedTexts.of(right)) == (left == right)


@given(st.lists(st.tuples(st.ip_addresses().map(str), st.integers(0, 65535)), max_size=6))
def test_addresses_of_end_points_are_listed_once(ends: list[tuple[str, int]]) -> None:
    texts = [endpoint(address, port) for address, port in [*ends, *ends]]
    for column in (texts, SlicedTexts.of(texts)):
        codes, distinct = coded_addresses(column)
        assert [distinct[code] for code in codes.tolist()] == [*map(address_of, texts)]
        assert len({*distinct}) == len(distinct)
    with pytest.raises(ValueError, match="ip:port"):
        coded_addresses([*texts, "no port"])


def test_filters_of_many_connections_name_frames_where_they_are_known() -> None:
    clients, servers = ["10.0.0.1:5", "[fe80::1]:80"], ["10.0.0.2:80", "[fe80::2]:80"]
    transports = np.zeros(2, np.uint32), ["tcp"]
    plain = filters(clients, servers, transports, None)
    assert [*plain] == [
        "ip.addr == 10.0.0.1 && ip.addr == 10.0.0.2 && tcp.port == 5 && tcp.port == 80 && !icmp",
        "ipv6.addr == fe80::1 && ipv6.addr == fe80::2 && tcp.srcport == 80 && tcp.dstport == 80 && !icmpv6",
    ]
    within = filters(clients, servers, transports, np.array([[1, 2], [30, 44]]))
    assert [*within] == [
        f"{text} && frame.number in {{{span}}}" for text, span in zip(plain, ("1..2", "30..44"), strict=True)
    ]
