"""Connections that are judged together are each judged as alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from detector.detection import detect
from detector.method import Context, Findings, Method, Observation, compares_streams
from detector.pair import Pair
from detector.verdict import judging, loading_order
from detector.verdict.judging import judge_columns, judge_observations, judge_pair
from pepscope.results.verdicts import Evidence
from tests.detector.corpus import CORPUS, pairs

RUNS = ("spl_ha_dl_small_umts", "reg_dl_cubic_lte", "reg_dl_short10k")


@pytest.fixture
def several() -> list[Pair]:
    return [pairs(run)[0] for run in RUNS]


def test_pairs_that_are_judged_together_get_the_results_that_each_gets_alone(several: list[Pair]) -> None:
    results = judge_observations([Observation(pair) for pair in several])
    assert results == [judge_pair(pair) for pair in several]
    assert len({result.verdict for result in results}) > 1
    assert judge_observations(()) == []


def test_a_method_is_called_once_for_all_to_which_it_applies(
    several: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    several[1] = replace(several[1], encrypted=True)
    calls: list[list[Pair]] = []

    def method(name: str, applies: object) -> Method:
        def find(context: Context) -> Findings:
            calls.append([observation.pair for observation in context.observations])
            found = [Evidence.inapplicable(name, "seen", str(pair.names)) for pair in calls[-1]]
            return Findings([None, *found[1:]])  # nothing of the first

        return Method(name, name, (), find, applies)  # type: ignore[arg-type]

    declared = (method("streams", compares_streams), method("all", lambda _: True), method("none", lambda _: False))
    monkeypatch.setattr(judging, "methods", lambda: declared)
    judged = judge_columns([Observation(pair) for pair in several]).found
    found = [judged.evidence(row) for row in range(len(several))]
    assert calls == [[several[0], several[2]], several]
    assert [[item.method for item in evidence] for evidence in found] == [[], ["all"], ["streams", "all"]]
    assert [evidence[-1].summary for evidence in found[1:]] == [str(pair.names) for pair in several[1:]]


@pytest.mark.parametrize(
    "names",
    [
        ("prx_ngx_par6.mob", "prx_ngx_par6.srv"),
        ("prx_ngx_par6.mob",),
        ("prx_ngx_par6.mob", "spl_ha_dl_small_umts.srv"),  # no connection in common
    ],
)
def test_results_do_not_depend_on_how_many_are_judged_together(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(CORPUS / f"{name}.pcap.gz") for name in names]
    at_once = detect(*paths)
    assert len(at_once.pairs) > 3
    monkeypatch.setattr(loading_order, "MOST_PACKETS_TOGETHER", 1)
    assert detect(*paths) == at_once
