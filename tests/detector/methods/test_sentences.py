"""Sentences write numbers in one way: thousands apart, a space before the percent sign."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from detector.detection import detect

TOP = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("examples/split/server.pcap.gz", "examples/split/mobile.pcap.gz"),
        ("examples/regular/server.pcap.gz", "examples/regular/mobile.pcap.gz"),
        ("tests/corpus/prx_ngx_par6.srv.pcap.gz", "tests/corpus/prx_ngx_par6.mob.pcap.gz"),
    ],
)
def test_counts_and_shares_of_evidence_are_written_alike(a: str, b: str) -> None:
    result = detect(TOP / a, TOP / b)
    sentences = [found.summary for pair in result.pairs for found in pair.evidence]
    assert len(sentences) > 5
    assert [sentence for sentence in sentences if re.search(r"\b\d{4,} (bytes|segments)|\d%", sentence)] == []
