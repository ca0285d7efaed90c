from dataclasses import dataclass

import numpy as np
import pytest

from detector.options import LEAST_PAIRING_CONFIDENCE, DetectOptions
from detector.pair import StreamAlignment
from detector.pairing.captures import pair_captures
from detector.pairing.confidence import pairing_confidence
from detector.pairing.match import Ground
from detector.pairing.transfers import another_answer, same_request
from detector.verdict.judging import judge_pair
from pepscope.captures.packets import Direction, PayloadSample
from pepscope.results.verdicts import Verdict
from tests.detector.corpus import RUNS, WithoutDatagrams, capture, end_points, pairs, truth
from tests.detector.rewriting import in_sequence, without_ip_id, without_timestamps


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


class Stripped(WithoutDatagrams):
    """A capture without payload, and with other ports and initial sequence numbers."""

    def __init__(self, source, *, disguise):
        self.path = source.path
        self.connections = [self._other(c) for c in source.connections] if disguise else source.connections
        self._source = source

    def packets(self, number):
        return self._source.packets(number)

    @staticmethod
    def _other(connection):
        flows = {
            name: getattr(connection, name)._replace(initial_sequence_number=77 + connection.id)
            for name in ("up", "down")
        }
        return connection._replace(client_port=40000 - connection.id, client_address="192.0.2.9", **flows)

    def payload(self, number):
        nothing = PayloadSample(np.zeros(0, np.int64), ())
        return dict.fromkeys(Direction, nothing)


class Unmarked(Stripped):
    """A capture of indistinguishable packets: no timestamps, no IP IDs."""

    def packets(self, number):
        return in_sequence(without_timestamps, without_ip_id)(super().packets(number))


def test_without_payload_and_numbers_packets_in_common_make_sure_pairs():
    files = RUNS["reg_dl_par20"]["files"]
    mobile, server = capture(files["mobile"]["name"]), capture(files["server"]["name"])
    found = pair_captures(Stripped(mobile, disguise=False), Stripped(server, disguise=True))
    assert all(match.ground is Ground.PACKETS and match.first == match.second for match in found.matches)
    assert len(found) == len(truth("reg_dl_par20"))
    assert min(pair.pairing_confidence for pair in found) == 0.99


def test_without_payload_and_numbers_lengths_and_time_decide_with_less_confidence():
    files = RUNS["reg_dl_par20"]["files"]
    mobile, server = capture(files["mobile"]["name"]), capture(files["server"]["name"])
    found = pair_captures(Unmarked(mobile, disguise=False), Unmarked(server, disguise=True))
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


@pytest.mark.parametrize(
    ("mobile", "server"),
    [
        ("act_ha_dl_T4", "act_reg_dl_T3"),
        ("act_ha_dl_T4", "prx_ngx_2M_umts"),
        ("prx_ngx_upload_strict", "act_ngx_upload_T3"),
        ("reg_dl_par20", "prx_ngx_par6"),
        ("spl_ha_dl_srcip", "spl_ha_dl_v6"),
    ],
)
def test_captures_of_different_transfers_of_one_object_get_no_verdict(mobile, server):
    first = capture(RUNS[mobile]["files"]["mobile"]["name"])
    second = capture(RUNS[server]["files"]["server"]["name"])
    assert {judge_pair(pair).verdict for pair in pair_captures(first, second)} == {Verdict.INCONCLUSIVE}


def test_the_same_payload_at_another_time_is_paired_with_little_confidence_and_not_judged():
    files = RUNS["spl_ha_dl_srcip"]["files"]
    mobile, server = capture(files["mobile"]["name"]), capture(files["server"]["name"])
    late = Delayed(server, 3600.0)
    (pair,) = pair_captures(mobile, late)
    assert pair.pairing_ground == Ground.PAYLOAD_OTHER_TIME
    assert pair.pairing_confidence < 0.5
    result = judge_pair(pair)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "two different transfers" in result.reason
    assert judge_pair(next(iter(pair_captures(mobile, server)))).verdict is Verdict.SPLIT_TCP


class Delayed(WithoutDatagrams):
    """A capture by a clock that is ahead."""

    def __init__(self, source, seconds):
        shift = round(seconds * 1e9)
        self.path, self.payload = source.path, source.payload
        self.connections = [
            c._replace(first_time_ns=c.first_time_ns + shift, last_time_ns=c.last_time_ns + shift)
            for c in source.connections
        ]
        self._source, self._shift = source, shift

    def packets(self, number):
        packets = self._source.packets(number)
        return packets.replaced(time_ns=packets.time_ns + self._shift)


def test_pairing_has_confidence_and_ground():
    (upload,) = pairs("prx_ngx_upload_strict")
    assert upload.pairing_ground == Ground.OWN_LENGTHS
    assert 0.75 < upload.pairing_confidence < 0.9
    for run_id, least in (("reg_dl_nat", 0.98), ("spl_ha_dl_srcip", 0.94), ("prx_ngx_par6", 0.79)):
        assert all(least <= pair.pairing_confidence < 1.0 for pair in pairs(run_id)), run_id


