"""Audits through the proxies of `pepscope proxy`: an audit calls each of them a split."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.audits.audited import MIDDLE_ADDRESS, audit

TRANSFERS_PLAN = """
applications = ["http-data", "tcp"]
[capture]
everything = true
[experiments.transfers]
sizes_bytes = [800_000]
upload_share = 0.5
repeats = 1
"""


def test_window_adaptation_is_a_split(tmp_path: Path) -> None:
    """No Node-B reports its queue here, so that the proxy goes on as Split-TCP."""
    settings = "--interception transparent --listen 0.0.0.0:8888 --device pepscope-cell --ports 80"
    for field in ("buffer_bytes", "mobile.send_buffer_bytes", "server.receive_buffer_bytes"):
        settings += f" --set {field}=65536"
    middle = f"""
pepscope proxy window-adaptation {settings} --setup
pepscope proxy window-adaptation {settings} 2>proxy.log &
until grep -q ready proxy.log; do sleep 0.1; done
touch middle-ready
wait
"""
    seen = audit(tmp_path, TRANSFERS_PLAN, middle)
    assert (seen.verdict("http-data"), seen.verdict("tcp")) == ("split-tcp", "regular")
    assert seen.is_split("http-data", "up")


def test_a_split_with_udp_to_the_mobile_is_found_by_it(tmp_path: Path) -> None:
    middle = """
pepscope proxy udp-tunnel --set tunnel.listen=0.0.0.0:9004 --allow 203.0.113.0/24 2>proxy.log &
until grep -q ready proxy.log; do sleep 0.1; done
touch middle-ready
wait
"""
    settings = f"--set tunnel.end=client --set tunnel.server={MIDDLE_ADDRESS}:9004 --interception transparent"
    settings += " --listen 0.0.0.0:8888 --ports 80"
    mobile = f"""
pepscope proxy udp-tunnel {settings} --setup
pepscope proxy udp-tunnel {settings} 2>tunnel.log &
until grep -q ready tunnel.log; do sleep 0.1; done
"""
    seen = audit(tmp_path, TRANSFERS_PLAN, middle, mobile)
    for direction in ("down", "up"):
        assert seen.is_split("http-data", direction)
        assert "TCP at one end, UDP at the other" in seen.reason("http-data", direction)
        assert seen.verdict("tcp", direction) == "regular"
