"""The options experiment on recorded handshakes, and on handshakes that another stack wrote."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.detection import detect
from pepscope.results.verdicts import Outcome
from prober.experiments.options import Options, option_kinds
from prober.measurement.experiment import ObservedTask
from tests.detector.corpus import CORPUS
from tests.prober.corpus_archives import observation

Change = Callable[[bytes], bytes]


def recorded(run: str, directory: Path, change: Change | None = None) -> ObservedTask:
    """A run of the corpus; `change` is done to the options of each SYN that the server's capture holds."""
    mobile, server = CORPUS / f"{run}.mob.pcap.gz", CORPUS / f"{run}.srv.pcap.gz"
    if change is not None:
        server = _changed(server, directory / "server.pcap", change)
    result = detect(str(server), str(mobile))
    named = replace(observation(run), mobile_capture=str(mobile), server_capture=str(server))
    return ObservedTask(named, tuple(result.pairs), mobile, server)


def _changed(source: Path, target: Path, change: Change) -> Path:
    with gzip.open(source) as packed, target.open("wb") as out:
        reader = dpkt.pcap.Reader(packed)
        writer = dpkt.pcap.Writer(out, nano=True, linktype=reader.datalink(), snaplen=262_144)
        for time_s, frame in reader:
            at = frame.find(b"\x45") if reader.datalink() != dpkt.pcap.DLT_EN10MB else 14
            packet = dpkt.ip.IP(frame[at:])
            if isinstance(packet.data, dpkt.tcp.TCP) and packet.data.flags == dpkt.tcp.TH_SYN:
                packet.data.opts = change(packet.data.opts)
                packet.data.off = 5 + len(packet.data.opts) // 4
                packet.len = 20 + 4 * packet.data.off
                frame = frame[:at] + bytes(packet)
            writer.writepkt(frame, time_s)
    return target


@pytest.mark.parametrize("run", ["reg_dl_cubic_lte", "reg_dl_nat", "reg_dl_mss1200", "reg_dl_nots_nosack", "reg_dl_v6"])
def test_changes_by_nats_and_clamping_are_reported_and_no_evidence(run: str, tmp_path: Path) -> None:
    item = recorded(run, tmp_path)
    (evidence,) = Options().examine([item])
    assert evidence.outcome is Outcome.INAPPLICABLE
    changed = [what for table in Options().metrics([item])["handshakes"] for what in table["changed"]]
    assert bool(changed) == (run in ("reg_dl_nat", "reg_dl_mss1200"))


def test_the_facts_show_both_handshakes(tmp_path: Path) -> None:
    (table,) = Options().metrics([recorded("reg_dl_mss1200", tmp_path)])["handshakes"]
    assert table["mobile"]["up"]["maximum_segment_size"] > table["server"]["up"]["maximum_segment_size"] == 1200
    assert table["mobile"]["up"]["options"] == ["mss", "sack-permitted", "timestamps", "window-scale"]


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda options: options.replace(b"\x03\x03\x07", b"\x03\x03\x02"), "window scale of 2 instead of 7"),
        (lambda options: options + b"\x22\x02\x01\x01", "fast-open added"),
        (lambda options: options.replace(b"\x02\x04\x05\xb4", b"\x02\x04\x22\xb8"), "maximum segment size of 8888"),
    ],
)
def test_what_only_another_stack_writes_is_evidence(change: Change, reported: str, tmp_path: Path) -> None:
    (evidence,) = Options().examine([recorded("spl_ha_dl_large_umts", tmp_path, change)])
    assert (evidence.outcome, evidence.finding) == (Outcome.SPLIT, "syn-of-another-stack")
    assert reported in evidence.summary


def test_options_that_a_firewall_takes_out_are_no_evidence(tmp_path: Path) -> None:
    item = recorded("reg_dl_cubic_lte", tmp_path, lambda options: options.replace(b"\x04\x02", b"\x01\x01"))
    (evidence,) = Options().examine([item])
    assert evidence.outcome is Outcome.INAPPLICABLE
    assert "SYN without sack-permitted" in evidence.summary


def test_without_captures_there_is_no_finding() -> None:
    assert Options().examine([ObservedTask(observation("reg_dl_nat"))]) == ()


@given(st.binary(max_size=40))
def test_options_of_any_bytes_are_read_to_their_end(options: bytes) -> None:
    assert all(kind not in (0, 1) for kind in option_kinds(options))


def test_kinds_come_in_their_order() -> None:
    assert option_kinds(bytes.fromhex("020405b40402080a003b6a070000000001030307")) == [2, 4, 8, 3]
