"""Verdicts are the same with any number of jobs, and with any memory for packets."""

from __future__ import annotations

import pytest

from detector.detection import detect
from pepscope.errors import UsageError
from pepscope.results.verdicts import TemporaryBytes
from tests.detector.corpus import CORPUS


def test_verdicts_do_not_depend_on_the_number_of_jobs() -> None:
    ends = [str(CORPUS / f"prx_ngx_par6.{end}.pcap.gz") for end in ("srv", "mob")]
    results = [detect(*ends, jobs=jobs) for jobs in (1, 2, 3)]
    assert len(results[0].pairs) > 3
    assert results[0].to_dict() == results[1].to_dict() == results[2].to_dict()


@pytest.mark.parametrize("name", ["prx_ngx_par6", "reg_dl_par20", "reg_dl_nat"])
def test_verdicts_do_not_depend_on_the_memory_that_the_packets_have(name: str) -> None:
    ends = [str(CORPUS / f"{name}.{end}.pcap.gz") for end in ("srv", "mob")]
    whole = detect(*ends)
    assert whole.temporary_bytes == TemporaryBytes()
    for jobs in (1, 2):
        for memory_bytes in (1, 300_000):
            parts = detect(*ends, jobs=jobs, memory_bytes=memory_bytes)
            assert parts.to_dict()["pairs"] == whole.to_dict()["pairs"]
            assert parts.to_dict()["groups"] == whole.to_dict()["groups"]
            assert parts.temporary_bytes.written > 10_000
            # Read at least when the capture was opened, and when it was judged.
            assert parts.temporary_bytes.read > 1.5 * parts.temporary_bytes.written


def test_no_jobs_at_all_are_refused() -> None:
    with pytest.raises(UsageError, match="jobs must be at least 1, got 0"):
        detect("a.pcap", jobs=0)
