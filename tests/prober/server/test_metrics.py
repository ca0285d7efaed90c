"""Metrics of a server: what they count, and that the guide has them all."""

from __future__ import annotations

import re
import socket
import urllib.request
from pathlib import Path

import msgspec
import pytest

from prober.client.archive_upload import upload_archive
from prober.errors import ServerError
from prober.protocol.plain_requests import TcpRequest
from prober.server.service import running
from prober.server.settings import ServerSettings
from tests.prober.server import running as here_running
from tests.prober.server.running import received, serving_here

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "probe-server.md"


def test_metrics_count_what_happens_and_stand_in_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    plain = here_running.settings
    monkeypatch.setattr(
        here_running, "settings", lambda *state, **limits: _with(plain(*state, **limits), f"127.0.0.1:{port}")
    )
    archive = tmp_path / "run.pepscope.zip"
    archive.write_bytes(b"PK\x03\x04" + bytes(996))
    with serving_here(tmp_path / "state") as here:
        upload_archive(here.control, archive, 60.0)
        capture = here.control.start_capture("x", 100)
        here.control.finish_capture(capture)
        with here.connect(here.ports.tcp[0]) as sock:
            sock.sendall(TcpRequest(here.session, "download", 50_000, 1).to_line())
            assert len(received(sock)) == 50_000
        with here.connect(here.ports.tcp[0]) as sock:
            sock.sendall(TcpRequest("a" * 26, "download", 50_000, 1).to_line())
            assert received(sock).startswith(b"error ")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
            text = answer.read().decode()
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    wanted = {
        'pepscope_probe_sessions{key="default"}': 1, 'pepscope_probe_captures{state="finished"}': 1,
        'pepscope_probe_captures{state="running"}': 0, "pepscope_probe_payload_bytes_total": 50_000,
        'pepscope_probe_complaints_total{event="no-session"}': 1, "pepscope_probe_holds": 0,
        'pepscope_probe_archives{key="default"}': 1, 'pepscope_probe_archive_bytes{key="default"}': 1000,
    }  # fmt: skip
    assert {name: float(samples[name]) for name in wanted} == wanted
    assert float(samples["pepscope_probe_capture_bytes"]) > 0
    assert float(samples["pepscope_probe_connections"]) >= 1
    assert "process_resident_memory_bytes" in samples
    names = {name.partition("{")[0] for name in samples if name.startswith("pepscope_probe_")}
    assert names == set(re.findall(r"^\| `(pepscope_probe_\w+)`", GUIDE.read_text(), re.MULTILINE))


def _with(settings: ServerSettings, metrics: str) -> ServerSettings:
    return msgspec.structs.replace(settings, metrics=metrics)


@pytest.mark.parametrize("text", ["9468", "localhost:9468", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:-1"])
def test_an_address_that_is_none_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    serving = running(_with(here_running.settings(tmp_path), text))
    with pytest.raises(ServerError, match="metrics must be ADDRESS:PORT with the address in digits, got"):
        serving.__enter__()
