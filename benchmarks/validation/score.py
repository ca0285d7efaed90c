"""What the detector says of each flow of a corpus, beside what is true."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.validation.askings import AS_RECORDED, ASKINGS
from benchmarks.validation.variants import VARIANTS, TwoEnds
from pepscope.results.verdicts import SPLIT_VERDICTS
from tests.captures.containers import CaptureFile, read_capture, write_pcap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CORPUS = Path(__file__).parents[2] / "tests" / "corpus"
UNPAIRED = "unpaired"
VERDICTS = ("regular", "split-tcp", "tcp-proxy", "inconclusive", UNPAIRED)
KIND_OF_CLASS = {"regular": "regular", "split": "split-tcp", "proxy": "tcp-proxy"}
VERDICT_OF_KIND = {**KIND_OF_CLASS, UNPAIRED: "inconclusive"}  # no second vantage point: undecidable
UNDECIDED = "undecided"
ALONE = ("ack_timing", "identity")


@dataclass(frozen=True, slots=True)
class Case:
    """A run of a corpus' manifest in one variant of its captures, asked about in one way."""

    corpus: Path
    run: dict[str, Any]
    variant: str
    asking: str = AS_RECORDED

    @property
    def captures(self) -> str:
        """What the report calls these captures."""
        return self.variant if self.asking == AS_RECORDED else self.asking


@dataclass(frozen=True, slots=True)
class Score:
    """The judgement of one flow. `outcomes` are those of each method, `alone` the verdict of one method's evidence."""

    case: str
    variant: str
    truth: str
    acceptable: frozenset[str]
    verdict: str
    reason: str
    outcomes: dict[str, str]
    alone: dict[str, str]
    mechanism: str | None = None
    true_mechanism: str | None = None
    acceptable_mechanisms: frozenset[str | None] = frozenset()
    #: Of regular, split-tcp and tcp-proxy; empty where the flow was not judged.
    probability: Mapping[str, float] = field(default_factory=dict)
    #: Findings with an outcome, and their strengths.
    findings: tuple[tuple[str, float], ...] = ()

    @property
    def false_alarm(self) -> bool:
        """A regular flow called split."""
        return self.truth == "regular" and self.verdict in SPLIT_VERDICTS

    @property
    def called_regular(self) -> bool:
        """A split flow called regular."""
        return self.truth != "regular" and self.verdict == "regular"

    @property
    def found(self) -> bool:
        """Regular confirmed, or a split of whichever kind found where it can be."""
        if self.truth == "regular":
            return self.verdict == "regular"
        return self.verdict in SPLIT_VERDICTS or self.kind_right

    @property
    def kind_right(self) -> bool:
        """The verdict is one that the truth allows."""
        return self.verdict in self.acceptable

    @property
    def mechanism_claimed(self) -> bool:
        """A mechanism was named for a split whose mechanism is known."""
        return self.true_mechanism is not None and self.mechanism not in (None, UNDECIDED)

    @property
    def mechanism_right(self) -> bool:
        """The named mechanism is one that the truth allows."""
        return self.mechanism_claimed and self.mechanism in self.acceptable_mechanisms


def score_case(case: Case) -> list[Score]:
    """Detect on the two captures of a case and compare with its truth, flow by flow."""
    with tempfile.TemporaryDirectory(prefix="pepscope-") as directory:
        paths = _files(case, Path(directory))
        asking = ASKINGS[case.asking]
        paths = {end: paths[end] for end in asking.ends if end in paths}
        return score_files(case, paths, asking.options)


def score_files(case: Case, paths: dict[str, str], options: Mapping[str, Any] | None = None) -> list[Score]:
    """Detect on these captures, by end, and compare with the case's truth, flow by flow."""
    result = _detect(list(paths.values()), options or {})
    pairs = _pairs(result)
    scores = [_score_flow(case, flow, pairs, paths) for flow in case.run["flows"]]
    return scores + _strays(case, pairs, paths)


def _files(case: Case, directory: Path) -> dict[str, str]:
    """Paths of the case's captures by end; variants are written into `directory`."""
    recorded = {
        end: case.corpus / case.run["files"][end]["name"] for end in ("server", "mobile") if end in case.run["files"]
    }
    if case.variant == AS_RECORDED:
        return {end: str(path) for end, path in recorded.items()}
    ends = VARIANTS[case.variant](TwoEnds(read_if_there(recorded.get("server")), read_if_there(recorded.get("mobile"))))
    made: dict[str, CaptureFile | None] = {"server": ends.server, "mobile": ends.mobile}
    written = {}
    for end, capture in made.items():
        if capture is not None:
            path = directory / f"{end}.pcap"
            path.write_bytes(write_pcap(capture.frames, capture.link_type, nanoseconds=ends.nanoseconds))
            written[end] = str(path)
    return written


