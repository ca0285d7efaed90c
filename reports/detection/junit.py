"""Verdicts as JUnit XML, for continuous integration: a split connection fails, an inconclusive one is skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from pepscope.captures.provenance import time_text
from pepscope.results.verdicts import GroupResult, PairResult, Verdict
from pepscope.terminal import printable
from pepscope.whole_file import write_output
from reports.errors import cannot_write
from reports.wording import group_name, group_sentence, verdict_sentence

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult


def write_junit(result: DetectionResult, path: str | Path) -> None:
    """Write one test case a connection: passed = regular, failed = split-tcp or tcp-proxy, skipped = inconclusive.

    Of one vantage point the groups, which carry its verdicts, are test cases before the connections.
    """
    warnings = [f"{capture.path}: {text}" for capture in result.captures for text in capture.warnings]
    groups = [group for group in result.groups if group.by_host]
    captures = " and ".join(capture.path for capture in result.captures)
    verdicts = [*(group.verdict for group in groups), *result.verdicts]
    cases = chain((_group_case(group, captures) for group in groups), map(_case, result.pairs))
    write_suite(path, "pepscope detect", verdicts, cases, warnings, _properties(result))


def _properties(result: DetectionResult) -> dict[str, str]:
    """What judged which files."""
    found = {}
    if result.tool is not None:
        found["pepscope"] = result.tool.version
        found |= {f"option.{name}": str(value) for name, value in result.tool.options.items() if value is not None}
    for number, capture in enumerate(result.captures, 1):
        said = {
            "path": capture.path,
            "sha256": capture.sha256,
            "started": time_text(capture.started_ns),
            "ended": time_text(capture.ended_ns),
        }
        found |= {f"capture.{number}.{name}": value for name, value in said.items() if value is not None}
    return found


def write_suite(
    path: str | Path,
    name: str,
    verdicts: Sequence[Verdict],
    cases: Iterable[str],
    warnings: Sequence[str],
    properties: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a suite of test cases, of which each has a verdict. Raises ReportError."""
    listed = [f"<property name={_quoted(key)} value={_quoted(value)}/>" for key, value in properties.items()]
    counts = Counter(verdicts)
    failures = sum(verdict.is_split for verdict in verdicts)
    sums = f'tests="{len(verdicts)}" failures="{failures}" skipped="{counts[Verdict.INCONCLUSIVE]}" errors="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {sums}>",
        f"<testsuite name={quoteattr(name)} {sums}>",
        *(["<properties>", *listed, "</properties>"] if listed else []),
        *cases,
        *([f"<system-err>{escape(printable('; '.join(warnings)))}</system-err>"] if warnings else []),
        "</testsuite>",
        "</testsuites>",
    ]
    try:
        write_output(path, "\n".join(lines) + "\n")
    except OSError as error:
        raise cannot_write(path, error) from error


def _group_case(group: GroupResult, captures: str) -> str:
    details = [group_sentence(group), *(item.summary for item in group.evidence)]
    return junit_case(captures, group_name(group), 0.0, group.verdict, group.reason, details)


def _case(pair: PairResult) -> str:
    """A connection; a failure says when it started and which packets show it, where they are named."""
    vantage = pair.vantages[0]
    name = f"{vantage.client} -> {vantage.server}"
    captures = " and ".join(vantage.capture for vantage in pair.vantages)
    details = [verdict_sentence(pair), *(item.summary for item in pair.evidence)]
    if pair.started_ns is not None:
        details.insert(1, f"It started {time_text(pair.started_ns)}.")
    return junit_case(captures, name, pair.duration_s, pair.verdict, pair.reason, details)


def junit_case(suite: str, name: str, duration_s: float, verdict: Verdict, reason: str, details: Sequence[str]) -> str:
    """One test case; `details` are sentences that a failure shows after its reason."""
    head = f'<testcase classname={_quoted(suite)} name={_quoted(name)} time="{duration_s:.6f}"'
    if verdict is Verdict.REGULAR:
        return f"{head}/>"
    if verdict is Verdict.INCONCLUSIVE:
        return f"{head}><skipped message={_quoted(reason)}/></testcase>"
    body = escape(printable(" ".join(details)))
    return f'{head}><failure type="{verdict.value}" message={_quoted(reason)}>{body}</failure></testcase>'


def _quoted(text: str) -> str:
    return quoteattr(printable(text))
