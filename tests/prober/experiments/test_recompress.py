"""The recompress experiment's rule: other bytes than the server sent."""

from __future__ import annotations

from typing import Any

import pytest

from pepscope.results.verdicts import Outcome
from prober.errors import ArchiveError
from prober.experiments.recompress import Recompress
from tests.prober.experiments.observed import seen


def fetched(
    arrived: str, sent: str, *, decoded: str | None = None, coding: str = "", status: int = 200
) -> dict[str, Any]:
    answer = {
        "status": status,
        "size_bytes": 10,
        "sha256": arrived,
        "decoded_sha256": decoded or arrived,
        "content_encoding": coding,
    }
    return {"answer": answer, "sent": [{"size_bytes": 20, "sha256": sent}]}


def test_other_bytes_are_a_proxy() -> None:
    (evidence,) = Recompress().examine([seen("recompress", fetched("a", "a")), seen("recompress", fetched("b", "a"))])
    assert (evidence.outcome, evidence.finding) == (Outcome.SPLIT, "other-bytes")
    assert evidence.numbers["changed"] == 1
    assert "made anew" in evidence.summary


def test_a_coding_added_on_the_way_is_named() -> None:
    (evidence,) = Recompress().examine([seen("recompress", fetched("z", "a", decoded="a", coding="gzip"))])
    assert evidence.outcome is Outcome.SPLIT
    assert "coded with gzip" in evidence.summary


def test_the_same_bytes_are_no_finding() -> None:
    (evidence,) = Recompress().examine([seen("recompress", fetched("a", "a"))])
    assert evidence.outcome is Outcome.INAPPLICABLE


def test_refusals_and_objects_that_the_server_never_sent_are_left_out() -> None:
    never_sent = {**fetched("a", "a"), "sent": []}
    assert (
        Recompress().examine([seen("recompress", fetched("b", "a", status=503)), seen("recompress", never_sent)]) == ()
    )


@pytest.mark.parametrize(
    "values", [{}, {"answer": {}, "sent": [{}]}, {"answer": {"status": 200}, "sent": [{"sha256": 1}]}]
)
def test_measurements_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        Recompress().examine([seen("recompress", values)])
