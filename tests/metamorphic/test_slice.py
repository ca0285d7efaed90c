"""A random slice of changed pairs: no regular connection is called split, no split one regular."""

from __future__ import annotations

from pathlib import Path

from benchmarks.metamorphic.pairs import sources
from benchmarks.metamorphic.run import score
from pepscope.results.verdicts import Verdict

TESTS = Path(__file__).parents[1]

#: Changed connections that are judged: some twenty seconds on two processors.
JUDGEMENTS = 400

#: A detector that decides nothing is never wrong. Of this slice three quarters are decided.
LEAST_DECIDED_SHARE = 0.65


def test_a_random_slice_stays_within_what_the_changes_allow(tmp_path: Path) -> None:
    """A failing case: `python -m benchmarks.metamorphic --corpus tests/corpus --corpus tests/fresh --seed slice --case`
    and its number."""
    found = sources([TESTS / "corpus", TESTS / "fresh"])
    results = score("slice", found, JUDGEMENTS, 2, tmp_path / "slice.jsonl", "this")
    wrong = [
        (one.number, one.changes, judgement.flow, judgement.verdict, judgement.reason)
        for one in results
        for judgement in one.judgements
        if judgement.false_alarm or judgement.called_regular or judgement.crashed
    ]
    assert not wrong
    verdicts = [judgement.verdict for one in results for judgement in one.judgements]
    decided = sum(verdict in (Verdict.REGULAR, Verdict.SPLIT_TCP, Verdict.TCP_PROXY) for verdict in verdicts)
    assert decided >= LEAST_DECIDED_SHARE * len(verdicts)
