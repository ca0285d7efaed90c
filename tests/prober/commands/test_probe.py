"""`pepscope probe plan` and `probe run --dry-run`: what is said before anything is measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from prober.commands.default_plan import default_plan
from prober.experiments.registry import experiments
from prober.measurement.cost_estimate import fetched_capture_bytes
from prober.plan import CaptureTable, LimitsTable, Plan, RatesTable, ServerTable
from prober.run.dry_run import dry_run
from prober.run.run_report import outcome_document
from prober.run.runner import planned_tasks, run_plan
from prober.run.server_address import with_server
from tests.prober.serving import PEPSCOPE, Serving, serving, without_root

DOCS = Path(__file__).parents[3] / "docs"
SCHEMAS = Path(__file__).parents[3] / "pepscope" / "schemas"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("state")) as running:
        yield running


def probe(*arguments: object, key: str = "", prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, str(PEPSCOPE), "probe", *map(str, arguments)],
        env={**os.environ, "PEPSCOPE_PROBE_KEY": key},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("pepscope: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


# ---- the default plan


def test_the_default_plan_has_every_experiment_as_it_is_by_default() -> None:
    plan = Plan.from_mapping(tomllib.loads(default_plan()))
    assert plan.experiments == {item.name: item.options() for item in experiments()}


def test_the_default_plan_shows_every_setting_and_its_default() -> None:
    """Taking away the # of commented settings gives the defaults again."""
    bare = re.sub(r"^# (\w+ = )", r"\1", default_plan(), flags=re.MULTILINE)
    shown = tomllib.loads(bare.replace('host = "server.example.net"', 'host = ""'))
    for name, table in (
        ("server", ServerTable), ("limits", LimitsTable), ("rates", RatesTable), ("capture", CaptureTable),
    ):  # fmt: skip
        assert set(shown[name]) == set(table.__struct_fields__), name
    assert Plan.from_mapping(shown) == Plan.from_mapping(tomllib.loads(default_plan()))


def test_the_default_plan_is_a_full_audit_of_ten_to_fifteen_minutes() -> None:
    plan = Plan.from_mapping(tomllib.loads(default_plan()))
    outlook = dry_run(plan)
    assert 600 <= outlook.expected_s <= 900
    assert outlook.bytes_up + outlook.bytes_down <= plan.limits.total_bytes / 2


def test_keys_of_tasks_are_names_of_files_and_of_members() -> None:
    from prober.archive.archive_file import _NAME, capture_name

    tasks = [task for _, task in planned_tasks(Plan.from_mapping(tomllib.loads(default_plan())))]
    assert {task.experiment for task in tasks} == {item.name for item in experiments()}
    for task in tasks:
        assert _NAME.fullmatch(capture_name(task.key, "mobile")), task.key
        assert _NAME.fullmatch(f"observations/{task.key}.json"), task.key
        assert task.expected_s > 0, task.key
        assert task.bytes_up + task.bytes_down > 0, task.key


@pytest.mark.parametrize("name", [item.name for item in experiments()])
def test_every_experiment_has_a_page_on_its_rule_and_its_possible_errors(name: str) -> None:
    page = (DOCS / "experiments" / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {name}: ")
    assert "**Possible errors.**" in page or "**Blind spots.**" in page
    assert "Rule" in page or "computed" in page


def test_plan_writes_to_a_file_and_leaves_an_older_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    assert probe("plan").stdout == default_plan()
    assert probe("plan", "-o", path).returncode == 0
    assert path.read_text() == default_plan()
    path.write_text("mine")
    assert "is there already" in sentence(probe("plan", "-o", path))
    assert path.read_text() == "mine"


# ---- looking ahead


def assert_follows(document: object, schema: str) -> None:
    path = SCHEMAS / f"{schema}.json"
    jsonschema.validate(document, json.loads(path.read_text(encoding="utf-8")))


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(default_plan())
    return path


def test_a_dry_run_estimates_bytes_and_time_without_measuring(server: Serving, plan_file: Path, tmp_path: Path) -> None:
    done = probe("run", plan_file, "--server", server.server, "--dry-run", "-o", tmp_path / "runs", key=server.key)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:] if line}
    assert set(rows) >= {"all", *(item.name for item in experiments())}
    assert "127.0.0.1 answers." in done.stdout
    assert not (tmp_path / "runs").exists()
    assert all(len(line) <= 80 for line in done.stdout.splitlines()[: len(experiments()) + 2])
    assert re.search(r"In all: \d+ measurements with 127.0.0.1: about \d+ connections, [\d.]+ MB up", done.stdout)


