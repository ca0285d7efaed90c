"""Applications of scenarios: what they say stands in captures as dissectors read it, at the times of the truth."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pepscope.captures.capture import open_capture
from pepscope.captures.exchanges import ExchangeKind
from pepscope.errors import ScenarioError
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate

PROXY: dict[str, Any] = {"kind": "split-proxy", "name": "box"}
#: 10 ms to the one server, 45 ms to the other, then 20 ms and an access line to the mobile.
INTERNET: dict[str, Any] = {
    "kind": "branches",
    "by": "server",
    "terminals": [{"down": {"delay_s": 0.01}}, {"down": {"delay_s": 0.045}}],
}
ACCESS: dict[str, Any] = {"kind": "wired", "name": "access", "down": {"rate_bit_s": 30_000_000, "delay_s": 0.02}}
WEB: dict[str, Any] = {
    "kind": "web",
    "document_bytes": 40_000,
    "pages": 2,
    "think_time_mean_s": 2.0,
    "objects": [
        {"name": "style.css", "bytes": 15_000},
        {"name": "image", "bytes": 20_000, "count": 8},
        {"name": "script.js", "bytes": 9_000, "after": "style.css", "server_number": 1},
    ],
}
OBJECTS = 11
VIDEO: dict[str, Any] = {"kind": "video", "segments": 8, "segment_s": 2.0, "buffer_s": 8.0}
CHAT: dict[str, Any] = {"kind": "chat", "gap_mean_s": 2.0, "chat_s": 30.0}
QUIC: dict[str, Any] = {"kind": "quic", "requests": 3, "think_time_mean_s": 1.0, "answer_bytes": 60_000}
PING: dict[str, Any] = {"kind": "ping", "requests": 5}


def scenario(*traffic: Mapping[str, Any], split: bool = False, seed: int = 1, **more: Any) -> Scenario:
    taps = [{"name": name, "snap_bytes": 0} for name in ("server", "mobile")]
    return Scenario.from_mapping(
        {
            "name": "applications",
            "seed": seed,
            "duration_s": 300.0,
            "path": [INTERNET, *([PROXY] if split else []), ACCESS],
            "traffic": list(traffic),
            "record": {"taps": taps},
            **more,
        }
    )


def fields(capture: Path, *names: str, only: str = "") -> list[dict[str, str]]:
    """What tshark reads: a row a packet."""
    command = ["tshark", "-r", str(capture), "-T", "fields", "-E", "header=y", "-E", "separator=/t"]
    command += ["-o", "tcp.desegment_tcp_streams:TRUE", "-o", "tls.desegment_ssl_records:TRUE"]
    command += ["-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    for name in names:
        command += ["-e", name]
    if only:
        command += ["-Y", only]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


def values(rows: list[dict[str, str]], name: str) -> list[str]:
    return [value for row in rows for value in row[name].split(",") if value]


def messages(run: Run, flow: int, prefix: str = "") -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = run.truth["flows"][flow]["messages"]
    return [message for message in found if message["name"].startswith(prefix)]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    "traffic",
    [
        {**WEB, "security": "tls-1.3"},
        {**WEB, "security": "tls-1.2"},
        {**WEB, "security": "none"},
        {**WEB, "http_version": "2"},
        VIDEO,
        CHAT,
        QUIC,
        PING,
    ],
    ids=["tls-1.3", "tls-1.2", "http", "http-2", "video", "chat", "quic", "ping"],
)
def test_dissectors_find_nothing_wrong(tmp_path: Path, traffic: Mapping[str, Any], split: bool) -> None:
    run = simulate(scenario(traffic, split=split), tmp_path)
    assert run.ending == "finished"
    for flow in run.truth["flows"]:
        assert flow["delivered_exactly"] == {"down": True, "up": True}
    for capture in run.captures.values():
        wrong = fields(
            capture, "frame.number", "_ws.expert.message", only="_ws.malformed || _ws.expert.severity >= 0x00800000"
        )
        assert wrong == []
        assert fields(capture, "frame.number", only="tcp.checksum.status == 0 || udp.checksum.status == 0") == []


@pytest.mark.parametrize(("version", "suite"), [("tls-1.3", "0x1301"), ("tls-1.2", "0xc02f")])
def test_handshakes_are_those_of_the_versions(tmp_path: Path, version: str, suite: str) -> None:
    run = simulate(scenario({**WEB, "security": version}), tmp_path)
    rows = fields(
        run.captures["mobile"], "tls.handshake.type", "tls.handshake.ciphersuite",
        "tls.handshake.extensions_server_name", "x509sat.uTF8String", only="tls.handshake.type",
    )  # fmt: skip
    connections = len(run.truth["flows"])
    types = Counter(values(rows, "tls.handshake.type"))
    assert (types["1"], types["2"]) == (connections, connections)
    hellos = [row for row in rows if row["tls.handshake.type"].startswith("2")]
    assert {row["tls.handshake.ciphersuite"] for row in hellos} == {suite}
    assert set(values(rows, "tls.handshake.extensions_server_name")) == {"server-0.example", "server-1.example"}
    # Of the connections to one server only the first gets a certificate, which TLS 1.3 hides.
    assert types["11"] == (2 if version == "tls-1.2" else 0)
    if version == "tls-1.2":
        assert "Example Issuing CA" in values(rows, "x509sat.uTF8String")
    records = fields(run.captures["mobile"], "tls.record.content_type", "tls.record.opaque_type", only="tls.record")
    shown = {*values(records, "tls.record.content_type"), *values(records, "tls.record.opaque_type")}
    # TLS 1.3 shows alerts as data.
    assert shown == ({"20", "22", "23"} if version == "tls-1.3" else {"20", "21", "22", "23"})


def test_requests_and_answers_are_those_of_the_truth(tmp_path: Path) -> None:
    run = simulate(scenario({**WEB, "security": "none"}), tmp_path)
    rows = fields(
        run.captures["mobile"], "http.request.uri", "http.request.line", "http.content_length", "http.response.code",
        only="http",
    )  # fmt: skip
    asked = [row["http.request.uri"] for row in rows if row["http.request.uri"]]
    assert len(asked) == 2 * OBJECTS == len(set(asked))
    assert sorted(asked) == sorted(
        message["name"].removeprefix("GET ")
        for flow in range(len(run.truth["flows"]))
        for message in messages(run, flow, "GET ")
    )
    lengths = Counter(row["http.content_length"] for row in rows if row["http.response.code"] == "200")
    assert lengths == {"40000": 2, "15000": 2, "20000": 16, "9000": 2}


def test_objects_are_asked_for_once_what_they_depend_on_has_come() -> None:
    run = simulate(scenario(WEB), captures=False)
    every = [message for flow in range(len(run.truth["flows"])) for message in messages(run, flow)]
    at = {message["name"]: message for message in every}
    assert at["GET /page-0/style.css"]["written_s"] >= at["200 /page-0/document"]["read_s"] + 0.01
    assert at["GET /page-0/script.js"]["written_s"] >= at["200 /page-0/style.css"]["read_s"] + 0.01
    assert at["GET /page-1/document"]["written_s"] > max(
        message["read_s"] for message in every if message["name"].startswith("200 /page-0")
    )
    for message in every:
        assert message["read_s"] is None or message["read_s"] > message["written_s"]


def test_connections_are_opened_as_they_are_needed_and_stay() -> None:
    run = simulate(scenario(WEB), captures=False)
    servers = Counter(flow["addresses"]["mobile"]["server"]["address"] for flow in run.truth["flows"])
    assert servers == {"203.0.113.10": 6, "203.0.113.11": 1}
    one = simulate(scenario({**WEB, "http_version": "2"}), captures=False)
    assert len(one.truth["flows"]) == 2
    names = [message["name"] for message in messages(one, 0)]
    first_answer = names.index("200 /page-0/image-0")
    # Requests beside each other: all images are asked for before the first has come.
    assert all(f"GET /page-0/image-{number}" in names[:first_answer] for number in range(8))


def test_servers_stand_at_their_distances(tmp_path: Path) -> None:
    run = simulate(scenario(WEB), captures=False)
    for flow in run.truth["flows"]:
        far = flow["addresses"]["mobile"]["server"]["address"] == "203.0.113.11"
        took_s = flow["mobile"]["connected_s"] - flow["start_s"]
        assert took_s == pytest.approx(2 * (0.065 if far else 0.03), abs=3e-3)


def test_runs_with_one_seed_are_the_same(tmp_path: Path) -> None:
    made = []
    for number, seed in enumerate((1, 1, 2)):
        run = simulate(scenario(WEB, VIDEO, CHAT, QUIC, PING, seed=seed), tmp_path / str(number))
        made.append(run.captures["mobile"].read_bytes())
    assert made[0] == made[1]
    assert made[0] != made[2]


def test_exchanges_are_found_with_the_kinds_and_times_of_the_truth(tmp_path: Path) -> None:
    run = simulate(scenario({**WEB, "objects": [], "pages": 4, "security": "tls-1.2", "resumption": False}), tmp_path)
    found = open_capture(run.captures["mobile"]).exchanges()
    epoch_ns = 1_700_000_000 * 10**9
    by_client = found.asked == 0
    kinds = [ExchangeKind(kind).label for kind in found.kind[by_client]]
    assert kinds == ["tls-hello", "tls-finished", *["tls-data"] * 4, "tls-control"]
    asked_s = (found.question_ns[by_client] - epoch_ns) * 1e-9
    truth = messages(run, 0)
    # ClientHello, the client's Finished, four requests, and the end.
    wanted = [message["written_s"] for message in truth if message["from"] == "mobile"]
    assert list(asked_s) == pytest.approx(wanted, abs=1e-5)
    answers_s = (found.answered_ns[by_client] - epoch_ns) * 1e-9
    first_bytes_s = [m["written_s"] + 0.03 for m in truth if m["from"] == "server"]
    assert list(answers_s) == pytest.approx(first_bytes_s, abs=2e-3)


def test_video_takes_turns_with_a_full_buffer() -> None:
    run = simulate(scenario({**VIDEO, "segments": 20}), captures=False)
    asked = messages(run, 0, "GET /video/")
    rates = [int(message["name"].split("/")[2]) for message in asked[2:]]
    assert rates[0] == 400_000
    assert max(rates) == 6_000_000
    gaps = [later["written_s"] - earlier["written_s"] for earlier, later in zip(asked[-6:], asked[-5:], strict=False)]
    assert gaps == pytest.approx([2.0] * 5, abs=1e-6)


def test_a_chat_confirms_what_is_said() -> None:
    run = simulate(scenario(CHAT), captures=False)
    for side, other in (("mobile", "server"), ("server", "mobile")):
        said = [m for m in messages(run, 0, "text") if m["from"] == side and m["read_s"] is not None]
        receipts = {m["name"]: m for m in messages(run, 0, "receipt of") if m["from"] == other}
        assert len(said) > 3
        for text in said[:-1]:
            receipt = receipts[f"receipt of {text['name']}"]
            assert receipt["written_s"] == pytest.approx(text["read_s"] + 0.002)


def test_echo_and_quic_are_not_split(tmp_path: Path) -> None:
    run = simulate(scenario({**WEB, "pages": 1}, {**PING, "start_s": 0.5}, QUIC, split=True), tmp_path)
    capture = run.captures["mobile"]
    replies = fields(capture, "icmp.seq", "icmp.resptime", "icmp.checksum.status", only="icmp.type == 0")
    assert [row["icmp.seq"].split(",")[0] for row in replies] == [str(number) for number in range(1, 6)]
    assert all(float(row["icmp.resptime"]) >= 60.0 for row in replies)
    assert {row["icmp.checksum.status"] for row in replies} == {"1"}
    initial = fields(
        capture,
        "ip.src",
        "tls.handshake.type",
        "tls.handshake.extensions_server_name",
        only="quic.long.packet_type == 0 && tls",
    )
    assert sorted(values(initial, "tls.handshake.type")) == ["1", "2"]
    assert values(initial, "tls.handshake.extensions_server_name") == ["server-0.example"]
    # TCP's handshake ends at the box; the references come from the far side of it.
    web = run.truth["flows"][0]
    assert web["mobile"]["connected_s"] - web["start_s"] == pytest.approx(0.04, abs=1e-3)
    datagrams = {flow["transport"]: flow for flow in run.truth["datagrams"]}
    assert datagrams["icmp"]["mobile"]["received_datagrams"] == 5
    answers = [m for m in datagrams["udp"]["messages"] if m["name"].startswith("QUIC answer")]
    assert sum(message["bytes"] for message in answers) > 3 * 60_000


def test_what_cannot_be_carried_is_refused_in_a_sentence() -> None:
    store = {"kind": "store-and-forward-proxy", "name": "store"}
    with pytest.raises(ScenarioError, match="server_ports must leave out 443"):
        scenario(WEB, path=[store, ACCESS])
    scenario(WEB, path=[{**store, "server_ports": [80]}, ACCESS], traffic=[WEB])
    with pytest.raises(ScenarioError, match=r"highest server_number .* below the number of terminals"):
        scenario({**WEB, "server_number": 2})
    with pytest.raises(ScenarioError, match="http_version"):
        scenario({**WEB, "http_version": "2", "security": "none"})
    with pytest.raises(ScenarioError, match="after"):
        scenario({**WEB, "objects": [{"name": "a", "bytes": 1, "after": "b"}]})
    with pytest.raises(ScenarioError, match="ip_version"):
        scenario({**PING, "ip_version": 6})


def test_scenarios_without_applications_have_no_such_truth() -> None:
    run = simulate(scenario({"kind": "download", "bytes": 10_000}), captures=False)
    assert "datagrams" not in run.truth
    assert "messages" not in run.truth["flows"][0]
    assert "by" not in json.dumps(
        scenario({"kind": "download", "bytes": 1}, path=[{"kind": "branches"}]).path[0]["kind"]
    )
