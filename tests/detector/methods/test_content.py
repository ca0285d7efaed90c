from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from detector.method import Absent, Observation
from detector.methods.content import METHOD, cache
from detector.pair import Pair, StreamAlignment
from detector.streams.known import UNKNOWN
from detector.vantage.watching import Watched
from pepscope.captures.packets import Direction, PayloadSample, TcpFlag
from pepscope.results.verdicts import Evidence, Outcome
from tests.detector.corpus import RUNS, pairs
from tests.detector.methods.alone import alone


def examined(pair: Pair) -> Evidence:
    return alone(METHOD, Observation(pair))


@pytest.mark.parametrize("run_id", [name for name, run in RUNS.items() if run["class"] == "regular"])
def test_no_false_alarm(run_id):
    for pair in pairs(run_id):
        assert examined(pair).outcome is Outcome.INAPPLICABLE


@pytest.mark.parametrize("run_id", ["prx_ngx_upload_strict", "act_ngx_upload_T3"])
def test_a_rewritten_request_shows(run_id):
    (pair,) = pairs(run_id)
    assert examined(pair).finding == "rewritten-headers"


def with_request(vantage, request: bytes):
    return replace(vantage, payload={**vantage.payload, Direction.UP: PayloadSample(np.zeros(1, np.int64), (request,))})


def test_an_added_field_is_named():
    (pair,) = pairs("reg_dl_abort")
    left = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    came = b"GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 b\r\n\r\n"
    pair = replace(
        pair, client_side=with_request(pair.client_side, left), server_side=with_request(pair.server_side, came)
    )
    found = examined(pair)
    assert (found.finding, found.numbers["added_fields"]) == ("rewritten-headers", "via")


def test_a_recompressed_download_has_other_bytes():
    (pair,) = pairs("reg_dl_cubic_lte")
    recompressed = {Direction.UP: pair.alignment[Direction.UP], Direction.DOWN: StreamAlignment(0, 40, 0.05)}
    assert examined(replace(pair, alignment=recompressed)).finding == "other-bytes"


def ending(vantage, by_bytes: int, acknowledged: bool):
    """The vantage with the FIN down elsewhere, and acknowledged there."""
    packets = vantage.packets
    fins = (packets.direction == Direction.DOWN) & (packets.flags & np.uint16(TcpFlag.FIN) > 0)
    end = int((packets.sequence_offset + packets.payload_bytes)[fins][0])
    answers = (packets.direction == Direction.UP) & (packets.acknowledgement_offset == end + 1) & acknowledged
    return replace(
        vantage,
        packets=packets.replaced(
            sequence_offset=packets.sequence_offset + by_bytes * fins,
            acknowledgement_offset=packets.acknowledgement_offset + by_bytes * answers,
        ),
    )


@pytest.mark.parametrize("by_bytes", [-300, 300])
def test_a_stream_ends_where_its_fin_is_acknowledged(by_bytes):
    (pair,) = pairs("reg_dl_reno_loss1")
    for acknowledged, finding in ((True, "other-size"), (False, "same-content")):
        odd = replace(pair, client_side=ending(pair.client_side, by_bytes, acknowledged))
        assert examined(odd).finding == finding


HEAD = b"HTTP/1.1 200 OK\r\nServer: a\r\nContent-T"


