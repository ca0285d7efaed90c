"""The capture of a host that serves and asks others: each connection is judged towards its other end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pepscope import detect
from pepscope.results.verdicts import GroupSide, Verdict

CAPTURE = Path(__file__).parents[2] / "captures" / "one_ended" / "wired-asking.server.pcap.gz"
SERVED, ASKED = ("10.45.0.0/24", 443), ("192.0.2.0/24", 7000)


def test_a_server_that_asks_a_database_sees_its_clients_and_the_database() -> None:
    """The database's 55 connections say nothing of where people's six end."""
    result = detect(str(CAPTURE))
    assert {(group.side, group.network, group.port): group.verdict for group in result.groups} == {
        (GroupSide.SERVER, *SERVED): Verdict.REGULAR,
        (GroupSide.CLIENT, *ASKED): Verdict.REGULAR,
    }


def test_groups_and_connections_are_those_of_the_capture() -> None:
    result = detect(str(CAPTURE))
    assert sorted(pair for group in result.groups for pair in group.pairs) == list(range(len(result.pairs)))
    for group in result.groups:
        for pair in group.pairs:
            assert result.pairs[pair].vantages[0].server.endswith(f":{group.port}")


def test_each_connection_has_the_evidence_and_the_reason_of_its_own_side() -> None:
    for pair in detect(str(CAPTURE)).pairs:
        found = [item for item in pair.evidence if item.method == "exchange_timing"]
        assert len(found) == 1
        assert pair.reason.startswith(found[0].summary)
        whose = "client" if str(pair.vantages[0].server).endswith(":443") else "server"
        assert f"the {whose} answered" in pair.reason or "No exchange" in pair.reason


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_user_who_says_where_the_capture_was_taken_is_believed(side: str) -> None:
    result = detect(str(CAPTURE), taken_at=side)
    assert {group.side.value for group in result.groups} == {side}
