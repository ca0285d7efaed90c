"""Calls that run without click do what click makes of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pepscope.command_line.direct import needs_no_parser

CORPUS = Path(__file__).parents[2] / "corpus"
ONE = str(CORPUS / "reg_dl_nat.srv.pcap.gz")
DAMAGED = str(CORPUS / "reg_dl_v6__cut.mob.pcap.gz")

#: The program with whichever parser fits, and with click for all calls.
FITTING = "from pepscope.__main__ import main; main()"
WITH_CLICK = "from pepscope.cli import main; main()"


def run(program: str, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True, check=False, timeout=600, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", ONE),
        ("inspect", "--json", DAMAGED),
        ("inspect", DAMAGED, "--json"),
        ("inspect", "--json", str(CORPUS)),
        ("inspect", "--json", f"{ONE}.absent"),
        ("inspect", __file__),
        ("inspect", ONE, ONE),
        ("detect", ONE),
        ("detect", "--json", ONE, ONE.replace(".srv.", ".mob.")),
        ("detect", ONE, ONE, ONE),
        ("detect", ONE, ONE),
        ("detect", f"{ONE}.absent"),
        ("no-such-command", ONE),
    ],
)
def test_output_errors_and_status_are_those_of_click(words: tuple[str, ...]) -> None:
    assert needs_no_parser(words)
    fitting, with_click = run(FITTING, *words), run(WITH_CLICK, *words)
    assert fitting.returncode == with_click.returncode
    assert fitting.stdout == with_click.stdout
    assert fitting.stderr == with_click.stderr


def test_a_name_that_is_no_unicode_or_would_steer_a_terminal_is_listed(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b.pcap.gz"))
    odd.symlink_to(ONE)
    for words in (("inspect", str(odd)), ("inspect", "--exchanges", str(odd))):
        listed = run(FITTING, *words)
        assert (listed.returncode, listed.stderr) == (0, b"")
        assert b"/??.pcap.gz: " in listed.stdout
    refused = run(FITTING, "inspect", str(tmp_path / "\x1b[31m"))
    assert refused.stderr.endswith(b"?[31m: no such file or directory\n")


def test_an_interrupt_while_modules_are_loaded_ends_in_one_sentence() -> None:
    begin = (
        "import pepscope.command_line.direct as direct\n"
        "def interrupted(words): raise KeyboardInterrupt\n"
        "direct.run_directly = interrupted\n"
    )
    ended = run(begin + FITTING, "inspect", ONE)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"\npepscope: interrupted\n")


def test_click_is_left_out() -> None:
    ending = "import atexit, sys; atexit.register(lambda: sys.stderr.write(str('click' in sys.modules)))\n"
    assert run(ending + FITTING, "inspect", "--json", ONE).stderr == b"False"
    assert run(ending + FITTING, "detect", "--json", ONE).stderr == b"False"
    assert run(ending + FITTING, "inspect", "--json", "--quiet", ONE).stderr == b"True"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--help",),
        ("inspect",),
        ("inspect", "--help"),
        ("inspect", "--json"),
        ("inspect", "--json", "-"),
        ("inspect", "--json=out", ONE),
        ("inspect", "--json", "out.json", ONE),
        ("inspect", "--json", "--json", ONE),
        ("inspect", "--", ONE),
        ("inspect", ""),
        ("detect", "--fail-on", "split", ONE),
    ],
)
def test_everything_else_is_read_by_click(words: tuple[str, ...]) -> None:
    assert not needs_no_parser(words)


def test_shells_still_get_completions() -> None:
    asked = {"_PEPSCOPE_COMPLETE": "bash_complete", "COMP_WORDS": "pepscope inspect --js", "COMP_CWORD": "2"}
    assert b"--json" in run(FITTING, "inspect", ONE, **asked).stdout


def test_a_reader_that_goes_away_is_no_failure() -> None:
    line = f"{sys.executable} -c '{FITTING}' inspect --json {CORPUS / 'reg_dl_par20.srv.pcap.gz'}"
    done = subprocess.run(
        ["bash", "-c", f"{line} | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.stderr == b""
    assert done.stdout.strip() in (b"141", b"0")


def test_archives_are_left_to_the_parser(tmp_path: Path) -> None:
    archive = tmp_path / "run.zip"
    archive.write_bytes(b"PK\x03\x04 and no more")
    fitting, with_click = run(FITTING, "detect", str(archive)), run(WITH_CLICK, "detect", str(archive))
    assert (fitting.returncode, fitting.stderr) == (with_click.returncode, with_click.stderr)
    assert fitting.returncode == 2
