"""Verdicts as SARIF 2.1.0: a result for each group and connection that is split, at the captures that show it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pepscope.results.verdicts import GroupResult, PairResult, Verdict
from reports.sarif import sarif_result, sarif_run, write_log
from reports.wording import group_name, group_sentence, verdict_sentence

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult

#: Verdicts that are results; of a connection without a verdict there is nothing to report.
RULES = {
    Verdict.SPLIT_TCP.value: ("Something in the network divides the TCP connection into two.", "error"),
    Verdict.TCP_PROXY.value: ("A TCP proxy fetches what the client gets, and may keep or change it.", "error"),
}


def write_sarif(result: DetectionResult, path: str | Path) -> None:
    """Write a SARIF log with a result for each group and connection that is split. Raises ReportError."""
    captures = [capture.path for capture in result.captures]
    groups = [_group(group, captures) for group in result.groups if group.verdict.is_split]
    write_log(path, [sarif_run("pepscope detect", RULES, "pepscope-detect/", [*groups, *_connections(result)])])


def _group(group: GroupResult, captures: list[str]) -> dict[str, Any]:
    text = f"{group_name(group)}: {group_sentence(group)} {group.reason}"
    same = {"group/v1": f"{group.side.value} {group.network} {group.port} {group.verdict.value}"}
    return sarif_result(RULES, group.verdict.value, text, captures, same)


def _connections(result: DetectionResult) -> Iterator[dict[str, Any]]:
    for verdict, pair in zip(result.verdicts, result.pairs, strict=True):
        if verdict.is_split:
            yield _connection(pair)


def _connection(pair: PairResult) -> dict[str, Any]:
    vantage = pair.vantages[0]
    ends = f"{vantage.client} -> {vantage.server}"
    text = f"{ends}: {verdict_sentence(pair)} {pair.reason}"
    same = {"connection/v1": f"{ends} {pair.started_ns} {pair.verdict.value}"}
    return sarif_result(RULES, pair.verdict.value, text, [each.capture for each in pair.vantages], same)
