"""What `inspect --html` draws: data in flight and retransmissions as tshark has them, on a page without a verdict."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pepscope
from detector.presentation.one_end import connection_series
from pepscope.captures.packets import Direction
from tests.oracles.tshark import tshark_fields

CORPUS = Path(__file__).parents[2] / "corpus"


@pytest.mark.parametrize(("name", "share"), [("reg_dl_reno_loss1.srv", 0.9), ("reg_dl_cubic_lte.srv", 0.95)])
def test_data_in_flight_are_those_of_tshark(name: str, share: float) -> None:
    path = CORPUS / f"{name}.pcap.gz"
    capture = pepscope.inspect(str(path))
    (series,) = [each for each in connection_series(capture, [0])[0] if each.direction is Direction.DOWN]
    packets = capture.packets(0)
    start_ns = int(packets.time_ns[0])
    shown = dict(zip(np.round(series.in_flight_at_s * 1e9).astype(int).tolist(), series.in_flight_bytes, strict=True))
    rows = tshark_fields(
        f"tshark -r {path} -Y 'tcp.srcport == {capture.connections[0].server_port} && tcp.analysis.bytes_in_flight "
        "&& !tcp.analysis.retransmission && !tcp.analysis.out_of_order'",
        "frame.number", "tcp.analysis.bytes_in_flight",
    )  # fmt: skip
    numbers = capture.frame_numbers(0).tolist()
    assert len(rows) > 500
    agreeing = 0
    for number, in_flight in rows:
        time_ns = int(packets.time_ns[numbers.index(int(number))]) - start_ns
        near = min(shown, key=lambda each: abs(each - time_ns)) if time_ns not in shown else time_ns
        agreeing += shown[near] == int(in_flight)
    # tshark begins to count anew behind losses that selective acknowledgements report.
    assert agreeing >= share * len(rows)
    assert len(series.sent_again_at_s) == capture.connections[0].down.retransmitted_packets


def test_the_page_draws_the_largest_connections(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    path = CORPUS / "prx_ngx_par6.mob.pcap.gz"
    done = subprocess.run(
        [sys.executable, "-m", "pepscope", "inspect", str(path), "--html", str(page)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    text = page.read_text()
    assert text.count('<details class="connection"') == 6
    assert "Data in flight" in text
    assert "Round-trip time" in text
    assert f"SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}" in text
    assert "split-tcp" not in text.partition("<main>")[2].partition("</main>")[0]
    shown = tshark_fields(
        f"tshark -r {path} -Y 'ip.addr == 172.29.212.71 && tcp.port == 42772'", "frame.number"
    )  # fmt: skip
    assert f"frame.number in {{{shown[0][0]}..{shown[-1][0]}}}" in text


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    path = CORPUS / "spl_ha_dl_short10k.mob.pcap.gz"
    done = subprocess.run(
        [sys.executable, "-m", "pepscope", "inspect", str(path), "--html", str(tmp_path / "nowhere" / "page.html")],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "page.html" in done.stderr
