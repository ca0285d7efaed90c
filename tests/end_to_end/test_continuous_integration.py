"""The workflows of docs/guide/validate.md do what they say: their very steps, run in a copy of the examples.

Substituted are steps that fetch from elsewhere: actions (`uses`) and `pip install`, for which a directory with a
`pepscope` and a `python` of this environment stands in PATH.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml

from pepscope.results.schema import load_schema

TOP = Path(__file__).parents[2]
GUIDE = TOP / "docs" / "guide" / "validate.md"


def workflows() -> list[dict[str, Any]]:
    """The YAML documents of the guide."""
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [yaml.safe_load(block) for block in blocks]


GITHUB, GITLAB = workflows()
STEPS = GITHUB["jobs"]["validate"]["steps"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The examples as a repository has them, and the commands that `pip install` would bring."""
    shutil.copytree(TOP / "examples", tmp_path / "repository" / "examples")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, words in (("pepscope", "-m pepscope"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    return tmp_path / "repository"


def run(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """A step as GitHub's and GitLab's runners do it."""
    path = f"{directory.parent / 'programs'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=directory,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_what_is_substituted_is_all_that_fetches() -> None:
    assert [step["run"].split()[0] for step in STEPS if "run" in step] == ["pip", "pepscope", "pepscope"]
    assert {step["uses"].split("@")[0] for step in STEPS if "uses" in step} == {
        "actions/checkout", "actions/setup-python", "actions/upload-artifact", "github/codeql-action/upload-sarif",
    }  # fmt: skip
    assert [line.split()[0] for line in GITLAB["detector"]["before_script"]] == ["pip"]


def test_the_steps_of_the_workflow_run(checkout: Path) -> None:
    for step in STEPS:
        if "run" in step and not step["run"].startswith("pip "):
            done = run(step["run"], checkout)
            assert done.returncode == 0, done.stderr
    (upload,) = [step["with"] for step in STEPS if step.get("uses", "").startswith("actions/upload-artifact")]
    assert all((checkout / name).stat().st_size > 1000 for name in upload["path"].split())
    (codeql,) = [step["with"] for step in STEPS if "codeql" in step.get("uses", "")]
    assert json.loads((checkout / codeql["sarif_file"]).read_text())["version"] == "2.1.0"
    document = json.loads((checkout / "validation.json").read_text())
    jsonschema.validate(document, load_schema("validate-1"))
    assert document["against"]["in_common"] == len(document["cases"]) == 6


def test_the_script_of_the_job_runs(checkout: Path) -> None:
    done = run("\n".join(GITLAB["detector"]["script"]), checkout)
    assert done.returncode == 0, done.stderr
    artifacts = GITLAB["detector"]["artifacts"]
    assert all((checkout / name).is_file() for name in artifacts["paths"])
    suites = ElementTree.parse(checkout / artifacts["reports"]["junit"]).getroot().findall("testsuite")
    assert [suite.get("tests") for suite in suites] == ["6", "5"]


def test_a_step_fails_where_a_verdict_is_wrong(checkout: Path) -> None:
    """A false label is a wrong verdict."""
    path = checkout / "examples" / "labelled" / "manifest.csv"
    path.write_text(path.read_text().replace(",regular,,,LTE", ",split-tcp,,,LTE"), encoding="utf-8")
    (step,) = [step["run"] for step in STEPS if "validation.sarif" in step.get("run", "")]
    done = run(step, checkout)
    assert done.returncode == 1, done.stderr
    results = json.loads((checkout / "validation.sarif").read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["reversed"]
    assert (
        results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "examples/regular/server.pcap.gz"
    )
