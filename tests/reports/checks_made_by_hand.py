"""What `pepscope check --json` writes, made by hand."""

from __future__ import annotations

from typing import Any


def make_place(host: str, acknowledged_hops: int | None, *, port: int = 80, error: str = "") -> dict[str, Any]:
    times = {
        "handshake_s": 0.02,
        "acknowledged_after_s": 0.021,
        "answered_after_s": 0.07,
        "least_round_trip_s": 0.02,
    }
    return {
        "host": host, "port": port, "tls": False, "address": "203.0.113.7", "error": error, "beyond_hops": 9,
        "answered_hops": 10, "datagram_round_trip_s": 0.05, "echo_round_trip_s": None,
        "dns_round_trip_s": None, "quic_round_trip_s": 0.048, "routers": ["10.0.0.1"],
        "handshake_hops": 10, "handshake_beyond_hops": 9, "acknowledged_hops": acknowledged_hops, "lost_hops": 2,
        "questions": [{"hops": None, **times}, {"hops": 3, **times, "answered_after_s": 9.0}],
    }  # fmt: skip


def make_port(verdict: str, *, port: int = 80) -> dict[str, Any]:
    return {
        "family": 4, "port": port, "verdict": verdict, "reason": f"Because <of> {verdict}.", "causes": ["syn-proxy"],
        "hosts": 2, "hosts_split": 2, "hosts_regular": 0, "box_hops": 3, "router_before": "10.0.0.2", "numbers": {},
        "findings": [
            {"name": "one-answer", "says": "named", "sentence": "A <b>program</b> reads HTTP.", "hosts": ["a"],
             "cause": "http-proxy", "box_hops": None, "router_before": "", "numbers": {}},
        ],
    }  # fmt: skip


def make_check(*ports: dict[str, Any], places: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {
        "schema": "pepscope-check-1", "pepscope": "1.2.3", "ports": list(ports), "places": list(places),
        "documentation_addresses": [
            {"address": "192.0.2.113", "port": 80, "connected": True, "acknowledged": True}
        ],
        "unresolved": {"none.example": "no such name"}, "closing": "Ask `pepscope probe serve`.",
    }  # fmt: skip
