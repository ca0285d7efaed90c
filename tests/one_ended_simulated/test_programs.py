"""Clients that work for nearly the same time on each answer, in simulated networks of one end."""

from __future__ import annotations

from statistics import mean, stdev

from benchmarks.one_ended_simulated.draws import draw_scenario
from benchmarks.one_ended_simulated.scenario import MiddleKind
from tests.one_ended_simulated.networks import network

WORKS = "clients work on each answer"


def test_programs_work_for_nearly_the_same_time_and_half_of_them_before_they_close_as_well() -> None:
    working = [drawn for number in range(200) if WORKS in (drawn := draw_scenario(1, number)).hard]
    clients = [habits for drawn in working for site in drawn.sites for habits in site.habits if habits.works]
    closes_late = 0
    for habits in clients:
        took_s = [habits.next_request() for _ in range(50)]
        assert 0.006 < mean(took_s) < 0.09
        assert stdev(took_s) < 0.08 * mean(took_s)
        closes_late += abs(habits.close() / mean(took_s) - 1) < 0.3
    assert 0.2 * len(clients) < closes_late < 0.8 * len(clients)
    assert all(all(site.thinks) for drawn in working for site in drawn.sites if site.habits[0].works)


def test_other_clients_close_at_once() -> None:
    (habits,) = network(MiddleKind.NOTHING).sites[0].habits
    assert habits.close() == 0.0
    assert not habits.works
