"""Members with equal exchanges are of one kind, whatever their order, and what they say is said once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.likelihoods.equal_members import MOST_EXCHANGES, equal_members
from detector.one_capture.likelihoods.exchange_nats import BinnedExchanges
from detector.one_capture.likelihoods.timing_tables import CLIENT_CLOSE, CLOSE, excess_bin, timing_tables
from pepscope.results.verdicts import GroupSide

MEMBERS = st.lists(st.tuples(st.lists(st.integers(0, 3), max_size=MOST_EXCHANGES + 2), st.integers(0, 2)), max_size=8)


@given(MEMBERS, st.randoms())
def test_members_are_of_one_kind_where_label_and_exchanges_are_equal(made: list[tuple[list[int], int]], random) -> None:
    exchanges = [(member, code) for member, (codes, _) in enumerate(made) for code in codes]
    random.shuffle(exchanges)
    member, code = (np.asarray([each[place] for each in exchanges], np.int64) for place in range(2))
    equal = equal_members(member, code, np.asarray([label for _, label in made], np.int64))
    assert len(equal.kind) == len(made)
    assert [int(equal.kind[first]) for first in equal.first] == list(range(len(equal.first)))
    for one, (codes, label) in enumerate(made):
        for other, (others, other_label) in enumerate(made):
            same = sorted(codes) == sorted(others) and label == other_label and len(codes) <= MOST_EXCHANGES
            assert (equal.kind[one] == equal.kind[other]) == (same or one == other)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 3, 4, CLOSE, CLIENT_CLOSE]), st.floats(-0.01, 2)), min_size=1, max_size=60
    ),
    st.integers(1, 3),
)
def test_exchanges_of_one_bin_are_looked_up_once_with_the_same_sums(
    made: list[tuple[int, float]], members: int
) -> None:
    """Many exchanges a member take the other way through than few do."""
    tables = timing_tables(GroupSide.SERVER)
    kind, bins = np.asarray([each[0] for each in made]), excess_bin(np.asarray([each[1] for each in made]))
    weight = np.linspace(0.3, 1.0, len(made))
    copies = 40
    binned = BinnedExchanges(
        np.repeat(np.arange(members), copies * len(made)), np.tile(kind, copies * members),
        np.zeros(copies * members * len(made), np.int64), np.tile(bins, copies * members),
        np.tile(weight, copies * members), members,
    )  # fmt: skip
    assert len(binned.once().member) <= members * len(made)
    many = binned.once().nats(tables)
    once = BinnedExchanges(np.arange(len(made)), kind, np.zeros(len(made), np.int64), bins, weight, len(made)).nats(
        tables
    )
    for name in ("handshake", "application", "close", "client_close"):
        rows, single = getattr(many, name), getattr(once, name)
        np.testing.assert_allclose(rows, np.tile(copies * single.sum(axis=0), (members, 1)), rtol=1e-9, atol=1e-9)
