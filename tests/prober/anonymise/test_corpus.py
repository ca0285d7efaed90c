"""Real captures, anonymised: as many connections with as many packets, and the same verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import pytest

from detector.detection import detect
from pepscope.captures.capture import open_capture
from prober.anonymise.capture_rewriting import CaptureRewriter
from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.http_heads import HeadHider
from prober.anonymise.keys import SecretKey
from tests.cases import each_value
from tests.detector.corpus import CORPUS, RUNS, forms
from tests.prober.anonymise.groups import GROUPS

KEY = SecretKey(b"s" * 32)


def rewritten(directory: Path, captures: list[Path]) -> list[Path]:
    rewriter = CaptureRewriter(KEY, CryptoPan(KEY.derived("addresses")), HeadHider(KEY))
    targets = [directory / f"{number}.pcap" for number in range(len(captures))]
    for source, target in zip(captures, targets, strict=True):
        rewriter.rewrite(source, target)
    assert rewriter.counts.left_out == 0
    return targets


def shown(run: str) -> set[Hashable]:
    """What its captures look like; and itself where connections have payload alone in common, which is replaced."""
    return {*forms(run), *([run] if RUNS[run]["class"] == "proxy" else [])}


@pytest.mark.parametrize("run", each_value(RUNS, shown, shown=[run for group in GROUPS for run in group]))
def test_captures_keep_their_connections_and_verdicts(run: str, tmp_path: Path):
    captures = [CORPUS / file["name"] for file in RUNS[run]["files"].values()]
    targets = rewritten(tmp_path, captures)
    for source, target in zip(captures, targets, strict=True):
        before, after = open_capture(str(source)), open_capture(str(target))
        assert [c.packets for c in after.connections] == [c.packets for c in before.connections]
        assert after.tcp_packet_count == before.tcp_packet_count
    verdicts = [Counter(pair.verdict for pair in detect(*map(str, paths)).pairs) for paths in (captures, targets)]
    assert verdicts[0] == verdicts[1]