def test_missing_beginnings_are_aligned_by_payload():
    (pair,) = pairs("reg_ul_slowreader_srv__midone")
    aligned = pair.alignment[Direction.UP]
    assert aligned.shift_bytes != 0
    assert aligned.compared > 10
    assert aligned.matched == 1.0


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (b"GET /a?b HTTP/1.1\r\nHost: one\r\n", b"GET http://one/a?b HTTP/1.0\r\nVia: 1.1 p\r\n", True),
        (b"GET /a HTTP/1.1\r\nHost: one\r\n", b"GET /a HTTP/1.1\r\nAccept: */*\r\nHo", True),
        (b"GET /a HTTP/1.1\r\nHost: one\r\n", b"GET /a HTTP/1.1\r\nhost:two\r\n", False),
        (b"GET /a HTTP/1.1\r\nHost: one\r\n", b"GET /b HTTP/1.1\r\nHost: one\r\n", False),
        (b"GET /a HTTP/1.1\r\nHost: one\r\n", b"PUT /a HTTP/1.1\r\nHost: one\r\n", False),
        (b"GET http://one:80/object-17?tok", b"GET /object-17?token=4 HTTP/1.1\r\nHost: o", True),
        (b"GET http://one:80/a HTTP/1.1\r\n", b"GET /a HTTP/1.1\r\nHost: ONE\r\n", True),
        (b"GET http://one:81/a HTTP/1.1\r\n", b"GET /a HTTP/1.1\r\nHost: one\r\n", False),
        (b"GET http://one:80/object-17?tok", b"GET /object-18?token=4 HTTP/1.1\r\nHost: o", False),
        (b"GET /obj", b"GET /obj", False),
        (b"\x16\x03\x01 /a HTTP/1.1\r\n", b"\x16\x03\x01 /a HTTP/1.1\r\n", False),
    ],
)
def test_a_request_is_known_again_in_a_proxys_form(left, right, same):
    one, two = (PayloadSample(np.zeros(1, np.int64), (text,)) for text in (left, right))
    assert same_request(one, two) is same


class Recut(Stripped):
    """A capture whose one connection carries other payload, of which each segment's beginning was kept."""

    def __init__(self, source, pieces, *, disguise):
        super().__init__(source, disguise=disguise)
        self.connections = [
            connection._replace(down=connection.down._replace(stream_bytes=connection.down.stream_bytes + disguise))
            for connection in self.connections[:1]
        ]
        self._sample = PayloadSample(np.array([at for at, _ in pieces], np.int64), tuple(data for _, data in pieces))

    def payload(self, number):
        return {Direction.UP: PayloadSample(np.zeros(0, np.int64), ()), Direction.DOWN: self._sample}


def beginnings(content, starts, *, head=b""):
    """The first 256 bytes of each segment behind a head, and where they are in the stream."""
    stream = head + content
    return [(at, stream[at : at + 256]) for at in starts]


def recut_pair(left, right, options=None):
    files = RUNS["spl_ha_dl_small_umts"]["files"]
    mobile, server = (capture(files[side]["name"]) for side in ("mobile", "server"))
    return pair_captures(Recut(mobile, left, disguise=False), Recut(server, right, disguise=True), options)


def test_a_stream_cut_at_other_places_is_known_again_by_the_few_that_both_captures_hold():
    content = np.random.default_rng(1).bytes(3_000_000)
    whole = range(0, len(content) - 2000, 1448)
    # The first segments lie alike behind a head ten bytes longer, the others half a segment off: nothing in common.
    other = [at + 10 for at in whole[:5]] + [at + 710 for at in whole[5:]]
    found = recut_pair(beginnings(content, whole), beginnings(content, other, head=b"x" * 10))
    (match,) = found.matches
    assert match.ground is Ground.PAYLOAD
    (pair,) = found
    assert pair.alignment[Direction.DOWN].matched == 1.0
    assert abs(pair.alignment[Direction.DOWN].shift_bytes) == 10
    assert pair.pairing_confidence > 0.9


def test_a_head_in_common_makes_no_pair():
    head = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nContent-Type: application/octet-stream\r\n"
    made = np.random.default_rng(2)
    whole = range(0, 2_998_000, 1448)
    left, right = (beginnings(made.bytes(3_000_000), whole, head=head * 2) for _ in range(2))
    assert {match.ground for match in recut_pair(left, right).matches} <= {Ground.ALONE, Ground.LAST_LEFT}


@pytest.mark.parametrize(("vouched", "least", "most"), [(False, 0.0, 0.5), (True, 0.8, 1.0)])
def test_doubtful_pairs_are_judged_with_same_transfers(monkeypatch, vouched, least, most):
    """The transfers of a proxy that asks in its own name look like two fetches of one object."""
    content = np.random.default_rng(3).bytes(300_000)
    pieces = beginnings(content, range(0, len(content) - 2000, 1448))
    spoilt = [*pieces[:-40], *((at, bytes(range(256))) for at, _ in pieces[-40:])]
    monkeypatch.setattr("detector.pairing.transfers._addresses_in_common", lambda one, two: False)
    (pair,) = recut_pair(pieces, spoilt, DetectOptions(same_transfers=vouched))
    assert 0.5 < pair.alignment[Direction.DOWN].matched <= 0.9
    assert least <= pair.pairing_confidence <= most


