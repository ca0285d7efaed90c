from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from detector.clock import relate
from detector.methods.content import examine, examine_unpaired
from detector.pair import Pair, StreamAlignment
from pepscope.packets import Direction, PayloadSample
from pepscope.results import Evidence, Outcome
from tests.detector.corpus import RUNS, pairs


def examined(pair: Pair) -> Evidence:
    return examine(pair, relate(pair))


@pytest.mark.parametrize("run_id", [name for name, run in RUNS.items() if run["class"] == "regular"])
def test_no_false_alarm(run_id):
    for pair in pairs(run_id):
        assert examine(pair, relate(pair)).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("run_id", ["prx_ngx_upload_strict", "act_ngx_upload_T3"])
def test_a_rewritten_request_shows(run_id):
    (pair,) = pairs(run_id)
    assert examine(pair, relate(pair)).finding == "rewritten-headers"


def with_request(vantage, request: bytes):
    return replace(vantage, payload={**vantage.payload, Direction.UP: PayloadSample(np.zeros(1, np.int64), (request,))})


def test_an_added_field_is_named():
    (pair,) = pairs("reg_dl_abort")
    left = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    came = b"GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 b\r\n\r\n"
    pair = replace(
        pair, client_side=with_request(pair.client_side, left), server_side=with_request(pair.server_side, came)
    )
    found = examine(pair, relate(pair))
    assert (found.finding, found.numbers["added_fields"]) == ("rewritten-headers", "via")


def test_other_bytes():
    (pair,) = pairs("reg_dl_cubic_lte")
    recompressed = {Direction.UP: pair.alignment[Direction.UP], Direction.DOWN: StreamAlignment(0, 40, 0.05)}
    assert examined(replace(pair, alignment=recompressed)).finding == "other-bytes"


def test_an_answer_from_a_cache():
    all_pairs = pairs("prx_ngx_cache")
    (alone,) = (p for p in all_pairs if len(p.vantages) == 1)
    others = [p for p in all_pairs if len(p.vantages) == 2]
    assert examine(alone, relate(alone)).finding == "no-counterpart"
    assert examine_unpaired(alone, others).finding == "served-from-cache"
    assert examine_unpaired(alone, []).finding == "no-counterpart"


def test_a_missing_capture_of_an_end_to_end_connection_is_no_cache():
    first, second, *_ = pairs("reg_dl_short10k")
    assert examine_unpaired(replace(second, server_side=None), [first]).finding == "no-counterpart"


@pytest.mark.parametrize(
    ("asked", "got", "request_name"),
    [
        (b"CONNECT a:443 HTTP/1.1\r\n\r\n", b"\x16\x03\x01", "HTTP CONNECT"),
        (b"\x05\x02\x00\x02", b"GET / HTTP/1.1\r\n\r\n", "SOCKS"),
        (b"\x04\x01\x00\x50\xcb\x00\x71\x01user\x00", b"GET / HTTP/1.1\r\n\r\n", "SOCKS"),
    ],
)
def test_a_request_that_a_declared_proxy_consumes(asked, got, request_name):
    (pair,) = pairs("reg_dl_abort")
    pair = replace(
        pair, client_side=with_request(pair.client_side, asked), server_side=with_request(pair.server_side, got)
    )
    found = examine(pair, relate(pair))
    assert (found.finding, found.numbers["request"]) == ("proxy-request-consumed", request_name)
    passed = replace(pair, server_side=with_request(pair.server_side, asked))
    assert examine(passed, relate(passed)).finding != "proxy-request-consumed"


def with_answer(vantage, answer: bytes):
    down = PayloadSample(np.zeros(1, np.int64), (answer,))
    return replace(vantage, payload={**vantage.payload, Direction.DOWN: down})


@pytest.mark.parametrize(("arrived_length", "finding"), [(b"900", "recompressed"), (b"2000", "rewritten-headers")])
def test_an_answer_of_another_length_was_taken_whole(arrived_length, finding):
    (pair,) = pairs("reg_dl_abort")
    left = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\nServer: a\r\n\r\nbody"
    came = b"HTTP/1.1 200 OK\r\nContent-Length: " + arrived_length + b"\r\nServer: b\r\n\r\nbody"
    pair = replace(
        pair, client_side=with_answer(pair.client_side, came), server_side=with_answer(pair.server_side, left)
    )
    assert examine(pair, relate(pair)).finding == finding
