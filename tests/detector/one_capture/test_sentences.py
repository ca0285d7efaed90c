"""Sentences of many pools are those of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.one_capture.classes import Explanation
from detector.one_capture.reasons.sentences import PoolFigures, leg_too_short, reason, reasons
from pepscope.captures.exchanges import ExchangeKind
from pepscope.results.verdicts import GroupSide, Verdict
from tests.detector.one_capture.made_vantages import Talk, results

TIMES = st.floats(-0.01, 3.0) | st.just(math.nan)
COUNTS = st.integers(1, 1200)
POOLS = st.builds(
    PoolFigures, st.just(GroupSide.CLIENT), COUNTS, COUNTS, st.integers(0, 3), *[TIMES] * 10, st.floats(0, 1),
    st.floats(0, 1), st.integers(0, 2), st.integers(0, 2),
)  # fmt: skip


@given(st.sampled_from(GroupSide), st.lists(st.tuples(POOLS, st.sampled_from(Explanation)), min_size=1))
def test_many_pools_are_put_into_words_as_each(side: GroupSide, rows: list[tuple[PoolFigures, Explanation]]) -> None:
    if side is GroupSide.BOTH:
        return
    names = PoolFigures.__struct_fields__[1:]
    pools = [PoolFigures(side, *(getattr(pool, name) for name in names)) for pool, _ in rows]
    columns = {name: np.asarray([getattr(pool, name) for pool in pools]) for name in names}
    explanation = np.asarray([int(each) for _, each in rows])
    expected = [reason(pool, each) for pool, (_, each) in zip(pools, rows, strict=True)]
    assert [*reasons(side, columns, explanation)] == expected


def test_an_answer_in_time_and_one_that_is_late_in_words() -> None:
    figures = PoolFigures(
        GroupSide.CLIENT, 1, 1, 1, 0.005, 0.005, 0.005, math.nan, 0.0011, 0.0011, 0.0011, 0.01, 0.004, 0.4, 0.02, 0.1, 0
    )
    prompt, open_case = reason(figures, Explanation.END_TO_END), reason(figures, Explanation.UNDECIDED)
    assert prompt.startswith(
        "1 exchange: the server answered within 1.10 ms of the transport's round trip of 5.00 ms, as nothing can behind"
    )
    assert open_case == (
        "1 exchange: the answer comes 1.10 ms later than the transport's round trip. A split of either kind "
        "has 2 %, but no answer proves that there is none. A second capture at the servers, pings to the same servers "
        "in the capture or more connections would decide."
    )


@pytest.mark.parametrize(
    ("side", "late_s", "shown"),
    [
        (GroupSide.SERVER, 15.5, "round trip of 67.0 ms, as people answer; what programs send, mostly at the end"),
        (GroupSide.SERVER, 1.3, "round trip of 67.0 ms, so that answers cross a leg"),
        (GroupSide.CLIENT, 15.5, "round trip of 67.0 ms, so that answers cross a leg"),
    ],
)
def test_a_leg_that_people_who_answer_do_not_show_is_not_read_from_answers(
    side: GroupSide, late_s: float, shown: str
) -> None:
    figures = PoolFigures(
        side, 1, 6, 15, 0.067, 0.068, 0.067, math.nan, late_s, late_s, late_s, 0.62, 0.56, 0.71, 0.99, 0.01, 0
    )
    said = reason(figures, Explanation.NETWORK)
    assert shown in said
    assert "a leg of 560 ms to 710 ms" in said


@pytest.mark.parametrize("late_s", [-0.0004, 0.0, 9e-7])
def test_answers_that_no_clock_can_tell_from_acknowledgements_are_as_fast(late_s: float) -> None:
    figures = PoolFigures(
        GroupSide.SERVER, 1, 1, 4, 0.005, 0.005, 0.005, 0.02, late_s, late_s, late_s, 0.01, 0.004, 0.4, 0.02, 0.1, 0
    )
    assert "the client answered as fast as the transport's round trip of 5.00 ms, as nothing" in reason(
        figures, Explanation.END_TO_END
    )
    assert "the fastest answers come as fast as the transport's round trip. A split" in reason(
        figures, Explanation.UNDECIDED
    )
    assert "the client answered as fast as the transport's round trip, but other" in leg_too_short(figures)


@pytest.mark.parametrize(
    ("side", "split", "needed", "plain_s", "said"),
    [
        (GroupSide.CLIENT, 0.9799, 0.985, 0.005, "A split of either kind has 97.9 %, a verdict needs 98.5 %"),
        (GroupSide.SERVER, 0.9699, 0.98, 0.005, "A split of either kind has 96.9 %, a verdict needs 98.0 %"),
        (
            GroupSide.CLIENT,
            0.3,
            0.975,
            0.005,
            "A split of either kind has 30 %: too little to accuse, too much to call it regular",
        ),
        (
            GroupSide.CLIENT,
            0.024,
            0.975,
            math.nan,
            "A split of either kind has 2 %: every acknowledgement rides on an answer",
        ),
    ],
)
def test_an_open_case_says_how_probable_a_split_is_and_what_is_missing(
    side: GroupSide, split: float, needed: float, plain_s: float, said: str
) -> None:
    """The probability is that of both kinds of split, as those of the verdicts split-tcp and tcp-proxy sum up."""
    figures = PoolFigures(
        side,
        1,
        1,
        8,
        0.005,
        0.005,
        plain_s,
        math.nan,
        0.007,
        0.007,
        0.007,
        0.01,
        0.004,
        0.4,
        split,
        0.1,
        0,
        needed=needed,
    )
    assert said in reason(figures, Explanation.UNDECIDED)


def test_hosts_that_take_their_time_at_distances_of_their_own_are_not_said_to_answer_in_time() -> None:
    """No answer came at the transport's speed: that of several hosts each ends at its own place shows no split."""
    talks = [
        Talk(host, [(ExchangeKind.COMMAND, 40.0 + 9.0 * number) for number in range(6)], near_ms)
        for host, near_ms in (("192.0.2.1", 20.0), ("198.51.100.1", 70.0), ("203.0.113.1", 150.0))
        for _ in range(5)
    ]
    (group,) = results(talks, at_client=True)
    assert group.verdict is Verdict.REGULAR
    assert "the transport to 3 servers ends at distances of their own, the nearest 20.0 ms" in group.reason
    assert "as fast as" not in group.reason
    assert "within" not in group.reason


