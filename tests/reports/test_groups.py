"""Groups on the terminal, on the page and in prose: first, and only where connections are more than one."""

from __future__ import annotations

import io
import re

import pytest

from pepscope.results.verdicts import DetectionResult, Verdict
from reports.detection.contract import read_document
from reports.detection.page import page_text
from reports.detection.prose import explain
from reports.detection.table import write_table
from reports.errors import ReportError
from tests.reports.results_made_by_hand import make_group, make_pair, make_result


def several(reason: str = "Most of them are relayed.") -> DetectionResult:
    return make_result(
        *[make_pair(Verdict.SPLIT_TCP)] * 3,
        *[make_pair(Verdict.REGULAR)] * 2,
        make_pair(Verdict.INCONCLUSIVE),
        groups=(
            make_group(Verdict.REGULAR, 3, 4, network="198.51.100.0/24"),
            make_group(Verdict.SPLIT_TCP, 0, 1, 2, reason=reason),
            make_group(Verdict.INCONCLUSIVE, 5, network="10.0.0.0/24"),
        ),
    )


def written(result: DetectionResult) -> str:
    stream = io.StringIO()
    write_table(result, stream, colour=False)
    return stream.getvalue()


def test_groups_come_first_split_ones_above() -> None:
    lines = written(several()).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("CLIENTS IN"))
    assert lines[start + 1].split() == ["192.0.2.0/24", "443", "3", "split-tcp", "96", "%"]
    assert "mechanism: relay; split in the network; handshake 41 ms; other leg 15.3 ms" in " ".join(
        " ".join(lines[start + 2 :]).split()
    )
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert text.index("192.0.2.0/24") < text.index("198.51.100.0/24") < text.index("CLIENT  ")
    assert "10.0.0.0/24" not in text  # a single connection is no group


@pytest.mark.parametrize("groups", [(), (make_group(Verdict.SPLIT_TCP, 0),)], ids=["none", "of one"])
def test_single_connections_make_no_groups(groups) -> None:
    result = make_result(make_pair(Verdict.SPLIT_TCP), groups=groups)
    assert "CLIENTS IN" not in written(result)
    assert "Groups" not in page_text(result)
    assert "Group of" not in explain(result)


def test_the_page_has_the_groups_above_the_connections_and_links_both() -> None:
    text = page_text(several())
    assert text.index('id="groups"') < text.index('id="connections"')
    assert re.findall(r'href="#group-(\d+)"', text) == ["0", "1"]
    section = text[text.index('id="group-0"') :]
    assert re.findall(r'href="#connection-(\d+)"', section[: section.index("Evidence")]) == ["0", "1", "2"]


def test_hostile_text_cannot_reach_the_page_or_steer_the_terminal() -> None:
    result = several(reason="<script>x</script> \x1b[2J")
    assert "<script>x" not in page_text(result)
    assert "\x1b" not in written(result)


def test_prose_has_groups_before_connections() -> None:
    reported = explain(several(), width=100)
    assert reported.index("Group of 3 connections, clients in 192.0.2.0/24") < reported.index("192.0.2.7:40001 ->")
    assert "Most of them are relayed." in " ".join(reported.split())


def test_a_document_without_groups_is_read_and_a_wrong_group_is_named() -> None:
    document = several().to_dict()
    assert read_document(document).groups == several().groups
    del document["groups"]
    assert read_document(document).groups == ()
    wrong = several().to_dict()
    wrong["groups"][1]["where"] = "elsewhere"
    with pytest.raises(ReportError, match=r"groups\[1\]\.where must be one of network, server, proxy, got 'elsewhere'"):
        read_document(wrong)
