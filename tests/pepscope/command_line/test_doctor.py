"""`pepscope doctor`: what it finds agrees with the machine, and what is missing is named with its remedy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from pepscope.cli import SUMMARIES
from pepscope.command_line.doctor import checks
from pepscope.command_line.doctor.checks import CAPABILITIES, Check, all_checks
from pepscope.command_line.doctor.command import doctor
from pepscope.command_line.doctor.uses import USES, Availability, availability
from pepscope.results.schema import load_schema

ROOT = Path(__file__).parents[3]
#: Commands that report on the installation itself.
ABOUT_ITSELF = {"completion", "doctor"}


def run(*arguments: str, program: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process, after a program that takes something away."""
    return subprocess.run(
        [sys.executable, "-c", f"{program}\nfrom pepscope.cli import main; main()", "doctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def document(*arguments: str, program: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("--json", *arguments, program=program).stdout)
    jsonschema.validate(found, load_schema("doctor-1"))
    return found


def test_every_command_has_its_uses_and_every_need_a_check() -> None:
    assert set(USES) == set(SUMMARIES) - ABOUT_ITSELF
    needed = {name for uses in USES.values() for use in uses for name in use.needs}
    assert needed <= set(all_checks())


def test_json_follows_its_schema_and_names_what_is_here() -> None:
    found = document()
    passed = {check["name"]: check["passed"] for check in found["checks"]}
    assert passed["base"]
    assert passed["core"]
    assert all((check["remedy"] is None) == check["passed"] for check in found["checks"])
    assert [command["name"] for command in found["commands"]] == list(USES)
    assert "lo" in found["interfaces"]


def test_root_may_what_commands_need() -> None:
    held = all_checks()
    assert all(held[name].passed is (os.geteuid() == 0) for name in CAPABILITIES)


def test_a_missing_extra_is_named_with_the_command_that_installs_it() -> None:
    program = (
        "from importlib import metadata\n"
        "real = metadata.version\n"
        "def version(name):\n"
        "    if name == 'plotly': raise metadata.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "metadata.version = version\n"
    )
    done = run("detect", program=program)
    assert done.returncode == 1
    assert "no  extra html: plotly missing\n      pip install 'pepscope[html]'" in done.stdout
    assert "detect          runs in part\n      not here: pages (--html) (extra html)" in done.stdout
    assert run(program=program).returncode == 0, "captures can be judged all the same"
    (command,) = document("detect", program=program)["commands"]
    assert {use["purpose"]: use["missing"] for use in command["uses"]}["pages (--html)"] == ["extra html"]


def test_without_capabilities_paths_do_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checks, "_effective_capabilities", lambda: 0)
    monkeypatch.setattr(checks, "_TUN_DEVICE", tmp_path / "tun")
    held = all_checks()
    assert availability("emulate", held) is Availability.UNAVAILABLE
    assert availability("detect", held) is not Availability.UNAVAILABLE
    assert held["TUN"].found == f"{tmp_path / 'tun'}: No such file or directory"
    shown = CliRunner().invoke(doctor, ["emulate"])
    assert shown.exit_code == 1
    assert "no  CAP_NET_ADMIN: not held\n      run as root" in shown.stdout


def test_availability_follows_the_first_use() -> None:
    every = {name: Check(name, passed=True, found="") for uses in USES.values() for use in uses for name in use.needs}
    assert availability("detect", every) is Availability.COMPLETE
    every["libpcap"] = Check("libpcap", passed=False, found="")
    assert availability("detect", every) is Availability.PARTIAL
    every["core"] = Check("core", passed=False, found="")
    assert availability("detect", every) is Availability.UNAVAILABLE


def test_an_unknown_command_is_one_sentence() -> None:
    done = run("detekt")
    assert done.returncode == 2
    assert done.stderr.startswith("pepscope: COMMAND must be one of annotate, audit, ")
    assert done.stderr.endswith(", got detekt\n")
