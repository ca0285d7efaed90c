"""What releases are made with: the workflow is one that GitHub reads, and builds what the script can build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from distribution.targets import TARGETS, environment_of

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def test_the_workflow_follows_the_schema_of_workflows() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run(
        [checker, "--builtin-schema", "vendor.github-workflows", WORKFLOW], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_builds_every_target_and_publishes_without_a_token() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["wheel"]["strategy"]["matrix"]["include"]
    assert {row["target"]: row["rust"] for row in matrix} == {
        name: target.rust.removesuffix(".2.28") for name, target in TARGETS.items()
    }
    assert set(jobs["publish"]["needs"]) == {"wheel", "sdist"}
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert "secrets." not in WORKFLOW.read_text(encoding="utf-8")


def test_c_is_optimised_less_only_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "-O3")
    monkeypatch.setenv("PEPSCOPE_WHEEL_CFLAGS", "-O1")
    assert environment_of(TARGETS["manylinux-x86_64"])["CFLAGS"] == "-O1"
    monkeypatch.delenv("PEPSCOPE_WHEEL_CFLAGS")
    assert environment_of(TARGETS["manylinux-x86_64"])["CFLAGS"] == "-O3"


def test_the_container_runs_as_nobody_special() -> None:
    lines = (ROOT / "distribution" / "Containerfile").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001"]
    assert lines.index("USER 10001") < lines.index('ENTRYPOINT ["pepscope"]')
    linter = Path(sys.executable).with_name("hadolint")
    command = [linter, ROOT / "distribution" / "Containerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
