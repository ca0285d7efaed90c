"""The script that holds every packet against tshark finds what differs, and calls the rest tshark's choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.validation import read_as_tshark
from benchmarks.validation.read_as_tshark import CHOICES, differences, packets_of_tshark
from pepscope.captures.capture import open_capture
from tests.captures import containers, layers, scenarios
from tests.captures.containers import Frame

CORPUS = Path(__file__).parents[1] / "corpus"


@pytest.mark.parametrize("name", ["reg_dl_short10k.mob", "spl_ha_chat.mob", "reg_dl_v6.mob"])
def test_captures_of_the_corpus_are_read_alike(name: str) -> None:
    path = str(CORPUS / f"{name}.pcap.gz")
    assert len(packets_of_tshark(path)) == open_capture(path).tcp_packet_count > 50
    assert {row.kind for row in differences(path)} <= set(CHOICES)


@pytest.mark.parametrize(
    ("field", "kind"),
    [("payload", "payload"), ("TTL", "TTL"), ("time", "time"), ("SACK blocks", "SACK blocks"), ("window", "window")],
)
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, field: str, kind: str) -> None:
    path = str(CORPUS / "reg_dl_short10k.mob.pcap.gz")
    theirs = packets_of_tshark(path)
    theirs[20] = theirs[20]._replace(seen=theirs[20].seen | {field: -1})
    theirs[21] = theirs[21]._replace(ends=theirs[21].ends[::-1])
    monkeypatch.setattr(read_as_tshark, "packets_of_tshark", lambda _: theirs)
    found = [row for row in differences(path) if row.kind not in CHOICES]
    assert [row.kind for row in found] == [kind, "end points"]
    assert "frame 20" in found[0].detail


@pytest.mark.parametrize(
    ("frame", "fields", "kind"),
    [
        (7, {"round_trip_ns": 1}, "round trip"),
        (7, {"round_trip_ns": None}, "round trip"),
        (3, {"handshake_ns": 5}, "handshake"),
        (1, {"options": (9, 9, False)}, "options of a SYN"),
        (20, {"sequence": 5}, "numbers"),
        (20, {"acknowledgement": 5}, "numbers"),
        (20, {"is_old": True}, "sent again"),
        (20, {"stream": "another"}, "streams put together"),
    ],
)
def test_a_difference_in_what_is_derived_is_found(
    monkeypatch: pytest.MonkeyPatch, frame: int, fields: dict[str, object], kind: str
) -> None:
    path = str(CORPUS / "reg_dl_short10k.mob.pcap.gz")
    theirs = packets_of_tshark(path)
    theirs[frame] = theirs[frame]._replace(**fields)  # type: ignore[arg-type]
    monkeypatch.setattr(read_as_tshark, "packets_of_tshark", lambda _: theirs)
    assert [row.kind for row in differences(path) if row.kind not in CHOICES] == [kind]


def test_packets_that_one_reader_lacks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(CORPUS / "reg_dl_short10k.mob.pcap.gz")
    theirs = packets_of_tshark(path)
    theirs[100_000] = theirs.pop(9)
    monkeypatch.setattr(read_as_tshark, "packets_of_tshark", lambda _: theirs)
    found = [row.kind for row in differences(path) if row.kind not in CHOICES]
    assert found == ["only ours", "only tshark's"]


def test_copies_of_packets_are_tsharks_choice(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    frames = [
        Frame(segment.time_ns + later_ns, layers.ethernet(segment.packet()))
        for segment in scenarios.plain_download().segments
        for later_ns in (0, 3000)
    ]
    path.write_bytes(containers.write_pcap(frames, containers.LINK_ETHERNET))
    kinds = {row.kind for row in differences(str(path))}
    assert {"captured twice"} <= kinds <= set(CHOICES)
    (connection,) = open_capture(str(path)).connections
    assert connection.handshake_syn_ack_ns is not None