def downloaded(pair: Pair, server_shift: int, bodies: tuple[bytes, bytes], sizes: tuple[int, int]) -> Pair:
    """The pair with an answer whose cut head begins alike, and bodies as the client's and the server's capture hold
    pieces of them, the server's `server_shift` bytes farther on."""
    sides = []
    for vantage, body, shift, size in zip(pair.vantages, bodies, (0, server_shift), sizes, strict=True):
        offsets = np.array([0, *(1000 + 1448 * place + shift for place in range(len(body) // 16))])
        pieces = (HEAD, *(body[place : place + 16] for place in range(0, len(body), 16)))
        payload = {**vantage.payload, Direction.DOWN: PayloadSample(offsets, pieces)}
        down = vantage.connection.down._replace(stream_bytes=size)
        sides.append(replace(vantage, payload=payload, connection=vantage.connection._replace(down=down)))
    return replace(pair, client_side=sides[0], server_side=sides[1])


def test_a_longer_head_shows_by_where_the_body_lies():
    (pair,) = pairs("reg_dl_cubic_lte")
    body = bytes(range(160))
    found = examined(downloaded(pair, -108, (body, body), (50_108, 50_000)))
    assert (found.finding, found.numbers["direction"], found.numbers["added_bytes"]) == (
        "rewritten-headers",
        "down",
        108,
    )
    assert examined(downloaded(pair, 0, (body, body), (50_108, 50_000))).finding != "rewritten-headers"


def test_another_body_of_another_size_shows_without_its_announced_length(monkeypatch):
    (pair,) = pairs("reg_dl_cubic_lte")
    pair = downloaded(pair, 0, (bytes(range(160)), bytes(range(95, 255))), (5_000, 50_000))
    pair = replace(pair, alignment={**pair.alignment, Direction.DOWN: StreamAlignment(0, 11, 0.09)})
    monkeypatch.setattr("detector.methods.content.comparison.size_changes", lambda *_: np.array([[0], [-45_000]]))
    found = examined(pair)
    assert (found.finding, found.numbers["left_bytes"], found.numbers["arrived_bytes"]) == ("other-body", 50_000, 5_000)
    monkeypatch.setattr("detector.methods.content.comparison.size_changes", lambda *_: np.array([[UNKNOWN]] * 2))
    assert examined(pair).finding == "other-bytes"


RAN = Watched(True, "The other capture ran all the while.")
RAN_NOT = Watched(False, "The other capture ended before.")


def cached() -> tuple[Pair, list[Pair]]:
    """The connection that a cache answered, and the one that filled the cache."""
    all_pairs = pairs("prx_ngx_cache")
    (alone,) = (p for p in all_pairs if len(p.vantages) == 1)
    return alone, [p for p in all_pairs if len(p.vantages) == 2]


def never_split(pair: Pair) -> bool:
    return False


def always_split(pair: Pair) -> bool:
    return True


def examine_unpaired(
    alone: Pair, earlier: list[Pair], watched: Watched, is_split: Callable[[Pair], bool], arrives_whole: bool = False
) -> Evidence:
    absent = Absent(watched, earlier, is_split, lambda: 0.0, lambda: arrives_whole)
    found = cache.examine(Observation(alone, absent=absent))
    assert found is not None
    return found


def test_an_answer_from_a_cache():
    alone, others = cached()
    assert examined(alone).finding == "no-counterpart"
    assert examine_unpaired(alone, others, RAN, always_split).finding == "served-from-cache"
    assert examine_unpaired(alone, [], RAN, always_split).finding == "no-counterpart"


def test_other_sequence_numbers_alone_show_no_cache():
    """A firewall that hides sequence numbers, and several machines behind the server's address, look the same."""
    alone, others = cached()
    found = examine_unpaired(alone, others, RAN, never_split)
    assert found.finding == "no-counterpart"
    assert found.summary.endswith("but: No earlier one is known to be split.")


def test_a_client_whose_connections_arrive_whole_met_another_machine():
    alone, (own,) = cached()
    near = own.client_side
    other = replace(own, client_side=replace(near, connection=near.connection._replace(client_address="192.0.2.9")))
    found = examine_unpaired(alone, [other], RAN, always_split, arrives_whole=True)
    assert found.finding == "no-counterpart"
    assert "another machine behind the server's address" in found.summary
    assert examine_unpaired(alone, [own], RAN, always_split, arrives_whole=True).finding == "served-from-cache"


def test_absence_is_no_evidence_where_the_capture_was_not_running():
    alone, others = cached()
    found = examine_unpaired(alone, others, RAN_NOT, never_split)
    assert found.outcome is Outcome.INAPPLICABLE
    assert RAN_NOT.why in found.summary


def test_an_answer_sooner_than_the_servers_needs_no_capture_that_watched():
    alone, others = cached()
    found = examine_unpaired(alone, others, RAN_NOT, always_split)
    assert (found.outcome, found.finding) == (Outcome.SPLIT, "served-from-cache")
    answer_s, path_s = found.numbers["answer_s"], found.numbers["least_round_trip_to_server_s"]
    assert 0.12 < answer_s < 0.15  # the cellular part has 2 x 60 ms
    assert 0.18 < path_s < 0.19  # and the wired one 2 x 30 ms more
    assert RAN_NOT.why in found.caveats[0]


def test_an_answer_that_may_be_the_servers_shows_no_cache():
    alone, others = cached()
    answers = (alone.client_side.packets.direction == Direction.DOWN) & (alone.client_side.packets.payload_bytes > 0)
    later = alone.client_side.packets.time_ns + np.where(np.cumsum(answers) > 0, 30_000_000, 0)
    slow = replace(
        alone, client_side=replace(alone.client_side, packets=alone.client_side.packets.replaced(time_ns=later))
    )
    assert examine_unpaired(slow, others, RAN_NOT, always_split).finding == "no-counterpart"


def test_a_missing_syn_is_no_other_sequence_number():
    alone, (other,) = cached()
    assert examine_unpaired(alone, [other], RAN, always_split).finding == "served-from-cache"
    near, far = other.client_side.connection, other.server_side.connection
    known = {name: getattr(near, name).initial_sequence_number for name in ("up", "down")}
    same = {name: getattr(far, name)._replace(initial_sequence_number=number) for name, number in known.items()}
    for flows in (same, {"up": far.up._replace(initial_sequence_number=None), "down": same["down"]}):
        late = replace(other, server_side=replace(other.server_side, connection=far._replace(**flows)))
        assert examine_unpaired(alone, [late], RAN, always_split).finding == "no-counterpart"


def test_a_missing_capture_of_an_end_to_end_connection_is_no_cache():
    first, second, *_ = pairs("reg_dl_short10k")
    assert examine_unpaired(replace(second, server_side=None), [first], RAN, never_split).finding == "no-counterpart"


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
    found = examined(pair)
    assert (found.finding, found.numbers["request"]) == ("proxy-request-consumed", request_name)
    passed = replace(pair, server_side=with_request(pair.server_side, asked))
    assert examined(passed).finding != "proxy-request-consumed"


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
    assert examined(pair).finding == finding
