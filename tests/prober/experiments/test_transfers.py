"""The transfers experiment: which tasks there are, and its one rule, foreign certificates."""

from __future__ import annotations

from typing import Any

import pytest

from pepscope.captures.packets import Direction
from pepscope.results.verdicts import Outcome
from prober.errors import ArchiveError, PlanError
from prober.experiments.transfers import Transfers
from prober.measurement.cost_estimate import transfer_cost
from prober.plan import Plan, RatesTable
from prober.protocol.application import Application
from tests.prober.experiments.observed import seen, tasks_of


def plan(**settings: Any) -> Plan:
    return Plan.from_mapping({"experiments": {"transfers": settings}})


def moved(**fields: Any) -> dict[str, Any]:
    return {
        "size_bytes": 1000, "moved_bytes": 1000, "total_s": 0.5, "connect_s": 0.1, "first_byte_s": 0.2,
        "intact": True, "status": "200", "certificate_is_the_servers": True, **fields,
    }  # fmt: skip


def test_every_cell_is_measured_with_every_size_before_any_again() -> None:
    tasks = list(tasks_of(Transfers(), plan(sizes_bytes=[2000, 4000], repeats=2)))
    assert len({task.key for task in tasks}) == len(tasks) == 5 * 2 * 2 * 2
    assert {(task.application, task.direction) for task in tasks[:20]} == {
        (application, direction) for application in Application for direction in Direction
    }
    assert {task.repeat for task in tasks[:20]} == {1}
    assert all(task.captured for task in tasks)


def test_pictures_are_as_small_and_as_large_as_pictures_can_be() -> None:
    tasks = tasks_of(Transfers(), plan(sizes_bytes=[10, 100_000_000], repeats=1))
    sizes = {task.parameters["size_bytes"] for task in tasks if task.application is Application.HTTP_IMAGE}
    assert sizes == {1_000, 16 << 20}


def test_uploads_may_be_smaller() -> None:
    tasks = list(tasks_of(Transfers(), plan(sizes_bytes=[100_000], upload_share=0.25)))
    sizes = {(task.direction, task.parameters["size_bytes"]) for task in tasks}
    assert sizes == {(Direction.DOWN, 100_000), (Direction.UP, 25_000)}
    with pytest.raises(PlanError, match="upload_share"):
        list(tasks_of(Transfers(), plan(upload_share=0.0)))


def test_costs_are_of_the_direction() -> None:
    rates = RatesTable(down_bit_s=8e6, up_bit_s=8e5, round_trip_time_s=0.1)
    down = transfer_cost(Application.TCP, Direction.DOWN, 1_000_000, rates)
    up = transfer_cost(Application.TCP, Direction.UP, 1_000_000, rates)
    assert (down.bytes_down, down.bytes_up) == (up.bytes_up, up.bytes_down)
    assert 1_000_000 < down.bytes_down < 1_100_000
    assert 0 < down.bytes_up < 50_000
    assert down.expected_s == pytest.approx(1.05 + 0.1 * (2 + 3), rel=0.05), (
        "100 kB in flight need three doublings of 10"
    )
    assert up.expected_s == pytest.approx(10.5 + 0.2, rel=0.05)


def test_another_certificate_is_a_split() -> None:
    experiment = Transfers()
    found = [seen("transfers", moved()), seen("transfers", moved(certificate_is_the_servers=False))]
    (evidence,) = experiment.examine(found)
    assert (evidence.outcome, evidence.finding) == (Outcome.SPLIT, "another-certificate")
    assert evidence.numbers == {"connections": 2, "foreign": 1}


def test_the_servers_own_certificate_and_plain_transfers_are_no_finding() -> None:
    plain = moved(certificate_is_the_servers=None)
    assert Transfers().examine([seen("transfers", moved()), seen("transfers", plain)]) == ()


def test_facts_are_rates_and_changes() -> None:
    facts = Transfers().metrics([seen("transfers", moved()), seen("transfers", moved(intact=False, total_s=0.25))])
    assert [row["rate_bit_s"] for row in facts["transfers"]] == [16_000, 32_000]
    assert facts["changed"] == 1


@pytest.mark.parametrize(
    "values", [{"certificate_is_the_servers": 3}, {"certificate_is_the_servers": "yes"}], ids=lambda item: str(item)
)
def test_certificates_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        Transfers().examine([seen("transfers", moved(**values))])


@pytest.mark.parametrize("name", ["total_s", "moved_bytes", "intact", "status", "size_bytes"])
def test_values_that_make_no_sense_are_refused(name: str) -> None:
    values: list[Any] = [None, [], {"a": 1}, float("1e999")]
    for value in values:
        with pytest.raises(ArchiveError):
            Transfers().metrics([seen("transfers", moved(**{name: value}))])
