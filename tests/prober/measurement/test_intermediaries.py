"""What HTTP intermediaries leave at both ends: exact rules, and old archives that know nothing of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from detector.verdict.weighing import judge
from pepscope.results.verdicts import Evidence, Outcome, Verdict
from prober.errors import ArchiveError
from prober.experiments.cache import Cache
from prober.experiments.odd_requests import OddRequests
from prober.experiments.recompress import Recompress
from prober.experiments.transfers import Transfers
from prober.measurement.intermediaries import HeaderFields, answer_fields, arrivals, intermediary_evidence
from prober.protocol.application import Application
from prober.protocol.control_messages import Served
from prober.protocol.header_fields import added_to_answer, request_fields
from tests.prober.experiments.observed import seen

HEAD = b"GET /x HTTP/1.1\r\nHost: a\r\nUser-Agent: pepscope/1\r\nAccept: */*\r\nConnection: close\r\n\r\n"
SERVED = Served(
    1, Application.HTTP_DATA, "192.0.2.1:4", 80, "GET", "x", 0, 0, 0, "", HEAD, 5, 6, "finished", {},
    connection_accepted_ns=1, connection_requests=0,
)  # fmt: skip


def served(requests_before: int = 0, added: bytes = b"") -> Served:
    return msgspec.structs.replace(
        SERVED, connection_requests=requests_before, request_head=HEAD[:-2] + added + b"\r\n"
    )


def examined(*rows: Served, answers: tuple[HeaderFields, ...] = ()) -> dict[str, Evidence]:
    return {item.finding: item for item in intermediary_evidence("cache", arrivals(rows), answers)}


def test_requests_on_new_connections_with_known_fields_are_no_finding() -> None:
    assert examined(served(), served()) == {}
    assert examined() == {}


def test_a_second_request_on_a_connection_decides() -> None:
    found = examined(served(), served(1), served(7))["request-on-older-connection"]
    assert found.outcome is Outcome.SPLIT
    assert (found.numbers["on_older_connections"], found.numbers["requests_before_max"]) == (2, 7)
    assert judge([found]).verdict is Verdict.SPLIT_TCP


def test_a_server_without_byte_counts_is_no_finding() -> None:
    assert examined(served(-1)) == {}


@pytest.mark.parametrize("field", [b"Via: 1.1 squid", b"X-Forwarded-For: 192.0.2.7", b"FORWARDED: for=a"])
def test_a_field_that_declares_a_proxy_decides(field: bytes) -> None:
    found = examined(served(added=field + b"\r\n"))["proxy-header-added"]
    assert judge([found]).verdict is Verdict.SPLIT_TCP
    assert field.partition(b":")[0].lower().decode() in found.summary


@pytest.mark.parametrize("name", ["Via", "Age", "X-Cache", "CF-Cache-Status", "Warning"])
def test_a_field_of_the_answer_that_declares_a_proxy_decides(name: str) -> None:
    names = [name.lower(), "date", "content-type", "x-think-time"]
    found = examined(served(), answers=(answer_fields(names),))["proxy-header-added"]
    assert judge([found]).verdict is Verdict.SPLIT_TCP


def test_an_enriched_header_is_a_hint_that_does_not_decide() -> None:
    found = examined(served(added=b"X-MSISDN: 1\r\n"))["proxy-header-added"]
    assert "x-msisdn" in found.summary
    assert found.caveats
    assert judge([found]).verdict is Verdict.INCONCLUSIVE


def test_what_our_own_ends_send_is_never_taken_for_added() -> None:
    assert request_fields(HEAD) == {"host", "user-agent", "accept", "connection"}
    assert added_to_answer(["date", "cache-control", "content-length", "x-think-time", "connection"]) == []


def test_heads_that_are_none_have_no_fields() -> None:
    assert request_fields(b"PEPSCOPE/1 session upload\n") == frozenset()
    assert request_fields(b"\xff\r\n: \r\n\r\n") == {""}


OLD_TRANSFER = {
    "size_bytes": 1, "moved_bytes": 1, "total_s": 1.0, "connect_s": 0.1, "first_byte_s": 0.2, "intact": True,
    "status": "200", "certificate_is_the_servers": None,
}  # fmt: skip
OLD_ANSWER = {"status": 200, "size_bytes": 1, "sha256": "a", "decoded_sha256": "a", "content_encoding": ""}


def test_transfers_count_what_their_answers_declare() -> None:
    (found,) = Transfers().examine([seen("transfers", {**OLD_TRANSFER, "answer_fields": {"via": "1.1 x"}})])
    assert found.finding == "proxy-header-added"


def test_measurements_of_earlier_versions_are_read_as_before() -> None:
    old = {"objects": [{"may_be_kept": True, "whole_answers": 2, "requests_at_the_server": 2, "answers": []}]}
    assert [item.finding for item in Cache().examine([seen("cache", old)])] == ["every-request-arrived"]
    assert OddRequests().examine([seen("odd-requests", {"requests": []})]) == ()
    assert Recompress().examine([seen("recompress", {"answer": OLD_ANSWER, "sent": []})]) == ()
    assert Transfers().examine([seen("transfers", OLD_TRANSFER)]) == ()


@pytest.mark.parametrize(
    "row", [{"requests_before": "many"}, {"proxy_fields": "via"}, {"added_fields": [3]}, {"requests_before": True}]
)
def test_arrivals_that_make_no_sense_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError, match=r"measurement\.arrivals\[0\]\."):
        Transfers().examine([seen("transfers", {**OLD_TRANSFER, "arrivals": [row]})])
