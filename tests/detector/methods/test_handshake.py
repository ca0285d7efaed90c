"""SYN and SYN-ACK at both ends: what normalisers and SYN proxies write stays harmless, another TCP's is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from detector.method import Observation
from detector.methods.handshake import METHOD
from detector.methods.handshake.changes import PRIOR, TABLE, changes, relay_nats
from detector.methods.handshake.examination import DECISIVE_NATS
from detector.methods.handshake.opening import (
    BLANKED_BYTES,
    MAXIMUM_SEGMENT_SIZE,
    WINDOW_SCALE,
    SynOptions,
    ends_of,
    parse_options,
    read_options,
)
from detector.methods.handshake.opening import passed as read_passed
from detector.options import DetectOptions
from detector.pair import Pair
from detector.pairing.captures import pair_captures
from detector.streams.summaries import Summaries
from detector.verdict.weighing import judge
from pepscope import _core
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction, TcpFlag
from pepscope.results.verdicts import Evidence, Outcome, Verdict
from tests.captures import containers
from tests.captures.conversation import Conversation, Endpoint, stream
from tests.captures.segments import Segment
from tests.detector import rewriting as rw
from tests.detector.corpus import RUNS, end_points, pairs, truth
from tests.detector.methods.reference_handshake import Opening, openings_of, passed, read_opening

UP, DOWN = Direction.UP, Direction.DOWN


def examined(observation: Observation) -> Evidence:
    """What the method finds on one connection."""
    found = METHOD.alone(observation)
    assert found is not None
    return found


PHONE = Endpoint("10.5.28.116", 40_000, 36_433, window_scale=None, sack_permitted=False, timestamps=False, ttl=40)
SERVER = Endpoint("192.0.2.80", 80, 12_345, window_scale=None, sack_permitted=False, timestamps=False)


def talk(
    client: Endpoint, server: Endpoint, *, at_server: bool = False, syn_window: int = 64_240, counter: int = 0
) -> list[Segment]:
    """A request of 200 bytes and its answer, 50 ms away, as the capture at one end shows it; `counter` moves IP IDs."""
    far, near = (0.1, 50.0) if at_server else (50.0, 0.1)
    made = Conversation(client, server)
    made.send(UP, -1, None, flags=TcpFlag.SYN, window=syn_window).wait(far)
    made.send(DOWN, -1, 0, flags=TcpFlag.SYN, window=65_160).wait(near)
    made.send(UP, 0, 0).wait(1).send(UP, 0, 0, stream(0, 200, 1), TcpFlag.PSH).wait(far)
    made.send(DOWN, 0, 200).wait(1).send(DOWN, 0, 200, stream(0, 1000, 2), TcpFlag.PSH).wait(near)
    made.send(UP, 200, 1000)
    return [replace(segment, ip_id=(segment.ip_id + counter) % 65_536) for segment in made.segments]


def paired(
    directory: Path,
    near: list[Segment],
    far: list[Segment],
    options: DetectOptions | None = None,
    *,
    swapped: bool = False,
) -> Pair:
    captures = []
    for name, segments in (("near", near), ("far", far)):
        path = directory / f"{name}.pcap"
        frames = [containers.Frame(segment.time_ns, segment.packet()) for segment in segments]
        path.write_bytes(containers.write_pcap(frames, containers.LINK_RAW))
        captures.append(open_capture(str(path)))
    (pair,) = pair_captures(captures[0], captures[1], options or DetectOptions())
    if swapped:
        pair = structs.replace(pair, client_side=pair.server_side, server_side=pair.client_side)
    return pair


def test_options_that_the_client_never_sent_are_another_tcps(tmp_path):
    relay = replace(
        PHONE, initial_sequence_number=577_072_477, window_scale=2, sack_permitted=True, timestamps=True, ttl=51
    )
    answer = replace(SERVER, initial_sequence_number=3_129_246_091, ttl=60)
    pair = paired(tmp_path, talk(PHONE, answer), talk(relay, SERVER, at_server=True, syn_window=32_850, counter=9))
    found = examined(Observation(pair))
    assert found.finding == "handshake-of-another-stack"
    assert found.numbers["option_list"] == "scaling or timestamps added to the SYN"
    assert judge([found]).verdict in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY)


def test_a_handshake_that_arrives_as_it_left_supports_end_to_end_without_deciding(tmp_path):
    pair = paired(tmp_path, talk(PHONE, replace(SERVER, ttl=60)), talk(replace(PHONE, ttl=30), SERVER, at_server=True))
    found = examined(Observation(pair))
    assert (found.outcome, found.finding) == (Outcome.INTACT, "handshake-same-segments")
    assert judge([found]).verdict is Verdict.INCONCLUSIVE


def test_a_normaliser_that_strips_every_option_is_no_split_for_either_side(tmp_path):
    client = replace(PHONE, window_scale=7, sack_permitted=True, timestamps=True, ttl=64)
    stripped = replace(PHONE, initial_sequence_number=5, maximum_segment_size=1300, ttl=60)
    shifted = replace(SERVER, initial_sequence_number=77, maximum_segment_size=1300)
    near, far = talk(client, shifted), talk(stripped, SERVER, at_server=True, syn_window=20_000, counter=700)
    for swapped in (False, True):
        pair = paired(tmp_path, near, far, swapped=swapped)
        assert judge([examined(Observation(pair))]).verdict not in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY)


def test_sides_given_by_the_user_are_used(tmp_path):
    client = replace(PHONE, window_scale=7, sack_permitted=True, timestamps=True)
    near, far = talk(PHONE, SERVER), talk(client, replace(SERVER, initial_sequence_number=9))
    unsure = paired(tmp_path, near, far)
    sure = paired(tmp_path, near, far, DetectOptions(first_at_client=True))
    assert examined(Observation(unsure)).numbers["option_list"] == "options removed"
    assert examined(Observation(sure)).numbers["option_list"] == "scaling or timestamps added to the SYN"


def test_options_that_the_capture_cut_off_are_not_absent():
    (pair,) = pairs("spl_ha_dl_mid_lte_bbr")
    server = pair.server_side
    assert server is not None
    cut = server.connection._replace(up=server.connection.up._replace(options_captured=False, syn_options=b"\x02\x04"))
    found = examined(Observation(structs.replace(pair, server_side=structs.replace(server, connection=cut))))
    assert found.numbers["syn_options_arrived"] == "cut off"
    assert found.numbers["option_list"] == "equal"  # of the SYN-ACK


def test_one_capture_or_no_syn_decides_nothing():
    (pair,) = pairs("spl_ha_dl_mid_lte_bbr")
    assert examined(Observation(structs.replace(pair, server_side=None))).finding == "needs-second-capture"
    (late,) = pairs("spl_ha_dl_small_umts__mid")
    assert examined(Observation(late)).finding == "no-handshake"


@pytest.mark.parametrize("run_id", RUNS)
def test_no_handshake_of_the_corpus_contradicts_the_truth(run_id):
    flows = truth(run_id)
    for pair in pairs(run_id):
        if len(pair.vantages) == 2:
            regular = flows[end_points(pair)]["class"] == "regular"
            outcome = examined(Observation(pair)).outcome
            assert outcome is not (Outcome.SPLIT if regular else Outcome.INTACT)


OPTIONS = {2: 2, 3: 1, 4: 0, 8: 8, 30: 10}
KINDS = st.lists(st.sampled_from(sorted(OPTIONS)), unique=True).flatmap(st.permutations)


@st.composite
def openings(draw: st.DrawFn) -> Opening:
    """Any SYN or SYN-ACK."""
    kinds = draw(KINDS)
    values = {kind: draw(st.binary(min_size=OPTIONS[kind], max_size=OPTIONS[kind])) for kind in kinds}
    options = SynOptions(tuple(kinds), values.get(WINDOW_SCALE), values.get(MAXIMUM_SEGMENT_SIZE))
    number = st.integers(1, 65_535)
    return Opening(
        draw(st.integers(0, 2**32 - 1)), 1, options, frozenset({draw(number)}), frozenset({draw(number)}),
        frozenset({draw(number)}) if 8 in kinds else frozenset(), frozenset({draw(st.sampled_from((0, 0xC0)))}),
        draw(st.integers(30, 255)),
    )  # fmt: skip


@st.composite
def normalised(draw: st.DrawFn, left: Opening) -> Opening:
    """What any normaliser makes of it: a new number, IP ID, window and TSval, options out, a smaller segment size."""
    maybe = st.booleans()
    assert left.options is not None
    kinds = tuple(kind for kind in left.options.kinds if kind == MAXIMUM_SEGMENT_SIZE or draw(maybe))
    scale, size = left.options.window_scale, left.options.segment_size
    if size is not None and draw(maybe):
        size = min(size, (1200).to_bytes(2))
    return left._replace(
        sequence_number=(left.sequence_number + draw(st.integers(0, 2**31))) % 2**32,
        options=SynOptions(kinds, scale if WINDOW_SCALE in kinds else None, size),
        windows=frozenset({min(*left.windows, 30_000)}) if draw(maybe) else left.windows,
        ip_ids=frozenset({draw(st.integers(0, 65_535))}) if draw(maybe) else left.ip_ids,
        tsvals=frozenset({draw(st.integers(0, 2**32 - 1))}) if 8 in kinds else frozenset(),
        ecn=frozenset({0}) if draw(maybe) else left.ecn,
        ttl=left.ttl - draw(st.integers(0, 29)),
    )


@given(st.data())
def test_whatever_a_normaliser_does_to_a_handshake_never_decides(data):
    both = {}
    for direction in Direction:
        left = data.draw(openings())
        both[direction] = (left, data.draw(normalised(left)))
    found = changes(openings_of(both))
    nats = relay_nats(found)
    assert nats < DECISIVE_NATS, found


@given(openings(), openings(), openings(), openings())
def test_two_handshakes_with_nothing_in_common_never_pass_for_one(syn, other_syn, syn_ack, other_syn_ack):
    found = changes(openings_of({UP: (syn, other_syn), DOWN: (syn_ack, other_syn_ack)}))
    if found["sequence numbers"] == "both other" and found["IP ID"] == "other" and found.get("TSval") != "equal":
        assert relay_nats(found) > -1.0


@given(openings())
def test_a_zeroed_scale_is_a_routers_fault_and_another_one_a_tcps(left: Opening) -> None:
    def with_scale(value: int) -> Opening:
        assert left.options is not None
        kinds = (*(kind for kind in left.options.kinds if kind != WINDOW_SCALE), WINDOW_SCALE)
        return left._replace(options=left.options._replace(kinds=kinds, window_scale=bytes([value])))

    assert changes(openings_of({UP: (with_scale(7), with_scale(0))}))["window scale"] == "zeroed"
    assert changes(openings_of({UP: (with_scale(7), with_scale(8))}))["window scale"] == "other in the SYN"


def test_syns_sent_again_with_fewer_options_add_nothing():
    first = Opening(
        7, 1, SynOptions((2, 3), b"\x07", b"\x05\xb4"),
        frozenset({65_000}), frozenset({1}), frozenset(), frozenset({0}), 64,
    )  # fmt: skip
    again = first._replace(options=SynOptions((2,), None, b"\x05\xb4"))
    assert changes(openings_of({UP: (first._replace(copies=2), again)}))["option list"] == "options removed"
    assert "option list" not in changes(openings_of({UP: (again, first._replace(copies=2))}))


def test_every_field_of_the_table_is_a_distribution_or_less():
    for field, rows in TABLE.items():
        for name in ("plain", "normaliser", "syn_proxy", "relay"):
            assert all(0 < getattr(row, name) <= 1 for row in rows.values()), (field, name)
    assert PRIOR.plain + PRIOR.normaliser + PRIOR.syn_proxy == pytest.approx(1.0)


@given(st.binary(max_size=40))
def test_options_are_parsed_or_found_broken(octets):
    parsed, read = parse_options(octets), read_options(octets)
    assert (read is None) == (parsed is None or b"\1\1\1\1" in octets)
    if parsed is not None and read is not None:
        assert sum(2 + len(value) for _, value in parsed) <= len(octets)
        scales = [value for kind, value in parsed if kind == WINDOW_SCALE]
        assert read.window_scale == (scales[-1] if scales else None)


options = st.lists(
    st.one_of(
        st.binary(min_size=8, max_size=8).map(lambda stamps: b"\x08\x0a" + stamps),
        st.sampled_from([b"\1", b"\1\1\1\1", b"\0", b"\2\4\x05\xb4", b"\3\3\7", b"\3\5\x08\x0a\7"]),
        st.sampled_from([b"\4\2", b"\x08\x0a\1"]),
    ),
    max_size=6,
).map(b"".join)


@given(st.lists(options))
def test_options_that_differ_by_timestamps_alone_are_read_once(octets):
    codes, distinct = _core.coded_options(octets, BLANKED_BYTES)
    assert len(set(distinct)) == len(distinct)
    assert [read_options(distinct[code]) for code in codes] == [read_options(each) for each in octets]
    for each, code in zip(octets, codes, strict=True):
        assert len(distinct[code]) == len(each)
    stamped = [b"\2\4\x05\xb4\x08\x0a" + bytes(7) + bytes([number + 2]) for number in range(3)]
    assert _core.coded_options(stamped, BLANKED_BYTES)[0].tolist() == [0, 0, 0]


def test_the_handshakes_segments_are_read_as_the_wire_had_them(tmp_path):
    pair = paired(tmp_path, talk(PHONE, SERVER), talk(PHONE, SERVER, at_server=True))
    assert pair.client_side is not None
    syn = read_opening(pair.client_side, UP)
    assert syn is not None
    assert (syn.sequence_number, syn.copies, syn.options and syn.options.kinds) == (36_433, 1, (2,))
    assert [sorted(held) for held in (syn.windows, syn.ip_ids, syn.tsvals)] == [[64_240], [101], []]
    assert syn.ttl == 40


@pytest.mark.parametrize("run", ["reg_dl_cubic_lte", "spl_ha_dl_small_umts", "reg_dl_v6", "reg_dl_nots_nosack"])
@pytest.mark.parametrize("change", [None, rw.own_ip_id, rw.without_ip_id])
def test_what_passed_is_what_each_capture_shows(run, change):
    for pair in pairs(run):
        pair = rw.changed(pair, None, change)
        client, server = pair.client_side, pair.server_side
        assert client is not None
        assert server is not None
        counts = _core.openings([client.packets], [server.packets])
        has_ip_ids = client.connection.ip_version == 4
        for direction, emitter, arriver in ((UP, client, server), (DOWN, server, client)):
            left, came = read_opening(emitter, direction), read_opening(arriver, direction)
            seen = {name: int(column[direction, 0]) for name, column in counts.items()}
            assert (left is not None, came is not None) == (seen["copies_left"] > 0, seen["copies_arrived"] > 0)
            if left is None or came is None:
                continue
            ends = ends_of(Summaries([emitter]), Summaries([arriver]), direction).at(0)
            assert read_passed(ends, seen, has_ip_ids, swapped=False) == passed(left, came)
            assert read_passed(ends, seen, has_ip_ids, swapped=True) == passed(came, left)
            assert (seen["window_left"], seen["window_arrived"]) == (min(left.windows), min(came.windows))
