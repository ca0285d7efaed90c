"""Answers that vary alike in two captures, and those of strangers."""

from __future__ import annotations

import numpy as np
import pytest

from detector.pairing.starts.answers import answers_nats
from detector.pairing.starts.clock_bounds import Pair
from pepscope.captures.connections import Connection, FlowSummary
from pepscope.results.verdicts import FloatArray

_S = 1_000_000_000


def exchange(at_s: float, answered_s: float | None, size: int = 500) -> Connection:
    nothing = FlowSummary(*[None] * len(FlowSummary._fields))  # type: ignore[arg-type]
    up = nothing._replace(stream_bytes=100, first_data_time_ns=round(at_s * _S))
    down_ns = None if answered_s is None else round((at_s + answered_s) * _S)
    down = nothing._replace(stream_bytes=size, first_data_time_ns=down_ns)
    made = Connection(*[None] * len(Connection._fields))  # type: ignore[arg-type]
    return made._replace(first_time_ns=round(at_s * _S), up=up, down=down)


def pairs(ones_s: FloatArray, twos_s: FloatArray) -> list[Pair]:
    return [
        (exchange(at, one), exchange(at + 0.05, two))
        for at, (one, two) in enumerate(zip(ones_s.tolist(), twos_s.tolist(), strict=True))
    ]


@pytest.mark.parametrize("path_s", [0.0001, 0.003, 0.03])
def test_answers_through_any_path_are_the_same(path_s: float) -> None:
    made = np.random.default_rng(1)
    found = []
    for _ in range(50):
        answers_s = made.exponential(0.01, 20)
        found.append(answers_nats(pairs(answers_s + 0.1 + made.exponential(path_s, 20), answers_s)))
    assert np.median(found) == 0
    assert np.quantile(found, 0.05) > -2


def test_answers_of_two_hosts_are_told() -> None:
    made = np.random.default_rng(2)
    found = [answers_nats(pairs(*(made.exponential(0.01, 60) for _ in range(2)))) for _ in range(50)]
    assert np.median(found) < -10


def test_either_capture_may_be_the_first_where_starts_cross() -> None:
    made = np.random.default_rng(7)
    crossed = [
        (one._replace(first_time_ns=int(made.integers(0, 60 * _S))), two._replace(first_time_ns=int(made.integers(_S))))
        for one, two in pairs(np.resize(made.exponential(0.01, 12), 60), np.resize(made.exponential(0.01, 20), 60))
    ]
    assert answers_nats(crossed) < 0
    assert answers_nats([(two, one) for one, two in crossed]) == pytest.approx(answers_nats(crossed))


def test_other_lengths_are_not_compared() -> None:
    """An answer's length takes its time in both captures, and each has one that the other has not."""
    made = np.random.default_rng(3)
    both = []
    for size in (500, 50_000):
        ones, twos = (made.exponential(0.01, 20) + size / 1e5 for _ in range(2))
        both += [
            (exchange(at, one, size), exchange(at, two, size))
            for at, (one, two) in enumerate(zip(ones.tolist(), twos.tolist(), strict=True))
        ]
    assert answers_nats(both) < -4


def test_what_takes_many_segments_to_ask_is_left_out() -> None:
    made = np.random.default_rng(6)
    asked = [
        tuple(side._replace(up=side.up._replace(stream_bytes=60_000)) for side in pair)
        for pair in pairs(*(made.exponential(0.01, 60) for _ in range(2)))
    ]
    assert answers_nats(asked) == 0  # type: ignore[arg-type]


def test_silence_few_and_equal_answers_show_nothing() -> None:
    made = np.random.default_rng(4)
    few = pairs(made.exponential(0.01, 3), made.exponential(0.01, 3))
    silent = [(exchange(at, None), exchange(at, None)) for at in range(20)]
    changed = [(exchange(at, 0.1 + at * at % 7, 500), exchange(at, 0.1, 526)) for at in range(20)]
    for each in ([], few, silent, changed, pairs(np.full(20, 0.1), np.full(20, 0.05))):
        assert answers_nats(each) == 0


def test_what_times_err_by_is_no_difference() -> None:
    made = np.random.default_rng(5)
    ones, twos = (0.05 + made.uniform(0, 50e-6, 20) for _ in range(2))
    assert answers_nats(pairs(ones, twos)) > -0.3
