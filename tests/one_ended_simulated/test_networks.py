from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.one_ended_simulated.__main__ import make_network
from benchmarks.one_ended_simulated.captures import checksum
from benchmarks.one_ended_simulated.draws import draw_scenario
from benchmarks.one_ended_simulated.packets import FIN
from benchmarks.one_ended_simulated.scenario import FrontKind, MiddleKind
from benchmarks.one_ended_simulated.stacks import box_stack, client_stack, server_stack
from benchmarks.one_ended_simulated.truth import groups, truth
from detector.detection import detect
from pepscope.captures.capture import open_capture
from pepscope.captures.packets import Direction
from pepscope.results.verdicts import SPLIT_VERDICTS, Verdict
from tests.one_ended_simulated.networks import (
    ACCESS_S,
    BACKEND_S,
    PORTS,
    SERVER,
    WIRE_S,
    network,
    simulated,
    written,
)

KINDS = [
    (MiddleKind.NOTHING, None),
    (MiddleKind.RELAY, None),
    (MiddleKind.CACHE, None),
    (MiddleKind.TLS_INTERCEPTION, None),
    (MiddleKind.SYN_PROXY, None),
    (MiddleKind.NOTHING, FrontKind.RELAY),
    (MiddleKind.NOTHING, FrontKind.WEB),
    (MiddleKind.RELAY, FrontKind.WEB),
]

#: A SYN proxy shuts the window on purpose; tshark does not know signatures by Ed25519 in SSH.
HARMLESS = ("Chat", "connection closing", "indow", "Decoded 19 bytes")


@given(st.binary(max_size=80))
def test_the_checksum_is_that_of_rfc_1071(data):
    padded, total = data + b"\0" * (len(data) % 2), 0
    for place in range(0, len(padded), 2):
        total += int.from_bytes(padded[place : place + 2], "big")
        total = (total & 0xFFFF) + (total >> 16)
    assert checksum(data) == ~total & 0xFFFF


