"""Connections to results: examine them by every method, weigh what it finds of each, name the stretch covered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_

import numpy as np
from msgspec import Struct

from detector.method import Context, LoadedObservations, Observation
from detector.methods import methods
from detector.methods.content import ContentFinding, EncryptionFinding
from detector.methods.handshake import WithoutServerFinding
from detector.pair import Pair
from detector.streams.loaded import LoadedPairs, confidence_of, grounds_of, legs_of, option_of
from detector.streams.sides import Sides
from detector.vantage.not_captured import cut_options, have_cut_options, lack_packets, missing_packets
from detector.vantage.one_place import OnePlace
from detector.vantage.stretch import stretches_of
from detector.verdict.found import Found, Piece
from detector.verdict.mispairing import allow_for_mispairing, are_doubtful
from detector.verdict.posterior import weigh
from detector.verdict.shown import Shown
from detector.verdict.weighing import MAY_BE_LOCAL, Judgement, judge
from pepscope.results.distinct import are_among
from pepscope.results.evidence.columns import BoolArray, EvidenceColumns, Int64Array
from pepscope.results.finding import is_missing
from pepscope.results.pair_table import PairTable
from pepscope.results.pairs.columns import JUDGED, OWN, PairRows
from pepscope.results.pairs.stretch import StretchRows, coverage
from pepscope.results.verdicts import FloatArray, Mechanism, Outcome, PairResult, Verdict

#: Every verdict with every mechanism, so that one column holds both.
_KINDS = tuple((verdict, mechanism) for verdict in Verdict for mechanism in (None, *Mechanism))
_PLACE_OF = {kind: place for place, kind in enumerate(_KINDS)}


class Judged(Struct, frozen=True):
    """Verdicts on connections as columns, what was found on them, and which may be two transfers."""

    rows: PairRows
    found: Found
    are_doubtful: BoolArray


class _Verdicts(Struct, frozen=True):
    """Verdicts and reasons as `PairRows` has them; `kind` are places in `_KINDS`."""

    kind: Int64Array
    probability: tuple[FloatArray, ...]
    reason_item: Int64Array
    texts: dict[int, str]

    def put(self, row: int, judgement: Judgement, text: str) -> None:
        """A judgement with a reason of its own."""
        self.kind[row] = _PLACE_OF[judgement.verdict, judgement.mechanism]
        for verdict, shares in zip(JUDGED, self.probability, strict=True):
            shares[row] = judgement.probability[verdict]
        self.reason_item[row], self.texts[row] = OWN, text


def judge_pair(pair: Pair) -> PairResult:
    """Judge a connection by what the packets of its pair show."""
    return judge_pairs((pair,))[0]


def judge_pairs(pairs: Sequence[Pair]) -> list[PairResult]:
    """Judge connections, each by what the packets of its pair show."""
    return judge_observations(_as_observed(pairs)) if pairs else []


def verdicts_on(pairs: Sequence[Pair]) -> list[Verdict]:
    """The verdicts of `judge_pairs` alone."""
    if not pairs:
        return []
    rows = judge_columns(_as_observed(pairs)).rows
    return [rows.verdicts[kind] for kind in rows.verdict.tolist()]


def _as_observed(pairs: Sequence[Pair]) -> Sequence[Observation]:
    """Pairs of which the captures show nothing else."""
    return LoadedObservations(pairs) if isinstance(pairs, LoadedPairs) else [Observation(pair) for pair in pairs]


def judge_observations(observations: Sequence[Observation]) -> list[PairResult]:
    """Judge connections, each by its own packets and by what the two captures show of each other."""
    judged, table = judge_columns(observations), PairTable()
    table.append_rows(judged.rows, ())
    return [table.with_evidence(row, judged.found.evidence(row)) for row in range(len(observations))]


def judge_columns(
    observations: Sequence[Observation],
    seen: Sequence[Pair] | None = None,
    places: Sequence[OnePlace | None] = (),
    known_sides: Sides | None = None,
) -> Judged:
    """The same as columns. `seen` are the connections as both captures show them, where one of them was judged because
    both were taken at one of `places`; `known_sides` are those of the judged pairs, where they are known already."""
    pairs = Context(observations).pairs
    sides = Sides.of(pairs) if known_sides is None else known_sides
    found = _found(observations, sides)
    shown = pairs if seen is None else seen
    of_judged = Shown(pairs, sides)
    are_shown = shown is pairs or all(map(is_, shown, pairs))
    of_shown = of_judged if are_shown else Shown(shown, Sides.of(shown))
    stretches = stretches_of(shown, places or [None] * len(shown), of_shown.sides)
    doubtful = are_doubtful(pairs, found)
    verdicts = _verdicts(of_judged, found, doubtful, stretches)
    rows = PairRows(
        of_shown.vantage_rows(),
        [verdict for verdict, _ in _KINDS],
        verdicts.kind,
        [mechanism for _, mechanism in _KINDS],
        verdicts.probability,
        verdicts.reason_item,
        verdicts.texts,
        of_shown.packets(),
        of_judged.payload_bytes(),
        of_judged.lasted_ns() / 1e9,
        of_judged.started_ns(),
        confidence_of(shown),
        grounds_of(shown),
        stretches,
    )
    return Judged(rows, found, doubtful)


def _verdicts(judged: Shown, found: Found, doubtful: BoolArray, stretches: StretchRows) -> _Verdicts:
    """The verdicts: most by columns, the others one by one, because their reasons read several findings."""
    pairs = judged.pairs
    weighed = weigh(found)
    least = np.array(option_of(pairs, lambda options: options.least_probability), np.float64)
    regular, only_pass_data = (~doubtful & are(least) for are in (weighed.are_regular, weighed.only_pass_data))
    made = _Verdicts(
        np.where(regular, _PLACE_OF[Verdict.REGULAR, None], _PLACE_OF[Verdict.INCONCLUSIVE, None]),
        (1.0 - weighed.split, weighed.split * (1.0 - weighed.stored), weighed.split * weighed.stored),
        np.where(regular, weighed.for_end, weighed.same_data),
        {},
    )
    lacking, cut = lack_packets(judged.summaries), have_cut_options(judged.summaries)
    for row in np.flatnonzero(regular & lacking).tolist():
        made.texts[row] = missing_packets(pairs[row])
    for row in np.flatnonzero(only_pass_data).tolist():
        missing = missing_packets(pairs[row]) if lacking[row] else ""
        made.texts[row] = _together(MAY_BE_LOCAL, missing, cut_options(pairs[row]) if cut[row] else "")
    for row in np.flatnonzero(~(regular | only_pass_data)).tolist():
        pair = pairs[row]
        judgement = judge(_weighed(found.telling(row)), least_probability=pair.options.least_probability)
        if doubtful[row]:
            judgement = allow_for_mispairing(judgement, pair)
        undecided = judgement.verdict is Verdict.INCONCLUSIVE
        last = cut_options(pair) if undecided else coverage(stretches.at(row))
        made.put(row, judgement, _together(judgement.reason, missing_packets(pair), last))
    return made


def _together(*sentences: str) -> str:
    return " ".join([sentence for sentence in sentences if sentence])


def _found(observations: Sequence[Observation], sides: Sides) -> Found:
    """What the methods that apply to each connection find; each method is called once."""
    parts: list[EvidenceColumns] = []
    every = Context(observations, sides)
    has_leg = np.array([leg is not None for leg in legs_of(every.pairs)], np.bool_)
    contexts: dict[Callable[[Observation], bool], tuple[Sequence[int], Context]] = {}
    for method in methods():
        if every.are_plain and not method.judges_plain:
            continue
        # Methods that apply alike share a context, and what is computed for it.
        if method.applies not in contexts:
            rows = method.rows(observations)
            apply_to_all = len(rows) == len(observations)
            contexts[method.applies] = (
                rows,
                every if apply_to_all else Context([observations[row] for row in rows]),
            )
        rows, context = contexts[method.applies]
        if not rows:
            continue
        applying = np.array(rows, np.int64)
        made = method.examine(context).as_columns()
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
        part.of(~are_among(part.rows, known)) if part.form.finding is ContentFinding.NO_COUNTERPART else part
        for part in parts
    ]


def _relevant(part: EvidenceColumns, has_leg: BoolArray) -> EvidenceColumns:
    """What to report: an undecided finding adds nothing if the connection's other end was found in UDP."""
    return part.of(~has_leg[part.rows]) if part.form.outcome is Outcome.INAPPLICABLE else part


def _weighed(evidence: Sequence[Piece]) -> list[Piece]:
    """The evidence to weigh: if a candidate for the other leg is named, no other finding reports what is missing."""
    named = any(item.finding is EncryptionFinding.ENCRYPTED_CANDIDATE for item in evidence)
    if not named:
        return list(evidence)
    return [item for item in evidence if item.finding is EncryptionFinding.ENCRYPTED_CANDIDATE or not is_missing(item)]
