"""Connections that were judged are let go of at once: their packets would take as much memory as the captures."""

from __future__ import annotations

import gc

import pytest

from detector.detection import detect
from detector.pair import Vantage
from tests.detector.corpus import CORPUS


@pytest.mark.parametrize("name", ["reg_bidir", "prx_ngx_par6"])
def test_no_connection_waits_for_the_garbage_collector(name: str) -> None:
    ends = [str(CORPUS / f"{name}.{end}.pcap.gz") for end in ("srv", "mob")]
    gc.collect()
    before = _vantages()
    gc.disable()
    try:
        result = detect(*ends)
        assert result.pairs
        assert _vantages() == before
    finally:
        gc.enable()


def _vantages() -> int:
    return sum(isinstance(each, Vantage) for each in gc.get_objects())
