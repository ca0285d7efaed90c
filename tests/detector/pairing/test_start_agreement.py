"""Starts of several pairs held against each other: the same transfers, others, and a program that repeats itself."""

from __future__ import annotations

import math
import random

import pytest

from detector.pairing.confidence import STARTS_AGREE_NATS
from detector.pairing.starts.agreement import agreement_nats

SECOND = 1_000_000_000
OFFSET_NS = -3_600 * SECOND


def at_random(chance: random.Random, count: int) -> list[int]:
    return sorted(round(chance.uniform(0, 2 * count) * SECOND) for _ in range(count))


def seen_later(chance: random.Random, starts: list[int]) -> list[tuple[int, int]]:
    """The same starts at the other end, by a clock that is an hour behind, each 10 to 90 ms later."""
    return [(start, start + OFFSET_NS + round(chance.uniform(0.01, 0.09) * SECOND)) for start in starts]


@pytest.mark.parametrize("count", [6, 20])
def test_the_same_transfers_agree_whatever_the_clocks(count: int) -> None:
    chance = random.Random(count)
    nats = agreement_nats(seen_later(chance, at_random(chance, count)), count)
    assert min(nats) > STARTS_AGREE_NATS


def test_other_transfers_agree_no_more_often_than_markov_allows() -> None:
    chance, runs = random.Random(7), 400
    sure = 0
    for _ in range(runs):
        count = chance.randint(3, 25)
        pairs = list(zip(at_random(chance, count), at_random(chance, count), strict=True))
        sure += max(agreement_nats(pairs, count)) >= STARTS_AGREE_NATS
    assert sure / runs <= 0.05


def test_periodic_starts_are_no_evidence() -> None:
    """Two runs of one program that asks every two seconds have all intervals in common."""
    chance = random.Random(3)
    runs = [[round((2 * number + chance.uniform(0, 0.05)) * SECOND) for number in range(40)] for _ in range(2)]
    assert max(agreement_nats(list(zip(*runs, strict=True)), 40)) < STARTS_AGREE_NATS


def test_starts_at_one_time_count_once() -> None:
    """A browser opens many connections at once: two bursts are one interval, which alone is no evidence."""
    chance = random.Random(5)
    bursts = [burst * 10 * SECOND + chance.randrange(SECOND // 10) for burst in (0, 1) for _ in range(12)]
    assert max(agreement_nats(seen_later(chance, sorted(bursts)), 24)) == 0


def test_a_choice_out_of_many_costs_what_it_could_have_chosen() -> None:
    chance = random.Random(1)
    pairs = seen_later(chance, at_random(chance, 6))
    assert max(agreement_nats(pairs, 7)) == pytest.approx(max(agreement_nats(pairs, 6)) - math.log(7))
    assert max(agreement_nats(pairs, 100)) == 0


def test_one_that_strays_is_less_sure_than_the_others() -> None:
    chance = random.Random(2)
    pairs = seen_later(chance, at_random(chance, 12))
    pairs[4] = (pairs[4][0], pairs[4][1] + SECOND)
    nats = agreement_nats(pairs, 12)
    assert min(nats) == nats[4] < max(nats) - 3
