"""Connections to results: examine them by every method, weigh what it finds of each, name the stretch covered."""

from __future__ import annotations

from collections.abc import Sequence

from detector.method import Context, Observation
from detector.methods import methods
from detector.methods.content import ContentFinding, EncryptionFinding
from detector.methods.handshake import WithoutServerFinding
from detector.pair import Pair
from detector.vantage.not_captured import cut_options, missing_packets
from detector.vantage.stretch import coverage, stretch_of
from detector.verdict.mispairing import allow_for_mispairing
from detector.verdict.weighing import Judgement, judge
from pepscope.results.finding import is_missing
from pepscope.results.verdicts import Evidence, Outcome, PairResult, Verdict


def judge_pair(pair: Pair) -> PairResult:
    """Judge a connection by what the packets of its pair show."""
    return judge_observations((Observation(pair),))[0]


def judge_observations(observations: Sequence[Observation]) -> list[PairResult]:
    """Judge connections, each by its own packets and by what the two captures show of each other."""
    found = examine(observations)
    return [_judged(observation, evidence) for observation, evidence in zip(observations, found, strict=True)]


def _judged(observation: Observation, evidence: tuple[Evidence, ...]) -> PairResult:
    pair = observation.pair
    judgement = judge(_weighed(evidence), least_probability=pair.options.least_probability)
    judgement = allow_for_mispairing(judgement, pair, evidence)
    vantages, leg = pair.vantages, pair.datagram_leg
    stretch = stretch_of(pair)
    covers = "" if judgement.verdict is Verdict.INCONCLUSIVE else coverage(stretch)
    return PairResult(
        vantages=pair.names,
        verdict=judgement.verdict,
        probability=judgement.probability,
        reason=f"{_with_what_is_missing(judgement, pair)} {covers}".strip(),
        evidence=evidence,
        packets=sum(v.connection.packets for v in vantages) + (sum(leg.flow.datagrams) if leg else 0),
        payload_bytes_up=max(v.connection.up.stream_bytes for v in vantages),
        payload_bytes_down=max(v.connection.down.stream_bytes for v in vantages),
        duration_s=max(v.connection.last_time_ns - v.connection.first_time_ns for v in vantages) / 1e9,
        pairing_confidence=pair.pairing_confidence,
        pairing_ground=pair.pairing_ground,
        mechanism=judgement.mechanism,
        stretch=stretch,
    )


def examine(observations: Sequence[Observation]) -> list[tuple[Evidence, ...]]:
    """What the methods that apply to each connection find, in the order of the registry; each is called once."""
    found: list[list[Evidence]] = [[] for _ in observations]
    for method in methods():
        applying = [each for each in zip(observations, found, strict=True) if method.applies(each[0])]
        if not applying:
            continue
        made = method.examine(Context([observation for observation, _ in applying])).evidence
        for (observation, evidence), item in zip(applying, made, strict=True):
            if item is not None and (method.reads_datagrams or _is_relevant(item, observation.pair)):
                evidence.append(item)
    return [tuple(_without_explained(evidence)) for evidence in found]


def _without_explained(found: list[Evidence]) -> list[Evidence]:
    """The evidence; where it is known what the missing counterpart means, without the finding that it is missing."""
    if any(item.finding is WithoutServerFinding.ANSWERED_WITHOUT_SERVER for item in found):
        return [item for item in found if item.finding is not ContentFinding.NO_COUNTERPART]
    return found


def _is_relevant(item: Evidence, pair: Pair) -> bool:
    """Whether to report `item`: an undecided finding adds nothing if the connection's other end was found in UDP."""
    return pair.datagram_leg is None or item.outcome is not Outcome.INAPPLICABLE


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
