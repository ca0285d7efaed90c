"""Connections to results: examine them by every method, weigh what it finds of each, name the stretch covered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from detector.method import Context, Observation
from detector.methods import methods
from detector.methods.content import ContentFinding, EncryptionFinding
from detector.methods.handshake import WithoutServerFinding
from detector.pair import Pair
from detector.vantage.not_captured import cut_options, missing_packets
from detector.vantage.stretch import coverage, stretch_of
from detector.verdict.found import Found
from detector.verdict.mispairing import allow_for_mispairing
from detector.verdict.regular import Weighed, weigh
from detector.verdict.weighing import Judgement, judge
from pepscope.results.evidence.columns import BoolArray, EvidenceColumns
from pepscope.results.finding import is_missing
from pepscope.results.verdicts import Evidence, Outcome, PairResult, Verdict


def judge_pair(pair: Pair) -> PairResult:
    """Judge a connection by what the packets of its pair show."""
    return judge_observations((Observation(pair),))[0]


def judge_observations(observations: Sequence[Observation]) -> list[PairResult]:
    """Judge connections, each by its own packets and by what the two captures show of each other."""
    results, found = judge_columns(observations)
    return [replace(result, evidence=found.evidence(row)) for row, result in enumerate(results)]


def judge_columns(observations: Sequence[Observation]) -> tuple[list[PairResult], Found]:
    """The same results without evidence, which stays in columns."""
    found = _found(observations)
    weighed = weigh(found)
    pairs = (observation.pair for observation in observations)
    return [_judged(pair, row, weighed, found) for row, pair in enumerate(pairs)], found


def _judged(pair: Pair, row: int, weighed: Weighed, found: Found) -> PairResult:
    least = pair.options.least_probability
    judgement = weighed.regular(row, least)
    if judgement is None:
        judgement = judge(_weighed(found.telling(row)), least_probability=least)
    judgement = allow_for_mispairing(judgement, pair, found.findings(row))
    vantages, leg = pair.vantages, pair.datagram_leg
    stretch = stretch_of(pair)
    covers = "" if judgement.verdict is Verdict.INCONCLUSIVE else coverage(stretch)
    return PairResult(
        vantages=pair.names,
        verdict=judgement.verdict,
        probability=judgement.probability,
        reason=f"{_with_what_is_missing(judgement, pair)} {covers}".strip(),
        evidence=(),
        packets=sum([v.connection.packets for v in vantages]) + (sum(leg.flow.datagrams) if leg else 0),
        payload_bytes_up=max([v.connection.up.stream_bytes for v in vantages]),
        payload_bytes_down=max([v.connection.down.stream_bytes for v in vantages]),
        duration_s=max([v.connection.last_time_ns - v.connection.first_time_ns for v in vantages]) / 1e9,
        started_ns=vantages[0].connection.first_time_ns,
        pairing_confidence=pair.pairing_confidence,
        pairing_ground=pair.pairing_ground,
        mechanism=judgement.mechanism,
        stretch=stretch,
    )


def examine(observations: Sequence[Observation]) -> list[tuple[Evidence, ...]]:
    """What the methods that apply to each connection find, in the order of the registry; each is called once."""
    found = _found(observations)
    return [found.evidence(row) for row in range(len(observations))]


def _found(observations: Sequence[Observation]) -> Found:
    parts: list[EvidenceColumns] = []
    has_leg = np.array([observation.pair.datagram_leg is not None for observation in observations], np.bool_)
    for method in methods():
        rows = [row for row, observation in enumerate(observations) if method.applies(observation)]
        if not rows:
            continue
        applying = np.array(rows, np.int64)
        made = method.examine(Context([observations[row] for row in rows])).as_columns()
        if len(rows) < len(observations):
            made = [part.at(applying) for part in made]
        if has_leg.any() and not method.reads_datagrams:
            made = [_relevant(part, has_leg) for part in made]
        parts += made
    return Found(len(observations), _without_explained(parts))


def _without_explained(parts: Sequence[EvidenceColumns]) -> list[EvidenceColumns]:
    """The evidence; where it is known what the missing counterpart means, without the finding that it is missing."""
    answered = [part.rows for part in parts if part.form.finding is WithoutServerFinding.ANSWERED_WITHOUT_SERVER]
    if not answered:
        return list(parts)
    known = np.concatenate(answered)
    return [
        part.of(~np.isin(part.rows, known)) if part.form.finding is ContentFinding.NO_COUNTERPART else part
        for part in parts
    ]


def _relevant(part: EvidenceColumns, has_leg: BoolArray) -> EvidenceColumns:
    """What to report: an undecided finding adds nothing if the connection's other end was found in UDP."""
    return part.of(~has_leg[part.rows]) if part.form.outcome is Outcome.INAPPLICABLE else part


def _weighed(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The evidence to weigh: if a candidate for the other leg is named, no other finding reports what is missing."""
    named = any(item.finding is EncryptionFinding.ENCRYPTED_CANDIDATE for item in evidence)
    if not named:
        return list(evidence)
    return [item for item in evidence if item.finding is EncryptionFinding.ENCRYPTED_CANDIDATE or not is_missing(item)]


def _with_what_is_missing(judgement: Judgement, pair: Pair) -> str:
    """The reason, then what the captures lack; cut TCP options only if the verdict is inconclusive."""
    lacking = [missing_packets(pair)]
    if judgement.verdict is Verdict.INCONCLUSIVE:
        lacking.append(cut_options(pair))
    return " ".join(sentence for sentence in (judgement.reason, *lacking) if sentence)
