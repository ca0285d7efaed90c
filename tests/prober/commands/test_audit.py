"""`pepscope audit` and `pepscope detect` over archives, and the turns of unattended runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import msgspec
import pandas as pd
import pytest
from click.testing import CliRunner

import pepscope
from detector.commands.detect import detect
from pepscope.captures.packets import Direction
from pepscope.errors import PepscopeError, UsageError
from pepscope.results.schema import load_schema
from pepscope.results.verdicts import Verdict
from prober.archive.archive_file import SUFFIX
from prober.audit.history import judge_archives
from prober.commands import audit as audit_module
from prober.errors import PlanError, UnreachableError
from prober.measurement.task import Status
from prober.plan import Plan
from prober.protocol.application import Application
from prober.run.dry_run import DryRun
from prober.run.runner import RunOutcome
from tests.prober.corpus_archives import STARTED_UNIX_NS, archive, failed, observation

DAY_NS = 86_400_000_000_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of one plan: http-data became a proxy's on the last one."""
    directory = tmp_path_factory.mktemp("runs")
    tcp = observation("reg_dl_cubic_lte", Application.TCP)
    for day, data in enumerate(("spl_ha_dl_small_umts", "spl_ha_dl_large_umts", "prx_ngx_2M_umts")):
        archive(
            directory / f"day-{day}{SUFFIX}",
            [tcp, observation(data)],
            started_unix_ns=STARTED_UNIX_NS + day * DAY_NS,
            run_id=f"run-{day}",
        )
    return directory


def run(command, *arguments: object):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_a_directory_of_archives_is_a_history(runs: Path):
    ended = run(audit_module.audit, runs, "--json")
    assert ended.exit_code == 0, ended.output
    document = json.loads(ended.stdout)
    jsonschema.validate(document, load_schema("audit-1"))
    assert [Path(item["source"]).name for item in document["runs"]] == [f"day-{day}{SUFFIX}" for day in range(3)]
    (change,) = document["changes"]
    assert (change["application"], change["before"], change["after"]) == ("http-data", "split-tcp", "tcp-proxy")
    assert change["first_after_unix_ns"] == STARTED_UNIX_NS + 2 * DAY_NS
    since = {item["application"]: item["since_unix_ns"] for item in document["since"]}
    assert since == {"http-data": STARTED_UNIX_NS + 2 * DAY_NS, "tcp": STARTED_UNIX_NS}


def test_detect_gives_an_archive_the_verdicts_of_audit(runs: Path):
    path = runs / f"day-2{SUFFIX}"
    one, other = run(audit_module.audit, path, "--json"), run(detect, path, "--json")
    assert other.exit_code == 0, other.output
    assert one.stdout == other.stdout


def test_the_order_of_archives_does_not_matter_and_twice_is_once(runs: Path, tmp_path: Path):
    paths = sorted(runs.iterdir())
    copy = shutil.copy(paths[0], tmp_path / "copy.zip")
    result = judge_archives([str(paths[2]), str(paths[0]), str(copy), str(paths[1])])
    assert [item.started_unix_ns for item in result.runs] == [STARTED_UNIX_NS + day * DAY_NS for day in range(3)]


@pytest.mark.parametrize("command", [audit_module.audit, detect])
def test_all_outputs_are_written(command, runs: Path, tmp_path: Path):
    page, junit = tmp_path / "page.html", tmp_path / "audit.xml"
    ended = run(command, runs / f"day-0{SUFFIX}", "--csv", "--html", page, "--junit", junit)
    assert ended.exit_code == 0, ended.output
    assert list(pd.read_csv(StringIO(ended.stdout))["verdict"]) == ["split-tcp", "regular"]
    assert 'data-figure="0"' in page.read_text(encoding="utf-8")
    assert ElementTree.parse(junit).getroot().get("failures") == "1"


@pytest.mark.parametrize("command", [audit_module.audit, detect])
@pytest.mark.parametrize(("verdicts", "status"), [("split", 1), ("tcp-proxy", 0), ("inconclusive", 0), ("regular", 1)])
def test_fail_on_decides_the_exit_status(command, verdicts: str, status: int, runs: Path):
    assert run(command, runs / f"day-0{SUFFIX}", "--fail-on", verdicts).exit_code == status


