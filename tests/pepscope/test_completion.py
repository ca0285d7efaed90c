"""Shells complete our commands and options; man pages are made from the same definitions, and man reads them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from distribution.man_pages import write_man_pages
from pepscope.cli import SUMMARIES, pepscope_command

ROOT = Path(__file__).parents[2]
PEPSCOPE = [sys.executable, "-c", "from pepscope.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def completed(*words: str, instruction: str = "bash_complete") -> list[str]:
    """What bash is offered for the last of the words."""
    asked = {
        "_PEPSCOPE_COMPLETE": instruction,
        "COMP_WORDS": " ".join(("pepscope", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(PEPSCOPE, env={**ENVIRONMENT, **asked}, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_pepscope(shell: str) -> None:
    done = subprocess.run([*PEPSCOPE, "completion", shell], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert f"_PEPSCOPE_COMPLETE={shell}_complete" in done.stdout
    if program := shutil.which(shell):
        checked = subprocess.run([program, "-n"], input=done.stdout, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_commands_and_options_are_completed() -> None:
    assert completed("de") == ["detect"]
    assert set(completed("")) == set(SUMMARIES)
    assert "--fail-on" in completed("detect", "--fa")


@pytest.mark.filterwarnings("ignore:'click.utils.make_default_short_help' is deprecated:DeprecationWarning")
def test_every_command_has_a_man_page_that_man_reads(tmp_path: Path) -> None:
    written = write_man_pages(tmp_path)
    context = click.Context(pepscope_command)
    expected = {"pepscope.1"}
    for name in SUMMARIES:
        command = pepscope_command.get_command(context, name)
        expected.add(f"pepscope-{name}.1")
        if isinstance(command, click.Group):
            expected |= {f"pepscope-{name}-{inner}.1" for inner in command.commands}
    assert {page.name for page in written} == expected
    man = shutil.which("man")
    for page in written if man else ():
        read = subprocess.run(
            [man or "", "--warnings", "-l", page],
            env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANROFFSEQ": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        assert read.stderr == "", page.name
        assert "SYNOPSIS" in read.stdout
