"""The abort experiment's rules: what was acknowledged to the server, and when last."""

from __future__ import annotations

from typing import Any

import pytest

from pepscope.results.transfer_findings import TransferFinding
from pepscope.results.verdicts import Outcome
from prober.errors import ArchiveError
from prober.experiments.abort import LOST_RESET_S, Abort
from tests.prober.experiments.observed import seen


def aborted(
    *, taken: int | None = 500_000, acked: int | None = 500_000, lived: float | None = 0.1, last_ack: float | None = 0.0
) -> dict[str, Any]:
    return {
        "taken_bytes": taken,
        "receive_buffer_bytes": 131_072,
        "server_acked_bytes": acked,
        "server_lived_s": lived,
        "server_last_ack_s": last_ack,
        "server_ending": "aborted-by-peer",
        "watched_s": 60.0,
    }


def findings(**values: Any) -> list[tuple[Outcome, str]]:
    return [(found.outcome, found.finding) for found in Abort().examine([seen("abort", aborted(**values))])]


def test_more_acknowledged_than_the_mobile_can_hold_is_a_split() -> None:
    assert findings(acked=2_000_000) == [(Outcome.SPLIT, "acknowledged-beyond-abort")]


@pytest.mark.parametrize("beyond", [0, 60_000, 131_072])
def test_what_the_receive_buffer_can_hold_is_no_split(beyond: int) -> None:
    assert findings(acked=500_000 + beyond) == [(Outcome.INTACT, "abort-end-to-end")]


def test_the_more_was_taken_the_surer() -> None:
    def strength(acked: int) -> float:
        (evidence,) = Abort().examine([seen("abort", aborted(acked=acked))])
        return evidence.strength

    assert 0.5 <= strength(640_000) < strength(1_000_000) < strength(2_000_000) <= 1.0


def test_acknowledgements_long_after_the_reset_are_a_split() -> None:
    assert findings(lived=40.0, last_ack=39.0) == [(Outcome.SPLIT, "leg-outlives-abort")]


def test_a_server_without_acknowledgements_is_no_finding() -> None:
    """All resets lost: the server retransmits into nothing."""
    assert findings(lived=40.0, last_ack=LOST_RESET_S - 1) == []


def test_a_leg_that_outlives_the_watch_is_reported_and_not_judged() -> None:
    values = aborted(acked=None, lived=None, last_ack=None)
    experiment = Abort()
    assert experiment.examine([seen("abort", values)]) == ()
    assert experiment.metrics([seen("abort", values)])["aborts"][0]["watched_s"] == 60.0


def test_without_received_bytes_of_the_kernel_only_times_are_left() -> None:
    assert findings(taken=None) == []
    assert findings(taken=None, lived=40.0, last_ack=39.0) == [(Outcome.SPLIT, "leg-outlives-abort")]


def test_probes_of_a_closed_window_are_counted_from_the_captures() -> None:
    teardown = TransferFinding.ACKNOWLEDGED_BEYOND_ABORT.evidence("teardown", 1.0, "", {"zero_window_probes": 12})

    class Pair:
        evidence = (teardown,)

    item = seen("abort", aborted(), pairs=(Pair(),))  # type: ignore[arg-type]
    assert Abort().metrics([item])["aborts"][0]["zero_window_probes"] == 12


def test_measurements_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ArchiveError):
        Abort().examine([seen("abort", {**aborted(), "server_acked_bytes": "many"})])
