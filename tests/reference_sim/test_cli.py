"""The command `pepscope simulate` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pepscope.errors import ScenarioError, UsageError
from reference_sim.cli import simulate
from reference_sim.library import scenario_names


def run(*arguments: str) -> str:
    result = CliRunner().invoke(simulate, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_scenario_writes_captures_and_reports_them(small: Path, tmp_path: Path) -> None:
    output = run(str(small), "-o", str(tmp_path / "out"))
    assert "small, seed 3 (regular)" in output
    assert str(tmp_path / "out" / "mobile.pcapng") in output
    assert (tmp_path / "out" / "truth.json").is_file()


def test_json_counts_what_was_delivered(small: Path) -> None:
    document = json.loads(run(str(small), "--no-captures", "--json", "--repeat", "2", "--seed", "40"))
    assert document["schema"] == 1
    assert [reported["seed"] for reported in document["runs"]] == [40, 41]
    assert all(reported["delivered_bytes"] == 60_000 and reported["events"] > 0 for reported in document["runs"])


def test_repeats_have_directories_of_their_own(small: Path, tmp_path: Path) -> None:
    run(str(small), "-o", str(tmp_path / "out"), "--repeat", "2")
    assert (tmp_path / "out" / "0000" / "truth.json").is_file()
    assert (tmp_path / "out" / "0001" / "server.pcapng").is_file()


def test_values_can_be_set(small: Path) -> None:
    document = json.loads(run(str(small), "--json", "--set", "traffic[0].bytes=1000", "--set", "name=other"))
    assert (document["runs"][0]["scenario"], document["runs"][0]["delivered_bytes"]) == ("other", 1000)


def test_a_campaign_prints_its_points(small: Path, tmp_path: Path) -> None:
    campaign = small.with_name("campaign.toml")
    campaign.write_text('scenarios = ["small.toml"]\nrepeats = 2\n[grid]\n"traffic[0].bytes" = [1000, 2000]\n')
    output = run("--campaign", str(campaign), "-o", str(tmp_path / "out"), "--processes", "1")
    assert "4 runs" in output
    points = json.loads(run("--campaign", str(campaign), "-o", str(tmp_path / "out"), "--json"))["points"]
    assert [point["traffic[0].bytes"] for point in points] == [1000, 2000]


def test_the_list_names_every_scenario() -> None:
    listed = run("--list")
    assert len(scenario_names()) > 20
    assert [name for name in scenario_names() if name not in listed] == []


@pytest.mark.parametrize(
    ("arguments", "error", "reported"),
    [
        ((), UsageError, "name a scenario"),
        (("bulk-100mbit-40ms",), UsageError, "-o DIR"),
        (("bulk-100mbit-40ms", "--no-captures", "--set", "seed"), UsageError, "--set must be FIELD=VALUE"),
        (("bulk-100mbit-40ms", "--campaign", "x"), UsageError, "either SCENARIO or --campaign"),
        (("--campaign", "fig11", "--seed", "3", "-o", "x"), UsageError, "--seed is for one SCENARIO, got --campaign"),
        (("--campaign", "fig11", "--html", "x", "-o", "x"), UsageError, "--html is for one SCENARIO, got --campaign"),
        (("bulk-100mbit-40ms", "--no-captures", "--processes", "2"), UsageError, "--processes is for --campaign, got"),
        (("--list", "--repeat", "2"), UsageError, "--repeat does nothing with --list"),
        (("bulk-100mbit-40ms", "--show", "--set", "seed=3"), UsageError, "--set does nothing with --show"),
        (("bulk-100mbit-40ms", "--no-captures", "--set", "name=\udcff"), ScenarioError, "name must be text in UTF-8"),
        (("--campaign", "no-such", "-o", "x"), ScenarioError, "neither a file nor a campaign"),
        (("no-such",), ScenarioError, "neither a file nor a scenario"),
        (("no-such", "--no-captures"), ScenarioError, "neither a file nor a scenario"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(arguments: tuple[str, ...], error: type[Exception], reported: str) -> None:
    with pytest.raises(error, match=reported):
        CliRunner().invoke(simulate, arguments, catch_exceptions=False)


def test_a_page_draws_series_without_a_recording_option(small: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run(str(small), "--no-captures", "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert "Congestion window" in text
    assert "True one-way delays" in text
    assert "radio" in text


def test_a_scenario_that_is_shown_can_be_changed_and_run_elsewhere(tmp_path: Path) -> None:
    shown = run("carrier-trace", "--show")
    copy = tmp_path / "mine.toml"
    copy.write_text(shown.replace("lte-drive.csv", "nr-walk.csv").replace("bytes = 50_000_000", "bytes = 60_000"))
    document = json.loads(run(str(copy), "--no-captures", "--json"))
    assert document["runs"][0]["delivered_bytes"] == 60_000


def test_a_trace_beside_the_scenario_comes_before_one_of_the_same_name_that_comes_along(tmp_path: Path) -> None:
    copy = tmp_path / "mine.toml"
    copy.write_text(run("carrier-trace", "--show"))
    (tmp_path / "lte-drive.csv").write_text("time_s,rate_bit_s\n0,1000000\n1,1000000\n")
    changes = ("--set", "traffic[0].bytes=500000")
    slow = json.loads(run(str(copy), "--no-captures", "--json", *changes))["runs"][0]
    assert 0.5e6 < slow["goodput_bit_s"] < 1e6
