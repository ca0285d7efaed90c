"""Shells complete our commands and options; man pages are made from the same definitions, and groff reads them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from distribution.man_pages import write_man_pages
from pepscope.cli import SUMMARIES, pepscope_command

ROOT = Path(__file__).parents[3]
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
    assert done.stderr == "", "it would stand in the line that is completed"
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
    assert "--version" in completed("detct", "--ve"), "as if the word were not there"


@pytest.mark.filterwarnings("ignore:'click.utils.make_default_short_help' is deprecated:DeprecationWarning")
def test_every_command_has_a_man_page_that_groff_reads(tmp_path: Path) -> None:
    written = write_man_pages(tmp_path)
    assert {page.name for page in written} == set(_pages(click.Context(pepscope_command, info_name="pepscope")))
    assert {"pepscope.1", "pepscope-detect.1", "pepscope-probe-serve.1", "pepscope-probe-key-add.1"} <= {
        page.name for page in written
    }
    for page in written:
        read = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, check=True)
        assert read.stderr == "", page.name
        # The terminal's bold is a letter, a backspace and the letter again.
        assert "SYNOPSIS" in re.sub(".\b", "", read.stdout), page.name


def _pages(context: click.Context) -> Iterator[str]:
    yield f"{context.command_path.replace(' ', '-')}.1"
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from _pages(click.Context(command, info_name=name, parent=context))
