"""Campaigns: every point once, the same results whoever computes them, resumed where they stopped."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from pepscope.errors import ScenarioError, UsageError
from reference_sim import campaign as campaigns
from reference_sim.campaign import Job, run_campaign, run_job
from reference_sim.sweep import Campaign
from tests.pepscope.processes.clusters import local_cluster

GRID = """
scenarios = ["small.toml"]
repeats = 3
seed = 10

[grid]
"path[1].down.delay_s" = [0.01, 0.1]

[[variants]]
name = "end to end"

[[variants]]
name = "split"
[variants.values]
"path[0]" = { kind = "split-proxy" }
"""


@pytest.fixture
def grid(small: Path) -> Path:
    path = small.with_name("grid.toml")
    path.write_text(GRID)
    return path


def test_every_combination_is_run_with_every_seed(grid: Path) -> None:
    points = list(Campaign.from_toml(grid).points())
    assert [point.index for point in points] == list(range(12))
    assert {(point.variant, point.values["path[1].down.delay_s"]) for point in points} == {
        (variant, delay) for variant in ("end to end", "split") for delay in (0.01, 0.1)
    }
    assert [point.scenario.seed for point in points[:3]] == [10, 11, 12]


def test_drawn_values_stay_in_their_ranges_and_are_the_same_again(small: Path) -> None:
    path = small.with_name("drawn.toml")
    path.write_text(
        'scenarios = ["small.toml"]\n[random]\ndraws = 40\n"path[1].down.delay_s" = { uniform = [0.01, 0.2] }\n'
        '"path[1].down.queue_packets" = { uniform = [5, 50] }\n'
        '"path[1].down.rate_bit_s" = { log_uniform = [100_000, 10_000_000] }\n'
        '"mobile.timestamps" = { choice = [true, false] }\n'
    )
    values = [dict(point.values) for point in Campaign.from_toml(path).points()]
    assert values == [dict(point.values) for point in Campaign.from_toml(path).points()]
    assert all(0.01 <= value["path[1].down.delay_s"] <= 0.2 for value in values)
    assert len({value["path[1].down.queue_packets"] for value in values}) > 10
    assert all(isinstance(value["path[1].down.rate_bit_s"], int) for value in values)
    assert {value["mobile.timestamps"] for value in values} == {True, False}


def test_results_do_not_depend_on_who_computes_them(grid: Path, tmp_path: Path) -> None:
    campaign = Campaign.from_toml(grid)
    one = run_campaign(campaign, tmp_path / "one", processes=1)
    run_campaign(campaign, tmp_path / "two", processes=2)
    for name in ("results.csv", "summary.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert len(one.runs) == 12
    assert len(one.summary) == 4
    assert (one.summary["goodput_bit_s.half_width"] > 0).all()


def test_a_cluster_gives_the_same_bytes(grid: Path, tmp_path: Path) -> None:
    campaign = Campaign.from_toml(grid)
    run_campaign(campaign, tmp_path / "here", processes=1)
    with local_cluster(processes=True) as scheduler:
        run_campaign(campaign, tmp_path / "there", scheduler=scheduler)
    assert (tmp_path / "here" / "results.csv").read_bytes() == (tmp_path / "there" / "results.csv").read_bytes()


def test_an_interrupted_campaign_goes_on(grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign.from_toml(grid)
    ran: list[int] = []

    def counted(job: Job) -> dict[str, float | None]:
        if len(ran) == 5:
            raise KeyboardInterrupt
        ran.append(job.index)
        return run_job(job)

    monkeypatch.setattr(campaigns, "run_job", counted)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(campaign, tmp_path, processes=1)

    def counted_again(job: Job) -> dict[str, float | None]:
        ran.append(job.index)
        return run_job(job)

    monkeypatch.setattr(campaigns, "run_job", counted_again)
    run_campaign(campaign, tmp_path, processes=1)
    assert ran == list(range(12))
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [f"{index:06d}.json" for index in range(12)]


def test_another_campaign_is_not_mixed_in(grid: Path, tmp_path: Path) -> None:
    run_campaign(Campaign.from_toml(grid), tmp_path, processes=1)
    grid.write_text(grid.read_text().replace("seed = 10", "seed = 11"))
    with pytest.raises(UsageError, match="another campaign"):
        run_campaign(Campaign.from_toml(grid), tmp_path, processes=1)


def test_another_version_does_not_go_on(grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_campaign(Campaign.from_toml(grid), tmp_path, processes=1)
    monkeypatch.setattr("pepscope.__version__", "9.9.9")
    with pytest.raises(UsageError, match=r"9\.9\.9"):
        run_campaign(Campaign.from_toml(grid), tmp_path, processes=1)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("repeats = 2", "scenarios is missing"),
        ('scenarios = ["small.toml"]\ncolour = 1', "colour is not a field; fields are captures"),
        ('scenarios = ["small.toml"]\nrepeats = 0', "repeats must be a whole number of at least 1, got 0"),
        ('scenarios = ["small.toml"]\n[grid]\nseed = 4', "grid.seed must be a list of at least one entry, got 4"),
        ('scenarios = ["small.toml"]\n[random]\nseed = { normal = [0, 1] }', "random.seed must be"),
        (
            'scenarios = ["small.toml"]\n[random]\nseed = { log_uniform = [0, 1] }',
            "must have ends that make such a range",
        ),
        ('scenarios = ["missing.toml"]', "neither a file nor a scenario"),
        ('scenarios = ["small.toml"]\n[[variants]]\nvalues = {}', "variants[0].name is missing"),
    ],
)
def test_refusals_name_the_field(small: Path, text: str, reported: str) -> None:
    path = small.with_name("wrong.toml")
    path.write_text(text)
    with pytest.raises(ScenarioError) as refusal:
        list(Campaign.from_toml(path).points())
    assert reported in str(refusal.value)


def test_one_value_goes_to_several_fields_and_absent_takes_one_out(small: Path) -> None:
    path = small.with_name("together.toml")
    path.write_text(
        'scenarios = ["small.toml"]\n[grid]\n"path[0].down.delay_s, path[1].down.delay_s" = [0.02, 0.05]\n'
        '[[variants]]\nname = "clean"\nvalues = { "path[1].down.loss" = "absent" }\n'
    )
    scenarios = [point.scenario for point in Campaign.from_toml(path).points()]
    delays = [[hop["down"]["delay_s"] for hop in scenario.path] for scenario in scenarios]  # type: ignore[index, call-overload]
    assert delays == [[0.02, 0.02], [0.05, 0.05]]
    assert [scenario.path[1]["down"]["loss"] for scenario in scenarios] == [None, None]  # type: ignore[index, call-overload]


def test_workers_end_with_a_campaign_that_is_killed(grid: Path, tmp_path: Path) -> None:
    """Killed outright, so that nothing of its own can tidy up."""
    program = (
        "import sys; from reference_sim.campaign import run_campaign; from reference_sim.sweep import Campaign\n"
        "if __name__ == '__main__':\n"
        "    told = lambda done, runs: print(done, flush=True)\n"
        "    run_campaign(Campaign.from_toml(sys.argv[1]), sys.argv[2], processes=2, progress=told)\n"
    )
    script = tmp_path / "killed.py"
    script.write_text(program)
    grid.write_text(GRID.replace("repeats = 3", "repeats = 3000"))
    with subprocess.Popen(
        [sys.executable, script, grid, tmp_path / "runs"], stdout=subprocess.PIPE, start_new_session=True
    ) as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        assert len(members_of(killed.pid)) >= 3
        killed.kill()
    deadline = time.monotonic() + 120.0
    while members_of(killed.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert members_of(killed.pid) == []


def members_of(session: int) -> list[int]:
    """Processes of a session that live."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and int(of) == session and state != "Z":
            found.append(int(entry.name))
    return found
