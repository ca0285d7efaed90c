"""One labelled run judged by each detector: the work that a process does."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from detector.corpora.validation.answers import Answer, Said, payload_of, read_answer
from detector.corpora.validation.labels import Case, Ends, LabelledRun, end_point
from detector.corpora.validation.other_detector import OtherDetector, ask
from detector.corpora.validation.scoring import FAILED, NOT_JUDGED, Judgement, score_of
from detector.detection import detect
from pepscope.captures.capture import open_capture
from pepscope.errors import PepscopeError


@dataclass(frozen=True, slots=True)
class RunWork:
    """A run as a worker gets it: nothing but values. `paths` are absolute: a worker may have another directory."""

    run: LabelledRun
    paths: tuple[str, ...]
    others: tuple[OtherDetector, ...]
    least_probability: float
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Answered:
    """One detector on one run: a judgement a case, how long it took, and what it said of unlabelled connections."""

    judgements: tuple[Judgement, ...]
    seconds: float
    connections: int
    unlabelled: int
    unlabelled_split: int
    failure: str | None


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run with the cases that its labels came to, and the answer of each detector, ours first."""

    name: str
    captures: tuple[str, ...]
    digests: tuple[str, ...]
    cases: tuple[Case, ...]
    answers: tuple[Answered, ...]


def judge_run(work: RunWork) -> JudgedRun:
    """Judge a run by all detectors; where one fails, that is its score.

    Raises CaptureError where a label is of every connection of a capture that cannot be read; OSError.
    """
    cases = _cases(work.run, work.paths[0])
    own, said = _answered(cases, partial(_own, work))
    others = [_answered(cases, partial(ask, each, work.paths))[0] for each in work.others]
    cases = [_with_factors(case, each, len(work.paths)) for case, each in zip(cases, said, strict=True)]
    digests = tuple(_digest(path) for path in work.paths)
    names = tuple(str(path) for path in work.run.captures)
    return JudgedRun(work.run.name, names, digests, tuple(cases), (own, *others))


def _digest(path: str) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _cases(run: LabelledRun, path: str) -> list[Case]:
    """The labels of a run, those of every connection as one of each that carries payload in the first capture."""
    whole = [case for case in run.cases if case.is_of_every_connection]
    single = [case for case in run.cases if not case.is_of_every_connection]
    if whole:
        labelled = {case.ends[0].either_way for case in single if case.ends[0] is not None}
        for connection in open_capture(path).connections:
            ends = Ends(end_point(connection.client), end_point(connection.server))
            carries = connection.up.payload_bytes + connection.down.payload_bytes > 0
            if carries and ends.either_way not in labelled:
                single.append(replace(whole[0], ends=(ends, None)))
    return single


def _own(work: RunWork) -> Answer:
    result = detect(*work.paths, least_probability=work.least_probability, memory_bytes=work.memory_bytes)
    return read_answer(result.to_dict(), work.paths)


def _answered(cases: Sequence[Case], answer_of: Callable[[], Answer]) -> tuple[Answered, list[Said | None]]:
    started = time.monotonic()
    try:
        answer = answer_of()
    except PepscopeError as error:
        seconds, reason = time.monotonic() - started, str(error)
        failed = tuple(Judgement(FAILED, score_of(case, FAILED), None, None, reason) for case in cases)
        return Answered(failed, seconds, 0, 0, 0, reason), [None] * len(cases)
    seconds = time.monotonic() - started
    said = [answer.of(case) for case in cases]
    judgements = tuple(_judgement(case, each) for case, each in zip(cases, said, strict=True))
    rest = answer.unlabelled
    split = sum(each.verdict.is_split for each in rest)
    return Answered(judgements, seconds, answer.connections, len(rest), split, None), said


def _judgement(case: Case, said: Said | None) -> Judgement:
    if said is None:
        kind = "group" if case.group is not None else "connection"
        return Judgement(NOT_JUDGED, score_of(case, NOT_JUDGED), None, None, f"the detector spoke of no such {kind}")
    verdict = said.verdict.value
    return Judgement(verdict, score_of(case, verdict, said.where), said.split_probability, said.where, said.reason)


def _with_factors(case: Case, said: Said | None, captures: int) -> Case:
    """The case with the circumstances that labels need not give: what is judged, from what, and its payload."""
    known = {
        "captures": "two ends" if captures == 2 else "one end",
        "judged": "connection" if case.group is None else "group",
        **(payload_of(said) if said is not None and case.group is None else {}),
    }
    return replace(case, factors={**known, **case.factors})
