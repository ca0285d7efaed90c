"""Audits with known content for the tests of the reports."""

from __future__ import annotations

from collections.abc import Mapping

from pepscope.captures.packets import Direction
from pepscope.results.audits import AuditCell, AuditConnection, AuditMetrics, AuditResult, AuditRun, NotMeasured
from pepscope.results.verdicts import Evidence, Outcome, Verdict
from tests.reports.results_made_by_hand import PROBABILITIES, make_pair, make_series

DOWN, UP = Direction.DOWN, Direction.UP
STARTED_UNIX_NS = 1_790_000_000_000_000_000
DAY_NS = 86_400_000_000_000

#: The column of CDMA-I in Table I of Wei et al., with an upload of each kind.
CDMA_I: Mapping[tuple[str, Direction], Verdict] = {
    ("ftp", DOWN): Verdict.SPLIT_TCP,
    ("ftp", UP): Verdict.SPLIT_TCP,
    ("http-data", DOWN): Verdict.SPLIT_TCP,
    ("http-data", UP): Verdict.INCONCLUSIVE,
    ("http-image", DOWN): Verdict.TCP_PROXY,
    ("https", DOWN): Verdict.INCONCLUSIVE,
    ("tcp", DOWN): Verdict.REGULAR,
    ("tcp", UP): Verdict.REGULAR,
}


def make_evidence(finding: str = "dead-port-answered") -> Evidence:
    return Evidence(
        "dead-port",
        Outcome.SPLIT,
        finding,
        0.9,
        "A middlebox answered <on> a port where the server never does.",
        {"connections": 3, "answered_s": 0.04},
        ("A firewall that answers in the server's stead does so, too.",),
    )


def make_cell(application: str, direction: Direction, verdict: Verdict, *, figures: bool = False) -> AuditCell:
    connections = tuple(
        AuditConnection(
            f"transfers--{application}--{direction.name.lower()}--{place:03d}",
            "transfers",
            "control" if place == 3 else "data",
            make_pair(verdict, series=(make_series(),) if figures and place == 1 else ()),
            "It is no transfer of this application (control)." if place == 3 else "",
        )
        for place in (1, 2, 3)
    )
    return AuditCell(
        application=application,
        direction=direction,
        verdict=verdict,
        probability=PROBABILITIES[verdict],
        reason="Both connections show <it>.",
        evidence=(make_evidence(),) if verdict is Verdict.SPLIT_TCP else (),
        connections=() if application == "https" else connections,
        tasks_done=2,
        tasks=3,
    )


def gain_metrics() -> AuditMetrics:
    rows = [
        {
            "size_bytes": size,
            "pairs": 20 if size > 1000 else 3,
            "usual_median_s": 1.0,
            "free_median_s": 1.0 + gain,
            "gain": gain,
            "gain_low": gain - 0.2 if size > 1000 else None,
            "gain_high": gain + 0.1 if size > 1000 else None,
            "reading": "the usual port is faster",
        }
        for size, gain in ((1000, -0.24), (5000, 0.64), (50_000, 0.41), (500_000, 0.05), (1_000_000, 0.0))
    ]
    return AuditMetrics("gain", "http-data", DOWN, {"gain": rows, "confidence": 0.95})


def make_run(
    verdicts: Mapping[tuple[str, Direction], Verdict] = CDMA_I, *, day: int = 0, figures: bool = False
) -> AuditRun:
    return AuditRun(
        source=f"runs/day-{day}.pepscope.zip",
        started_unix_ns=STARTED_UNIX_NS + day * DAY_NS,
        duration_s=754.0,
        server="probe.example",
        plan_digest="0123456789abcdef",
        cells=tuple(make_cell(*place, verdict, figures=figures) for place, verdict in verdicts.items()),
        not_measured=(
            NotMeasured("delayed-ack", "ftp", UP, "impossible", "ACKs cannot be held back without root", 4),
            NotMeasured("delayed-ack", "tcp", UP, "impossible", "ACKs cannot be held back without root", 2),
            NotMeasured("transfers", "https", DOWN, "failed", "the server <closed> the connection", 2),
        ),
        metrics=(
            gain_metrics(),
            AuditMetrics("transfers", "tcp", DOWN, {"transfers": [{"size_bytes": 1000}], "changed": 0}),
        ),
        circumstances={"mobile": {"system": "Linux"}, "version": "0.1.0"},
        warnings=("transfers--ftp--down--001: the capture missed 3 packets <here>",),
        tasks_done=40,
        tasks=48,
        titles={"delayed-ack": "delayed acknowledgements", "gain": "gain of a split", "transfers": "transfers"},
    )


def make_audit(*days: Mapping[tuple[str, Direction], Verdict], figures: bool = False) -> AuditResult:
    chosen = days or (CDMA_I,)
    return AuditResult(tuple(make_run(verdicts, day=day, figures=figures) for day, verdicts in enumerate(chosen)))
