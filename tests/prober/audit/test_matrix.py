"""The rule of a cell: what it may never do, and what it says of connections that disagree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from detector.methods import findings as method_findings
from detector.methods.identity import IdentityFinding
from detector.options import DECISION_PROBABILITY
from detector.verdict.weighing import judge
from pepscope.captures.packets import Direction
from pepscope.results.audits import AuditConnection
from pepscope.results.verdicts import Evidence, Mechanism, Outcome, PairResult, VantageName, Verdict
from prober.audit.matrix import CellInput, judge_cell
from prober.experiments.registry import findings as experiment_findings

FINDINGS = {**method_findings(), **experiment_findings()}
SPLITTING = sorted(name for name, row in FINDINGS.items() if row.weight.split > 0)
INTACT = sorted(name for name, row in FINDINGS.items() if row.weight.split < 0)


def evidence(finding: str, strength: float = 1.0) -> Evidence:
    return FINDINGS[finding].evidence("method", strength, f"{finding} was found.")


def connection(*findings: Evidence, size: int = 1_000_000, role: str = "data", set_aside: str = "", task: str = "t1"):
    judged = judge(findings)
    pair = PairResult(
        vantages=(VantageName("m", "192.0.2.1:1", "192.0.2.2:80"), VantageName("s", "192.0.2.1:1", "192.0.2.2:80")),
        verdict=judged.verdict,
        probability=judged.probability,
        reason=judged.reason,
        evidence=findings,
        packets=10,
        payload_bytes_up=0,
        payload_bytes_down=size,
        duration_s=1.0,
    )
    return AuditConnection(task, "transfers", role, pair, set_aside)


def cell(*connections: AuditConnection, active: tuple[Evidence, ...] = (), lacking: tuple[str, ...] = ()):
    tasks = len(connections) + len(active)
    return judge_cell(CellInput("http-data", Direction.DOWN, connections, active, tasks, tasks, lacking))


def split_probability(judged):
    return 1.0 - judged.probability[Verdict.REGULAR]


findings = st.builds(evidence, st.sampled_from(sorted(FINDINGS)), st.floats(0.0, 1.0))
connections = st.builds(
    lambda items, size: connection(*items, size=size), st.lists(findings, max_size=4), st.integers(0, 10_000_000)
)


@given(st.lists(connections, max_size=5), st.lists(findings, max_size=3), st.randoms())
def test_order_does_not_matter(some, active, random):
    before = cell(*some, active=tuple(active))
    random.shuffle(some)
    random.shuffle(active)
    after = cell(*some, active=tuple(active))
    assert after.verdict is before.verdict
    assert after.probability == pytest.approx(before.probability)


@given(st.lists(connections, max_size=4), st.sampled_from(SPLITTING), st.floats(0.0, 1.0), st.booleans())
def test_evidence_for_a_split_never_makes_a_cell_regular(some, finding, strength, is_active):
    more = evidence(finding, strength)
    before = cell(*some)
    after = cell(*some, active=(more,)) if is_active else cell(*some, connection(more))
    # Findings that no one mechanism explains together end in doubt, not in the other verdict.
    assert after.verdict is not Verdict.REGULAR or before.verdict is Verdict.REGULAR


@given(st.lists(connections, max_size=4), st.sampled_from(INTACT), st.floats(0.0, 1.0))
def test_evidence_against_a_split_never_makes_one(some, finding, strength):
    before, after = cell(*some), cell(*some, connection(evidence(finding, strength)))
    assume(after.from_bytes is None)  # evidence that a middlebox begins late shows that long transfers are split
    assert after.verdict in (Verdict.REGULAR, Verdict.INCONCLUSIVE) or before.verdict in (
        Verdict.SPLIT_TCP,
        Verdict.TCP_PROXY,
    )


@given(st.lists(connections, min_size=1, max_size=4), st.integers(1, 20))
def test_repeating_a_measurement_proves_nothing_new(some, times):
    once, often = cell(*some), cell(*some * times)
    assume(often.from_bytes == once.from_bytes)  # that sizes set camps apart must be seen twice to be a rule
    assert often.probability == pytest.approx(once.probability)


@given(st.lists(connections, max_size=4), st.lists(findings, max_size=3))
def test_no_verdict_without_the_probability_for_it(some, active):
    judged = cell(*some, active=tuple(active))
    assert sum(judged.probability.values()) == pytest.approx(1.0)
    if judged.verdict is Verdict.REGULAR:
        assert judged.probability[Verdict.REGULAR] >= DECISION_PROBABILITY
    elif judged.verdict is not Verdict.INCONCLUSIVE:
        assert split_probability(judged) >= DECISION_PROBABILITY
    assert judged.reason.endswith(".")


@given(st.lists(connections, max_size=4), connections)
def test_what_is_set_aside_changes_nothing(some, other):
    aside = AuditConnection(other.task, other.experiment, "control", other.pair, "It is a control connection.")
    assert cell(*some, aside).probability == pytest.approx(cell(*some).probability)


def test_small_objects_that_look_stored_do_not_make_a_proxy_of_a_split():
    large = connection(evidence("acks-before-data"), evidence("window-alternates"), size=2_000_000)
    small = connection(evidence("stored-before-forwarded"), size=10_000)
    judged = cell(small, large, small)
    assert judged.verdict is Verdict.SPLIT_TCP
    assert "swallowed" in judged.reason
    assert cell(small).verdict is Verdict.TCP_PROXY


def test_large_objects_that_are_stored_make_a_proxy_whatever_the_small_ones_look_like():
    large = connection(evidence("stored-before-forwarded"), size=2_000_000)
    small = connection(evidence("sender-ahead"), size=10_000)
    assert cell(small, large).verdict is Verdict.TCP_PROXY


def test_an_active_finding_decides_the_kind_too():
    stored = FINDINGS["served-from-cache"].evidence("cache", 1.0, "The second answer never left the server.")
    judged = cell(connection(evidence("other-packets")), active=(stored,))
    assert judged.verdict is Verdict.TCP_PROXY
    assert stored.summary in judged.reason


@pytest.mark.parametrize(("size", "is_told"), [(1_000_000, True), (20_000_000, False)])
def test_a_proxy_that_may_be_a_relay_with_large_buffers_is_mentioned(size, is_told):
    judged = cell(connection(evidence("sender-beyond-buffers"), size=size))
    assert judged.verdict is Verdict.TCP_PROXY
    assert ("A relay whose buffers hold as much looks the same" in judged.reason) == is_told
    silent = Evidence("delayed_ack", Outcome.INAPPLICABLE, "no-ack-delay", 0.0, "No delay is known.")
    assert cell(connection(evidence("sender-beyond-buffers"), silent, size=size)).verdict is Verdict.TCP_PROXY
    stored = cell(connection(evidence("sender-beyond-buffers"), evidence("stored-before-forwarded"), size=size))
    assert "looks the same" not in stored.reason
    kept = cell(connection(evidence("sender-beyond-buffers"), size=size), active=(evidence("served-from-cache"),))
    assert "looks the same" not in kept.reason


def test_kinds_that_disagree_at_one_size_are_reported():
    one = connection(evidence("stored-before-forwarded"))
    two = connection(evidence("acks-before-data"), evidence("window-alternates"))
    judged = cell(one, two)
    assert judged.verdict in (Verdict.SPLIT_TCP, Verdict.TCP_PROXY)
    assert "kind is uncertain" in judged.reason


def test_connections_that_contradict_each_other_are_inconclusive_however_firm_one_side_is():
    regular = [connection(evidence("same-packets"), evidence("acks-only-from-receiver"), task="a") for _ in range(9)]
    split = connection(evidence("acks-before-data"), size=5_000_000, task="b")
    judged = cell(*regular, split)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "9 end to end and one split, all split ones larger" in judged.reason
    assert "in b" in judged.reason
    assert "in a" in judged.reason


def test_parts_that_differ_in_time_are_reported():
    regular = replace(connection(evidence("same-packets")), started_unix_ns=1)
    split = replace(connection(evidence("other-packets")), started_unix_ns=2)
    assert "all split ones later" in cell(regular, split).reason
    assert "all split ones earlier" in cell(replace(split, started_unix_ns=0), regular).reason
    assert "all split ones" not in cell(replace(split, started_unix_ns=1), regular).reason


def test_a_split_control_connection_is_reported_and_decides_nothing():
    control = connection(evidence("other-packets"), role="control", set_aside="It is no transfer (control).")
    judged = cell(connection(evidence("same-packets")), control)
    assert judged.verdict is Verdict.REGULAR
    assert "control connection is split" in judged.reason


def test_without_captures_there_is_a_reason():
    judged = cell(lacking=("there are no captures at the mobile without root",))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.reason == "There are no captures at the mobile without root."
    assert judged.probability[Verdict.REGULAR] == pytest.approx(0.5)


def test_with_one_capture_the_reason_is_what_is_missing_and_what_experiments_hint_at():
    alone = connection(IdentityFinding.NEEDS_SECOND_CAPTURE.undecided("identity", "Only one capture."))
    pair = replace(alone.pair, vantages=alone.pair.vantages[:1])
    lacking = ("there are no captures at the mobile without root",)
    judged = cell(replace(alone, pair=pair), lacking=lacking)
    assert judged.reason == ("There are no captures at the mobile without root. The other measurements do not decide.")
    hinted = cell(replace(alone, pair=pair), lacking=lacking, active=(evidence("dead-port-answered"),))
    assert hinted.verdict is Verdict.INCONCLUSIVE
    assert "dead-port-answered was found." in hinted.reason


def of_size(finding: str, size: int, task: str):
    return connection(evidence(finding), size=size, task=task)


SHORT = [of_size("same-packets", 100_000, f"short-{number}") for number in range(2)]
LONG = [of_size("other-packets", 4_000_000, f"long-{number}") for number in range(2)]


def test_a_box_that_begins_after_some_bytes_is_a_split_from_there_on():
    held = evidence("acks-only-from-receiver")
    judged = cell(*SHORT, *LONG, active=(held,))
    assert judged.verdict is Verdict.SPLIT_TCP
    assert judged.from_bytes == 100_000
    assert "transfers of up to 100 kB are end to end, those from 4 MB on are split" in judged.reason
    assert "Of 4 connections 2 are split" in judged.reason


@pytest.mark.parametrize(
    "connections",
    [
        (*SHORT, LONG[0]),
        (SHORT[0], *LONG),
        (*SHORT, *(replace(item, pair=replace(item.pair, payload_bytes_down=150_000)) for item in LONG)),
        (*SHORT, *LONG, of_size("same-packets", 4_000_000, "odd")),
        (*(of_size("same-packets", 9_000_000, name) for name in "ab"), *LONG),
    ],
    ids=["one-long", "one-short", "sizes-too-near", "one-long-regular", "long-ones-regular"],
)
def test_sizes_that_do_not_set_the_camps_apart_twice_are_a_contradiction(connections):
    judged = cell(*connections)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.from_bytes is None
    assert all(item.task in judged.reason for item in connections[:3])


def undecided(size: int, task: str):
    """A connection whose captures do not decide, since a middlebox made acknowledgements in it."""
    made = connection(evidence("acks-nobody-sent"), size=size, task=task)
    return replace(made, pair=replace(made.pair, verdict=Verdict.INCONCLUSIVE, reason="Acknowledgements were made."))


def test_short_transfers_say_nothing_of_longer_ones_that_could_not_be_judged():
    judged = cell(*SHORT, undecided(4_000_000, "a"), undecided(4_000_000, "b"))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.reason.startswith(
        "Transfers of up to 100 kB are end to end; whether those of 4 MB are, could not be judged, and a middlebox may "
        "begin between the two. In a: Acknowledgements were made. There is no evidence for a split. Evidence for end "
        "to end, from "
    )
    held = evidence("acks-only-from-receiver")
    assert cell(*SHORT, undecided(4_000_000, "a"), active=(held,)).verdict is Verdict.REGULAR
    one = of_size("same-packets", 4_000_000, "c")
    assert cell(*SHORT, undecided(4_000_000, "a"), one).verdict is Verdict.REGULAR
    assert cell(*SHORT, undecided(150_000, "a")).verdict is Verdict.REGULAR


def by_turns(*kinds: str, sizes: tuple[int, ...] = (100_000, 4_000_000, 4_000_000, 100_000)):
    """Connections one after the other, `s` split and `r` end to end."""
    found = {"s": "other-packets", "r": "same-packets"}
    made = (of_size(found[kind], size, f"t{n}") for n, (kind, size) in enumerate(zip(kinds, sizes, strict=False)))
    return [replace(item, started_unix_ns=1_000 + n) for n, item in enumerate(made)]


def test_a_box_that_takes_every_second_connection_is_found_and_said():
    for kinds in ("srsr", "rsrs"):
        judged = cell(*by_turns(*kinds), active=(evidence("acks-only-from-receiver"),))
        assert judged.verdict is Verdict.SPLIT_TCP
        assert judged.reason.startswith(
            "The middlebox takes some connections only: of 4 that are alike, 2 are split and 2 end to end, by turns."
        )
        assert "cannot be judged" not in judged.reason
        assert split_probability(judged) >= DECISION_PROBABILITY


@pytest.mark.parametrize("kinds", ["ssrr", "rrss", "srrs", "rrrs", "rs"])
def test_what_began_or_ended_or_happened_once_is_a_contradiction(kinds):
    sizes = (100_000,) * 4
    assert cell(*by_turns(*kinds, sizes=sizes)).verdict is Verdict.INCONCLUSIVE


def test_turns_that_are_sizes_are_no_share():
    sizes = (100_000, 4_000_000, 100_000, 4_000_000)
    late = cell(*by_turns(*"rsrs", sizes=sizes))
    assert (late.verdict, late.from_bytes) == (Verdict.SPLIT_TCP, 100_000)
    assert cell(*by_turns(*"srsr", sizes=sizes)).verdict is Verdict.INCONCLUSIVE


def test_many_that_disagree_are_named_and_the_rest_counted():
    regular = [connection(evidence("same-packets"), task=f"r{number}") for number in range(5)]
    reason = cell(*regular, connection(evidence("other-packets"), task="odd")).reason
    assert "End to end, in r0, r1, r2 and 2 more: same-packets was found." in reason
    assert "Split, in odd: other-packets was found." in reason


def test_a_split_that_begins_late_has_its_first_byte():
    late = replace(evidence("acks-before-data"), numbers={"from_bytes": 500_000})
    judged = cell(connection(late))
    assert (judged.verdict, judged.from_bytes) == (Verdict.SPLIT_TCP, 500_000)
    assert "split from 500 kB on" in judged.reason
    assert cell(connection(evidence("acks-before-data"))).from_bytes is None


def test_an_inconclusive_cell_shows_both_sides_and_where_they_were_found():
    split = FINDINGS["more-taken-than-receiver-holds"].evidence("slow-reader", 1.0, "More was taken.")
    judged = cell(connection(evidence("same-packets", 0.6), task="transfers-1"), active=(split,))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.reason == (
        "Evidence for a split, from slow-reader: More was taken. "
        "Evidence for end to end, from transfers-1: same-packets was found."
    )
    hinted = cell(connection(evidence("dead-port-answered")))
    assert hinted.reason == (
        "Evidence for a split, from t1: dead-port-answered was found. There is no evidence for end to end."
    )
    weak = cell(connection(evidence("dead-port-silent")))
    assert weak.reason == (
        "There is no evidence for a split. Evidence for end to end, from t1: dead-port-silent was found. "
        "No method found enough to "
        "decide."
    )


@given(st.lists(connections, max_size=5), st.lists(findings, max_size=3))
def test_an_inconclusive_cell_never_shows_one_side_only(some, active):
    judged = cell(*some, active=tuple(active))
    found = [*active, *(item for one in some for item in one.pair.evidence)]
    if judged.verdict is Verdict.INCONCLUSIVE and found:
        named = "vidence for a split" in judged.reason
        assert named == ("vidence for end to end" in judged.reason)
        assert named or ("Split, in" in judged.reason and "End to end, in" in judged.reason)


def test_a_cell_has_the_mechanism_of_its_split():
    assert cell(connection(evidence("another-certificate"))).mechanism is Mechanism.TLS_INTERCEPTION
    assert cell(connection(evidence("same-packets"))).mechanism is None
    early = [connection(evidence("same-data"), evidence("acks-before-data"), task=name) for name in "ab"]
    judged = cell(*early)
    assert (judged.verdict, judged.mechanism) == (Verdict.SPLIT_TCP, Mechanism.LOCAL_ACKNOWLEDGEMENT)
    contradicted = cell(*early, connection(evidence("same-packets")))
    assert (contradicted.verdict, contradicted.mechanism) == (Verdict.INCONCLUSIVE, None)


def test_held_acknowledgements_that_came_too_soon_decide_beside_data_that_are_the_far_ends():
    held = (evidence("acks-not-from-receiver", 0.9), evidence("acks-sooner-than-path", 0.9))
    judged = cell(connection(evidence("acks-nobody-sent")), active=held)
    assert (judged.verdict, judged.mechanism) == (Verdict.SPLIT_TCP, Mechanism.LOCAL_ACKNOWLEDGEMENT)


def regular(*items: Evidence, size: int, task: str):
    """A connection that its captures call regular, whatever the table says of these findings."""
    made = connection(*items, size=size, task=task)
    return replace(made, pair=replace(made.pair, verdict=Verdict.REGULAR, reason="Nothing came early.", mechanism=None))


def test_short_transfers_with_made_acknowledgements_do_not_contradict_local_acknowledgement():
    long = [connection(evidence("same-data"), evidence("acks-before-data"), size=4_000_000, task=name) for name in "ab"]
    long = [replace(one, pair=replace(one.pair, mechanism=judge(one.pair.evidence).mechanism)) for one in long]
    short = [regular(evidence("acks-nobody-sent"), size=60_000, task=name) for name in "cd"]
    judged = cell(*short, *long)
    assert (judged.verdict, judged.mechanism) == (Verdict.SPLIT_TCP, Mechanism.LOCAL_ACKNOWLEDGEMENT)
    assert judged.from_bytes is None
    relayed = [connection(evidence("other-packets"), size=4_000_000, task=name) for name in "ab"]
    assert cell(short[0], *relayed).verdict is Verdict.INCONCLUSIVE