def test_an_audit_that_judged_nothing_does_not_pass(tmp_path: Path):
    path = archive(tmp_path / f"a{SUFFIX}", [failed(Application.TCP, Direction.UP, "it broke")])
    ended = run(audit_module.audit, path, "--fail-on", "split")
    assert ended.exit_code == 1
    assert "no application could be judged" in ended.stderr


@pytest.mark.parametrize(
    "option", [["--ack-delay", "1s"], ["--filter", "tcp"], ["--parquet", "x"], ["--clocks", "offset"]]
)
def test_options_for_captures_are_refused_for_archives(option: list[str], runs: Path):
    ended = run(detect, runs / f"day-0{SUFFIX}", *option)
    assert isinstance(ended.exception, UsageError)
    assert option[0] in str(ended.exception)


@pytest.mark.parametrize("option", [["--repeat", "2"], ["--every", "1h"], ["--server", "x"], ["--note", "a=b"]])
def test_options_for_plans_are_refused_for_archives(option: list[str], runs: Path):
    ended = run(audit_module.audit, runs, *option)
    assert isinstance(ended.exception, UsageError)
    assert option[0] in str(ended.exception)


def test_a_file_that_is_no_archive_is_reported(runs: Path, tmp_path: Path):
    text = tmp_path / "text"
    text.write_text("no archive")
    damaged = tmp_path / f"damaged{SUFFIX}"
    damaged.write_bytes(next(runs.iterdir()).read_bytes()[:5000])
    for targets, said in (
        ([runs, text], "must be an archive of a run"),
        ([tmp_path / "nowhere"], "does not exist"),
        ([damaged], "damaged"),
    ):
        ended = run(audit_module.audit, *targets)
        assert isinstance(ended.exception, PepscopeError), ended.exception
        assert said in str(ended.exception)
    damaged.unlink()
    with pytest.raises(UsageError, match="holds no archive"):
        judge_archives([str(tmp_path)])