def test_a_client_that_its_access_link_shows_is_not_said_to_end_at_several_distances() -> None:
    """Of one address it is how round trips vary, first words and SYNs that show no split point."""
    figures = PoolFigures(
        GroupSide.SERVER, 20, 11, 1, 0.104, 0.104, 0.104, math.nan, 2.5, 2.5, 2.5, 0.01, 0.004, 0.4, 0.001, 0.0, 0,
        own_ends=True,
    )  # fmt: skip
    said = reason(figures, Explanation.END_TO_END)
    assert (
        "how round trips vary, first words and SYNs are those of clients at access links, 104 ms and more away" in said
    )
    assert "distances of their own" not in said
    assert "these client " not in said


def test_of_one_server_alone_other_servers_would_decide_and_not_more_of_its_answers() -> None:
    late = [Talk("192.0.2.1", [(ExchangeKind.COMMAND, 44.0 + 0.3 * number) for number in range(5)], 8.0)] * 5
    (group,) = results(late, at_client=True)
    assert group.verdict is Verdict.INCONCLUSIVE
    assert "connections to other servers on this port would decide" in group.reason
    assert "more connections" not in group.reason


@pytest.mark.parametrize(
    ("near_s", "where"),
    [(0.0002, ": on the capture's own host, or beside it"), (0.04, ", in the network between it and the servers.")],
)
def test_a_split_point_beside_the_capture_is_not_placed_in_the_network(near_s: float, where: str) -> None:
    """The NAT of a virtual machine ends TCP as soon as a kernel answers."""
    figures = PoolFigures(
        side=GroupSide.CLIENT, hosts=3, connections=9, exchanges=30,
        near_s=near_s, handshake_s=near_s, plain_s=near_s, reference_s=math.nan,
        fast_excess_s=0.02, least_fast_s=0.02, most_fast_s=0.05, leg_s=0.03, leg_low_s=0.02, leg_high_s=0.04,
        split=0.99, late=0.0, dialogues=0,
    )  # fmt: skip
    assert where in reason(figures, Explanation.NETWORK)
