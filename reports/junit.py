"""Verdicts as JUnit XML, for continuous integration: a split connection fails, an inconclusive one is skipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from pepscope.results import Kind, PairResult
from reports.errors import cannot_write
from reports.ranking import count_by_verdict
from reports.table import printable
from reports.wording import KIND_SENTENCES

if TYPE_CHECKING:
    from pepscope.results import DetectionResult


def write_junit(result: DetectionResult, path: str | Path) -> None:
    """Write one test case a connection: passed = regular, failed = split-tcp or tcp-proxy, skipped = inconclusive."""
    counts = count_by_verdict(result.pairs)
    failures = counts.get(Kind.SPLIT_TCP, 0) + counts.get(Kind.TCP_PROXY, 0)
    sums = f'tests="{len(result.pairs)}" failures="{failures}" skipped="{counts.get(Kind.INCONCLUSIVE, 0)}" errors="0"'
    warnings = [f"{capture.path}: {text}" for capture in result.captures for text in capture.warnings]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {sums}>",
        f'<testsuite name="pepscope detect" {sums}>',
        *(_case(pair) for pair in result.pairs),
        *([f"<system-err>{escape(printable('; '.join(warnings)))}</system-err>"] if warnings else []),
        "</testsuite>",
        "</testsuites>",
    ]
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error


def _case(pair: PairResult) -> str:
    vantage = pair.vantages[0]
    name = quoteattr(printable(f"{vantage.client} -> {vantage.server}"))
    captures = quoteattr(printable(" and ".join(vantage.capture for vantage in pair.vantages)))
    head = f'<testcase classname={captures} name={name} time="{pair.duration_s:.6f}"'
    if pair.verdict is Kind.REGULAR:
        return f"{head}/>"
    reason = quoteattr(printable(pair.reason))
    if pair.verdict is Kind.INCONCLUSIVE:
        return f"{head}><skipped message={reason}/></testcase>"
    body = escape(printable(" ".join([KIND_SENTENCES[pair.verdict], *(item.summary for item in pair.evidence)])))
    return f'{head}><failure type="{pair.verdict.value}" message={reason}>{body}</failure></testcase>'