class Runs:
    """Stands for measuring: archives of the corpus appear one after the other, or an error."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.next: list[object] = []
        self.plans: list[Plan] = []

    def __call__(self, plan: Plan, output: str, **options: object) -> RunOutcome:
        self.plans.append(plan)
        item = self.next.pop(0)
        if isinstance(item, Exception):
            raise item
        number = len(self.plans)
        path = archive(
            self.output / f"new-{number}{SUFFIX}",
            [observation(str(item))],
            plan=plan,
            started_unix_ns=STARTED_UNIX_NS + number * DAY_NS,
            run_id=f"new-{number}",
        )
        return RunOutcome(f"new-{number}", path, dict.fromkeys(Status, 0), 0, "", ())


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    stand_in = Runs(tmp_path)
    monkeypatch.setattr("prober.run.runner.run_plan", stand_in)
    monkeypatch.setattr(
        "prober.run.dry_run.dry_run", lambda plan, must_answer: DryRun(plan.server.host, must_answer, "", (), {})
    )
    (tmp_path / "plan.toml").write_text('[server]\nhost = "server.example"\n')
    return stand_in


def test_a_plan_is_run_and_judged_with_its_own_history(measured: Runs, tmp_path: Path):
    plan = Plan.from_toml(tmp_path / "plan.toml")
    archive(tmp_path / f"old{SUFFIX}", [observation("spl_ha_dl_small_umts")], plan=plan)
    other = replace(plan, server=msgspec.structs.replace(plan.server, host="another.example"))
    archive(tmp_path / f"other{SUFFIX}", [observation("reg_dl_cubic_lte")], plan=other, run_id="other")
    (tmp_path / f"damaged{SUFFIX}").write_bytes(b"PK\x03\x04 nothing")
    measured.next = ["reg_dl_cubic_lte"]
    ended = run(audit_module.audit, tmp_path / "plan.toml", "-o", tmp_path, "--json")
    assert ended.exit_code == 0, ended.output
    document = json.loads(ended.stdout)
    assert [cell["verdict"] for item in document["runs"] for cell in item["cells"]] == ["split-tcp", "regular"]
    assert "left out of the history" in ended.stderr


def test_repeated_runs_go_on_after_one_that_failed(measured: Runs, tmp_path: Path):
    measured.next = ["spl_ha_dl_small_umts", UnreachableError("the server did not answer"), "prx_ngx_2M_umts"]
    ended = run(audit_module.audit, tmp_path / "plan.toml", "-o", tmp_path, "--json", "--repeat", "3", "--every", "1ms")
    assert ended.exit_code == 1
    assert "this run measured nothing: the server did not answer" in ended.stderr
    documents = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [len(document["runs"]) for document in documents] == [1, 2]
    assert [change["after"] for change in documents[1]["changes"]] == [Verdict.TCP_PROXY]


def test_repeated_runs_end_where_the_plan_can_never_run(measured: Runs, tmp_path: Path):
    measured.next = [PlanError("no key is given")]
    ended = run(audit_module.audit, tmp_path / "plan.toml", "-o", tmp_path, "--repeat", "3", "--every", "1ms")
    assert isinstance(ended.exception, PlanError)


@pytest.mark.parametrize("interval", ["0", "10001d"])
def test_runs_begin_at_intervals_that_a_timer_can_wait(interval: str, measured: Runs, tmp_path: Path):
    ended = run(audit_module.audit, tmp_path / "plan.toml", "-o", tmp_path, "--every", interval)
    assert ended.exit_code != 0
    assert "must be" in f"{ended.exception} {ended.output}"
    assert measured.plans == []


def test_an_interval_of_nothing_is_refused_for_archives_too(runs: Path):
    ended = run(audit_module.audit, runs, "--every", "0")
    assert isinstance(ended.exception, UsageError)
    assert "--every must be more than 0 s" in str(ended.exception)


def test_a_single_run_that_fails_ends_with_its_error(measured: Runs, tmp_path: Path):
    measured.next = [UnreachableError("the server did not answer")]
    ended = run(audit_module.audit, tmp_path / "plan.toml", "-o", tmp_path)
    assert isinstance(ended.exception, UnreachableError)


def test_turns_come_at_their_times_and_none_is_made_up_for(monkeypatch: pytest.MonkeyPatch):
    clock, slept = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: clock[0])

    def sleep(duration_s: float) -> None:
        slept.append(duration_s)
        clock[0] += duration_s

    monkeypatch.setattr("time.sleep", sleep)
    begun = []
    for turn in audit_module._turns(4, 10.0):
        begun.append(clock[0])
        clock[0] += [3.0, 25.0, 3.0, 3.0][turn]
    assert begun == [0.0, 10.0, 35.0, 45.0]
    assert len(slept) == 3
    assert list(audit_module._turns(None, None)) == [0]


def test_the_same_is_to_be_had_in_python(runs: Path):
    result = pepscope.audit([str(runs)])
    assert len(result.runs) == 3
    assert set(result.to_frame()["verdict"]) == {"split-tcp", "regular", "tcp-proxy"}


def test_an_audit_writes_an_archive_to_share(runs: Path, tmp_path: Path):
    before, after = runs / f"day-0{SUFFIX}", tmp_path / f"shared{SUFFIX}"
    ended = run(audit_module.audit, before, "--json", "--anonymise", after)
    assert ended.exit_code == 0, ended.output
    cells = [json.loads(run(audit_module.audit, path, "--json").stdout)["runs"][0]["cells"] for path in (before, after)]
    assert [cell["verdict"] for cell in cells[0]] == [cell["verdict"] for cell in cells[1]]
    refused = run(audit_module.audit, before, runs / f"day-1{SUFFIX}", "--anonymise", after)
    assert isinstance(refused.exception, UsageError)


def test_the_cost_is_said_and_files_are_checked_before_anything_is_measured(measured: Runs, tmp_path: Path):
    measured.next = ["reg_dl_cubic_lte"]
    for option in ("--html", "--junit", "--anonymise"):
        refused = run(audit_module.audit, tmp_path / "plan.toml", "-o", tmp_path, option, tmp_path / "none" / "file")
        assert isinstance(refused.exception, OSError | UsageError)
    assert not measured.plans
    ended = run(audit_module.audit, tmp_path / "plan.toml", "-o", tmp_path, "--json")
    assert "0 measurements with server.example: about 0 connections, 0 B up, 0 B down" in ended.stderr


def test_an_audit_needs_something_to_judge():
    assert "--server HOST" in str(run(audit_module.audit).exception)