@pytest.mark.parametrize(("kind", "front"), KINDS)
def test_tshark_finds_nothing_wrong(kind, front, tmp_path):
    for path in written(simulated(network(kind, front=front)), tmp_path).values():
        command = ["tshark", "-n", "-r", str(path), "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
        command += ["-Y", "_ws.expert.severity >= 4194304 || tcp.analysis.flags || _ws.malformed", "-V"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        found = [line for line in answer.stdout.splitlines() if "Expert Info" in line]
        assert [line for line in found if not any(harmless in line for harmless in HARMLESS)] == []


def test_tshark_sees_the_handshakes(tmp_path):
    path = written(simulated(network(MiddleKind.NOTHING)), tmp_path)["client"]
    for port, version, types in ((443, "0x0304", "1,2"), (8443, "0x0303", "1,2,11,12,14,16")):
        command = ["tshark", "-n", "-r", str(path), "-d", f"tcp.port=={port},tls", "-Y", f"tcp.port=={port} && tls"]
        command += ["-T", "fields", "-e", "tls.handshake.type", "-e", "tls.handshake.extensions.supported_version"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seen = [kind for line in answer.splitlines() for kind in line.split("\t")[0].split(",") if kind]
        assert ",".join(seen[: types.count(",") + 1]) == types
        assert (version in answer) == (port == 443)


@pytest.mark.parametrize(("kind", "front"), KINDS)
def test_every_talk_comes_to_its_end(kind, front):
    records = simulated(network(kind, front=front)).taps["client"].records
    for port in PORTS:
        up = [packet for _, packet, face in records if face.target_port == port]
        down = [packet for _, packet, face in records if face.source_port == port]
        assert sum(len(packet.payload) for packet in up) > 40
        assert up[-1].acknowledgement == down[-1].end
        assert any(packet.flags & FIN for packet in up)


def least_exchange_s(path: Path, asked: Direction, port: int) -> float:
    """The least of the exchanges beyond the transport's round trip, in seconds; encrypted ones if they are strict."""
    capture = open_capture(str(path))
    found = capture.exchanges()
    ports = np.array([connection.server_port for connection in capture.connections])
    chosen = (found.asked == asked) & (found.strict | (port == 80)) & (ports[found.connection] == port)
    assert chosen.any()
    base_ns = found.round_trips.least_of_all_ns[int(asked) :: 2][found.connection[chosen]]
    return float((found.exchange_ns[chosen] - base_ns).min() / 1e9)


# A relay connects when it has accepted: the first answer, the only one that is strict in TLS 1.3, comes a round trip
# later.
@pytest.mark.parametrize(("port", "up_s"), [(80, WIRE_S), (443, 2 * WIRE_S), (8443, WIRE_S)])
def test_a_relay_hides_a_leg_from_either_end(port, up_s, tmp_path):
    for kind, hidden_up_s, hidden_down_s in ((MiddleKind.NOTHING, 0.0, 0.0), (MiddleKind.RELAY, up_s, ACCESS_S)):
        paths = written(simulated(network(kind)), tmp_path)
        assert least_exchange_s(paths["client"], Direction.UP, port) == pytest.approx(hidden_up_s, abs=0.004)
        assert least_exchange_s(paths["s1"], Direction.DOWN, port) == pytest.approx(hidden_down_s, abs=0.004)


@pytest.mark.parametrize(
    ("kind", "verdicts"),
    [
        (MiddleKind.NOTHING, {Verdict.REGULAR}),
        (MiddleKind.SYN_PROXY, {Verdict.REGULAR}),
        (MiddleKind.RELAY, set(SPLIT_VERDICTS)),
    ],
)
def test_captures_of_both_ends_agree_with_the_truth(kind, verdicts, tmp_path):
    paths = written(simulated(network(kind, answer_bytes=20_000)), tmp_path)
    found = {group.port: group.verdict for group in detect(str(paths["client"]), str(paths["s1"])).groups}
    assert {found[port] for port in (80, 443, 8443)} <= verdicts


def test_pings_measure_the_whole_path_behind_a_relay(tmp_path):
    path = written(simulated(network(MiddleKind.RELAY)), tmp_path)["client"]
    command = ["tshark", "-n", "-r", str(path), "-Y", "icmp.resptime", "-T", "fields", "-e", "icmp.resptime"]
    times = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert [float(time) for time in times] == [pytest.approx(1e3 * (ACCESS_S + WIRE_S), abs=0.5)] * 2


def test_the_truth_of_every_side():
    told = {
        (kind, front, name): {(group["stretch"], group["port"]): group for group in groups(made, name)}
        for kind, front in KINDS
        for made in [simulated(network(kind, front=front))]
        for name in made.taps
    }
    plain = told[MiddleKind.NOTHING, None, "client"]["server", 443]
    assert (plain["class"], plain["hidden_round_trip_s"]) == ("regular", None)
    assert plain["near_round_trip_s"] == pytest.approx(ACCESS_S + WIRE_S, abs=1e-3)
    from_client = told[MiddleKind.RELAY, None, "client"]["server", 443]
    assert (from_client["class"], from_client["where"]) == ("split", "network")
    assert from_client["hidden_round_trip_s"] == pytest.approx(WIRE_S, abs=1e-3)
    from_server = told[MiddleKind.RELAY, None, "s1"]["client", 443]
    assert from_server["hidden_round_trip_s"] == pytest.approx(ACCESS_S, abs=1e-3)
    between = told[MiddleKind.RELAY, None, "between"]
    assert between["server", 443]["class"] == "split"
    assert between["client", 443]["class"] == "regular"
    own = told[MiddleKind.NOTHING, FrontKind.RELAY, "client"]["server", 443]
    assert (own["where"], own["hidden_round_trip_s"]) == ("server", pytest.approx(BACKEND_S, abs=1e-3))
    assert told[MiddleKind.NOTHING, FrontKind.RELAY, "s1"]["client", 443]["class"] == "regular"
    backend = told[MiddleKind.NOTHING, FrontKind.RELAY, "s1b"]["client", 443]
    assert (backend["where"], backend["near_round_trip_s"]) == ("server", pytest.approx(BACKEND_S, abs=1e-3))
    assert told[MiddleKind.SYN_PROXY, None, "client"]["server", 443]["class"] == "syn-proxy"
    # Of a client's view there are rows by host, too: those of one server come last.
    assert plain["host"] == str(SERVER)


def test_a_network_is_a_function_of_its_seed(tmp_path):
    for folder in ("one", "other"):
        make_network(5, tmp_path / folder, 3)
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / name / "n00003").iterdir()} for name in
                  ("one", "other"))  # fmt: skip
    assert one == other
    make_network(6, tmp_path / "third", 3)
    assert (tmp_path / "third" / "n00003" / "truth.json").read_bytes() != one["truth.json"]


def test_drawn_networks_are_told_as_they_are(tmp_path):
    for number in range(4):
        make_network(7, tmp_path, number)
        folder = tmp_path / f"n{number:05d}"
        document = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        assert document["schema"] == 1
        for capture in document["captures"]:
            shown = open_capture(str(folder / capture["file"]))
            told = sum(group["connections"] for group in capture["groups"] if group["host"] is None)
            stretches = len({group["stretch"] for group in capture["groups"]})
            assert len(shown.connections) <= told // stretches
            for group in capture["groups"]:
                assert (group["class"] == "split") == (group["hidden_round_trip_s"] is not None)
                assert (group["where"] is not None) == (group["class"] == "split")


def test_one_in_many_draws_is_a_mixed_network_of_200_clients():
    mixed = next(made for number in range(200) if "mixed" in (made := draw_scenario(1, number)).hard)
    assert sum(len(site.clients) for site in mixed.sites) == 200
    assert sum(site.middle.kind is MiddleKind.RELAY for site in mixed.sites) == 6


def test_every_middle_and_every_side_is_drawn():
    kinds = {site.middle.kind for number in range(300) for site in draw_scenario(2, number).sites}
    assert kinds == set(MiddleKind)


def test_truth_names_only_what_was_written():
    made = simulated(network(MiddleKind.NOTHING))
    document = truth(made, {"client": "client.pcap.gz"})
    assert [capture["file"] for capture in document["captures"]] == ["client.pcap.gz"]


@given(st.integers(0, 10_000))
def test_stacks_can_be_captured(seed):
    random = Random(seed)
    for stack in (client_stack(random, radio=seed % 2 == 0), server_stack(random), box_stack(random)):
        assert 50 < stack.hops < 256
        assert 0 <= stack.scale <= 14
