"""The search over open parameters finds what is planted, resumes exactly, and scores on seeds that chose nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import papers.search.command as search_command
from papers.command import reproduce as command
from papers.experiment import Experiment, Paper, sweep
from papers.library import PAPERS, load_paper
from papers.ren_lin.search import CELL, INTERFERENCE, PATH_LOSS
from papers.results import Assessment, Comparison, Statement, StatementOutcome
from papers.search.outcome import Candidate, SearchResult, search_text
from papers.search.scoring import score
from papers.search.searching import CHOICE_SEED, FILE, FINAL_SEED, SEARCH_SEED, evaluate_settings, run_search
from papers.search.sensitivity import runs_of, sensitivity, verdicts_of
from papers.search.space import OpenParameter, Results, Search, Settings, rounded
from papers.statements.evaluation import Judged
from papers.statements.table import StatementError
from papers.wei.experiments import radio
from papers.wei.measuring import measure_transfer
from pepscope.errors import UsageError
from reference_sim.intervals import mean_interval

R, N = StatementOutcome.REPRODUCED, StatementOutcome.NOT
SEARCHES = [search for name in PAPERS for search in load_paper(name).searches]
RATE, WINDOW, SHAPE = "rate, kbit/s", "first window, segments", "shape"
SIZES = (10_000, 100_000)
#: Settings that the planted statements were made with.
TRUTH: Settings = {RATE: 96.0, WINDOW: 1, SHAPE: "varying"}


def experiments(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
    values = {
        **radio(0.25 if settings[SHAPE] == "varying" else 0.0, rate_bit_s=1000.0 * float(settings[RATE])),
        "server.initial_window_segments": int(settings[WINDOW]),
    }
    campaigns = (
        sweep(
            f"planted-{size}",
            ("wei-regular",),
            grid={"traffic[0].bytes": (size,)},
            variants={"": values},
            repeats=repeats,
            seed=seed,
        )
        for size in SIZES
    )
    return [Experiment(one, measure_transfer) for one in campaigns]


def quantities(_settings: Settings, results: Results) -> Mapping[str, Any]:
    found = {
        f"rate_{size}": mean_interval([value / 1e3 for value in results[f"planted-{size}"].runs["throughput_bit_s"]])
        for size in SIZES
    }
    return {**found, "excess": found["rate_100000"].mean - 90.0}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """An inverse problem whose answer is known: throughputs of two files, published for a slower link."""
    directory = tmp_path_factory.mktemp("planted")
    search = Search(
        name="planted",
        title="A planted truth",
        statements=directory / "statements.toml",
        parameters=(
            OpenParameter(RATE, 128.0, (96.0, 150.0), "nothing", range=(80.0, 160.0)),
            OpenParameter(WINDOW, 3, (1, 10), "nothing", range=(1, 10)),
            OpenParameter(SHAPE, "varying", ("constant",), "nothing"),
        ),
        leads={"a slow link": {RATE: 85.0}},
        experiments=experiments,
        quantities=quantities,
        repeats=(3, 4, 8),
        sensitivity_repeats=4,
    )
    truth = {experiment.name: run_results(experiment, directory) for experiment in experiments(TRUTH, 30, seed=77)}
    found = quantities(TRUTH, truth)
    rows = [
        f'[[section]]\nwhere = "{size} bytes"\n[[section.statement]]\npublished = "a throughput"\n'
        f'found = "{{rate_{size}}}"\ncheck = {{ quantity = "rate_{size}", equals = {found[f"rate_{size}"].mean} }}\n'
        'reason = "another link"\n'
        for size in SIZES
    ]
    rows.append(
        '[[section]]\nwhere = "conclusion"\n[[section.statement]]\npublished = "fast"\nfound = "{excess}"\n'
        'check = { quantity = "excess", above = 0.0 }\nreason = "another link"\n'
        '[[section.statement]]\npublished = "unseen"\nfound = "{unseen}"\n'
        'check = { quantity = "unseen", above = 0.0 }\nreason = "it is not measured here"\n'
    )
    search.statements.write_text("".join(rows), encoding="utf-8")
    return search


def run_results(experiment: Experiment, directory: Path) -> Any:
    from reference_sim.campaign import run_campaign

    return run_campaign(experiment.campaign, directory / experiment.name, processes=1, measure=experiment.measure)


def test_a_planted_truth_is_found_with_its_price(planted: Search, tmp_path: Path) -> None:
    result = run_search(planted, tmp_path, trials=30, processes=1)
    outcomes = {one.key: one.outcome for one in result.found.statements}
    assert len(outcomes) == 3
    assert [outcomes[f"{size} bytes", "a throughput"] for size in SIZES] == [R, R]
    assert result.best is result.found
    assert result.found.held > result.chosen.held
    assert 86.0 < float(result.found.settings[RATE]) < 106.0
    # What holds on a fast link alone is the price of the slow one.
    assert [one.published for one in result.price(result.found)] == ["fast"]
    assert [one.where for one in result.gained(result.found)] == [f"{size} bytes" for size in SIZES]
    assert result.price(result.chosen) == result.gained(result.chosen) == []
    text = search_text(result)
    assert "- found: gained 10000 bytes: a throughput; 100000 bytes: a throughput. Price: conclusion: fast." in text
    assert text.count("\n| ") == 2 + len(planted.parameters) + 1 + 3


def test_what_was_undecided_and_now_fails_is_no_price_but_said(planted: Search) -> None:
    def candidate(origin: str, *outcomes: StatementOutcome) -> Candidate:
        comparison = Comparison("x", 1.0, 0.5, 5, 0.0, None, R)
        return Candidate(
            origin,
            {**planted.chosen, RATE: len(origin)},
            tuple(Judged(name, "it", one, (comparison,)) for name, one in zip("abcd", outcomes, strict=True)),
        )

    is_open, same = StatementOutcome.UNDECIDED, StatementOutcome.DIRECTION
    chosen = candidate("as chosen", is_open, is_open, R, is_open)
    found = candidate("found", N, same, N, is_open)
    result = SearchResult(planted, 2, (chosen, found))
    assert [one.where for one in result.lost(found)] == ["a", "b"]
    assert [one.where for one in result.price(found)] == ["c"]
    assert result.lost(chosen) == []
    text = " ".join(search_text(result).split())
    assert "Price: c: it. Undecided as chosen, not reproduced here: a: it; b: it." in text
    assert [one["where"] for one in result.to_dict()["candidates"][1]["lost"]] == ["a", "b"]


def test_an_interrupted_search_goes_on_as_if_it_had_not_been(planted: Search, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_search(planted, whole, trials=14, processes=1)
    reported: list[tuple[int, int]] = []

    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        reported.append((done, total))
        if done == 12:
            raise StopError

    with pytest.raises(StopError):
        run_search(planted, parts, trials=14, processes=1, progress=stop)
    assert reported[-1][0] == 12
    with (parts / FILE).open("ab") as file:
        file.write(b'{"stage":"trial","ori')
    run_search(planted, parts, trials=14, processes=1)
    assert (parts / FILE).read_bytes() == (whole / FILE).read_bytes()
    assert [path.name for path in parts.iterdir()] == [FILE]


def test_the_final_score_is_of_seeds_that_chose_nothing(planted: Search, tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    def spying(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
        asked.append((repeats, seed))
        return experiments(settings, repeats, seed)

    result = run_search(replace(planted, experiments=spying), tmp_path, trials=4, processes=1)
    assert [one.origin for one in result.candidates] == ["as chosen", "a slow link", "found"]
    assert asked[:4] == [(3, SEARCH_SEED)] * 4
    choices = len(result.different())
    assert set(asked[4:-choices]) == {(4, CHOICE_SEED)}
    assert asked[-choices:] == [(8, FINAL_SEED)] * choices
    assert all(one.comparisons[0].count == 8 for one in result.found.statements[:2])


def test_a_directory_of_another_search_is_refused(planted: Search, tmp_path: Path) -> None:
    run_search(planted, tmp_path, trials=2, processes=1)
    with pytest.raises(UsageError, match="holds another search"):
        run_search(replace(planted, repeats=(9, 9, 9)), tmp_path, trials=2, processes=1)
    (tmp_path / FILE).write_bytes(b"not a record\n")
    with pytest.raises(UsageError, match="must hold a JSON object a line"):
        run_search(planted, tmp_path, trials=2, processes=1)


def test_a_verdict_is_shown_with_each_other_value_of_each_parameter(planted: Search, tmp_path: Path) -> None:
    verdicts = sensitivity(planted, tmp_path, processes=1)
    assert runs_of(planted) == 6 * len(SIZES) * planted.sensitivity_repeats
    statement = Statement("conclusion", "fast", "it is", R)
    found = replace(statement, elsewhere=verdicts_of(statement, verdicts))
    assert [(one.parameter, one.value) for one in found.elsewhere] == [
        ("", ""), (RATE, "96.0"), (RATE, "150.0"), (WINDOW, "1"), (WINDOW, "10"), (SHAPE, "constant"),
    ]  # fmt: skip
    assert [one.outcome for one in found.elsewhere if one.value in ("", "96.0", "150.0")] == [R, N, R]
    assert found.sensitivity_in_words().startswith(f"Not reproduced with {RATE} = 96.0")
    assert "of 5 values of 3 parameters" in found.sensitivity_in_words()
    assert len(found.to_dict()["other_values"]) == 6
    assert verdicts_of(Statement("elsewhere", "a throughput", "", R), verdicts) == ()


def test_further_statements_are_judged_for_sensitivity_and_in_no_trial(planted: Search, tmp_path: Path) -> None:
    def more(settings: Settings, repeats: int, seed: int) -> Sequence[Experiment]:
        return [
            Experiment(replace(one.campaign, name="further"), one.measure)
            for one in experiments(settings, repeats, seed)[:1]
        ]

    def found(settings: Settings, results: Results) -> Mapping[str, Any]:
        unseen = {"unseen": 1.0} if "further" in results else {}
        return {**quantities(settings, results), **unseen}

    search = replace(planted, further_experiments=more, quantities=found)
    assert runs_of(search) == 6 * (len(SIZES) + 1) * search.sensitivity_repeats
    assert len(sensitivity(search, tmp_path / "alone", processes=1)["conclusion", "unseen"]) == 6
    trial = run_search(search, tmp_path / "search", trials=2, processes=1)
    assert "unseen" not in [one.published for one in trial.chosen.statements]


def test_the_command_searches_and_says_what_it_costs(
    planted: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = Paper("wei", "planted", "none", lambda _effort: (), lambda _measured: Assessment(()), (planted,))
    monkeypatch.setattr(search_command, "load_paper", lambda _name: paper)
    arguments = ["wei", "--search", "--trials", "3", "-o", str(tmp_path), "--processes", "1"]
    said = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert said.exit_code == 0
    assert "price of 'a slow link':" in said.stdout
    assert (tmp_path / "wei" / "search" / "planted.md").is_file()
    again = CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False)
    (document,) = json.loads(again.stdout)["searches"]
    assert document == json.loads((tmp_path / "wei" / "search" / "planted.json").read_text(encoding="utf-8"))
    assert [one["origin"] for one in document["candidates"]] == ["as chosen", "a slow link", "found"]
    assert document["candidates"][0]["settings"] == {RATE: 128.0, WINDOW: 3, SHAPE: "varying"}


def test_a_cell_that_serves_too_few_measures_nothing_and_stops_no_search(tmp_path: Path) -> None:
    far = {**CELL.chosen, PATH_LOSS: 142.0, INTERFERENCE: -55.0}
    assert evaluate_settings(CELL, far, repeats=1, seed=5, directory=tmp_path, processes=1) == ()
    assert score(()) == 0.0


finite = st.floats(-100.0, 100.0)


@given(st.floats(1e-6, 1e6))
def test_settings_have_three_digits(value: float) -> None:
    assert rounded(value) == float(f"{value:.3g}")
    assert rounded(0.0) == 0.0


@given(mean=finite, half_width=st.floats(0.0, 50.0), low=finite, width=st.floats(0.1, 50.0))
def test_a_statement_scores_between_nothing_and_one(mean: float, half_width: float, low: float, width: float) -> None:
    one = Comparison("x", mean, half_width, 5, low, low + width, N)
    assert 0.0 <= score([Judged("here", "it", N, (one,))]) <= 1.0 + 1e-9


@given(low=st.floats(1.0, 100.0), width=st.floats(0.1, 50.0), away=st.floats(0.1, 100.0), step=st.floats(0.1, 100.0))
def test_nearer_scores_higher(low: float, width: float, away: float, step: float) -> None:
    far, near, inside = (
        score([Judged("here", "it", N, (Comparison("x", mean, 0.1, 5, low, low + width, N),))])
        for mean in (low + width + away + step, low + width + away, low + width / 2.0)
    )
    assert far < near < inside


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.name)
def test_every_search_starts_within_its_ranges_and_names_its_sources(search: Search) -> None:
    assert len(search.starts()) == 1 + len(search.leads) > 1
    names = [parameter.name for parameter in search.parameters]
    assert len(set(names)) == len(names) <= 10
    for parameter in search.parameters:
        assert parameter.source
        assert parameter.others
        assert parameter.chosen not in parameter.others
    with pytest.raises(StatementError, match="must name a parameter and a value of it"):
        replace(search, leads={"nowhere": {"no such parameter": 1}}).starts()


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.name)
def test_every_search_measures_statements_of_its_paper(search: Search, tmp_path: Path) -> None:
    found = evaluate_settings(search, search.chosen, repeats=1, seed=5, directory=tmp_path, processes=1)
    assert len(found) >= 5
    assert len({one.key for one in found}) == len(found)
    published = search.statements.read_text(encoding="utf-8")
    assert all(one.published in published or "Table" in one.where or "<" in published for one in found)


# Not the cell of Ren and Lin: its starts simulate 72 links of 300 s a run.
@pytest.mark.parametrize("name", ["hu", "jersey", "ren-lin-link"])
def test_further_runs_add_statements_to_those_of_the_search(name: str, tmp_path: Path) -> None:
    search = next(one for one in SEARCHES if one.name == name)
    wide = evaluate_settings(search, search.chosen, repeats=1, seed=5, directory=tmp_path, is_further=True)
    narrow = evaluate_settings(search, search.chosen, repeats=1, seed=5, directory=tmp_path)
    assert {statement.key for statement in narrow} < {statement.key for statement in wide}