def test_a_dry_run_adds_up(server: Serving, plan_file: Path) -> None:
    done = probe("run", plan_file, "--server", server.server, "--dry-run", "--json", key=server.key)
    document = json.loads(done.stdout)
    assert_follows(document, "dry-run-1")
    assert document["asked_server"] is True
    for name in ("bytes_up", "bytes_down", "connections", "expected_s"):
        assert document[name] == pytest.approx(sum(item[name] for item in document["experiments"]), abs=1.5)
    assert document["bytes_down"] > document["bytes_up"] > 20_000_000
    assert sum(item["tasks"] for item in document["experiments"]) == len(planned_tasks(Plan.from_toml(plan_file)))


def test_a_dry_run_works_without_the_server(plan_file: Path) -> None:
    done = probe(
        "run", plan_file, "--server", "127.0.0.1:1", "--dry-run", "--json", key=f"pepscope1.{'m' * 43}.{'0' * 64}"
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert_follows(document, "dry-run-1")
    assert document["asked_server"] is False
    assert "did not answer" in document["server_note"]
    without_key = json.loads(probe("run", plan_file, "--server", "127.0.0.1", "--dry-run", "--json").stdout)
    assert "no key" in without_key["server_note"]
    unnamed = probe("run", plan_file, "--dry-run")
    assert "no server is named" in unnamed.stdout


def test_a_dry_run_lists_what_needs_root_with_reasons(server: Serving, plan_file: Path) -> None:
    words = ("run", plan_file, "--server", server.server, "--dry-run", "--json")
    document = json.loads(probe(*words, key=server.key, prefix=tuple(without_root())).stdout)
    assert_follows(document, "dry-run-1")
    assert "libpcap cannot capture" in document["without_captures"]["mobile-capture"]
    impossible = {item["name"]: sum(item["impossible"].values()) for item in document["experiments"]}
    tasks = {item["name"]: item["tasks"] for item in document["experiments"]}
    assert 0 < impossible["delayed-ack"] <= tasks["delayed-ack"]
    assert impossible["transfers"] == impossible["gain"] == impossible["slow-reader"] == 0
    assert sum(impossible.values()) < sum(tasks.values()) / 2


def test_estimated_bytes_are_close_to_transferred_ones(server: Serving, tmp_path: Path) -> None:
    """Against payload, for what dominates a plan."""
    plan = Plan.from_mapping(
        {
            "experiments": {"transfers": {"sizes_bytes": [300_000], "repeats": 1, "upload_share": 1.0}},
            "capture": {"snap_bytes": 68},
        }
    )
    plan = with_server(plan, server.server, server.key)
    outlook = dry_run(plan)
    outcome = run_plan(plan, tmp_path)
    assert outcome.is_whole
    assert_follows(json.loads(json.dumps(outcome_document(outcome))), "probe-run-1")
    assert outlook.bytes_down == pytest.approx(5 * 300_000, rel=0.2), "headers, acknowledgements, captures"
    assert outlook.bytes_up == pytest.approx(5 * 300_000, rel=0.1)


def test_the_cost_of_captures_is_estimated_as_measured() -> None:
    """4 MB of random payload, 1448 bytes a segment: a capture of 814 kB at 256 bytes a packet, packed 648 kB."""
    assert fetched_capture_bytes(4_250_000, 256) == pytest.approx(648_000, rel=0.05)
    assert fetched_capture_bytes(4_250_000, 262_144) > 4_000_000
    assert fetched_capture_bytes(4_250_000, 68) < 200_000
    assert fetched_capture_bytes(0, 256) == 0


def test_without_a_plan_a_run_has_what_can_decide_here(server: Serving) -> None:
    words = ("run", "--server", server.server, "--dry-run", "--json")
    done = probe(*words, key=server.key, prefix=tuple(without_root()))
    assert "Uploads are decided by acknowledgements that the server holds back" in done.stderr
    found = {item["name"]: item for item in json.loads(done.stdout)["experiments"]}
    assert not {"options", "window", "uplink-buffer"} & set(found), "they read captures alone"
    held = found["delayed-ack"]
    assert held["tasks"] - sum(held["impossible"].values()) == 2 * len(Plan().applications), "uploads, twice"
    if without_root():
        full = probe(*words, key=server.key)
        assert "full audit" in full.stderr
        assert {item["name"] for item in json.loads(full.stdout)["experiments"]} == {one.name for one in experiments()}


def test_a_run_says_its_cost_before_it_begins(server: Serving, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('directions = ["down"]\n[experiments.transfers]\nsizes_bytes = [20_000]\nrepeats = 1\n')
    done = probe("run", plan, "--server", server.server, "-o", tmp_path, key=server.key)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("5 measurements with 127.0.0.1: about 6 connections, ")


def test_a_server_that_is_not_there_is_said_with_what_was_tried(plan_file: Path, tmp_path: Path) -> None:
    key = f"pepscope1.{'m' * 43}.{'0' * 64}"
    done = probe("run", plan_file, "--server", "127.0.0.1:1", "-o", tmp_path / "runs", key=key)
    assert "tried: 127.0.0.1 port 1 (Connection refused)" in sentence(done)
    assert not (tmp_path / "runs").exists()


# ---- refusals


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "must be TOML"),
        ("[limits]\ntries = 0\n", "limits.tries"),
        ("[experiments.transfers]\nsizes = 3\n", "experiments.transfers.sizes"),
        ('[limits]\ntotal_bytes = "many"\n', "limits.total_bytes"),
        ("[limits]\ntask_s = 1e400\n", "limits.task_s"),
        ("[experiments.transfers]\n[limits]\ntotal_bytes = 1000\n", "limits.total_bytes"),
        ("", "must have at least one experiment"),
    ],
)
def test_plans_that_cannot_be_used_are_refused_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    assert words in sentence(probe("run", path, "--server", "127.0.0.1:1", "-o", tmp_path / "runs", key="k"))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("note", ["operator", "=x", "a b=c", "operator=", "x=" + "y" * 600])
def test_notes_that_are_none_are_refused(note: str, plan_file: Path) -> None:
    assert "KEY=VALUE" in sentence(probe("run", plan_file, "--note", note))