@pytest.mark.parametrize(
    ("left", "right", "another"),
    [
        (b"date: Tue, 25 Mar 2025 09:40:47 GMT\r\n", b"Date: Tue, 25 Mar 2025 09:40:52 GMT\r\n", True),
        (b"Date: Tue, 25 Mar 2025 09:40:47 GMT\r\n", b"Via: 1.1 p\r\nDate:  Tue, 25 Mar 2025 09:40:47 GMT\r\n", False),
        (b"Date: Tue, 25 Mar 2025 09:40:47 GMT\r\n", b"Date: Tue, 25 Mar 2025 09:40:48 GMT\r\n", False),
        (b"Date: Tue, 25 Mar 2025 09:40:47 GMT\r\n", b"Server: s\r\n", False),
        (b"Date: Tue, 25 Mar 2025 09:40:47 GMT\r\n", b"Date: yesterday\xe9\r\n", False),
        (b"Date: Tue, 25 Mar 2025 09:40:47 GMT\r\n", b"X: y\r\n\r\nDate: Tue, 25 Mar 2025 09:40:52 GMT\r\n", False),
        (b"Date: Tue, 25 Mar 2025 09:40:47 GMT\r\n", b"Date: Tue, 25 Mar 2025 09:4", False),
    ],
)
def test_answers_with_different_dates_are_two(left, right, another):
    one, two = (
        PayloadSample(np.array([0]), (b"HTTP/1.1 204 No Content\r\n" + fields + b"\r\n" * fields.endswith(b"\n"),))
        for fields in (left, right)
    )
    assert another_answer(one, two) is another


@dataclass
class Seen:
    """What two connections between other hosts show of each other."""

    has_another_answer: bool
    are_related: bool = False
    asked_alike: bool = True
    is_small: bool = False
    are_the_same: bool = False
    turns_nats: float = 0.0
    is_beside_identified_ones: bool = False


def test_two_answers_between_other_hosts_make_no_sure_pair():
    aligned = [StreamAlignment(0, 20, 1.0)] * 2
    sure, unsure = (pairing_confidence(Ground.PAYLOAD, aligned, Seen(another)) for another in (False, True))
    assert sure >= LEAST_PAIRING_CONFIDENCE > unsure


def test_what_many_connections_say_makes_no_sure_pair_of_strangers():
    """Two clients ask two servers for the same; of each capture one of the transfers is not in the other."""
    aligned = [StreamAlignment(0, 20, 1.0)] * 2
    sure, unsure = (
        pairing_confidence(
            Ground.PAYLOAD_OF_SEVERAL_HOSTS, aligned, Seen(has_another_answer=False, are_related=related)
        )
        for related in (True, False)
    )
    assert pairing_confidence(Ground.PAYLOAD_AND_TIME, aligned, Seen(has_another_answer=False)) == sure
    assert sure >= LEAST_PAIRING_CONFIDENCE > unsure


def _round_trip_ns_of_the_first(place, flow):
    """The least round trip of a flow of the connection at `place`, known of the first one alone."""
    return None if place else flow.round_trip_time_min_ns


class AnsweredByProxy(WithoutDatagrams):
    """A capture in which another host answered handshakes, so that they seem to lie the other way round, and of which
    only the first connection has round trips of data."""

    def __init__(self, source, *, answer):
        self.path = source.path
        self._source = source
        self.connections = [
            connection._replace(
                up=connection.up._replace(round_trip_time_min_ns=_round_trip_ns_of_the_first(place, connection.up)),
                down=connection.down._replace(
                    initial_sequence_number=answer,
                    round_trip_time_min_ns=_round_trip_ns_of_the_first(place, connection.down),
                ),
                handshake_syn_ack_ns=connection.handshake_ack_ns,
                handshake_ack_ns=connection.handshake_syn_ack_ns,
            )
            for place, connection in enumerate(source.connections)
        ]

    def packets(self, number):
        return self._source.packets(number)

    def payload(self, number):
        return self._source.payload(number)


@pytest.mark.parametrize("is_mobile_first", [True, False])
def test_handshakes_that_another_host_answered_do_not_outvote_round_trips(is_mobile_first):
    files = RUNS["reg_dl_par20"]["files"]
    mobile, server = (
        AnsweredByProxy(capture(files[name]["name"]), answer=answer) for answer, name in enumerate(("mobile", "server"))
    )
    found = list(pair_captures(*((mobile, server) if is_mobile_first else (server, mobile))))
    assert len(found) > 1
    assert all(pair.client_side.capture == mobile.path for pair in found)
