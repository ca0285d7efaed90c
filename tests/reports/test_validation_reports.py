"""Scores as a page in a browser, as a table, as JUnit XML and as SARIF."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from detector.corpora.validation.comparing import beside
from detector.corpora.validation.intervals import Share
from detector.corpora.validation.judging import Answered, JudgedRun
from detector.corpora.validation.labels import Case, Ends
from detector.corpora.validation.results import Change, Comparison, Validation
from detector.corpora.validation.scoring import SAYINGS, Judgement, score_of
from pepscope.results.verdicts import Verdict
from reports.errors import ReportError
from reports.validation.junit import write_validation_junit
from reports.validation.page import validation_page_text, write_validation_page
from reports.validation.sarif import write_validation_sarif
from reports.validation.table import write_validation_table
from reports.validation.wording import percent
from tests.browser import Visit, browser

__all__ = ["browser"]

HOSTILE = "</td><script>alert(1)</script>\x1b[31m & \"'"


def make_run(number: int, truth: str, *said: tuple[str, float | None], failure: str | None = None) -> JudgedRun:
    """A run of one label, with what each detector says of it."""
    ends = Ends(f"10.0.0.{number}:1", "203.0.113.1:80")
    factors: dict[str, float | str] = {"size_bytes": 1e5 * number, "access": HOSTILE if number % 2 else "LTE"}
    case = Case(Verdict(truth), frozenset({Verdict(truth)}), (ends, None), factors=factors)
    answers = []
    for verdict, probability in said:
        judged = Judgement(verdict, score_of(case, verdict), probability, None, f"Because {HOSTILE}.")
        failed = failure if verdict == "failed" else None
        answers.append(Answered((judged,), 0.25, 1, 2, 1, failed))
    paths = (f"captures/{number} a.pcap", f"captures/{number} b.pcap")
    return JudgedRun(f"run {number} {HOSTILE}", paths, (f"{number:064x}",) * 2, (case,), tuple(answers))


def make_validation() -> Validation:
    """Two detectors, every saying, and a baseline that was better."""
    runs = [make_run(number, "regular", ("regular", 0.1), (said, 0.6)) for number, said in enumerate(SAYINGS, 1)]
    runs += [make_run(20 + n, "split-tcp", ("split-tcp", 0.9), (said, None)) for n, said in enumerate(SAYINGS)]
    runs += [make_run(40, "tcp-proxy", ("regular", 0.2), ("failed", None), failure=f"it crashed {HOSTILE}")]
    runs += [make_run(41, "regular", ("split-tcp", 0.97), ("regular", 0.0))]
    result = Validation(("corpus",), tuple(runs), ("pepscope", f"other {HOSTILE}"))
    change = Change("pepscope", "false-alarm", Share(0, 7), Share(1, 7), 6, 0, 1 / 64, True)
    calm = replace(change, rate="missed", is_worse=False, p_value=1.0, worse=0)
    comparison = Comparison("base line.json", "mcnemar", 0.05, 14, 1, 2, (change, calm))
    return replace(result, beside=beside(result, 0.05), comparison=comparison)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_shows_every_part_and_runs_nothing(browser: Browser, tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    write_validation_page(make_validation(), path)
    visit = Visit(browser, path, viewport={"width": width, "height": 800})
    page = visit.page
    assert page.locator("h1").inner_text() == (
        "1 of 7 regular labels was called split; 6 of 7 splits were found and 1 called regular; worse than the "
        "baseline."
    )
    assert [each.split(" ")[0] for each in page.locator("h2").all_inner_texts()] == [
        "Against", "How", "What", "Probabilities", "By", "Time", "Verdicts",
    ]  # fmt: skip
    confusion = page.locator("section:has(#confusion-heading) table").nth(1)
    assert confusion.locator("tbody tr").first.inner_text().split()[1:] == ["2", "1", "1", "1", "1", "1", "7"]
    assert page.locator("svg.chart").count() == 2
    assert page.locator("svg.chart path").count() > 10
    assert page.locator("script").count() == 0
    assert "<script>alert(1)</script>" in page.locator("section:has(#wrong-heading)").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.complaints == []
    assert visit.requests == [path.as_uri()]


def test_the_page_of_one_detector_has_no_comparison() -> None:
    whole = make_validation()
    runs = tuple(replace(run, answers=run.answers[:1]) for run in whole.runs)
    text = validation_page_text(Validation(("corpus",), runs, ("pepscope",)))
    assert "Against the baseline" not in text
    assert "Beside each other" not in text
    assert "<details" not in text


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    for write in (write_validation_page, write_validation_junit, write_validation_sarif):
        with pytest.raises(ReportError, match=r"cannot be written: No such file or directory\.$"):
            write(make_validation(), tmp_path / "missing" / "file")


def test_the_table_fits_80_columns_and_steers_no_terminal() -> None:
    stream = io.StringIO()
    write_validation_table(make_validation(), stream, False)
    text = stream.getvalue()
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if len(line) > 80 and "<script>" not in line] == []
    assert "1 of 7 regular labels was called split" in text
    assert "0 of 7 -> 1 of 7, 6 runs worse, 0 better, p =" in text
    assert "WORSE" in text
    assert "failed at 1 run: it crashed" in text


def test_small_shares_keep_a_digit() -> None:
    shares = (0.0, 3.8e-5, 0.0004, 0.0006, 0.125, 0.9996, 1.0)
    assert [percent(share) for share in shares] == [
        "0.0 %", "0.004 %", "0.04 %", "0.1 %", "12.5 %", "99.96 %", "100.0 %",
    ]  # fmt: skip


def test_junit_counts_each_label_once(tmp_path: Path) -> None:
    path = tmp_path / "scores.xml"
    write_validation_junit(make_validation(), path)
    suites = ElementTree.parse(path).getroot().findall("testsuite")
    assert [suite.get("tests") for suite in suites] == ["14", "14", "2"]
    for suite in suites:
        for name, tag in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
            assert int(suite.get(name) or -1) == len(suite.findall(f"testcase/{tag}"))
        assert len(suite.findall("testcase")) == int(suite.get("tests") or -1)
    own, other, against = suites
    assert [case.get("type") for case in own.findall("testcase/failure")] == ["reversed", "false-alarm"]
    assert len(other.findall("testcase/error")) == 3, "the detector failed"
    (worse,) = against.findall("testcase/failure")
    assert "6 runs worse" in (worse.get("message") or "")


def sarif(path: Path) -> dict[str, Any]:
    write_validation_sarif(make_validation(), path)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def test_sarif_has_a_result_for_each_verdict_that_is_not_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = sarif(tmp_path / "scores.sarif")
    assert document["version"] == "2.1.0"
    own, other = document["runs"]
    assert [result["ruleId"] for result in own["results"]] == ["reversed", "false-alarm", "worse"]
    assert [result["level"] for result in own["results"]] == ["error"] * 3
    wrong = [each for each in make_validation().detectors[1].judgements if each.score.value != "right"]
    assert len(other["results"]) == len(wrong)
    for run in document["runs"]:
        rules = run["tool"]["driver"]["rules"]
        for result in run["results"]:
            # SARIF 2.1.0, 3.27.6: the index is that of the rule that the id names.
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["message"]["text"]
            assert result["partialFingerprints"]
            for place in result["locations"]:
                uri = place["physicalLocation"]["artifactLocation"]["uri"]
                assert ":" not in uri, "relative to the working directory, as code hosts need"
                assert " " not in uri
    first = own["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(first) == "captures/40 a.pcap"
