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
