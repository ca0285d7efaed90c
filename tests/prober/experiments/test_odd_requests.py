"""The odd requests' rule: heads as they left and as they arrived."""

from __future__ import annotations

import base64
from typing import Any

import h11
import pytest

from pepscope.results.verdicts import Outcome
from prober.errors import ArchiveError
from prober.experiments.odd_requests import OddRequests, requests
from tests.prober.experiments.observed import seen


def asked(sent: bytes, *arrived: bytes, answered: bool = True) -> dict[str, Any]:
    return {
        "oddity": "letter-case",
        "sent": base64.b64encode(sent).decode(),
        "arrived": [base64.b64encode(head).decode() for head in arrived],
        "answered": answered,
    }


def findings(*results: dict[str, Any]) -> list[str]:
    return [found.finding for found in OddRequests().examine([seen("odd-requests", {"requests": list(results)})])]


HEAD = b"GET / HTTP/1.1\r\nhOsT: a\r\n\r\n"


def test_another_head_is_a_proxy() -> None:
    assert findings(asked(HEAD, HEAD), asked(HEAD, HEAD.replace(b"hOsT", b"Host"))) == ["rewritten-headers"]


def test_the_same_head_is_no_finding() -> None:
    assert findings(asked(HEAD, HEAD), asked(HEAD, HEAD, HEAD)) == ["requests-arrived-as-sent"]


def test_an_answer_to_a_request_that_never_arrived_came_from_a_middlebox() -> None:
    assert findings(asked(HEAD, HEAD), asked(HEAD)) == ["answered-for-the-server"]


def test_a_request_that_is_cut_off_counts_for_nothing() -> None:
    (evidence,) = OddRequests().examine([seen("odd-requests", {"requests": [asked(HEAD, answered=False)]})])
    assert evidence.outcome is Outcome.INAPPLICABLE
    assert evidence.numbers["cut_off"] == "letter-case"
    assert "firewalls" in evidence.caveats[0]


@pytest.mark.parametrize("result", [{}, {"oddity": "x", "arrived": 1}, {"oddity": "x", "arrived": ["%"], "sent": ""}])
def test_measurements_that_make_no_sense_are_refused(result: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        OddRequests().examine([seen("odd-requests", {"requests": [result]})])


@pytest.mark.parametrize("oddity", sorted(requests("server.example", "/echo")))
def test_every_request_is_legal(oddity: str) -> None:
    """h11 refuses what RFC 9112 does not allow."""
    parser = h11.Connection(h11.SERVER)
    parser.receive_data(requests("server.example", "/echo")[oddity])
    request = parser.next_event()
    assert isinstance(request, h11.Request)
    assert b"/echo" in request.target
