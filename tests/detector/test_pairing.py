from dataclasses import replace

import numpy as np
import pytest

from detector.pairing import Ground, pair_captures
from pepscope.packets import Direction, PayloadSample
from tests.detector.corpus import RUNS, capture, end_points, pairs, truth


@pytest.mark.parametrize("run_id", sorted(RUNS))
def test_every_connection_finds_its_twin_and_its_side(run_id):
    found = pairs(run_id)
    assert {end_points(pair) for pair in found} == set(truth(run_id))
    for pair in found:
        # In the corpus the mobile opens every connection.
        assert pair.client_side is None or ".mob." in pair.client_side.capture


def test_the_order_of_the_captures_does_not_matter():
    files = RUNS["prx_ngx_par6"]["files"]
    mobile, server = capture(files["mobile"]["name"]), capture(files["server"]["name"])
    for first, second in ((mobile, server), (server, mobile)):
        assert {end_points(pair) for pair in pair_captures(first, second)} == set(truth("prx_ngx_par6"))


class Stripped:
    """A capture without payload, and with other ports and initial sequence numbers."""

    def __init__(self, source, *, disguise):
        self.path, self.packets = source.path, source.packets
        self.connections = [self._other(c) for c in source.connections] if disguise else source.connections
        self._source = source

    @staticmethod
    def _other(connection):
        flows = {
            name: replace(getattr(connection, name), initial_sequence_number=77 + connection.id)
            for name in ("up", "down")
        }
        return replace(connection, client_port=40000 - connection.id, client_address="192.0.2.9", **flows)

    def payload(self, number):
        nothing = PayloadSample(np.zeros(0, np.int64), ())
        return dict.fromkeys(Direction, nothing)


def test_without_payload_and_numbers_lengths_and_time_decide_with_less_confidence():
    files = RUNS["reg_dl_par20"]["files"]
    mobile, server = capture(files["mobile"]["name"]), capture(files["server"]["name"])
    found = pair_captures(Stripped(mobile, disguise=False), Stripped(server, disguise=True))
    assert all(match.ground is Ground.LENGTHS for match in found.matches)
    assert len(found) == len(truth("reg_dl_par20"))
    assert max(pair.pairing_confidence for pair in found) <= 0.5
    # The identical downloads began in the same order at both ends.
    hits = sum(match.first == match.second for match in found.matches)
    assert hits == len(found)


def test_one_capture_gives_single_vantage_pairs():
    found = pair_captures(capture(RUNS["reg_dl_par20"]["files"]["server"]["name"]), None)
    assert len(found) == len(truth("reg_dl_par20"))
    assert all(pair.client_side is None and pair.server_side is not None for pair in found)


def test_missing_beginnings_are_aligned_by_payload():
    (pair,) = pairs("reg_ul_slowreader_srv__midone")
    aligned = pair.alignment[Direction.UP]
    assert aligned.shift_bytes != 0
    assert aligned.compared > 10
    assert aligned.matched == 1.0
