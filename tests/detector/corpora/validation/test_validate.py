"""From labelled captures to scores: real corpora, simulated campaigns, baselines, and the command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import pepscope
from detector.corpora.validation.labels import LabelError
from detector.corpora.validation.results import Validation
from detector.corpora.validation.validate import validate
from pepscope.errors import PepscopeError, UsageError
from pepscope.results.schema import load_schema
from reference_sim.campaign import run_campaign
from reference_sim.simulation import simulate
from reference_sim.sweep import Campaign
from tests.detector.corpora.validation.labelled_corpora import EXAMPLE, REGULAR, SPLIT, manifest

CAMPAIGN = """
name = "validated"
scenarios = ["validation"]
captures = true
[[variants]]
name = "regular"
[[variants]]
name = "split"
values = { "path[1]" = { kind = "split-proxy", name = "proxy", buffer_bytes = 32_768 } }
[grid]
"path[0].down.delay_s" = [0.01, 0.02, 0.03]
"""


@pytest.fixture(scope="module")
def example() -> Validation:
    return validate([EXAMPLE], processes=2)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("campaign")
    (directory / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    run_campaign(Campaign.from_toml(directory / "campaign.toml"), directory / "out", processes=1)
    return directory / "out"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pepscope", "validate", *map(str, arguments)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def baseline(directory: Path, validation: Validation, **changes: Any) -> Path:
    path = directory / "baseline.json"
    path.write_text(json.dumps({**validation.to_dict(), **changes}), encoding="utf-8")
    return path


def test_the_example_is_judged_rightly_by_connection_and_by_group(example: Validation) -> None:
    (score,) = example.detectors
    assert [judged.score.value for judged in score.judgements] == ["right"] * 6
    assert [(run.name, len(run.cases)) for run in example.runs] == [
        ("haproxy", 1), ("nat", 1), ("one end behind a NAT", 2), ("one end behind HAProxy", 2),
    ]  # fmt: skip
    assert example.cases[0].factors["direction"] == "download"
    assert example.cases[1].name == "198.51.100.1:28599 > 198.51.100.243:5001", "a label of every connection"
    assert score.roc.area == 1.0
    assert score.timing.total_s >= score.timing.run_p95_s > 0


def test_the_document_follows_its_schema(example: Validation) -> None:
    document = json.loads(json.dumps(example.to_dict(), allow_nan=False))
    jsonschema.validate(document, load_schema("validate-1"))
    assert document["against"] is None
    assert len(document["cases"]) == len(document["detectors"][0]["judgements"]) == 6
    assert document == json.loads(json.dumps(pepscope.validate([EXAMPLE]).to_dict())) | {
        "detectors": document["detectors"]
    }, "everything but times is the same each time"


def test_scores_are_a_table_and_a_page_in_python(example: Validation, tmp_path: Path) -> None:
    frame = example.to_frame()
    assert frame["score"].tolist() == ["right"] * 6
    assert frame.loc[frame["truth"] == "split-tcp", "by_hidden_leg_ms"].dropna().tolist() == [40.0, 40.0]
    assert (frame["split_probability"].gt(0.5) == frame["truth"].ne("regular")).all()
    assert repr(example) == (
        "<Validation of 6 labels in 4 runs: 0 of 3 regular called split, 0 of 3 splits called regular>"
    )
    example.to_html(tmp_path / "page.html")
    assert "<h1>None of 3 regular" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_campaign_is_read_with_its_truth_and_its_circumstances(campaign: Path) -> None:
    result = validate([campaign], processes=2)
    assert [case.truth.value for case in result.cases] == ["regular"] * 3 + ["split-tcp"] * 3
    assert not any(judged.score.is_error for judged in result.detectors[0].judgements)
    assert sum(judged.said == "not-judged" for judged in result.detectors[0].judgements) == 0
    factors = [case.factors for case in result.cases]
    assert [each["variant"] for each in factors] == ["regular"] * 3 + ["split"] * 3
    assert [each["path[0].down.delay_s"] for each in factors] == [0.01, 0.02, 0.03] * 2
    assert [each["size_bytes"] for each in factors] == [
        sum(json.loads(path.read_text())["flows"][0][end]["read_bytes"] for end in ("server", "mobile"))
        for path in sorted(campaign.glob("runs/*/truth.json"))
    ]
    assert all("leg_ratio" in each for each in factors[3:])
    assert not any("leg_ratio" in each for each in factors[:3])
    assert "goodput_bit_s" not in factors[0], "what was measured is no circumstance"
    (row,) = [row for row in result.detectors[0].by_factor if (row.factor, row.value) == ("variant", "split")]
    assert row.rates["missed"].of == 3


def test_one_simulated_run_is_a_corpus(tmp_path: Path) -> None:
    simulate("lte-split", tmp_path)
    (case,) = validate([tmp_path], processes=1).cases
    assert case.truth.value == "split-tcp"


def test_a_campaign_without_captures_is_one_sentence(campaign: Path, tmp_path: Path) -> None:
    shutil.copy(campaign / "campaign.json", tmp_path)
    with pytest.raises(LabelError, match=r"got none: the campaign needs `captures = true`$"):
        validate([tmp_path])


@pytest.mark.parametrize("text", ["{}", "[]", "no JSON", '{"captures": [], "flows": [{}]}', '{"captures": 3}'])
def test_a_truth_that_is_none_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text(text, encoding="utf-8")
    with pytest.raises(LabelError, match=r"truth\.json must be the truth of a simulated run") as raised:
        validate([tmp_path])
    assert "\n" not in str(raised.value)


def test_a_label_of_every_connection_does_not_count_a_labelled_one_twice(tmp_path: Path) -> None:
    path = manifest(
        tmp_path,
        "capture_a,capture_b,client_a,server_a,truth\n"
        "REGULAR_A,REGULAR_B,198.51.100.1:28599,198.51.100.243:5001,split-tcp\n"
        "REGULAR_A,REGULAR_B,,,regular\n",
    )
    result = validate([path], processes=1)
    assert [judged.score.value for judged in result.detectors[0].judgements] == ["reversed"]


def test_captures_in_which_nothing_is_to_be_found(tmp_path: Path) -> None:
    (tmp_path / "broken.pcap").write_bytes(b"rubbish that is no capture")
    path = manifest(tmp_path, "capture_a,client_a,server_a,truth\nbroken.pcap,10.0.0.1:1,10.0.0.2:2,regular\n")
    (answer,) = validate([path], processes=1).runs[0].answers
    assert answer.judgements[0].said == "failed"
    assert answer.failure is not None
    whole = manifest(tmp_path, "capture_a,truth\nbroken.pcap,regular\n")
    with pytest.raises(PepscopeError, match=r"^broken.pcap cannot be judged: .*broken.pcap"):
        validate([whole], processes=1)


def test_the_same_captures_are_compared_by_run(example: Validation, tmp_path: Path) -> None:
    path = baseline(tmp_path, example)
    again = validate([EXAMPLE], against=path, processes=2)
    comparison = again.comparison
    assert comparison is not None
    assert (comparison.test, comparison.in_common, comparison.is_worse) == ("mcnemar", 6, False)
    changes = {change.rate: change for change in comparison.changes}
    assert set(changes) == {"false-alarm", "unconfirmed", "missed", "reversed", "kind-missed"}
    assert all((change.worse, change.better, change.p_value) == (0, 0, 1.0) for change in changes.values())
    jsonschema.validate(json.loads(json.dumps(again.to_dict())), load_schema("validate-1"))


def many(directory: Path, copies: int, pair: Sequence[Path], truth: str) -> Path:
    """A corpus of captures that differ in nothing but their content: the last packet is cut one byte at a time."""
    directory.mkdir(exist_ok=True)
    lines = ["capture_a,capture_b,truth"]
    for number in range(copies):
        for letter, path in zip("ab", pair, strict=True):
            # What follows the end of a gzip stream is passed over by the reader, or it says so; either is no packet.
            (directory / f"{number}{letter}.pcap.gz").write_bytes(path.read_bytes() + b"\0" * number)
        lines.append(f"{number}a.pcap.gz,{number}b.pcap.gz,{truth}")
    (directory / "manifest.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return directory


def test_a_rate_that_got_worse_beyond_chance_fails(tmp_path: Path) -> None:
    corpus = many(tmp_path / "corpus", 6, REGULAR, "regular")
    before = validate([corpus], processes=2)
    assert before.detectors[0].rates["unconfirmed"].count == 0
    path = baseline(tmp_path, before)
    for probability, worse in ((0.95, False), (1.0, True)):
        now = validate([corpus], against=path, least_probability=probability, processes=2)
        assert now.comparison is not None
        changes = {change.rate: change for change in now.comparison.changes}
        assert now.is_worse is worse
        assert changes["unconfirmed"].is_worse is worse
        assert (changes["unconfirmed"].worse, changes["unconfirmed"].p_value) == ((6, 1 / 64) if worse else (0, 1.0))
        assert not changes["false-alarm"].is_worse
    strict = validate([corpus], against=path, least_probability=1.0, significance=0.01, processes=2)
    assert not strict.is_worse
    done = run(corpus, "--against", path, "--least-probability", "1")
    assert done.returncode == 1, done.stderr
    assert "0 of 6 -> 6 of 6, 6 runs worse, 0 better, p =" in done.stdout
    assert "worse than the baseline" in " ".join(done.stdout.split("\n")[:2])


def test_other_captures_are_compared_unpaired(example: Validation, tmp_path: Path) -> None:
    path = baseline(tmp_path, example)
    corpus = many(tmp_path / "corpus", 6, SPLIT, "split-tcp")
    for number in range(6):  # none of the baseline's content
        with (corpus / f"{number}a.pcap.gz").open("ab") as stream:
            stream.write(b"\0" * 10)
    with pytest.raises(LabelError, match=r"must be of the same captures, got none of these: --unpaired"):
        validate([corpus], against=path, processes=2)
    for probability, worse in ((0.95, False), (1.0, True)):
        now = validate(
            [corpus], against=path, unpaired=True, least_probability=probability, significance=0.1, processes=2
        )
        comparison = now.comparison
        assert comparison is not None
        assert (comparison.test, comparison.in_common, comparison.only_now, comparison.only_before) == (
            "fisher",
            0,
            6,
            6,
        )
        (missed,) = [change for change in comparison.changes if change.rate == "missed"]
        assert (missed.before.of, missed.now.of, missed.worse) == (2, 6, None), "runs, not labels"
        assert missed.is_worse is worse
        jsonschema.validate(json.loads(json.dumps(now.to_dict())), load_schema("validate-1"))


def test_baselines_that_cannot_be_used_are_one_sentence(example: Validation, tmp_path: Path) -> None:
    document = example.to_dict()
    detector = document["detectors"][0]
    unknown = [{**detector, "judgements": [{"verdict": "x"}] * 6}]
    undecided = [{**each, "truth": "inconclusive"} for each in document["cases"]]
    bad: dict[str, tuple[Any, str]] = {
        "no JSON": ("rubbish", "must be JSON, the output of `pepscope validate --json`$"),
        "another document": ({"schema": 1, "pairs": []}, "must be the output of `pepscope validate --json`"),
        "another version": ({**document, "schema": 2}, "must be of version 1, got 2: write the baseline anew$"),
        "a case missing": ({**document, "cases": document["cases"][1:]}, "'pepscope' must have 5 judgements, got 6$"),
        "an unknown verdict": ({**document, "detectors": unknown}, "a verdict must be one of"),
        "another detector": ({**document, "detectors": [{**detector, "name": "x"}]}, "must have scores of pepscope"),
        "a case that is none": ({**document, "cases": [{}] * 6}, r"cases\[0\].id is missing"),
        "an undecided truth": ({**document, "cases": undecided}, "a truth must be one of"),
    }
    path = tmp_path / "baseline.json"
    for name, (content, sentence) in bad.items():
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        with pytest.raises(LabelError, match=sentence) as raised:
            validate([EXAMPLE], against=path, processes=1)
        assert "\n" not in str(raised.value), name
    with pytest.raises(LabelError, match=r"gone\.json cannot be read"):
        validate([EXAMPLE], against=tmp_path / "gone.json")
    with pytest.raises(UsageError, match="unpaired is for a comparison"):
        validate([EXAMPLE], unpaired=True)


def test_the_command_writes_every_form(tmp_path: Path) -> None:
    files = [tmp_path / f"v.{ending}" for ending in ("html", "xml", "sarif")]
    done = run(EXAMPLE, "--json", "--html", files[0], "--junit", files[1], "--sarif", files[2], "--jobs", "2")
    assert done.returncode == 0, done.stderr
    jsonschema.validate(json.loads(done.stdout), load_schema("validate-1"))
    assert done.stderr == "".join(f"wrote {path}\n" for path in files)
    assert all(path.stat().st_size > 500 for path in files)


def test_the_command_fails_on_scores(tmp_path: Path) -> None:
    path = manifest(tmp_path, "capture_a,capture_b,truth\nREGULAR_A,REGULAR_B,split-tcp\n")
    for scores, status in (("false-alarm", 0), ("false-alarm,reversed", 1), ("not-found", 0)):
        assert run(path, "--fail-on", scores, "--jobs", "1").returncode == status
    done = run(path, "--jobs", "1")
    assert done.returncode == 0
    assert "split called regular: split-tcp, said regular" in " ".join(done.stdout.split())
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--detector", "python", "--timeout", "0s"), "timeout must be above 0 s, got 0 s"),
        (("--fail-on", "everything"), "'everything' is none of"),
        (("--timeout", "10s"), "--timeout is for --detector"),
        (("--unpaired",), "--unpaired is for --against"),
        (("--significance", "0.1"), "--significance is for --against or --detector"),
        (("--detector", "/no/such"), "the detector must be a program that can be run, got '/no/such'"),
        (("--against", "/no/such.json"), "/no/such.json cannot be read"),
        (("/no/corpus",), "/no/corpus does not exist"),
    ],
)
def test_the_command_complains_in_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    done = run(EXAMPLE, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("pepscope: ")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr
