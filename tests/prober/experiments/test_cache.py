"""The cache experiment's rule: more answers than requests that the server saw."""

from __future__ import annotations

from typing import Any

import pytest

from pepscope.results.verdicts import Outcome
from prober.errors import ArchiveError, PlanError
from prober.experiments.cache import Cache
from prober.plan import Plan
from prober.protocol.application import Application
from tests.prober.experiments.observed import seen, tasks_of


def fetched(kept: int, forbidden: int, answers: int = 3) -> dict[str, Any]:
    """Requests that reached the server, of an object that may be kept and of one that may not."""
    return {
        "objects": [
            {"may_be_kept": True, "whole_answers": answers, "requests_at_the_server": kept, "answers": []},
            {"may_be_kept": False, "whole_answers": answers, "requests_at_the_server": forbidden, "answers": []},
        ]
    }


def test_answers_without_requests_are_a_cache() -> None:
    (evidence,) = Cache().examine([seen("cache", fetched(1, 3))])
    assert (evidence.outcome, evidence.finding) == (Outcome.SPLIT, "served-from-cache")
    assert evidence.numbers["requests_at_the_server"] == 4
    assert "forbidden" not in evidence.summary


def test_a_cache_that_stores_in_spite_of_no_store_is_reported() -> None:
    (evidence,) = Cache().examine([seen("cache", fetched(1, 1))])
    assert evidence.numbers["kept_though_forbidden"] == 2
    assert "2 of them forbidden to keep" in evidence.summary


@pytest.mark.parametrize(("kept", "forbidden"), [(3, 3), (4, 3), (9, 9)])
def test_requests_that_all_arrive_are_no_cache(kept: int, forbidden: int) -> None:
    (evidence,) = Cache().examine([seen("cache", fetched(kept, forbidden))])
    assert evidence.outcome is Outcome.INAPPLICABLE


def test_one_object_asked_for_twice_makes_up_for_no_other() -> None:
    (evidence,) = Cache().examine([seen("cache", fetched(1, 5))])
    assert evidence.outcome is Outcome.SPLIT


def test_without_answers_there_is_no_finding() -> None:
    assert Cache().examine([seen("cache", fetched(0, 0, answers=0))]) == ()


@pytest.mark.parametrize(
    "values",
    [{}, {"objects": 3}, {"objects": [{"may_be_kept": 1}]}, {"objects": [{"whole_answers": float("1e999")}]}],
)
def test_measurements_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ArchiveError):
        Cache().examine([seen("cache", values)])


def test_a_plan_asks_for_each_kind_of_object_once() -> None:
    plan = Plan.from_mapping({"experiments": {"cache": {"repeats": 2}}})
    tasks = list(tasks_of(Cache(), plan))
    assert [task.application for task in tasks] == [Application.HTTP_DATA] * 2 + [Application.HTTP_IMAGE] * 2
    assert len({task.key for task in tasks}) == 4
    assert not list(tasks_of(Cache(), Plan.from_mapping({"directions": ["up"], "experiments": {"cache": {}}})))


def test_a_plan_with_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(PlanError, match=r"experiments\.cache\.size"):
        Plan.from_mapping({"experiments": {"cache": {"size": 1}}})
