"""Pairs by server are those that a look at each connection finds."""

from __future__ import annotations

import numpy as np
import pytest

from detector.pairing.captures import pair_captures
from detector.pairing.match import IDENTITY
from detector.pairing.server_index import ServerIndex, _Index
from pepscope.captures.capture import open_capture
from tests.detector.corpus import CORPUS


@pytest.mark.parametrize("run", ["reg_dl_par20", "prx_ngx_par6"])
def test_pairs_to_a_server_are_those_of_which_either_capture_names_it(run: str) -> None:
    first, second = (open_capture(CORPUS / f"{run}.{place}.pcap.gz") for place in ("srv", "mob"))
    matches = pair_captures(first, second).matches
    index = ServerIndex(first, second, matches)
    seen = [
        (match, (first.connections[match.first], second.connections[match.second]))
        for match in matches
        if match.first is not None and match.second is not None
    ]
    assert len(seen) > 1
    for server in {each.server for _, both in seen for each in both}:
        to_server = [match for match, both in seen if any(each.server == server for each in both)]
        assert [*index.to(server)] == to_server
        sizes = {each.down.stream_bytes for _, both in seen for each in both}
        for size in {*sizes, -1}:
            answered = [
                match
                for match, both in seen
                if any((each.server, each.down.stream_bytes) == (server, size) for each in both)
            ]
            assert [*index.with_answer(server, size)] == answered
        for client in {each.client_address for _, both in seen for each in both}:
            surely_one = [
                match
                for match, both in seen
                if match.ground in IDENTITY
                and any((each.client_address, each.server) == (client, server) for each in both)
            ]
            assert [*index.identified(client, server)] == surely_one
    assert bool(surely_one) == (run == "reg_dl_par20")
    assert [*index.identified("192.0.2.255", server)] == []
    assert [*index.to("192.0.2.255:9")] == [*index.to("[2001:db8::9]:9")] == []


def test_places_of_a_key_are_told_one_after_the_other():
    """Every connection of a client with thousands asks for the first one alone."""
    found = _Index([np.asarray([7, 9, 7], np.uint64)] * 2, np.asarray([0, 1, 2])).places(np.uint64(7))
    assert next(found) == 0
    assert [*found] == [2]
