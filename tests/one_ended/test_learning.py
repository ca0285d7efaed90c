"""What is learned of networks whose truth is known: natures, shifts, and tables of probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.one_ended_learning.tables import (
    END_NATURE_EDGES_MS,
    NATURE_EDGES_MS,
    PEOPLE_S,
    STEADY_SHIFTS,
    VARIATION_EDGES_MS,
    Sample,
    learned,
    shift_natures,
)
from detector.one_capture.likelihoods.timing_tables import (
    CLASSES,
    END_NATURES,
    HIDDEN_S,
    NATURES,
    TimingTables,
)
from pepscope.results.verdicts import GroupSide

SIDES = (GroupSide.CLIENT, GroupSide.SERVER)
HANDSHAKE = CLASSES.index("handshake")


def sample(beyond_ms: list[float], leg_ms: float = np.nan, side: GroupSide = GroupSide.SERVER) -> Sample:
    """A group whose TLS handshakes took so much longer than the transport, over a wire."""
    excess_s = np.asarray(beyond_ms) / 1e3 + np.nan_to_num(leg_ms) / 1e3
    kinds = np.full(len(beyond_ms), HANDSHAKE)
    return Sample(side, kinds, 0, excess_s, np.full(len(beyond_ms), leg_ms / 1e3))


@pytest.mark.parametrize(("spread_ms", "nature"), [(1.0, 0), (5.0, 1), (12.0, 2), (60.0, 3)])
def test_a_leg_has_the_nature_of_what_answers_vary(spread_ms: float, nature: int) -> None:
    beyond_ms = np.linspace(0, 2 * spread_ms, 20).tolist()
    assert sample(beyond_ms, 40.0).nature == nature
    assert sample(beyond_ms, 40.0).end_nature is None
    assert sample(beyond_ms).end_nature == nature + (spread_ms > END_NATURE_EDGES_MS[-1])
    assert sample(beyond_ms).nature is None


def test_people_and_few_exchanges_show_no_nature() -> None:
    late = [1000 * PEOPLE_S + 100 * number for number in range(8)]
    assert sample([0.5] * 8 + late, 40.0).nature == 0
    assert sample(late, 40.0).nature is None
    assert sample([0.5] * 7, 40.0).nature is None
    assert sample([0.5] * 5).shift_s is None


def test_hosts_that_are_always_late_are_not_learned_from() -> None:
    late, ordinary = sample([80.0] * 10), sample([0.5] * 10)
    assert late.is_late
    assert not ordinary.is_late
    sides = [sample([0.5] * 10, 40.0, side) for side in SIDES] + [sample([0.5] * 10, side=GroupSide.CLIENT)]
    assert learned([late, ordinary, *sides]) == learned([ordinary, *sides])


def test_shifts_have_the_natures_of_what_is_shifted_end_to_end() -> None:
    """Short shifts that are steady, long ones that vary; legs and what is not shifted say nothing of them."""
    steady, varying = sample([5.0, 5.5] * 10), sample(np.linspace(12.0, 36.0, 20).tolist())
    others = [sample([0.5] * 10), sample([0.5] * 10, 40.0)]
    short, long = shift_natures([*[steady] * 50, *[varying] * 50, *others])
    assert short[0] > 0.9
    assert long[2] > 0.8
    assert STEADY_SHIFTS < long[0] < 0.15
    assert shift_natures([*[steady] * 50, *[varying] * 50]) == [short, long]
    assert [sum(shares) for shares in (short, long)] == pytest.approx([1.0, 1.0])


def test_tables_are_probabilities_and_make_hypotheses() -> None:
    found = [sample(list(np.linspace(0, spread, 30)), leg, side) for spread in (1, 9, 60) for leg in (40.0, np.nan)
             for side in SIDES]  # fmt: skip
    content = learned(found)
    assert (len(NATURE_EDGES_MS) + 1, len(END_NATURE_EDGES_MS) + 1) == (NATURES, END_NATURES)
    for side in SIDES:
        of = content["sides"][side.value]
        for name in CLASSES:
            assert [len(of[kind][name]) for kind in ("hidden", "end_by_nature")] == [NATURES, 2 * END_NATURES]
            for table in (*of["hidden"][name], *of["end_by_nature"][name], *of["end"][name]):
                assert sum(table) == pytest.approx(1.0)
        for shares in ("natures", "end_natures", "shifts"):
            assert len(of[shares]) == len(VARIATION_EDGES_MS) + 2
            assert all(sum(row) == pytest.approx(1.0) for row in of[shares])
        assert len(of["shifts"][0]) == 1 + len(HIDDEN_S)
        assert np.isfinite(TimingTables(content, side).nats(HANDSHAKE, 0)).all()