def test_a_key_that_is_none_is_refused_and_not_repeated(plan_file: Path, tmp_path: Path) -> None:
    done = probe("run", plan_file, "--server", "127.0.0.1:1", "-o", tmp_path / "runs", key="pepscope1.secretsecret")
    assert "a key must be" in sentence(done)
    assert "secret" not in done.stderr.replace("PEPSCOPE_PROBE_KEY", "")


def test_an_unwritable_file_is_reported(plan_file: Path, server: Serving) -> None:
    done = probe("run", plan_file, "--server", server.server, "-o", "/proc/nowhere", key=server.key)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("pepscope: /proc/nowhere: ")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PEPSCOPE, "probe", "plan"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600, check=False
        )
    assert "standard output cannot be written" in sentence(done.__class__(done.args, done.returncode, "", done.stderr))


def test_a_mobile_needs_nothing_of_the_server() -> None:
    """Not one of the packages of the extra `probe` is loaded by running a plan."""
    check = (
        "import sys; import prober.commands.probe, prober.run.runner, prober.run.dry_run; "
        "from prober.client.applications import client; "
        "from prober.protocol.application import Application; [client(item) for item in Application]; "
        "sys.exit(','.join({'aiohttp', 'pyftpdlib', 'PIL', 'cryptography', 'trustme'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=DOCS.parent, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
