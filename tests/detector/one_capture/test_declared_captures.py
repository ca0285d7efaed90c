"""Captures of clients of real proxies: verdicts, and how they are told."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from detector.detection import detect
from pepscope.results.frames import groups_frame, groups_table
from pepscope.results.verdicts import DetectionResult, Verdict
from reports.wording import group_sentence

CAPTURES = Path(__file__).parents[2] / "exchanges"
SPLIT, REGULAR, OPEN = Verdict.SPLIT_TCP, Verdict.REGULAR, Verdict.INCONCLUSIVE


@cache
def judged(name: str) -> DetectionResult:
    return detect(str(CAPTURES / f"{name}.pcap.xz"), packets=3)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "proxies-far",
            {(1080, True): (15, SPLIT), (1081, True): (3, SPLIT), (1081, False): (3, OPEN), (8888, True): (18, SPLIT)},
        ),
        (
            "proxies-near",
            {
                (80, False): (6, REGULAR),
                (443, False): (12, REGULAR),
                (1080, True): (12, SPLIT),
                (8000, True): (6, OPEN),
                (8888, False): (6, REGULAR),
                (8888, True): (12, SPLIT),
            },
        ),
    ],
)
def test_every_connection_is_judged_by_what_it_asks(
    name: str, wanted: dict[tuple[int, bool], tuple[int, Verdict]]
) -> None:
    result = judged(name)
    found = {(group.port, group.asks_proxy): (len(group.pairs), group.verdict) for group in result.groups}
    assert found == wanted
    for group in result.groups:
        verdicts = {result.pairs[place].verdict for place in group.pairs}
        assert verdicts == {group.verdict}, group.port
        assert (group.where is not None) == group.verdict.is_split


def test_programs_tell_connections_through_a_proxy_from_others_to_its_port() -> None:
    result = judged("proxies-near")
    keys = [(row["network"], row["port"], row["asks_proxy"]) for row in result.to_dict()["groups"]]
    assert len(set(keys)) == len(keys)
    assert {asks for _, port, asks in keys if port == 8888} == {False, True}
    frame, table = groups_frame(result), groups_table(result)
    assert [*frame["asks_proxy"]] == table["asks_proxy"].to_pylist() == [asks for *_, asks in keys]


def test_a_page_blames_the_proxy_and_not_the_network() -> None:
    result = judged("proxies-near")
    page = result.to_html()
    assert page is not None
    assert "2 at proxies that the client asks for" in page
    assert "ask a SOCKS proxy, which grants it" in page
    declared = next(group for group in result.groups if group.port == 1080)
    assert "The network does not split them" in group_sentence(declared)


def test_frames_show_what_was_asked() -> None:
    group = next(group for group in judged("proxies-far").groups if group.port == 8888)
    (evidence,) = group.evidence
    assert evidence.packets
    asked = [packet.shows for packet in evidence.packets if "question" in packet.shows and "ends" in packet.shows]
    assert asked == ["ends a question (proxy-request)"] * 3, "strict ones first"
