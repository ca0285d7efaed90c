"""The page of a check: its sentences, its figure, and that hosts cannot write into it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from reports.audit.check_page import check_page_text
from reports.audit.hop_ladder import hop_ladder
from tests.reports.checks_made_by_hand import make_check, make_place, make_port

SPLIT, WHOLE, OPEN = (make_port(verdict) for verdict in ("split-tcp", "regular", "inconclusive"))
TLS = make_port("split-tcp", port=443)


@pytest.mark.parametrize(
    ("ports", "headline"),
    [
        ([SPLIT], "A middlebox splits connections to port 80 over IPv4."),
        ([SPLIT, TLS], "A middlebox splits connections to port 80 over IPv4 and port 443 over IPv4."),
        ([WHOLE, TLS, OPEN], "A middlebox splits connections to port 443 over IPv4; 1 port cannot be judged."),
        ([WHOLE], "Connections are end to end."),
        ([WHOLE, OPEN, OPEN], "Connections are end to end; 2 ports cannot be judged."),
        ([OPEN], "Nothing could be judged from this host."),
        ([], "Nothing could be judged from this host."),
    ],
)
def test_the_headline_says_what_was_found(ports: list[dict[str, Any]], headline: str) -> None:
    assert f"<h1>{headline}</h1>" in check_page_text(make_check(*ports))


def test_what_hosts_say_is_text() -> None:
    evil = make_place("<script>alert(1)</script>", 3, error="")
    gone = make_place("gone", None, error="<b>refused")
    text = check_page_text(make_check(SPLIT, places=(evil, gone)))
    assert "<script" not in text
    assert "<b>" not in text
    assert "Because &lt;of&gt; split-tcp." in text
    assert "none.example: no such name" in text
    assert "Also seen: A &lt;b&gt;program&lt;/b&gt; reads HTTP." in text
    assert "<code>pepscope probe serve</code>" in text
    assert "Of 1 documentation address, at which no host can be, data were acknowledged at 192.0.2.113." in text


def test_a_question_with_few_hops_times_no_answer() -> None:
    text = check_page_text(make_check(SPLIT, places=(make_place("far", 3),)))
    row = re.search(r"<th scope=\"row\">far</th>(.*?)</tr>", text)
    assert row is not None
    times = ["after 20 ms", "after 21 ms", "after 70 ms", "after 50 ms", "-", "-", "after 48 ms"]
    assert re.findall("<td>(.*?)</td>", row[1])[1:] == times


def test_the_ladder_is_drawn_to_scale() -> None:
    drawn = ElementTree.fromstring(hop_ladder([make_place("far", 3), make_place("x" * 60, None)], "port 80"))
    name = "{http://www.w3.org/2000/svg}"
    places = {float(each.get("x1", "")): each for each in drawn.iter(f"{name}line") if each.get("class") == "rule"}
    ticks = sorted(places)
    assert [after - before for before, after in pairwise(ticks)] == pytest.approx([530 / 11] * 11, abs=0.11)
    (dot,) = (each for group in drawn.iter(f"{name}g") for each in group if each.get("class") == "acknowledged")
    assert float(dot.get("cx", "")) == pytest.approx(ticks[3])
    ways = [each for each in drawn.iter(f"{name}line") if each.get("class") == "way" and each.get("x1") == "170"]
    assert [float(each.get("x2", "")) for each in ways] == [pytest.approx(ticks[9])] * 2
