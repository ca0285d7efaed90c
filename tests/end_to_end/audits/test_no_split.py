"""Audits of paths on which every connection is end to end."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.audits.audited import HTTP_PLAN, audit


def test_a_path_without_a_middlebox_has_no_split_findings(tmp_path: Path) -> None:
    plan = """
applications = ["http-data", "tcp"]
[experiments.transfers]
sizes_bytes = [800_000]
upload_share = 0.5
repeats = 1
[experiments.cache]
[experiments.odd-requests]
[experiments.recompress]
[experiments.options]
[experiments.handshake-rtt]
rounds = 10
"""
    seen = audit(tmp_path, plan)
    assert set(seen.verdicts.values()) == {"regular"}, seen.verdicts
    assert {"every-request-arrived", "requests-arrived-as-sent", "same-bytes"} <= seen.findings("http-data")


def test_middleboxes_that_rewrite_packets_are_no_split(tmp_path: Path) -> None:
    """Address translation, clamped MSS, another TTL: carriers do all of these to connections that are end to end."""
    middle = """
set -e
iptables -t nat -A POSTROUTING -o pepscope-wired -j MASQUERADE
iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1300
iptables -t mangle -A POSTROUTING -j TTL --ttl-set 60
touch middle-ready
# `pepscope emulate` waits for a listening socket.
exec python3 -m http.server --bind 127.0.0.1 9
"""
    seen = audit(tmp_path, HTTP_PLAN, middle)
    assert set(seen.verdicts.values()) == {"regular"}, seen.verdicts
    clients = [{vantage["client"] for vantage in connection["vantages"]} for connection in seen.connections("tcp")]
    assert [len(names) for names in clients] == [2], "the two ends saw different addresses"
    assert {"every-request-arrived", "requests-arrived-as-sent"} <= seen.findings("http-data")
