"""What calibration rests on: judged flows whose truth is known, as validation scores them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.validation.score import Case, Score, score_case
from pepscope.results.hypotheses import Hypothesis

#: A truth's class, or its mechanism where that is more specific, as a hypothesis of the detector.
_OF_CLASS = {"regular": Hypothesis.END, "split": Hypothesis.RELAY, "proxy": Hypothesis.STORE}
_OF_MECHANISM = {"local-acknowledgement": Hypothesis.LOCAL}


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow whose truth is known: which hypothesis holds, what was found, and the probabilities that came of it."""

    truth: Hypothesis
    findings: tuple[tuple[str, float], ...]
    split: float
    #: Of a TCP proxy, given a split.
    stored: float
    #: Whether the set-up allows a relay and a store to be distinguished.
    kind_shows: bool

    @property
    def is_split(self) -> bool:
        """Whether something terminates the connection in between."""
        return self.truth is not Hypothesis.END


def flow_of(score: Score) -> Flow | None:
    """The score as material; None where the flow was not judged."""
    if not score.probability:
        return None
    return Flow(
        _OF_MECHANISM.get(score.true_mechanism or "", _OF_CLASS[score.truth]),
        score.findings,
        *_shares(score.probability),
        len(score.acceptable & {"split-tcp", "tcp-proxy"}) == 1,
    )


def of_corpora(corpora: Sequence[Path], variants: Sequence[str], workers: int) -> list[Flow]:
    """Judge every run of these corpora, as recorded and in these variants."""
    cases = [
        Case(corpus, run, variant)
        for corpus in corpora
        for run in json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))["runs"]
        for variant in ("as recorded", *variants)
        if variant == "as recorded" or run["variant"] is None
    ]
    with ProcessPoolExecutor(workers) as pool:
        scores = [score for scored in pool.map(score_case, cases) for score in scored]
    return _known(scores)


def of_metamorphic(path: Path) -> list[Flow]:
    """The judgements of a metamorphic run, which keeps no findings."""
    flows = []
    with path.open(encoding="utf-8") as file:
        next(file)  # what was drawn from
        for line in file:
            number, _, _, rows = json.loads(line)
            for _, truth, acceptable, _, probability, _, paired in rows if number >= 0 else ():
                if probability is not None and paired:
                    named = dict(zip(("regular", "split-tcp", "tcp-proxy"), probability, strict=True))
                    kind_shows = len(set(acceptable) & {"split", "proxy"}) == 1
                    flows.append(Flow(_OF_CLASS[truth], (), *_shares(named), kind_shows))
    return flows


def _shares(probability: Mapping[str, float]) -> tuple[float, float]:
    split = 1.0 - probability["regular"]
    return split, probability["tcp-proxy"] / split if split > 0 else 0.0


def _known(scores: Iterable[Score]) -> list[Flow]:
    return [flow for score in scores if (flow := flow_of(score)) is not None]
