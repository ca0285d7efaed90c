"""Captures that hold one direction alone, as beside routes that differ by direction, or of a tap on one fibre."""

from __future__ import annotations

from pathlib import Path

import pytest

from detector.methods.identity.findings import IdentityFinding
from pepscope import detect
from pepscope.results.verdicts import Verdict
from tests.fresh.test_fresh_captures import FRESH

CORPUS = Path(__file__).parents[2] / "corpus"
FROM_CLIENTS, FROM_SERVERS = "tcp dst port 80 or 5001", "tcp src port 80 or 5001"
DOWNLOADS, UPLOADS = ("reg_dl_quickack", "reg_dl_v6"), ("reg_ul_cubic_lte",)


def ends(run: str) -> tuple[str, str]:
    """The captures of a run of the corpus, or of the fresh draws, at the server and at the mobile."""
    if run.startswith("reg_"):
        return str(CORPUS / f"{run}.srv.pcap.gz"), str(CORPUS / f"{run}.mob.pcap.gz")
    return str(FRESH / f"{run}.server.pcap.gz"), str(FRESH / f"{run}.mobile.pcap.gz")


@pytest.mark.parametrize(
    ("run", "kept"), [*((run, FROM_CLIENTS) for run in DOWNLOADS), *((run, FROM_SERVERS) for run in UPLOADS)]
)
def test_the_receivers_own_packets_alone_show_that_nothing_splits(run: str, kept: str) -> None:
    [pair] = detect(*ends(run), filter=kept).pairs
    assert pair.verdict is Verdict.REGULAR, pair.reason
    assert "Not captured, so not compared" in pair.reason


@pytest.mark.parametrize(
    ("run", "kept"), [*((run, FROM_SERVERS) for run in DOWNLOADS), *((run, FROM_CLIENTS) for run in UPLOADS)]
)
def test_data_alone_clear_nobody_of_acknowledging_them(run: str, kept: str) -> None:
    [pair] = detect(*ends(run), filter=kept).pairs
    assert pair.verdict is Verdict.INCONCLUSIVE, pair.reason
    assert {item.finding for item in pair.evidence} & {IdentityFinding.SAME_DATA}


@pytest.mark.parametrize("kept", [FROM_CLIENTS, FROM_SERVERS])
@pytest.mark.parametrize("run", ["spl-localack-clock", "spl-localack-passed", "spl-localack-short"])
def test_local_acknowledgement_is_not_called_regular(run: str, kept: str) -> None:
    assert Verdict.REGULAR not in {pair.verdict for pair in detect(*ends(run), filter=kept).pairs}


def test_acknowledgements_ahead_of_their_host_are_a_boxs_though_the_data_were_not_captured() -> None:
    """A box takes over the larger of two connections."""
    result = detect(*ends("spl-handover"), filter=FROM_CLIENTS)
    larger, smaller = sorted(result.pairs, key=lambda pair: pair.vantages[0].client)
    assert larger.verdict is Verdict.SPLIT_TCP, larger.reason
    assert IdentityFinding.OTHER_ACKNOWLEDGEMENTS in {item.finding for item in larger.evidence}
    assert "acknowledges in the client's name" in larger.reason
    assert smaller.verdict is Verdict.REGULAR, smaller.reason
    assert {group.verdict for group in result.groups} == {Verdict.INCONCLUSIVE}
