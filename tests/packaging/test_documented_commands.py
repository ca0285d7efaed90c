"""Commands in documents: each is run here or in a list with the reason why not, and has only options that exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pepscope.cli import SUMMARIES, pepscope_command

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
#: What a page calls its reader's captures, and ours that stand for them.
STAND_INS = {
    **dict.fromkeys(("a.pcap", "server.pcap", "server-*.pcap", "SENDER"), "examples/split/server.pcap.gz"),
    **dict.fromkeys(("b.pcap", "mobile.pcap", "[RECEIVER]"), "examples/split/mobile.pcap.gz"),
    **dict.fromkeys(("laptop.pcap", "phone.pcap", "FILE"), "examples/split/mobile.pcap.gz"),
    "/var/captures": "examples/split",
    "DIRECTORY": "examples/split",
    "CORPUS": "examples/labelled",
}
#: Beginnings of commands that are not run here, each with the reason.
NOT_RUN = {
    "cat ": "tests/prober/commands/test_tutorial.py runs the tutorial that it is of",
    "curl ": "needs a proxy and a host",
    "export ": "sets a variable",
    "for ": "needs hosts of the reader",
    "journalctl ": "needs a service of the reader's",
    "make ": "targets of the Makefile: what they run is tested",
    "nohup ": "a server that runs until it is killed",
    "pip install": "tests/packaging/test_distribution.py installs",
    "pipx ": "installs",
    "podman ": "needs a container engine",
    "python -m benchmarks": "minutes, and the reader's captures; tests/detector/corpora",
    "python3 pepscope-client.pyz": "runs on another device",
    "tcpdump ": "captures until it is interrupted",
    "pepscope audit ": "needs a server or the reader's archives; tests/prober/commands and tests/end_to_end run it",
    "pepscope check": "needs public hosts; tests/prober run it in namespaces",
    "pepscope completion fish": "writes into the reader's home; tests/pepscope/command_line/test_completion.py runs it",
    "pepscope completion zsh": "writes into zsh's path; tests/pepscope/command_line/test_completion.py runs it",
    "pepscope detect runs/": "the reader's archives; the tutorial's test runs it",
    "pepscope detect split/": "captures of a live path; tests/end_to_end/test_emulate.py runs it",
    "pepscope emulate": "a live path in real time; tests/end_to_end/test_emulate.py runs it",
    "pepscope probe anonymise": "the reader's archive; tests/prober/anonymise",
    "pepscope probe dashboard": "a page that is served until it is killed; tests/prober/server/dashboard",
    "pepscope probe run": "needs a server; the tutorial's test runs it",
    "pepscope probe serve": "a server that runs until it is killed; tests/prober/serving.py",
    "pepscope probe upload": "needs a server; tests/prober/commands/test_upload.py",
    "pepscope probe withdraw": "needs a server; tests/prober/commands/test_archives.py",
    "pepscope proxy": "a server that runs until it is killed; tests/reference_proxy",
    "pepscope reproduce": "minutes; tests/papers",
    "pepscope simulate --campaign": "minutes; tests/reference_sim",
    "pepscope validate tests/corpus": "a minute; tests/detector/corpora",
    "pepscope watch": "goes on until it is interrupted; tests/detector/corpora/watch",
    "systemctl ": "changes the reader's system",
}
#: Exit statuses other than 0 that a command is documented with.
STATUSES = {"--fail-on": 1}


def commands() -> list[tuple[str, str]]:
    """Every command of a console block with its page, in the order of the pages, without its comment."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```(?:console|sh|bash|shell)\n(.*?)```", text, re.DOTALL):
            for line in re.findall(r"^(?:server|mobile)?[$#] (.+)$", block, re.MULTILINE):
                command = re.sub(r"\s+#\s.*$", "", line).removeprefix(".venv/bin/").strip()
                found.append((page.relative_to(ROOT).as_posix(), command))
    return found


def reason(command: str) -> str | None:
    """Why a command is not run; None where it is."""
    return next((why for beginning, why in NOT_RUN.items() if command.startswith(beginning)), None)


def options(command: click.Command) -> set[str]:
    """The options of a command and of its subcommands."""
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    context = click.Context(command)
    group = command if isinstance(command, click.Group) else click.Group()
    inner = [group.get_command(context, name) for name in group.list_commands(context)]
    return own.union(*(options(one) for one in inner if one is not None), {"--help"})


def test_every_reason_is_needed_and_most_commands_of_captures_are_run() -> None:
    every = commands()
    assert len(every) > 60
    for beginning in NOT_RUN:
        assert any(command.startswith(beginning) for _, command in every), beginning
    assert sum(reason(command) is None for _, command in every) > 25


def test_documented_options_exist() -> None:
    context, checked = click.Context(pepscope_command), 0
    for page, line in commands():
        for part in re.split(r"[|&]+", line.partition(" -- ")[0]):
            words = shlex.split(part.partition("--middle-command")[0]) if part.count("'") % 2 == 0 else []
            if len(words) > 1 and words[0] == "pepscope" and words[1] in SUMMARIES:
                command = pepscope_command.get_command(context, words[1])
                assert command is not None
                asked = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
                assert asked <= options(command), f"{page}: {line}"
                checked += 1
    assert checked > 40


def test_commands_and_options_in_prose_exist() -> None:
    """`pepscope NAME` in backticks is a command, an option in backticks that of a command (decisions aside)."""
    every, named = options(pepscope_command), 0
    for page in [page for page in PAGES if "decisions" not in page.parts and page.name != "commands.md"]:
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name in re.findall(r"`pepscope\s([a-z][a-z-]*)", prose):
            assert name in SUMMARIES, f"{page}: pepscope {name}"
            named += 1
        if page.parent.name == "guide" or page.parent == ROOT:
            assert set(re.findall(r"`(--[a-z][a-z-]*)", prose)) <= every, page
    assert named > 100


@pytest.mark.parametrize("page", sorted({page for page, command in commands() if reason(command) is None}))
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    for folder in ("examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "pepscope"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from pepscope.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    (tmp_path / ".local/share/bash-completion/completions").mkdir(parents=True)
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    for command in [command for at, command in commands() if at == page and reason(command) is None]:
        pattern = r"(?<![\w./-])(" + "|".join(map(re.escape, STAND_INS)) + r")(?![\w/.-])"
        line = re.sub(pattern, lambda found: STAND_INS[found[1]], command)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        expected = next((status for option, status in STATUSES.items() if option in command), 0)
        assert done.returncode == expected, f"{line}: {done.stderr[-1000:]}"
