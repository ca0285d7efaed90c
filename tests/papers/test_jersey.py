"""Seed 002 with the fewest drops: orders and directions, not numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from papers.experiment import Effort
from papers.jersey import PAPER
from papers.jersey.estimates import INTERVAL_S, estimate_error
from papers.jersey.quantities import greatest_share
from papers.results import Reproduction, StatementOutcome
from papers.runner import reproduce
from papers.statements.grouping import ratio_gain


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    directory: Path = tmp_path_factory.mktemp("jersey")
    return reproduce(PAPER, directory, effort=Effort.REDUCED, processes=2)


def column(found: Reproduction, table: str, name: str, **values: object) -> Sequence[float]:
    frame = next(one.frame for one in found.assessment.tables if one.name == table)
    for field, value in values.items():
        frame = frame[frame[field] == value]
    return [float(one) for one in frame[name]]


def test_jersey_is_ahead_of_the_reno_family_and_not_behind_sack(found: Reproduction) -> None:
    for sender in ("Tahoe", "Reno", "NewReno"):
        assert column(found, "goodput", "gain_of_jersey_percent", sender=sender)[0] > 0
    assert column(found, "goodput", "gain_of_jersey_percent", sender="SACK")[0] > -2


def test_a_fast_warning_identifies_congestion_and_a_slow_one_does_not(found: Reproduction) -> None:
    prompt = "threshold 25, weight 0.1"
    sluggish = "threshold 25, weight 0.002"
    assert column(found, "warning", "misjudged", warning=prompt) == [0]
    assert column(found, "warning", "misjudged", warning=sluggish)[0] > 0


def test_link_errors_cost_jersey_less(found: Reproduction) -> None:
    rates = {
        (sender, loss): column(found, "link-errors", "goodput_kbit_s", sender=sender, link_errors_percent=loss)[0]
        for sender in ("NewReno", "SACK", "Jersey")
        for loss in (0.0, 1.0)
    }
    kept = {sender: rates[sender, 1.0] / rates[sender, 0.0] for sender in ("NewReno", "SACK", "Jersey")}
    assert kept["Jersey"] > 1.2 * max(kept["NewReno"], kept["SACK"])
    assert column(found, "link-errors", "judged_link_errors", sender="Jersey", link_errors_percent=1.0)[0] > 1


def test_link_errors_turn_the_shares_of_a_bottleneck_over(found: Reproduction) -> None:
    mixed = column(found, "fairness", "share_of_first", flows="jersey and new-reno")
    assert mixed[0] < 0.5 < mixed[1]
    assert mixed[1] > 0.7
    alike = column(found, "fairness", "share_of_first", flows="two new-reno", link_errors_percent=1.0)
    assert alike[0] == pytest.approx(0.5, abs=0.1)


def test_what_jersey_takes_beside_link_errors_new_reno_could_not_use(found: Reproduction) -> None:
    beside_jersey, beside_own = (
        column(found, "fairness", "second_mbit_s", flows=flows, link_errors_percent=1.0)[0]
        for flows in ("jersey and new-reno", "two new-reno")
    )
    assert beside_jersey > 0.9 * beside_own
    total = column(found, "fairness", "total_mbit_s", link_errors_percent=1.0)
    assert total[0] > 2 * total[-1]


def test_every_statement_has_a_verdict_and_a_reason(found: Reproduction) -> None:
    by_words = {f"{statement.where}: {statement.published}": statement for statement in found.assessment.statements}
    assert len(by_words) == 13
    plain = (StatementOutcome.REPRODUCED, StatementOutcome.UNDECIDED)
    for statement in found.assessment.statements:
        assert statement.outcome in plain or len(statement.reason) > 20
        assert statement.tolerance or statement.outcome is StatementOutcome.NOT_MEASURED
    assert found.counts()[StatementOutcome.NOT_MEASURED.value] == 2
    friendly = "Section I, of reference [3], 1 % link errors: Jersey is friendly: it takes nothing from other flows"
    for words in (friendly, "Section V: Jersey gains by telling link errors from congestion"):
        assert by_words[words].outcome is not StatementOutcome.NOT


def test_the_estimate_is_compared_with_what_the_scheduler_serves(found: Reproduction) -> None:
    (statement,) = (one for one in found.assessment.statements if "ABE" in one.published)
    assert [one.quantity for one in statement.comparisons] == ["log_errors_over_jersey"] * 2
    assert all(one.count >= 2 for one in statement.comparisons)
    assert statement.outcome in (StatementOutcome.REPRODUCED, StatementOutcome.UNDECIDED)


def test_an_estimate_that_knows_the_rate_has_no_error_and_half_of_it_has_half() -> None:
    times_s = np.arange(0.0, 60.0, INTERVAL_S)
    round_trip_s, delivered = np.full_like(times_s, 0.4), 1000.0 * times_s
    for share, error in ((1.0, 0.0), (0.5, 0.5), (2.0, 1.0)):
        found = estimate_error(np.full_like(times_s, 1000.0 * share), round_trip_s, delivered, times_s)
        assert found == pytest.approx(error, abs=1e-9)
    assert estimate_error(np.full_like(times_s, 1000.0), round_trip_s, np.zeros_like(times_s), times_s) is None
    assert estimate_error(np.full_like(times_s, np.nan), round_trip_s, delivered, times_s) is None


def test_a_gain_of_means_is_not_ruled_by_its_smallest_pair() -> None:
    treated, base = [110.0, 220.0, 4.0], [100.0, 200.0, 1.0]
    gain = ratio_gain(treated, base)
    assert gain.mean == pytest.approx(100.0 * (334.0 / 301.0 - 1.0))
    assert gain.half_width is not None
    assert 0.0 < gain.half_width < 10.0
    exact = ratio_gain([1.1 * value for value in base], base)
    assert exact.mean == pytest.approx(10.0)
    assert exact.half_width == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ValueError, match="over at least one value"):
        ratio_gain([1.0], [0.0])


def test_a_share_that_was_not_seen_is_bounded_by_the_number_of_trials() -> None:
    assert greatest_share(0, 299) == pytest.approx(0.01, rel=0.01)
    assert greatest_share(1, 1) == 1.0
    assert greatest_share(0, 0) == 1.0