def read_if_there(path: Path | None) -> CaptureFile | None:
    """The capture of an end that the run has."""
    return None if path is None else read_capture(path)


def _detect(paths: list[str], options: Mapping[str, Any]) -> Any:
    import pepscope

    return pepscope.detect(*paths, **options)


@dataclass(frozen=True, slots=True)
class _JudgedPair:
    vantages: dict[str, frozenset[str]]  # capture path to end points
    pair: Any


def _pairs(result: Any) -> list[_JudgedPair]:
    return [
        _JudgedPair({v.capture: frozenset((v.client, v.server)) for v in pair.vantages}, pair) for pair in result.pairs
    ]


def _ends(text: str) -> frozenset[str]:
    """`a:1 > b:2` as the manifest writes it, in the form of the JSON contract."""
    ends = []
    for end in text.split(" > "):
        address, _, port = end.rpartition(":")
        address = address.strip("[]")
        ends.append(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
    return frozenset(ends)


def _wanted(flow: dict[str, Any], paths: dict[str, str]) -> dict[str, frozenset[str]]:
    return {
        paths[end]: _ends(flow[f"{end}_capture"])
        for end in ("server", "mobile")
        if end in paths and flow.get(f"{end}_capture")
    }


def _score_flow(case: Case, flow: dict[str, Any], pairs: list[_JudgedPair], paths: dict[str, str]) -> Score:
    wanted = _wanted(flow, paths)
    found = next((judged for judged in pairs if judged.vantages == wanted), None)
    acceptable = frozenset(VERDICT_OF_KIND[kind] for kind in flow["acceptable_kinds"])
    if found is None and UNPAIRED in flow["acceptable_kinds"]:
        found = next((judged for judged in pairs if judged.vantages.items() <= wanted.items()), None)
    common = (case.run["id"], case.captures, flow["class"], acceptable)
    true_mechanism = flow.get("mechanism")
    mechanisms = frozenset(flow.get("acceptable_mechanisms", [true_mechanism]))
    if found is None:
        return Score(
            *common, UNPAIRED, "the two captures of this flow were not paired", {}, {}, None, true_mechanism, mechanisms
        )
    mechanism = found.pair.mechanism
    evidence = found.pair.evidence
    outcomes = {item.method: str(item.outcome) for item in evidence}
    alone = {method: _verdict_of([item for item in evidence if item.method == method]) for method in ALONE}
    return Score(
        *common, str(found.pair.verdict), found.pair.reason, outcomes, alone,
        None if mechanism is None else str(mechanism), true_mechanism, mechanisms,
        {str(kind): float(value) for kind, value in found.pair.probability.items()},
        tuple((item.finding, item.strength) for item in evidence if str(item.outcome) != "inapplicable"),
    )  # fmt: skip


def _verdict_of(evidence: list[Any]) -> str:
    from detector.verdict.weighing import judge

    return str(judge(evidence).verdict)


def _strays(case: Case, pairs: list[_JudgedPair], paths: dict[str, str]) -> list[Score]:
    """Split verdicts on what is no flow of the truth, in a run where everything is regular: false alarms too."""
    if any(flow["class"] != "regular" for flow in case.run["flows"]):
        return []
    known = [_wanted(flow, paths) for flow in case.run["flows"]]
    return [
        Score(
            case.run["id"], case.captures, "regular", frozenset({"regular"}),
            str(judged.pair.verdict), f"(a pair that does not exist) {judged.pair.reason}", {}, {},
        )
        for judged in pairs
        if judged.vantages not in known and str(judged.pair.verdict) in SPLIT_VERDICTS
    ]  # fmt: skip


def cases(corpus: Path, variants: Sequence[str], askings: Sequence[str], only: str | None) -> list[Case]:
    """Every run as recorded, every base run in every variant, and every run asked about in every way that is fair."""
    runs = json.loads((corpus / "manifest.json").read_text())["runs"]
    chosen = [run for run in runs if only is None or only in run["id"]]
    return (
        [Case(corpus, run, AS_RECORDED) for run in chosen]
        + [Case(corpus, run, variant) for variant in variants for run in chosen if run["variant"] is None]
        + [Case(corpus, run, AS_RECORDED, name) for name in askings for run in chosen if ASKINGS[name].fair(run)]
    )
